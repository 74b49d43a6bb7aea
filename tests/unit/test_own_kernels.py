# SPDX-License-Identifier: Apache-2.0
"""C files and patches of a study: their manifest, their errors, their builds and the identity of runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from evidenced import git
from manifests import changed
from manifests import refused as problems_of
from tiny_kernels import NAME, tiny_kernels

from longfat.builds.kernel import build_kernel
from longfat.builds.own_kernel import build_own_kernel
from longfat.cli.run import named_kernels
from longfat.data.study_folder import StudyFolder
from longfat.plan import Plan, build_plan
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.kernels import DEFAULT_KERNEL, OwnKernel, Tree
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.study.traffic.own import own_file
from longfat.system.errors import RigError, StudyError

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


Specs = dict[tuple[str, str], RunSpec]


def specs(folder: Path) -> Specs:
    """Return the specs of the study before any kernel is built, by algorithm and kernel."""
    return {(str(run.factors["algorithm"]), str(run.factors["kernel"])): run.spec for run in planned(folder).runs}


def refused(folder: Path, old: str, new: str, file: str = "study.yaml") -> list[str | None]:
    """Return the keys of the problems after a change of a file."""
    (folder / file).write_text(changed((folder / file).read_text(), (old, new)))
    return [problem.key for problem in problems_of(lambda: load(folder))]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("b: 0.25", "b: 1", "algorithms.mine.b"),
        ("b: 0.25", "c: 1", "algorithms.mine.c"),
        *(("tcp_mine.c", name, "algorithms.mine.source") for name in ("mine.c", "tcp_absent.c", "tcp_cubic.c")),
        ("tcp_mine.c", "../tcp_mine.c", "algorithms.mine.source"),
        ("{source: ", "{cca: reno, source: ", "algorithms.mine.cca"),
        ("source: tcp_mine.c, ", "", "algorithms.mine.cca"),
        ("one.patch", "three.patch", "kernels.patched.patches[0]"),
        ("base: linux-6.12", "base: linux-5", "kernels.patched.base"),
        ("6.12, patched]", "6.12, patche]", "experiments[0].sweep.product.kernel[1]"),
        ("  patched:", "  linux-7.3:", "kernels.linux-7.3"),
        ("patches: [one.patch, two.patch]", "patches: []", "kernels.patched"),
        ("patches: [one.patch, two.patch]", "tree: .", "kernels.patched"),
        ("patches: [one.patch, two.patch]", f"commit: {'0' * 40}", "kernels.patched"),
        ("patches: [one.patch, two.patch]", "tree: ., commit: v6.13", "kernels.patched.commit"),
    ],
)
def test_a_fault_of_the_manifest_is_named_with_its_place(folder: Path, old: str, new: str, key: str) -> None:
    assert key in refused(folder, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('.name = "mine"', '.name = "other"'),
        ("PARAMS(mine)", "PARAMS(other)"),
        ("38, 1, 100000U", "38, LEAST, 100000"),
        ("38, 1, 100000U", "38, 1"),
    ],
)
def test_an_incomplete_c_file_is_refused_before_it_is_compiled(folder: Path, old: str, new: str) -> None:
    assert refused(folder, old, new, "tcp_mine.c") == ["algorithms.mine.source"]


def test_parameters_come_from_the_table_of_the_c_file(folder: Path) -> None:
    algorithm = load(folder).algorithm("mine")
    assert (algorithm.cca, algorithm.parameters) == ("mine", {"b": 0.25})
    assert algorithm.sysctls == {
        "net.ipv4.tcp_mine.a_ppm": "1000000",
        "net.ipv4.tcp_mine.b_ppm": "250000",
        "net.ipv4.tcp_mine.low_window": "38",
    }
    spec = specs(folder)["mine", DEFAULT_KERNEL]
    assert spec.cca_parameters(spec.flows[0]) == {"a_ppm": "1000000", "b_ppm": "250000", "low_window": "38"}


def different(one: Specs, other: Specs) -> set[tuple[str, str]]:
    return {key for key, spec in one.items() if spec.run_id != other[key].run_id}


def test_only_runs_that_use_a_file_or_a_patch_change_with_it(folder: Path) -> None:
    before = specs(folder)
    (folder / "tcp_mine.c").write_text(SOURCE + "/* faster */\n")
    assert different(specs(folder), before) == {("mine", DEFAULT_KERNEL), ("mine", "patched")}
    before = specs(folder)
    (folder / "study.yaml").write_text(MANIFEST.replace("one.patch, two.patch", "two.patch, one.patch"))
    assert different(specs(folder), before) == {("reno", "patched"), ("mine", "patched")}


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


def test_a_c_file_that_leads_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "tcp_mine.c").rename(folder.parent / "elsewhere.c")
    (folder / "tcp_mine.c").symlink_to("../elsewhere.c")
    assert "algorithms.mine.source" in refused(folder, "one.patch", "one.patch")


# Stub of a compiler: an object is a copy of its source, the kernel their concatenation.
GCC = """\
#!/bin/sh
for word; do case $word in *.c) file=$word ;; esac; done
case "$@" in
*-c*) cp $file $(echo $file | sed 's/c$/o/') ;;
*) cat vmlinux.o net/ipv4/*.o >linux ;;
esac
"""


@pytest.fixture
def kernels(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rig").mkdir()
    kernels = tiny_kernels(tmp_path / "rig", monkeypatch)
    gcc = tmp_path / "rig/programs/gcc"
    gcc.write_text(GCC)
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


def test_patches_of_a_study_follow_those_of_the_series(folder: Path, kernels: Path) -> None:
    patch = "--- a/tcp.c\n+++ b/tcp.c\n@@ -1,2 +1,3 @@\n one\n two\n+three\n"
    (folder / "one.patch").write_text(patch)
    own = OwnKernel(NAME, patches=(own_file(folder, "one.patch"),))
    assert build_own_kernel(own, kernels_folder=kernels).path.read_text() == "one\ntwo\nthree\n"


def test_each_hunk_that_the_source_rejects_is_named(folder: Path, kernels: Path) -> None:
    hunks = "@@ -1,1 +1,2 @@\n uno\n+three\n@@ -7,1 +8,2 @@\n seven\n+eight\n"
    (folder / "one.patch").write_text(f"--- a/tcp.c\n+++ b/tcp.c\n{hunks}")
    (folder / "two.patch").write_text("--- a/absent.c\n+++ b/absent.c\n@@ -1 +1,2 @@\n uno\n+three\n")
    own = OwnKernel(NAME, patches=tuple(own_file(folder, name) for name in ("one.patch", "two.patch")))
    with pytest.raises(RigError) as caught:
        build_own_kernel(own, kernels_folder=kernels)
    rejected = [line.removeprefix(f"{folder}/") for line in caught.value.message.splitlines()[1:]]
    assert [line[:27] for line in rejected[:2]] == ["one.patch: tcp.c: Hunk #1 F", "one.patch: tcp.c: Hunk #2 F"]
    assert rejected[2].startswith("two.patch: ")


@pytest.fixture
def tree(kernels: Path, tmp_path: Path) -> Callable[[int], Tree]:
    """Return a function that commits the source of a release 6.12.N to a git repository."""
    source = next(tmp_path.glob("rig/linux-*[0-9]"))

    def commit(sublevel: int) -> Tree:
        (source / "Makefile").write_text(f"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {sublevel}\n")
        for words in (["init"], ["add", "."], ["commit", "-m", str(sublevel)]):
            git(source, *words)
        return Tree(source, git(source, "rev-parse", "HEAD").strip())

    return commit


def test_a_tree_replaces_the_source_of_its_base(kernels: Path, tree: Callable[[int], Tree]) -> None:
    first, second = (OwnKernel(NAME, tree=tree(sublevel)) for sublevel in (301, 302))
    built = build_own_kernel(first, kernels_folder=kernels)
    assert (built.version, built.path.read_text()) == ("6.12.301", "one\ntwo\n")
    assert not built.pinned
    assert first.name != second.name
    assert build_own_kernel(second, kernels_folder=kernels).version == "6.12.302"
    assert build_own_kernel(first, kernels_folder=kernels) == built
    base = build_kernel(name=NAME, kernels_folder=kernels)
    assert base.pinned and base.digest != built.digest


def test_a_commit_that_the_tree_lacks_is_named(kernels: Path, tree: Callable[[int], Tree]) -> None:
    absent = replace(tree(303), commit="5" * 40)
    with pytest.raises(RigError, match=absent.commit) as caught:
        build_own_kernel(OwnKernel(NAME, tree=absent), kernels_folder=kernels)
    assert caught.value.where == str(absent.path)


def test_the_identity_of_runs_has_the_commit_of_a_tree_and_not_its_place(folder: Path) -> None:
    def kernel_names(commit: str, place: str) -> set[str]:
        text = MANIFEST.replace("patches: [one.patch, two.patch]", f"tree: {place}, commit: {commit}")
        (folder / "study.yaml").write_text(text)
        return {spec.pins["kernel"] for spec in specs(folder).values()}

    here = kernel_names("a" * 40, "one/place")
    assert kernel_names("a" * 40, "/another") == here
    assert kernel_names("b" * 40, "one/place") != here


def test_a_tree_of_a_study_outside_of_the_repository_is_built_only_after_trust(folder: Path) -> None:
    text = MANIFEST.replace("patches: [one.patch, two.patch]", f"tree: elsewhere, commit: {'c' * 40}")
    (folder / "study.yaml").write_text(text.replace("algorithm: [reno, mine]", "algorithm: [reno]"))
    with pytest.raises(StudyError, match="program"):
        StudyFolder(folder).own_kernels()
