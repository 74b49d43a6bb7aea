# SPDX-License-Identifier: Apache-2.0
"""The command ``longfat``: arguments in, exit status out.

Owns options, messages of errors and the exit; the verbs are in ``longfat.verbs``. Their modules bring
pydantic, pyarrow, Dask and matplotlib with them, so each verb imports its own when it is called: that keeps
``--help`` quick. No other module defers an import for speed, except where it says so.

Exit status: 0 all runs valid and every claim judged, 1 a defect of the program itself, 2 wrong study or command line, 3
the machine or a tool is at fault, 4 some runs failed, are invalid or differ from the evidence, a law is not followed or
a canary differs, 75 the time given was up before the work was done, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer._completion_classes import completion_init

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli_evidence import evidence
from longfat.cli_machines import machines
from longfat.cli_options import (
    INTERRUPTED,
    RUNS_NOT_VALID,
    STUDIES,
    TESTBED,
    BackendName,
    Every,
    Grouped,
    Jobs,
    Json,
    On,
    Only,
    Opened,
    Profile,
    Results,
    SampleOnly,
    Scheduler,
    Seed,
    ShardOption,
    Stack,
    StoreAddress,
    Study,
    Tasks,
    Until,
    UsedLab,
    chosen,
    finish,
    guard_output,
    ids,
    outcome,
    settle,
    shown,
    verified,
)
from longfat.cli_program import COMPLETE, NAME, options, program
from longfat.cli_runs import runs
from longfat.errors import StudyError
from longfat.interrupts import let_go, lose_none
from longfat.verbs.places import require_lock
from longfat.verbs.say import print_json

app = typer.Typer(
    cls=Grouped,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text, in a third of the time
)
app.callback()(options)
app.add_typer(machines)
app.add_typer(runs)
app.add_typer(evidence)
app.add_typer(program)


@app.command(rich_help_panel=STUDIES)
def reproduce(
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    seed: Seed = None,
    results: Results = None,
    scheduler: Scheduler = None,
    lab: UsedLab = None,
    sample: SampleOnly = None,
    sample_seed: Annotated[int, typer.Option(min=0, help="seed of the sample")] = 1,
    opened: Opened = False,
    every: Every = False,
    as_json: Json = False,
    on: On = None,
    tasks: Tasks = None,
) -> None:
    """Run what is missing of a study, judge its claims, draw its figures and write the report."""
    with outcome(as_json=as_json) as console:
        choices, folder = chosen(study, profile, only, stack, seed)
        from longfat.verbs import conclude
        from longfat.verbs.run import Machine

        if sample is not None:
            verified(conclude.reproduce_sample(folder, sample, sample_seed, jobs, console))
            return
        machine = Machine(backend, jobs, results, scheduler, lab, on=on, tasks=tasks)
        finish(conclude.reproduce(folder, choices, machine, console, conclude.Show(opened, every, as_json)))


@app.command(rich_help_panel=STUDIES)
def smoke(
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    results: Results = None,
    lab: UsedLab = None,
    as_json: Json = False,
) -> None:
    """Reproduce the study that shows the whole chain at work, in a minute or two."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs import conclude
        from longfat.verbs.run import Machine

        finish(conclude.smoke(Machine(backend, jobs, results, lab=lab), console, conclude.Show(as_json=as_json)))


@app.command(rich_help_panel=TESTBED)
def crosscheck(
    backends: Annotated[str, typer.Option(help="two or more")] = "", results: Results = None, as_json: Json = False
) -> None:
    """Reproduce the study that compares backends, on those that work here, and report where they agree."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.conclude import Show
        from longfat.verbs.crosscheck import crosscheck

        if not crosscheck(ids(backends), results, console, Show(as_json=as_json)):
            sys.stderr.write(
                "the backends do not agree everywhere; the report says where, and by how much they differ\n"
            )
            raise typer.Exit(RUNS_NOT_VALID)


@app.command(rich_help_panel=STUDIES)
def check(study: Study, as_json: Json = False) -> None:
    """Check a study's manifest and claims, and name every problem."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.study import check

        if not check(study, console, as_json=as_json):
            raise typer.Exit(StudyError.exit_status)


@app.command(rich_help_panel=STUDIES)
def new(
    name: Annotated[str, typer.Argument(help="name of the study, and of its folder under experiments/")],
    as_json: Json = False,
) -> None:
    """Create the folder of a new study that runs without changes."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.new import new

        new(name, console, as_json=as_json)


@app.command(rich_help_panel=STUDIES)
def schema(
    file: Annotated[
        Literal["study", "claims", "figures"], typer.Argument(help="the study's file that the schema describes")
    ] = "study",
) -> None:
    """Print the JSON Schema of study.yaml, claims.yaml or figures.yaml, for editors."""
    from longfat.verbs.schema import schema_of

    typer.echo(json.dumps(schema_of(file), indent=2))


@app.command(rich_help_panel=STUDIES)
def plan(
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    seed: Seed = None,
    expanded: Annotated[
        bool, typer.Option("--expanded", help="print every experiment at every point in full, as YAML")
    ] = False,
    as_json: Json = False,
    on: On = None,
    tasks: Tasks = None,
    results: Results = None,
    printed: Annotated[bool, typer.Option("--print", help="print what the cluster of --on would be handed")] = False,
) -> None:
    """Print a study's factors, fixed settings, exclusions and cost; write nothing."""
    with outcome(as_json=as_json) as console:
        choices, folder = chosen(study, profile, only, stack, seed)
        from longfat.verbs.plan import show_plan
        from longfat.verbs.run import Machine

        machine = Machine(backend, jobs, results, on=on, tasks=tasks)
        finish(show_plan(folder, choices, machine, console, spelt_out=expanded, printed=printed, as_json=as_json))


@app.command(rich_help_panel=STUDIES)
def run(
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    seed: Seed = None,
    results: Results = None,
    scheduler: Scheduler = None,
    lab: UsedLab = None,
    shard: ShardOption = None,
    until: Until = None,
    on: On = None,
    tasks: Tasks = None,
    store: StoreAddress = None,
    as_json: Json = False,
) -> None:
    """Write the lock and execute the runs that have no valid record, or a shard of them (docs/cluster.md)."""
    with outcome(as_json=as_json) as console:
        choices, folder = chosen(study, profile, only, stack, seed)
        from longfat.execute.deadline import seconds_until
        from longfat.execute.shards import read_shard
        from longfat.verbs.run import Machine, run

        part = read_shard(shard, os.environ) if shard is not None else None
        until_s = seconds_until(until, datetime.now().astimezone()) if until is not None else None
        machine = Machine(backend, jobs, results, scheduler, lab, part, until_s, on, tasks, store)
        summary = run(folder, choices, machine, console)
        if as_json:
            print_json(asdict(summary))
        settle(summary)


@app.command(hidden=True)
def task(
    results: Annotated[Path, typer.Argument(help="results folder with the lock")],
    shard: ShardOption = "auto",
    jobs: Jobs = None,
    until: Until = None,
    kernels: Annotated[str, typer.Option(help="names of the kernels that runs pin")] = "",
    again: Annotated[str, typer.Option(help="ids of runs to execute once more")] = "",
    into: Annotated[str, typer.Option(help="folder in the results for these")] = "twice",
) -> None:
    """Execute a part of the runs in a lock: what `--on` has a cluster's tasks do."""
    with outcome() as console:
        from longfat.execute.deadline import seconds_until
        from longfat.execute.shards import read_shard
        from longfat.verbs.task import Task, task

        until_s = seconds_until(until, datetime.now().astimezone()) if until is not None else None
        part = read_shard(shard or "auto", os.environ)
        settle(task(results, Task(part, jobs, until_s, ids(kernels), ids(again), into), console))


@app.command(rich_help_panel=STUDIES)
def merge(
    results: Annotated[Path, typer.Argument(help="results folder to join the records in, made if need be")],
    folders: Annotated[list[str], typer.Argument(help="results folders of shards, folders of records, or stores")],
    as_json: Json = False,
) -> None:
    """Join the records of shards from anywhere, or from a store, into one results folder, each one checked."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.merge import merge

        if not merge(results, folders, console, as_json=as_json):
            sys.stderr.write("some records are damaged and were not joined; their runs count as missing\n")
            raise typer.Exit(RUNS_NOT_VALID)


@app.command(rich_help_panel=STUDIES)
def dataset(study: Study, results: Results = None, as_json: Json = False) -> None:
    """Build the dataset from the recorded runs, with the validity gates applied."""
    with outcome(as_json=as_json) as console:
        require_lock(study, results)
        from longfat.verbs import conclude

        finish(conclude.dataset(study, results, console, conclude.Show(as_json=as_json)))


@app.command(rich_help_panel=STUDIES)
def analyse(study: Study, results: Results = None, every: Every = False, as_json: Json = False) -> None:
    """Judge the claims and draw the figures from the dataset."""
    with outcome(as_json=as_json) as console:
        require_lock(study, results)
        from longfat.verbs import conclude

        finish(conclude.analyse(study, results, console, conclude.Show(every=every, as_json=as_json)))


@app.command(rich_help_panel=STUDIES)
def compare(
    one: Annotated[str, typer.Argument(metavar="A", help="results folder, or STUDY:STACK by the evidence")],
    other: Annotated[str, typer.Argument(metavar="B", help="the same")],
    every: Annotated[bool, typer.Option("--all", help="print claims with the same verdict too")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="end with status 4 where a verdict differs")] = False,
    as_json: Json = False,
) -> None:
    """Compare two results folders, or two stacks of a study, claim by claim."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.compare import compare

        same = compare(one, other, console, every=every, as_json=as_json)
        shown(same or not exit_code)


@app.command(rich_help_panel=STUDIES)
def report(study: Study, results: Results = None, opened: Opened = False, as_json: Json = False) -> None:
    """Write report.html from verdicts and figures."""
    with outcome(as_json=as_json) as console:
        require_lock(study, results)
        from longfat.verbs import conclude

        finish(conclude.report(study, results, console, conclude.Show(opened, as_json=as_json)))


@app.command(rich_help_panel=STUDIES)
def package(
    study: Study,
    results: Results = None,
    output: Annotated[Path | None, typer.Option(help="file to write (default: STUDY.crate.zip in the results)")] = None,
    as_json: Json = False,
) -> None:
    """Pack a study's results as one RO-Crate for an archive, with an artifact appendix."""
    with outcome(as_json=as_json) as console:
        require_lock(study, results)
        from longfat.verbs.package import package

        finish(package(study, results, output, console, as_json=as_json))


@app.command(rich_help_panel=STUDIES)
def reports(opened: Opened = False, as_json: Json = False) -> None:
    """Write the front page of the reports, results/index.html: every study with its artifacts and claims."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs import conclude

        finish(conclude.reports(console, conclude.Show(opened, as_json=as_json)))


@app.command(rich_help_panel=STUDIES)
def reference(study: Study, results: Results = None, as_json: Json = False) -> None:
    """Store dataset and verdicts as the committed reference that later results are compared with."""
    with outcome(as_json=as_json) as console:
        require_lock(study, results)
        from longfat.verbs import conclude

        finish(conclude.reference(study, results, console, conclude.Show(as_json=as_json)))


@app.command(rich_help_panel=TESTBED)
def conformance(jobs: Jobs = None, results: Results = None, as_json: Json = False) -> None:
    """Reproduce the study that compares the kernel's congestion controls with their published laws."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.conclude import Show
        from longfat.verbs.conformance import conformance
        from longfat.verbs.run import Machine

        if not conformance(Machine(jobs=jobs, results=results), console, Show(as_json=as_json)):
            sys.stderr.write("some law is neither met nor deviates as stated; the report says which\n")
            raise typer.Exit(RUNS_NOT_VALID)


@app.command(rich_help_panel=STUDIES)
def evaluate(
    algorithms: Annotated[
        list[str] | None, typer.Argument(help="the kernel's algorithms by name, or C files; none: draw the kept cards")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="the nine algorithms whose cards the study keeps")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="keep the cards with the study, to be committed")] = False,
    profile: Profile = "quick",
    jobs: Jobs = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Hold an algorithm against RFC 9743 (BCP 133), beside Reno, CUBIC and BBR: its report card (docs/evaluate.md)."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.evaluate import SHIPPED, evaluate
        from longfat.verbs.run import Machine

        names = SHIPPED if every else tuple(algorithms or ())
        machine = Machine(jobs=jobs, results=results)
        finish(evaluate(names, profile, machine, console, keep=keep, as_json=as_json))


@app.command(rich_help_panel=TESTBED)
def canary(
    jobs: Jobs = None,
    reference: Annotated[bool, typer.Option(help="renew kernels/checks.json, to be committed")] = False,
    as_json: Json = False,
) -> None:
    """Check in a minute whether the kernels of the stacks behave like the kernels of the references."""
    with outcome(as_json=as_json) as console:
        from longfat.backends.registry import open_backend
        from longfat.catalog.stacks import STACKS
        from longfat.verbs.kernel_check import check, renew
        from longfat.verbs.study import kernel_settings

        backend = open_backend(DEFAULT_BACKEND, kernel_settings(DEFAULT_BACKEND, *STACKS), say=console.print)
        if reference:
            renew(backend, jobs, console)
        else:
            shown(check(backend, jobs, console, as_json=as_json))


@app.command(rich_help_panel=TESTBED)
def bench(
    cases: Annotated[
        str, typer.Option(help="of fixed,1g-9000,1g-1500,100m-1500,2.4g-1500,10g-9000, or none (default: all)")
    ] = "",
    peers: Annotated[str, typer.Option(help="of host,ns2,ns3, or none (default: all)")] = "",
    repeats: Annotated[
        int, typer.Option(min=1, help="number of times that each run is executed; the best one counts")
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """Measure the speed of runs on this machine, compared with simulators."""
    with outcome() as console:
        from longfat.bench.run import Wanted, run_bench

        run_bench(Wanted(ids(cases), ids(peers), repeats), console, as_text=not as_json)


def main() -> None:
    """The entry point; the only function that ends the process."""
    lose_none(signal.SIGTERM, _listen)
    _listen()
    if COMPLETE in os.environ:
        completion_init()
    try:
        guard_output()
        try:
            app(prog_name=NAME)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except KeyboardInterrupt:  # before a command has begun
        sys.stderr.write("interrupted; nothing was begun\n")
        sys.exit(INTERRUPTED)


def _listen() -> None:
    """Be stopped by SIGTERM, and by a terminal that is closed."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup(1)
        signal.signal(signal.SIGHUP, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGHUP))


def _interrupt(number: int, frame: object) -> None:
    """Treat SIGTERM, and a terminal that was closed, as Ctrl-C, once: all stop cleanly, and nothing interrupts that."""
    let_go((signal.SIGTERM, signal.SIGHUP))
    raise KeyboardInterrupt
