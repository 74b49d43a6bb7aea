# SPDX-License-Identifier: Apache-2.0
"""C files and patches of a study: their manifest, their errors, their builds and the identity of runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from own_algorithm import write_study
from tiny_kernels import NAME, tiny_kernels

from longfat.backends.protocol import needed
from longfat.builds.own_kernel import build_own_kernel
from longfat.cli.run import named_kernels
from longfat.plan import Plan, build_plan
from longfat.plan.settings import settings
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.kernels import DEFAULT_KERNEL, OwnKernel, Piece
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.study.traffic.own import own_file
from longfat.system.errors import RigError, StudyError
from longfat.system.identity import KernelSource

MANIFEST = """\
format: 2
study: own
title: An algorithm and kernels of the study's own
kernels:
  patched: {base: linux-6.12, patches: [one.patch, two.patch]}
algorithms:
  reno: {cca: reno}
  mine: {source: tcp_mine.c, b: 0.25}
experiments:
  - id: alone
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 30 ms}
    flows: [{name: flow, from: client1, to: server, algorithm: "${algorithm}", duration: 1 s}]
    kernel: "${kernel}"
    sweep: {product: {algorithm: [reno, mine], kernel: [linux-6.12, patched]}}
    clock_tolerance: 0 ppm
    phases: fixed
"""
SOURCE = """\
/* A comment with "quotes" and struct tcp_cc_param none_params[] = { 1 }; */
static const struct tcp_cc_param mine_params[] = {
	[A] = { "a_ppm", TCP_CC_PPM, 1, 1000 * TCP_CC_PPM },
	[B] = { "b_ppm", TCP_CC_PPM / 2, 1, TCP_CC_PPM - 1 }, // a share
	[W] = { "low_window", 38, 1, 100000U },
};
DEFINE_TCP_CC_PARAMS(mine);
static struct tcp_congestion_ops tcp_mine = { .name = "mine" };
"""
PINS = {"backend": "virtual", "kernel": "k", "image": "i", "code": "c"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(MANIFEST)
    (tmp_path / "tcp_mine.c").write_text(SOURCE)
    (tmp_path / "one.patch").write_text("one")
    (tmp_path / "two.patch").write_text("two")
    return tmp_path


def load(folder: Path) -> Study:
    return load_study(folder / "study.yaml")


def planned(folder: Path, kernels: dict[str, str] | None = None) -> Plan:
    return build_plan(
        load(folder), profile="paper", pins=PINS if kernels else {"backend": "virtual"}, kernels=kernels or {}
    )


def specs(folder: Path) -> dict[tuple[str, str], RunSpec]:
    """Return the specs of the study before any kernel is built, by algorithm and kernel."""
    return {(str(run.factors["algorithm"]), str(run.factors["kernel"])): run.spec for run in planned(folder).runs}


def refused(folder: Path, old: str, new: str, file: str = "study.yaml") -> list[str]:
    """Return the problems after a change of a file."""
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(StudyError) as caught:
        load(folder)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_parameters_come_from_the_table_of_the_c_file(folder: Path) -> None:
    algorithm = load(folder).algorithm("mine")
    assert (algorithm.cca, algorithm.parameters) == ("mine", {"b": 0.25})
    assert algorithm.sysctls == {
        "net.ipv4.tcp_mine.a_ppm": "1000000",
        "net.ipv4.tcp_mine.b_ppm": "250000",
        "net.ipv4.tcp_mine.low_window": "38",
    }
    assert [parameter.range_text for parameter in algorithm.definition.parameters.values()] == [
        *("0.000001 to 1000", "0.000001 to 0.999999", "1 to 100000")
    ]


def test_the_senders_of_a_run_get_all_parameters_of_the_algorithm(folder: Path) -> None:
    spec = specs(folder)["mine", DEFAULT_KERNEL]
    assert spec.cca_parameters(spec.flows[0]) == {"a_ppm": "1000000", "b_ppm": "250000", "low_window": "38"}


def test_only_runs_that_use_the_file_change_with_it(folder: Path) -> None:
    before = specs(folder)
    (folder / "tcp_mine.c").write_text(SOURCE + "/* faster */\n")
    changed = {key for key, spec in specs(folder).items() if spec.run_id != before[key].run_id}
    assert changed == {("mine", DEFAULT_KERNEL), ("mine", "patched")}


def test_only_runs_of_a_patched_kernel_change_with_its_patches_and_their_order(folder: Path) -> None:
    before = specs(folder)
    (folder / "study.yaml").write_text(MANIFEST.replace("one.patch, two.patch", "two.patch, one.patch"))
    changed = {key for key, spec in specs(folder).items() if spec.run_id != before[key].run_id}
    assert changed == {("reno", "patched"), ("mine", "patched")}


def test_a_run_pins_the_digest_of_the_kernel_that_was_built_for_it(folder: Path) -> None:
    names = named_kernels(planned(folder))
    assert names[0] == DEFAULT_KERNEL
    assert {*names[1:]} == {*load(folder).own_kernels()}
    digests = {name: f"digest of {name}" for name in names}
    plan = planned(folder, digests)
    assert {run.spec.pins["kernel"] for run in plan.runs} == {*digests.values()}


def test_a_study_that_is_copied_elsewhere_has_the_same_runs(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    for path in folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    assert specs(other) == specs(folder)


def test_other_backends_refuse_such_a_run_with_a_reason(folder: Path) -> None:
    assert needed(specs(folder)["mine", DEFAULT_KERNEL]) == {
        "named kernels": "kernel that a study adds an algorithm or a patch to"
    }


def test_the_settings_of_a_point_name_the_file(folder: Path) -> None:
    study = load(folder)
    texts = {str(settings(point.experiment, study)["flows.flow.algorithm"]) for point in study.experiments[0].points}
    assert texts == {"reno", "mine, b 0.25"}


def test_the_lock_names_files_and_patches_only_where_there_are_any() -> None:
    plan = Plan("s", "paper", "modern", 1, "", "", {}, (), kernels={"k": KernelSource("6.12.1", True)})
    assert '"kernels":{"k":{"pinned":true,"version":"6.12.1"}}' in plan.to_json()
    own = KernelSource("6.12.1", True, {"tcp_mine.c": "ab" * 32})
    assert str(own) == "Linux 6.12.1, the pinned release, with tcp_mine.c (abababababab) of the study"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b: 0.25", "b: 1", "algorithms.mine.b: 1 is out of range; allowed: 0.000001 to 0.999999"),
        ("b: 0.25", "c: 1", "algorithms.mine.c: unknown parameter of mine 'c'; allowed: a, b, low_window"),
        ("tcp_mine.c", "mine.c", "algorithms.mine.source: 'mine.c' is not the name of a C file with a"),
        ("tcp_mine.c", "tcp_absent.c", "algorithms.mine.source: 'tcp_absent.c' cannot be read: No such file"),
        ("tcp_mine.c", "../tcp_mine.c", "algorithms.mine.source: '../tcp_mine.c' is not in the study's folder"),
        ("tcp_mine.c", "tcp_cubic.c", "algorithms.mine.source: 'cubic' is a congestion control"),
        ("{source: ", "{cca: reno, source: ", "algorithms.mine.cca: and `source` exclude each other"),
        ("source: tcp_mine.c, ", "", "algorithms.mine.cca: is required here but missing"),
        ("one.patch", "three.patch", "kernels.patched.patches[0]: 'three.patch' cannot be read: No such file"),
        ("base: linux-6.12", "base: linux-5", "kernels.patched.base: unknown kernel 'linux-5'; allowed: linux-6.12"),
        (
            "6.12, patched]",
            "6.12, patche]",
            "unknown kernel 'patche'; allowed: linux-6.12, linux-6.12-hz100, linux-7.3, patched",
        ),
        ("  patched:", "  linux-7.3:", "kernels.linux-7.3: is the name of a kernel of the project"),
    ],
)
def test_a_fault_of_the_manifest_is_named_with_its_place(folder: Path, old: str, new: str, message: str) -> None:
    found = refused(folder, old, new)
    assert any(re.match(r"study\.yaml:\d+: ", line) and message in line for line in found), found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('.name = "mine"', '.name = "other"', "'tcp_mine.c' registers no congestion control called \"mine\""),
        ("PARAMS(mine)", "PARAMS(other)", "tcp_mine.c:2: the table is not for 'mine'"),
        ("38, 1, 100000U", "38, LEAST, 100000", "tcp_mine.c:2: 'LEAST' is not a whole number"),
        ("38, 1, 100000U", "38, 1", "tcp_mine.c:2: the table of parameters cannot be read"),
    ],
)
def test_an_incomplete_c_file_is_refused_before_it_is_compiled(folder: Path, old: str, new: str, message: str) -> None:
    found = refused(folder, old, new, "tcp_mine.c")
    assert [message in line for line in found] == [True], found


def test_a_c_file_that_leads_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "tcp_mine.c").rename(folder.parent / "elsewhere.c")
    (folder / "tcp_mine.c").symlink_to("../elsewhere.c")
    found = refused(folder, "one.patch", "one.patch")
    assert [line for line in found if "'tcp_mine.c' is not in the study's folder" in line], found


def test_two_files_of_one_name_cannot_be_in_one_run(folder: Path) -> None:
    for version in ("v1", "v2"):
        (folder / version).mkdir()
        (folder / version / "tcp_mine.c").write_text(SOURCE)
    other = "{name: other, from: client1, to: server, algorithm: {source: v2/tcp_mine.c, b: 0.25}, duration: 1 s}"
    flows = MANIFEST.replace("tcp_mine.c", "v1/tcp_mine.c").replace("duration: 1 s}]", f"duration: 1 s}}, {other}]")
    (folder / "study.yaml").write_text(flows)
    with pytest.raises(StudyError, match=r"needs v2/tcp_mine\.c, where another flow needs v1/tcp_mine\.c"):
        load(folder)


def test_the_page_about_own_algorithms_has_a_sound_study(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path / "binomial") / "study.yaml")
    assert list(study.algorithm("sqrt-gentle").sysctls.values()) == ["20000000", "500000"]
    assert len(study.own_kernels()) == 1


# Stub of a compiler: an object is a copy of its source, the kernel their concatenation, and words make errors.
GCC = """\
#!/bin/sh
echo "$@" >>{log}
for word; do last=$word; case $word in *.c) file=$word ;; esac; done
case "$@" in
*-c*)
    grep -q fault $file && echo "$file:7:3: error: a fault" && echo "$file:9:3: error: another fault" && exit 1
    grep -q doubt $file && echo "$file:8:3: warning: a doubt"
    cp $file $(echo $file | sed 's/c$/o/') ;;
*) cat vmlinux.o net/ipv4/*.o >linux; if grep -q absent linux; then
    echo "ld: net/ipv4/tcp_mine.o: in function x: tcp_mine.c:(.text+0x1): undefined reference to \\`absent'"; exit 1
    fi ;;
esac
"""


@pytest.fixture
def kernels(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rig").mkdir()
    kernels = tiny_kernels(tmp_path / "rig", monkeypatch)
    gcc = tmp_path / "rig/programs/gcc"
    gcc.write_text(GCC.format(log=tmp_path / "rig/gcc.log"))
    gcc.chmod(0o755)
    return kernels


def mine(folder: Path) -> OwnKernel:
    return OwnKernel(NAME, sources=(own_file(folder, "tcp_mine.c"),))


def test_a_c_file_is_linked_with_the_kernel_that_was_built(folder: Path, kernels: Path) -> None:
    said: list[str] = []
    base = build_own_kernel(OwnKernel(NAME), kernels_folder=kernels)
    own = build_own_kernel(mine(folder), kernels_folder=kernels, say=said.append)
    assert own.path.read_text() == "one\ntwo\n" + SOURCE
    assert own.digest != base.digest
    assert len(said) == 1
    assert build_own_kernel(mine(folder), kernels_folder=kernels, say=said.append) == own
    assert len(said) == 1
    (folder / "tcp_mine.c").write_text(SOURCE + "more\n")
    assert build_own_kernel(mine(folder), kernels_folder=kernels).digest not in {own.digest, base.digest}


def test_a_kernel_without_its_kit_is_refused_with_the_repair(folder: Path, kernels: Path) -> None:
    base = build_own_kernel(OwnKernel(NAME), kernels_folder=kernels)
    base.path.with_name("kit.tar.gz").unlink()
    with pytest.raises(RigError, match="kit") as caught:
        build_own_kernel(mine(folder), kernels_folder=kernels)
    assert caught.value.hint == f"rm -r {base.path.parent} && ./just build kernel"


def test_faults_of_the_compiler_are_those_of_the_users_file(folder: Path, kernels: Path) -> None:
    (folder / "tcp_mine.c").write_text("fault\n")
    with pytest.raises(StudyError) as caught:
        build_own_kernel(mine(folder), kernels_folder=kernels)
    path = folder / "tcp_mine.c"
    assert [str(problem) for problem in caught.value.problems] == [f"{path}:7: a fault", f"{path}:9: another fault"]


def test_warnings_of_the_compiler_are_passed_on(folder: Path, kernels: Path) -> None:
    (folder / "tcp_mine.c").write_text("doubt\n")
    said: list[str] = []
    build_own_kernel(mine(folder), kernels_folder=kernels, say=said.append)
    assert said[-1] == f"{folder}/tcp_mine.c:8:3: warning: a doubt"


def test_symbols_that_the_linker_misses_are_named(folder: Path, kernels: Path) -> None:
    (folder / "tcp_mine.c").write_text("absent\n")
    with pytest.raises(StudyError, match=r"tcp_mine\.c: undefined reference to `absent'"):
        build_own_kernel(mine(folder), kernels_folder=kernels)


def test_patches_of_a_study_follow_those_of_the_series(folder: Path, kernels: Path) -> None:
    patch = "--- a/tcp.c\n+++ b/tcp.c\n@@ -1,2 +1,3 @@\n one\n two\n+three\n"
    (folder / "one.patch").write_text(patch)
    own = OwnKernel(NAME, patches=(own_file(folder, "one.patch"),))
    assert build_own_kernel(own, kernels_folder=kernels).path.read_text() == "one\ntwo\nthree\n"


def test_a_patch_that_does_not_apply_is_named(folder: Path, kernels: Path) -> None:
    (folder / "one.patch").write_text("--- a/tcp.c\n+++ b/tcp.c\n@@ -1,1 +1,2 @@\n uno\n+three\n")
    own = OwnKernel(NAME, patches=(own_file(folder, "one.patch"),))
    with pytest.raises(RigError, match=re.escape(f"{os.fspath(folder)}/one.patch")):
        build_own_kernel(own, kernels_folder=kernels)


def test_a_file_goes_by_its_content_not_by_its_place(folder: Path) -> None:
    piece = own_file(folder, "tcp_mine.c")
    moved = Piece(piece.name, Path("/elsewhere/tcp_mine.c"), piece.sha256)
    assert OwnKernel(sources=(moved,)).name == OwnKernel(sources=(piece,)).name != OwnKernel().name
