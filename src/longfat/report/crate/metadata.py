# SPDX-License-Identifier: Apache-2.0
"""The package's description: RO-Crate 1.1 in the profile Workflow Run Crate 0.5.

Source: https://w3id.org/ro/wfrun/workflow/0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from longfat.plan.model import Plan
from longfat.study.models import Header

SOFTWARE = "software/longfat.tar.gz"
APACHE = "https://spdx.org/licenses/Apache-2.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_MEDIA = {
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".gz": "application/gzip",
}


@dataclass(frozen=True)
class Part:
    """A file or folder of the package: its place there, its description, and its source."""

    place: str
    what: str
    source: Path


@dataclass(frozen=True)
class About:
    """The subject of a package: its study, its plan, the number of runs in words, the date, and CITATION.cff."""

    header: Header
    plan: Plan
    runs: str
    date: datetime
    citation: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The title of the package."""
        return f"Longfat: results of the study {self.header.study}"

    @property
    def description(self) -> str:
        """The package in two sentences."""
        paper = self.header.paper
        of = f" It reproduces {paper.identifier} ({', '.join(paper.authors)}, {paper.year})." if paper else ""
        return (
            f"{self.header.title}.{of} {self.runs} of Linux TCP in virtual time, profile {self.plan.profile}, stack "
            f"{self.plan.stack}: dataset, verdicts, figures and report, with everything that makes them again."
        )


def write_crate(target: Path, about: About, parts: Sequence[Part]) -> None:
    """Copy all parts to the folder ``target`` and write ``ro-crate-metadata.json`` with a preview."""
    crate = ROCrate(version="1.1", gen_preview=True)
    crate.name, crate.description, crate.datePublished = about.name, about.description, about.date
    crate.license = _context(crate, APACHE, {"@type": "CreativeWork", "name": "Apache License 2.0"})
    authors = [
        _context(crate, f"#author-{number}", {"@type": "Organization", "name": author["name"]})
        for number, author in enumerate(about.citation["authors"], start=1)
    ]
    crate.creator = authors
    crate.root_dataset["author"] = authors
    crate.root_dataset["conformsTo"] = [
        _context(crate, url, {"@type": "CreativeWork", "name": name, "version": url.rsplit("/", 1)[1]})
        for url, name in PROFILES.items()
    ]
    entities = {part.place: _part(crate, part) for part in parts}
    crate.mainEntity = workflow = _workflow(crate, about, entities, authors)
    action = crate.add_action(
        workflow,
        identifier="#run",
        object=[entities["results/lock.json"]],
        result=[entity for place, entity in entities.items() if place.startswith("results/") and "lock" not in place],
        properties={
            "name": f"./just reproduce {about.header.study} --profile {about.plan.profile} --stack {about.plan.stack}",
            "description": f"{about.runs} of the lock, then dataset, verdicts, figures and report.",
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "startTime": about.date.isoformat(),
        },
    )
    action["agent"] = authors[0]
    crate.write(target)


def _context(crate: ROCrate, identifier: str, properties: Mapping[str, Any]) -> Any:
    return crate.add(ContextEntity(crate, identifier, properties=dict(properties)))


def _part(crate: ROCrate, part: Part) -> Any:
    properties = {"name": part.place, "description": part.what}
    if part.source.is_dir():
        return crate.add_dataset(part.source, f"{part.place}/", properties=properties)
    properties |= {
        "encodingFormat": _MEDIA.get(part.source.suffix, "text/plain"),
        "contentSize": str(part.source.stat().st_size),
    }
    return crate.add_file(part.source, part.place, properties=properties)


def _workflow(crate: ROCrate, about: About, entities: Mapping[str, Any], authors: Sequence[Any]) -> Any:
    """Add the study as the executed workflow, with Longfat as its language."""
    version = str(about.citation["version"])
    program = {
        "@type": ["SoftwareApplication", "ComputerLanguage"],
        "name": "Longfat",
        "alternateName": "Longfat study, format 2",
        "description": about.citation["abstract"],
        "version": version,
        "softwareVersion": version,
    }
    program |= {"downloadUrl": SOFTWARE} if SOFTWARE in entities else {}
    properties = {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": about.header.title,
        "description": "The study's manifest: experiments, factors and settings; it executes nothing itself.",
        "encodingFormat": "application/yaml",
        "license": {"@id": APACHE},
    }
    manifest = Path(entities["study"].source) / "study.yaml"
    workflow = crate.add_file(manifest, "study/study.yaml", properties=properties)
    workflow["programmingLanguage"] = _context(crate, "#longfat", program)
    workflow["author"] = list(authors)
    return workflow
