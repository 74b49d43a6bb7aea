# SPDX-License-Identifier: Apache-2.0
"""Pictures of the documentation come from today's evidence, its site has every page once, and its pages exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from evidenced import files_of

from longfat.data.study_folder import studies_in
from longfat.report.markdown import BEGIN, END

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMING = {".py", ".md", ".toml", ".yaml", ".yml", ".tf", ".sh", ".js", ".j2", ".lark", ".cfg", ".config", ".c", ".h"}


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


DRAW, SITE = module(DOCS / "pictures/draw.py"), module(DOCS / "site/build.py")


@pytest.mark.parametrize("name", [*DRAW.PICTURES, *DRAW.STUDIES])
def test_a_picture_is_drawn_from_todays_evidence(name: str) -> None:
    text = (DOCS / "pictures" / name).read_text(encoding="utf-8")
    assert DRAW.digest_of(name) in text, "python docs/pictures/draw.py draws it again"


def test_the_site_has_every_document_once_and_all_pictures(tmp_path: Path) -> None:
    SITE.assemble(tmp_path)
    pages = [page for section in SITE.nav(tmp_path) for own in section.values() for page in own]
    assert len(set(pages)) == len(pages)
    assert set(pages) == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert {path.name for path in (tmp_path / "docs/pictures").iterdir()} == {
        path.name for path in DOCS.glob("pictures/*.svg")
    }


def test_the_site_has_a_report_of_the_evidence_of_each_stack_and_a_front_page_that_leads_to_them(
    evidence_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in files_of(evidence_study):
        other = file.parents[2] / "linux-2.4" / file.parent.name / file.name
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text(file.read_text().replace('"stack":"modern"', '"stack":"linux-2.4"', 1))
    monkeypatch.setattr(SITE, "ROOT", tmp_path)
    SITE.add_reports(tmp_path / "site", studies_in(tmp_path / "experiments"))
    places = [tmp_path / "site/results" / name for name in ("small", "small-linux-2.4")]
    front = (tmp_path / "site/results/index.html").read_text()
    assert 'href="small/report.html"' in front
    reports = [(place / "report.html").read_text() for place in places]
    assert 'href="#claim-window-limits" class="dot"' in reports[0]
    for report in reports:
        assert all(f'href="../{place.name}/report.html">stack ' in report for place in places)
        for words in ("By the runs of this report alone", "runs missing</a>", 'href="lock.json"'):
            assert words not in report
    for place, page in zip((tmp_path / "site/results", *places), (front, *reports), strict=True):
        for link in re.findall(r'href="([^"#]+)"', page):
            written_by_mkdocs = link.endswith(".html") and "experiments/" in link
            assert written_by_mkdocs or (place / link).exists(), link


UNIT = r"(?:[MG]b/s|%(?!\w)|[MG]B|[mu]?s|min|times|points|segments|packets|frames)(?!\w)"
NUMBER = re.compile(rf"(?<![\w.,<>-])-?(\d[\d,]*(?:\.\d+)?)(?:<!-- ([-+*/().\de ]+) -->)?\s{UNIT}")
STUDIES = sorted(ROOT.glob("experiments/*-20*"))
PAGES = [study / page for study in STUDIES for page in ("README.md", "notes.md") if (study / page).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_a_number_with_a_unit_is_the_papers_a_setting_computed_or_renewed_from_evidence(page: Path) -> None:
    """The command that renews the pages compares the others: numbers with an expression of relations, and tables."""
    known = "".join(file.read_text(encoding="utf-8") for file in page.parent.glob("*.[yc][as][mv]*"))
    given = {number.replace(",", "") for number in re.findall(r"\d[\d,]*(?:\.\d+)?", known)}
    text = re.sub(f"{BEGIN}.*?{END}", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = NUMBER.findall(re.sub(r"[^\s(*|]+<!-- \S[^\n]*?\] -->", "", text))
    numbers = [(number.replace(",", ""), computed) for number, computed in found]
    wrong = [one for one in numbers if (one[1] and f"{eval(one[1]):.{len(one[0].partition('.')[2])}f}" != one[0])]
    assert wrong + [one for one in numbers if not one[1] and one[0] not in given] == []


def test_every_page_that_the_code_names_exists() -> None:
    """study.yaml is left out: its digest is part of every lock, so a comment there waits for new references."""
    folders = ("src", "tests", "kernels", "infra", "images", "experiments", "analysis")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in NAMING]
    files += [ROOT / name for name in ("Justfile", "just", ".ci/run", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    missing = {
        f"{path.relative_to(ROOT)}: {page}"
        for path in files
        for page in re.findall(r"docs/[a-z0-9/-]+\.md", path.read_text(encoding="utf-8"))
        if not (ROOT / page).exists() and path.name not in {"study.yaml", "test_docs.py"}
    }
    assert sorted(missing) == []


def test_every_sentence_of_the_threat_model_has_a_test() -> None:
    """Every rule names a function that pytest collects."""
    page = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
    rows = [
        line for line in page.splitlines() if line.startswith("|") and not re.match(r"\| (rule|attack) |\|--", line)
    ]
    named = [re.search(r"`(test_\w+)` \|$", line) for line in rows]
    assert rows and all(named)
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    tests = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert [one[1] for one in named if one and one[1] not in tests] == []
