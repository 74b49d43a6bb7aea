# SPDX-License-Identifier: Apache-2.0
"""House rules that no linter knows. `./just check` runs these after the linters."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from words import rules, texts

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = {".git", ".venv", ".venv.lock", "results", "__pycache__", ".terraform", ".terraform.lock.hcl"}
CACHES = re.compile(r"\.[a-z]+_cache|\.hypothesis|\.ipynb_checkpoints")
# Prose, data, formats without comments, and texts that are not the project's own.
LOCK_FILES = {"requirements-cluster.lock", "requirements.lock", "requirements-dev.lock", "go.sum"}
WITHOUT_HEADER = {"LICENSE", "GPL-2.0-only.txt", "MIT-uPlot.txt"} | LOCK_FILES
WITHOUT_COMMENTS = {".trace", ".md", ".json", ".jsonl", ".ipynb", ".csv", ".png", ".svg", ".pcap"}
MAX_LINES = 500


def project_files() -> list[Path]:
    """Every file of the checkout that belongs to the project."""

    def below(folder: Path) -> list[Path]:
        found = []
        for path in sorted(folder.iterdir()):
            if path.name in PRIVATE or CACHES.fullmatch(path.name):
                continue
            found += below(path) if path.is_dir() else [path]
        return found

    return below(ROOT)


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


FILES = project_files()
PYTHON = [path for path in FILES if path.suffix == ".py"]
MODULES = [path for path in PYTHON if path.is_relative_to(ROOT / "src")]


def test_every_source_file_names_its_licence_at_its_top() -> None:
    lacking = [
        path
        for path in FILES
        if path.name not in WITHOUT_HEADER
        and path.suffix not in WITHOUT_COMMENTS
        and not path.is_relative_to(ROOT / "tests/data")
        and not path.is_relative_to(ROOT / "kernels")
        and "SPDX-License-Identifier: " not in "".join(path.read_text(encoding="utf-8").splitlines(True)[:3])
    ]
    assert names(lacking) == []


def test_no_python_file_is_longer_than_a_reader_keeps_in_mind() -> None:
    long = [path for path in PYTHON if len(path.read_text().splitlines()) > MAX_LINES]
    assert names(long) == []


def test_no_file_holds_a_path_of_somebodys_home() -> None:
    home = re.compile(r"/(?:home|Users)/[a-z]\w+/|/root/\.")
    found = [path for path in MODULES if home.search(path.read_text())]
    assert names(found) == []


def test_every_dependency_is_in_the_lock_file_of_its_kind() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    kinds = {
        "requirements.lock": project["project"]["dependencies"],
        "requirements-cluster.lock": project["project"]["optional-dependencies"]["cluster"],
        "requirements-dev.lock": project["dependency-groups"]["dev"],
    }
    for lock, wanted in kinds.items():
        there = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), flags=re.MULTILINE))
        wanted = {re.split(r"[\[>=]", name)[0].lower().replace("_", "-") for name in wanted}
        assert len(wanted) > 2
        assert wanted - there == set()


def test_every_relative_link_of_the_documents_leads_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in FILES
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_texts_use_the_words_of_the_glossary() -> None:
    """tests/words.py has the list, and the packages that are checked."""
    avoided = rules()
    found = [
        f"{name}:{number}: {match[0]!r}, better: {word}"
        for name, number, line in texts()
        for pattern, word in avoided.items()
        for match in pattern.finditer(line)
    ]
    assert found == [], "\n".join(found)
