# SPDX-License-Identifier: Apache-2.0
"""The package's description: RO-Crate 1.1 in the profile Workflow Run Crate 0.5, and Zenodo's own form.

Owns these two files. Sources: https://w3id.org/ro/wfrun/workflow/0.5, https://developers.zenodo.org.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from longfat.crate.contents import SOFTWARE, Item
from longfat.crate.facts import Facts
from longfat.manifest.models import Header

APACHE = "https://spdx.org/licenses/Apache-2.0"
PROFILES = (
    "https://w3id.org/ro/wfrun/process/0.5",
    "https://w3id.org/ro/wfrun/workflow/0.5",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)
_PROFILE_NAMES = ("Process Run Crate", "Workflow Run Crate", "Workflow RO-Crate")
_MEDIA = {
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".ipynb": "application/x-ipynb+json",
    ".yaml": "application/yaml",
    ".gz": "application/gzip",
}


def citation(repository: Path) -> Mapping[str, Any]:
    """CITATION.cff as data."""
    found: Mapping[str, Any] = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    return found


def write_crate(
    target: Path, header: Header, facts: Facts, parts: Sequence[Item], published: datetime, cited: Mapping[str, Any]
) -> None:
    """Copy all parts to the folder ``target`` and write ``ro-crate-metadata.json`` with a preview beside them."""
    crate = ROCrate(version="1.1", gen_preview=True)
    crate.name = f"Longfat: results of the study {header.study}"
    crate.description = describe(header, facts)
    crate.datePublished = published
    crate.license = crate.add(
        ContextEntity(crate, APACHE, properties={"@type": "CreativeWork", "name": "Apache License 2.0"})
    )
    authors = [_author(crate, author["name"], number) for number, author in enumerate(cited["authors"], start=1)]
    crate.creator = authors
    crate.root_dataset["author"] = authors
    crate.root_dataset["conformsTo"] = [
        _context(crate, url, {"@type": "CreativeWork", "name": name, "version": url.rsplit("/", 1)[1]})
        for url, name in zip(PROFILES, _PROFILE_NAMES, strict=True)
    ]
    entities = {part.place: _part(crate, part) for part in parts}
    program = _program(crate, cited)
    manifest = next(part.source for part in parts if part.place == "study") / "study.yaml"
    workflow = _workflow(crate, manifest, header, program, authors)
    crate.mainEntity = workflow
    _run(crate, header, facts, workflow, entities, authors)
    crate.write(target)


def describe(header: Header, facts: Facts) -> str:
    """The package in two sentences."""
    paper = header.paper
    of = f" It reproduces {paper.identifier} ({', '.join(paper.authors)}, {paper.year})." if paper else ""
    return (
        f"{header.title}.{of} {facts.runs} of Linux TCP in virtual time, profile {facts.plan.profile}, "
        f"stack {facts.plan.stack}: dataset, verdicts, figures, report, and all that makes them again."
    )


def zenodo(header: Header, facts: Facts, cited: Mapping[str, Any]) -> str:
    """``.zenodo.json``: what the archive asks for, filled in."""
    data = {
        "title": f"Longfat: results of the study {header.study}",
        "upload_type": "dataset",
        "description": describe(header, facts),
        "creators": [{"name": author["name"]} for author in cited["authors"]],
        "license": "Apache-2.0",
        "access_right": "open",
        "keywords": list(cited["keywords"]),
        "version": str(cited["version"]),
    }
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def _context(crate: ROCrate, identifier: str, properties: Mapping[str, Any]) -> Any:
    return crate.add(ContextEntity(crate, identifier, properties=dict(properties)))


def _author(crate: ROCrate, name: str, number: int) -> Any:
    return _context(crate, f"#author-{number}", {"@type": "Organization", "name": name})


def _part(crate: ROCrate, part: Item) -> Any:
    properties = {"name": part.place, "description": part.what}
    if part.source.is_dir():
        return crate.add_dataset(part.source, f"{part.place}/", properties=properties)
    media = _MEDIA.get(part.source.suffix, "text/plain")
    size = part.source.stat().st_size
    return crate.add_file(
        part.source, part.place, properties={**properties, "encodingFormat": media, "contentSize": str(size)}
    )


def _program(crate: ROCrate, cited: Mapping[str, Any]) -> Any:
    """The program that a study is written for."""
    file = {"downloadUrl": SOFTWARE} if crate.dereference(SOFTWARE) else {}
    return _context(
        crate,
        "#longfat",
        {
            "@type": ["SoftwareApplication", "ComputerLanguage"],
            "name": "Longfat",
            "alternateName": "Longfat study, format 2",
            "description": cited["abstract"],
            "version": str(cited["version"]),
            "softwareVersion": str(cited["version"]),
            **file,
        },
    )


def _workflow(crate: ROCrate, manifest: Path, header: Header, program: Any, authors: Sequence[Any]) -> Any:
    """The study as the workflow that was executed."""
    properties = {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": header.title,
        "description": "The study's manifest: experiments, factors and settings; it executes nothing itself.",
        "encodingFormat": "application/yaml",
        "license": {"@id": APACHE},
    }
    workflow = crate.add_file(manifest, f"study/{manifest.name}", properties=properties)
    workflow["programmingLanguage"] = program
    workflow["author"] = list(authors)
    return workflow


def _run(
    crate: ROCrate, header: Header, facts: Facts, workflow: Any, parts: Mapping[str, Any], authors: Sequence[Any]
) -> None:
    """The execution that made the results."""
    times = {"startTime": facts.began, "endTime": facts.ended}
    command = f"./just reproduce {header.study} --profile {facts.plan.profile} --stack {facts.plan.stack}"
    action = crate.add_action(
        workflow,
        identifier="#run",
        object=[parts[place] for place in ("results/lock.json",) if place in parts],
        result=[entity for place, entity in parts.items() if place.startswith("results/") and "lock" not in place],
        properties={
            "name": command,
            "description": f"{facts.runs} of the lock, then dataset, verdicts, figures and report.",
            "actionStatus": "http://schema.org/CompletedActionStatus",
            **{key: time.isoformat() for key, time in times.items() if time},
        },
    )
    action["agent"] = authors[0]
