# SPDX-License-Identifier: Apache-2.0
"""The study of a trial: algorithms on one path, as the options of ``longfat try`` describe them.

Owns the text of its manifest and figures, and reports all faults of the options at once.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.data.study_folder import FIGURES, MANIFEST, StudyFolder
from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size
from longfat.study.queues.limit import Products
from longfat.study.schema.fields import FASTEST
from longfat.study.schema.names import unknown
from longfat.study.sweep import common_unit
from longfat.study.traffic.own import PROGRAM, faults_of
from longfat.system.errors import Problem, StudyError
from longfat.system.trust import agree

QUEUES = ("pfifo", "bfifo", "codel", "fq_codel", "fq", "pie", "fq_pie")
"""The kinds of queue that need no setting except a limit."""
TOGETHER = "together"  # the metric of several flows: their goodput while all send
MOST_FLOWS, MOST_REPETITIONS = 16, 100
PORT = 4432  # before the port of the first program
FASTER = 10  # hosts send at this multiple of the largest rate, up to the fastest: packets wait in the bottleneck
# Values that stand for faulty ones, so that the other faults are found.
_STAND_INS = {"rate": ("100 Mbit/s",), "rtt": ("50 ms",), "duration": ("10 s",)}
# Options by a word of the manifest's key.
_OPTIONS = {"rate": "rate", "rtt": "rtt", "loss": "loss", "buffer": "buffer", "limit": "buffer", "duration": "duration"}
_NAMES = {"mbps": "Mbit/s", "gbps": "Gbit/s", "kbps": "kbit/s"}


@dataclass(frozen=True)
class Trial:
    """Algorithms and a path. Each option is a tuple of the values to compare, as in a manifest."""

    algorithms: tuple[str, ...]
    path: Mapping[str, tuple[str, ...]]
    flows: int = 1
    together: bool = False
    duration: str = "10 s"
    repetitions: int = 1

    @property
    def names(self) -> dict[str, str]:
        """The algorithms, C files and folders of programs, by their names in the manifest."""
        return {Path(given).name.removesuffix(".c").removeprefix("tcp_"): given for given in self.algorithms}

    @property
    def programs(self) -> dict[str, str]:
        """The folders of programs by name."""
        return {name: given for name, given in self.names.items() if Path(given).is_dir()}

    @property
    def kernels(self) -> dict[str, str]:
        """The algorithms of the kernel and C files by name."""
        return {name: given for name, given in self.names.items() if name not in self.programs}

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The properties of the path that have several values."""
        return {name: values for name, values in self.path.items() if len(values) > 1}

    @property
    def title(self) -> str:
        """A title for people."""
        how = " together" if self.together else ""
        return f"{' and '.join(self.names)}{how} on {' and '.join(self.path['rate'])}, {' and '.join(self.path['rtt'])}"


def read_trial(
    algorithms: Sequence[str], given: Mapping[str, str], flows: int, together: bool, repetitions: int, folder: Path
) -> Trial:
    """Return the trial that the options describe, and write its study into ``folder``, which is new.

    Raises StudyError with every faulty option, RigError.
    """
    problems: list[Problem] = []

    def values(option: str, *kinds: type[Quantity], bare: bool = False) -> tuple[str, ...]:
        try:
            return _values(given[option], *kinds, bare=bare)
        except StudyError as error:
            problems.append(Problem(f"--{option}", None, "", error.message, error.hint))
            return _STAND_INS.get(option, ())

    path = {
        "rate": values("rate", Rate),
        "rtt": values("rtt", Duration),
        "loss": values("loss", Ratio) if given["loss"] else (),
        "buffer": values("buffer", Products, Size, Duration, bare=True) if given["buffer"] else (),
        "queue": tuple(_parts(given["queue"])),
    }
    if any(Duration.parse(rtt).value == 0 for rtt in path["rtt"]):
        problems.append(Problem("--rtt", None, "", f"{given['rtt']} is out of range; allowed: above 0"))
    durations = values("duration", Duration)
    if len(durations) > 1:
        problems.append(Problem("--duration", None, "", f"{given['duration']!r} is not one length of time"))
    problems += [
        Problem("--queue", None, "", *unknown("queue", name, QUEUES)) for name in path["queue"] if name not in QUEUES
    ]
    path["queue"] = tuple(name for name in path["queue"] if name in QUEUES) or QUEUES[:1]
    for option, number, most in (("flows", flows, MOST_FLOWS), ("repetitions", repetitions, MOST_REPETITIONS)):
        if not 1 <= number <= most:
            problems.append(Problem(f"--{option}", None, "", f"{number} is out of range; allowed: 1 to {most}"))
    faults = {one: list(faults_of(one)) for one in algorithms}
    problems += (problem for found in faults.values() for problem in found)
    sound = tuple(one for one in algorithms if not faults[one]) or ("reno",)
    some, times = max(1, min(flows, MOST_FLOWS)), max(1, min(repetitions, MOST_REPETITIONS))
    trial = Trial(sound, path, some, together, durations[0], times)
    if len(trial.names) < len(sound):
        problems.append(Problem("ALGORITHM", None, "", "two algorithms have the same name", "name each once"))
    write_trial(trial, folder.name, folder)
    problems += _faults_of_study(folder, trial)
    if problems:
        raise StudyError("the trial cannot be made", problems=tuple(dict.fromkeys(problems)))
    return trial


def _faults_of_study(folder: Path, trial: Trial) -> Iterator[Problem]:
    """Yield the faults that the study of a trial has, each at the option or the file from which it comes."""
    try:
        _ = StudyFolder(folder).study
    except StudyError as error:
        for problem in error.problems:
            places = [f"--{_OPTIONS[word]}" for word in re.findall(r"[a-z]+", problem.key) if word in _OPTIONS]
            if problem.key.startswith("algorithms."):
                places = [trial.names[problem.key.split(".")[1]]]
            message = re.sub(r"^as [^:]*: ", "", problem.message)  # of a swept value
            yield Problem(places[-1] if places else "the options", None, "", message, problem.hint)


def _parts(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _values(text: str, *kinds: type[Quantity], bare: bool = False) -> tuple[str, ...]:
    """Return the values of an option; a number without a unit has the unit of the next value that has one.

    ``bare`` gives whole numbers a meaning without a unit: then all values have one or none has. Raises StudyError.
    """
    parts = _parts(text) or [text]
    units = [part.lstrip("0123456789. ") for part in parts]
    if bare and not any(units) and all(part.isdigit() for part in parts):
        return tuple(parts)
    if bare and any(units) and (alone := next((part for part, unit in zip(parts, units, strict=True) if not unit), "")):
        raise StudyError(f"{alone} in {text!r} has no unit", hint="give each value a unit, or none for packets")
    nexts = [next(filter(None, units[place:]), "") for place in range(len(parts))]
    found = [_value(part if unit else part + then, kinds) for part, unit, then in zip(parts, units, nexts, strict=True)]
    if len({kind for kind, _ in found}) > 1:
        raise StudyError(f"{text!r} has units of different kinds", hint="a sweep has one kind; try each for itself")
    return tuple(dict.fromkeys(value for _, value in found))


def _value(text: str, kinds: Sequence[type[Quantity]]) -> tuple[type[Quantity], str]:
    """Return kind and text of a quantity as in a manifest; its unit may be in lower case and without "/s"."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%/ ")
    given = text[len(number) :].strip()
    for kind in kinds:
        units = {name: unit for unit in kind.units for name in (unit.lower(), unit.lower().removesuffix("/s"))}
        units |= {name: unit for name, unit in _NAMES.items() if unit in kind.units}
        if given.lower() in units and not (given.lower() in _NAMES and "B" in given):  # MBps are bytes
            unit = given if given in kind.units else units[given.lower()]
            kind.parse(f"{number} {unit}")
            return kind, f"{number} {unit}"
    if len(kinds) > 1:
        known = ", ".join(unit for kind in kinds for unit in kind.units)
        raise StudyError(f"{text!r} is not a limit of a queue", hint=f"write packets, or a number and a unit: {known}")
    return kinds[0], str(kinds[0].parse(text))  # raises, and names the units


def write_trial(trial: Trial, name: str, folder: Path) -> list[str]:
    """Write manifest, figures and the user's own files into a folder; return their names."""
    texts = {MANIFEST: manifest(trial, name), FIGURES: figures(trial, name)}
    copies = {Path(given).name: Path(given) for given in trial.kernels.values() if given.endswith(".c")}
    copies |= {f"{own}-{file}": Path(given) / file for own, given in trial.programs.items() for file in PROGRAM}
    for file, source in copies.items():
        shutil.copy(source, folder / file)
        if file.endswith(".c"):
            agree((folder / file).read_bytes())  # the user has named it on the command line
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    return [*texts, *copies]


def manifest(trial: Trial, name: str) -> str:
    """Return the text of study.yaml."""
    lines = [
        "# Made by `./just try`; docs/own-study.md explains this file, `./just check --keys` prints every key.",
        "format: 2",
        f'study: "{name}"',
        f"title: {trial.title}",
        "algorithms:",
        *(f"  {own}: {{{_algorithm(given)}}}" for own, given in trial.kernels.items()),
        "paths:",
        f"  path: {{{', '.join(_topology(trial))}}}",
        "defaults:",
        "  path: path",
        f"  repetitions: {trial.repetitions}",
        "experiments:",
        *(line for experiment in _experiments(trial) for line in experiment),
    ]
    if not trial.kernels:
        lines.remove("algorithms:")
    return "\n".join(lines) + "\n"


def _algorithm(given: str) -> str:
    return f"source: {Path(given).name}" if given.endswith(".c") else f"cca: {given}"


def _topology(trial: Trial) -> Iterator[str]:
    """Yield the keys of the path, with the first of several values."""
    hosts = min(FASTER * max(Rate.parse(rate).value for rate in trial.path["rate"]), FASTEST.value)
    senders = trial.flows * (len(trial.names) if trial.together else 1)
    yield f"kind: dumbbell, rate: {trial.path['rate'][0]}, host_rate: {Rate(hosts)}"
    yield f"rtt: {trial.path['rtt'][0]}, senders: {senders}"
    yield f"bottleneck_queue: {{{_queue(trial, trial.path['queue'][0], trial.path['buffer'][:1])}}}"
    if trial.path["loss"]:
        yield f"loss: {trial.path['loss'][0]}"


def _queue(trial: Trial, kind: str, limit: Sequence[str]) -> str:
    """Return a queue; a drop-tail queue holds one BDP unless the trial gives a buffer."""
    if not limit and any(one in ("pfifo", "bfifo") for one in trial.path["queue"]):
        limit = ("1 bdp",)
    return ", ".join([f"kind: {kind}", *(f"limit: {one}" for one in limit)])


def _experiments(trial: Trial) -> Iterator[list[str]]:
    """Yield the lines of each experiment: the kernel's algorithms alone, each program alone, or all together."""
    if trial.together:
        names = list(trial.names)
        kernels = [
            _flow(own, own, trial, 1 + names.index(own) * trial.flows)
            for own in trial.kernels
        ]  # fmt: skip
        programs = [
            line for own in trial.programs for line in _programs(own, trial, 1 + names.index(own) * trial.flows)
        ]
        yield _experiment("together", trial, kernels, programs, trial.factors)
        return
    if trial.kernels:
        swept = {"algorithm": tuple(trial.kernels), **trial.factors}
        yield _experiment("alone", trial, [_flow("flow", "${algorithm}", trial, 1)], [], swept)
    for own in trial.programs:
        yield _experiment(own, trial, [], _programs(own, trial, 1), trial.factors)


def _experiment(
    name: str, trial: Trial, flows: Sequence[str], programs: Sequence[str], swept: Mapping[str, tuple[str, ...]]
) -> list[str]:
    lines = [f"  - id: {name}"]
    factors = {key: f'"${{{key}}}"' for key in trial.factors}
    changes = [f"{key}: {factors[key]}" for key in ("rate", "rtt", "loss") if key in factors]
    if {"queue", "buffer"} & set(factors):  # a kind replaces the whole queue of the path
        kind = factors.get("queue", trial.path["queue"][0])
        limit = (factors["buffer"],) if "buffer" in factors else trial.path["buffer"]
        changes.append(f"bottleneck_queue: {{{_queue(trial, kind, limit)}}}")
    lines += [f"    topology: {{{', '.join(changes)}}}"] if changes else []
    for key, entries in (("flows", flows), ("programs", programs)):
        lines += [f"    {key}:", *(f"      - {{{entry}}}" for entry in entries)] if entries else []
    if swept:
        lines += ["    sweep:", "      product:"]
        lines += [f"        {factor}: [{', '.join(values)}]" for factor, values in swept.items()]
    return lines


def _flow(name: str, algorithm: str, trial: Trial, sender: int) -> str:
    count = f", count: {trial.flows}" if trial.flows > 1 else ""
    return (
        f'name: {name}{count}, from: client{sender}, to: server, algorithm: "{algorithm}", '
        f"duration: {trial.duration}, start_jitter: 100 ms"
    )


def _programs(name: str, trial: Trial, sender: int) -> list[str]:
    """Return an entry for each flow of a program: each has a sender, from this number on, and a port."""
    return [
        f"name: {name}{place}, from: client{number}, to: server, port: {PORT + number}, "
        f'send: "./{name}-send {{address}} {{port}} {{seconds}}", receive: "./{name}-receive {{port}}", '
        f"files: [{name}-send, {name}-receive], duration: {trial.duration}"
        for number, place in enumerate(_places(trial.flows), start=sender)
    ]


def figures(trial: Trial, name: str) -> str:
    """Return the text of figures.yaml: goodput by a factor, or else the congestion windows over time."""
    experiment = "together" if trial.together else "alone"
    lines = ["format: 2", f'study: "{name}"']
    if not trial.kernels:
        return "\n".join([*lines, "figures: []", ""])
    if factor := next(iter(trial.factors), None):
        series = "" if trial.together else ", series: algorithm"
        metric = TOGETHER if trial.together or trial.flows > 1 else "goodput"
        unit = f" in {own}" if (own := common_unit(trial.path[factor])) else ""
        lines += ["figures:", "  - bars: goodput", f"    title: aggregate goodput by {factor}"]
        lines += [f"    of: {metric}[{experiment}]", f"    x: {factor}{unit}{series}".replace(", ", "\n    ")]
    else:
        flows = {f"{own}{place}": f"{own} {place}".rstrip() for own in trial.kernels for place in _places(trial.flows)}
        first = "flow" + _places(trial.flows)[0]
        which = f"    flows: {{{', '.join(f'{flow}: {own}' for flow, own in flows.items())}}}"
        lines += ["figures:", "  - timeseries: windows", "    title: congestion window", "    what: cwnd"]
        lines += ["    runs: together", which] if trial.together else [f"    runs: alone, flow={first}"]
        lines += [] if trial.together else ["    series: algorithm"]
    return "\n".join(lines) + "\n"


def _places(flows: int) -> list[str]:
    """Return the suffix of the name of a flow with a ``count``."""
    return [str(place) for place in range(1, flows + 1)] if flows > 1 else [""]
