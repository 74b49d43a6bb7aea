# SPDX-License-Identifier: Apache-2.0
"""The command ``longfat``: arguments in, exit status out.

Owns options, messages of errors and the exit; the verbs are in ``longfat.verbs``. Their modules bring
pydantic, pyarrow, Dask and matplotlib with them, so each verb imports its own when it is called: that keeps
``--help`` quick. No other module defers an import for speed, except where it says so.

Exit status: 0 all runs valid and every claim judged, 1 a fault of the program itself, 2 wrong study or command line,
3 the machine or a tool is at fault, 4 some runs failed or are invalid, a law is not followed or a canary differs,
130 interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from longfat.backends.registry import DEFAULT_BACKEND, backend_names
from longfat.catalog.kernels import DEFAULT_KERNEL, require_kernel
from longfat.errors import LongfatError, RigError

if TYPE_CHECKING:
    from rich.console import Console

RUNS_NOT_VALID = 4
INTERRUPTED = 130

app = typer.Typer(
    help="Reproduce published TCP congestion-control studies with real Linux TCP.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
build = typer.Typer(
    help="Build the kernel, the image, a container image or a disk into the cache folder.", no_args_is_help=True
)
app.add_typer(build, name="build")
lab = typer.Typer(
    help="Make, prepare and destroy the machines of a lab (docs/infrastructure.md).", no_args_is_help=True
)
app.add_typer(lab, name="lab")

Study = Annotated[str, typer.Argument(help="name under experiments/, or path of a folder with study.yaml")]
Profile = Annotated[str, typer.Option(help="smoke, quick or paper")]
Only = Annotated[str, typer.Option(help="ids of artifacts or experiments, separated by commas")]
Stack = Annotated[str | None, typer.Option(help="stack profile instead of the study's own")]
Seed = Annotated[int | None, typer.Option(min=0, help="seed instead of the study's own")]
BackendName = Annotated[str, typer.Option("--backend", help=f"where runs happen: {', '.join(backend_names())}")]
Jobs = Annotated[int | None, typer.Option(min=1, help="runs at a time (default: one a CPU)")]
Results = Annotated[Path | None, typer.Option(help="results folder (default: results/STUDY)")]
UsedLab = Annotated[str | None, typer.Option("--lab", help="lab that the backend uses, as `lab up` named it")]
LabEnvironment = Annotated[str, typer.Argument(help="local, libvirt, openstack, latitude or existing")]
OfLab = Annotated[str | None, typer.Argument(help="environment, which is the lab's name unless --lab states another")]
LabName = Annotated[str | None, typer.Option("--lab", help="name of the lab (default: that of its environment)")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]
Scheduler = Annotated[str | None, typer.Option(help="address of a Dask scheduler to use, tcp://host:port")]


@app.command()
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
) -> None:
    """Run what is missing of a study, judge its claims, draw its figures and write the report."""
    with _outcome() as console:
        from longfat.verbs import conclude
        from longfat.verbs.run import Machine
        from longfat.verbs.study import Choices

        choices = Choices(profile, _ids(only), stack, seed)
        machine = Machine(backend, jobs, results, scheduler, lab)
        _finish(conclude.reproduce(study, choices, machine, console))


@app.command()
def smoke(
    backend: BackendName = DEFAULT_BACKEND, jobs: Jobs = None, results: Results = None, lab: UsedLab = None
) -> None:
    """Reproduce the study that shows the whole chain at work, in a minute or two."""
    with _outcome() as console:
        from longfat.verbs import conclude
        from longfat.verbs.run import Machine

        _finish(conclude.smoke(Machine(backend, jobs, results, lab=lab), console))


@app.command()
def crosscheck(
    backends: Annotated[str, typer.Option(help="two or more")] = "",
) -> None:
    """Run the same scenarios on several backends and report where they agree."""
    with _outcome() as console:
        from longfat.verbs.crosscheck import crosscheck

        if not crosscheck(_ids(backends), console):
            sys.stderr.write("the backends do not agree everywhere; the report says where and how far\n")
            raise typer.Exit(RUNS_NOT_VALID)


@app.command()
def check(study: Study) -> None:
    """Check a study's manifest and claims, and name every problem."""
    with _outcome() as console:
        from longfat.verbs.study import check

        _finish(check(study, console))


@app.command()
def new(name: Annotated[str, typer.Argument(help="name of the study, and of its folder under experiments/")]) -> None:
    """Make the folder of a new study, which runs as it is, to begin with."""
    with _outcome() as console:
        from longfat.verbs.new import new

        new(name, console)


@app.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="folder with a study of format 1")],
    to: Annotated[Path | None, typer.Option(help="folder for the new files (default: in their place)")] = None,
) -> None:
    """Rewrite a study of format 1, its claims and its figures in format 2, with the same runs."""
    with _outcome() as console:
        from longfat.verbs.convert import convert

        convert(folder, to, console)


@app.command()
def schema(
    file: Annotated[Literal["study", "claims", "figures"], typer.Argument(help="which of a study's files")] = "study",
) -> None:
    """Print the JSON Schema of study.yaml, claims.yaml or figures.yaml, for editors."""
    from longfat.verbs.schema import schema_of

    typer.echo(json.dumps(schema_of(file), indent=2))


@app.command()
def plan(
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    seed: Seed = None,
    expanded: Annotated[
        bool, typer.Option("--expanded", help="every experiment at every point in full, as YAML")
    ] = False,
) -> None:
    """Print what of a study varies, what is fixed, what is excluded and what it takes; write nothing."""
    with _outcome() as console:
        from longfat.verbs.plan import show_plan
        from longfat.verbs.study import Choices

        choices = Choices(profile, _ids(only), stack, seed)
        _finish(show_plan(study, choices, backend, jobs, console, spelt_out=expanded))


@app.command()
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
) -> None:
    """Write the lock and execute the runs that have no valid record."""
    with _outcome() as console:
        from longfat.verbs.run import Machine, run
        from longfat.verbs.study import Choices

        choices = Choices(profile, _ids(only), stack, seed)
        _finish(run(study, choices, Machine(backend, jobs, results, scheduler, lab), console))


@app.command()
def dataset(study: Study, results: Results = None) -> None:
    """Build the dataset from the recorded runs, with the validity gates applied."""
    with _outcome() as console:
        from longfat.verbs import conclude

        _finish(conclude.dataset(study, results, console))


@app.command()
def analyse(study: Study, results: Results = None) -> None:
    """Judge the claims and draw the figures from the dataset."""
    with _outcome() as console:
        from longfat.verbs import conclude

        _finish(conclude.analyse(study, results, console))


@app.command()
def report(study: Study, results: Results = None) -> None:
    """Write report.html from verdicts and figures."""
    with _outcome() as console:
        from longfat.verbs import conclude

        _finish(conclude.report(study, results, console))


@app.command()
def reports() -> None:
    """Write the front page of the reports, results/index.html: every study with its artifacts and claims."""
    with _outcome() as console:
        from longfat.verbs import conclude

        _finish(conclude.reports(console))


@app.command()
def reference(study: Study, results: Results = None) -> None:
    """Make dataset and verdicts the committed reference that later results are compared with."""
    with _outcome() as console:
        from longfat.verbs import conclude

        _finish(conclude.reference(study, results, console))


@build.command()
def kernel(
    target: Annotated[
        Literal["um", "x86-64"], typer.Option(help="the guest's kernel, or a Debian package for x86-64 machines")
    ] = "um",
    name: Annotated[str, typer.Option("--kernel", help="which of kernels/")] = DEFAULT_KERNEL,
) -> None:
    """Build a kernel, unless it is in the cache folder."""
    with _outcome() as console:
        from longfat.builds.kernel import build_kernel
        from longfat.builds.kernel_targets import TARGETS

        require_kernel(name)
        _say(console, "kernel", build_kernel(TARGETS[target], name, say=console.print).path)


@build.command()
def image(verify: Annotated[bool, typer.Option(help="compare every byte, of the composed roots too")] = False) -> None:
    """Build the userland image, unless it is in the cache folder."""
    with _outcome() as console:
        from longfat.builds.image import build_image
        from longfat.builds.roots import remove_damaged_roots

        built = build_image(verify=verify, say=console.print)
        if verify:
            remove_damaged_roots(built, console.print)
        _say(console, "image", built.path)


@build.command()
def disk() -> None:
    """Build the disk of virtual machines, unless it is in the cache folder; needs root."""
    with _outcome() as console:
        from longfat.builds.disk import build_disk

        _say(console, "disk", build_disk(say=console.print))


@build.command()
def oci() -> None:
    """Build the whole testbed as a container image, unless it is in the cache folder."""
    with _outcome() as console:
        from longfat.verbs.oci import build

        built = build(console)
        _say(console, built.tag, built.path)


@build.command("all")
def build_both() -> None:
    """Build the kernel and the image."""
    kernel()
    image()


@lab.command("up")
def lab_up(
    environment: LabEnvironment,
    name: LabName = None,
    yes: Yes = False,
    hourly_price: Annotated[float | None, typer.Option(min=0, help="what an hour of the whole lab costs")] = None,
    currency: Annotated[str, typer.Option(help="of that price")] = "USD",
) -> None:
    """Show what would be made and what it costs, ask, make it, and write the lab's inventory."""
    with _outcome() as console:
        from longfat.testbed.provision.changes import Price
        from longfat.verbs import lab as verbs

        verbs.up(environment, name, Price(hourly_price, currency), console, yes=yes)


@lab.command("provision")
def lab_provision(
    environment: OfLab = None,
    options: Annotated[list[str] | None, typer.Argument(help="after --: options of ansible-playbook")] = None,
    name: LabName = None,
) -> None:
    """Prepare the machines of a lab by the roles of infra/ansible."""
    with _outcome() as console:
        from longfat.verbs import lab as verbs

        given = [word for word in (environment, *(options or ())) if word]
        first = given.pop(0) if given and not given[0].startswith("-") else None
        verbs.provision(first, name, given, console)


@lab.command("down")
def lab_down(environment: OfLab = None, name: LabName = None, yes: Yes = False) -> None:
    """Show what would be destroyed, ask, destroy it, and remove what was made in the lab's folder."""
    with _outcome() as console:
        from longfat.verbs import lab as verbs

        verbs.down(environment, name, console, yes=yes)


@lab.command("list")
def lab_list() -> None:
    """List the labs of this account, and how long each has left."""
    from longfat.verbs import lab as verbs

    raise typer.Exit(verbs.sweep(["--list"]))


@lab.command("sweep")
def lab_sweep(yes: Yes = False) -> None:
    """List the labs of this account, and destroy those past their expiry, each once confirmed."""
    from longfat.verbs import lab as verbs

    raise typer.Exit(verbs.sweep(["--yes"] if yes else []))


@app.command()
def conformance(
    reference: Annotated[bool, typer.Option(help="write the report to kernels/conformance/, to be committed")] = False,
) -> None:
    """Hold the kernel's congestion controls against the published laws and write the report."""
    with _outcome() as console:
        from longfat.verbs.conformance import conformance

        if not conformance(console, reference=reference):
            sys.stderr.write("the kernel does not follow every law; the report says which and how far it is off\n")
            raise typer.Exit(RUNS_NOT_VALID)


@app.command()
def canary(
    jobs: Jobs = None,
    reference: Annotated[bool, typer.Option(help="renew kernels/canaries.json, to be committed")] = False,
) -> None:
    """Tell in a minute whether the kernel behaves as that of the references did."""
    with _outcome() as console:
        from longfat.backends.registry import open_backend
        from longfat.verbs.canary import canary, renew

        backend = open_backend(DEFAULT_BACKEND, {}, say=console.print)
        if reference:
            renew(backend, jobs, console)
        elif not canary(backend, jobs, console):
            raise typer.Exit(RUNS_NOT_VALID)


@app.command()
def bench(
    against: Annotated[str | None, typer.Option(help="commit to compare with, built and run by its own code")] = None,
    cases: Annotated[
        str, typer.Option(help="of fixed,1g-9000,1g-1500,100m-1500,2.4g-1500,10g-9000, or none (default: all)")
    ] = "",
    peers: Annotated[str, typer.Option(help="of host,ns2,ns3, or none (default: all)")] = "",
    study: Annotated[str | None, typer.Option(help="study whose quick profile is sampled and timed besides")] = None,
    sample: Annotated[int, typer.Option(min=1, help="runs of that study to do")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="seed of their choice")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="times that each run is done; the best one counts")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """Measure the speed of the laboratory on this machine, beside that of another commit and of simulators."""
    with _outcome() as console:
        from longfat.bench.run import Wanted, run_bench

        wanted = Wanted(against, _ids(cases), _ids(peers), study, sample, seed, repeats)
        run_bench(wanted, console, as_text=not as_json)


def main() -> None:
    """The entry point; the only function that ends the process."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup(1)
        signal.signal(signal.SIGHUP, _interrupt)
    app()


def _interrupt(number: int, frame: object) -> None:
    """Treat SIGTERM, and a terminal that was closed, as Ctrl-C: all stop cleanly."""
    raise KeyboardInterrupt


@contextmanager
def _outcome() -> Iterator[Console]:
    """Give a console, and turn an error or an interrupt into its message and exit status."""
    try:
        from rich.console import Console

        yield Console()
    except LongfatError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(error.exit_status) from error
    except KeyboardInterrupt as error:
        sys.stderr.write("interrupted; what is finished is kept, the same command continues\n")
        raise typer.Exit(INTERRUPTED) from error
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        refused = RigError(f"the machine refuses: {error.strerror or error}", where=_file_of(error))
        sys.stderr.write(f"error: {refused}\n")
        raise typer.Exit(refused.exit_status) from error
    except Exception as error:
        sys.stderr.write(_fault(error))
        raise typer.Exit(LongfatError.exit_status) from error


def _file_of(error: OSError) -> str | None:
    return None if error.filename is None else os.fsdecode(error.filename)


def _fault(error: Exception) -> str:
    """The message for a fault of the program itself, whose traceback goes into a file."""
    said = f"error: a fault of Longfat itself: {type(error).__name__}: {error}\n"
    told = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="longfat-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(told)
    except OSError:
        return said + told
    return f"{said}  hint: please report it with {file.name}; what is finished is kept\n"


def _finish(valid: bool) -> None:
    if not valid:
        sys.stderr.write("some runs failed or are invalid; the report and exclusions.csv say which and why\n")
        raise typer.Exit(RUNS_NOT_VALID)


def _say(console: Console, what: str, path: Path) -> None:
    console.print(f"{what}: {path}", soft_wrap=True, markup=False, highlight=False)


def _ids(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
