"""What was seen in each configuration's life: kept beside the list, so that a run that sees something else fails."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from scripts.hudi_client import interop_home
from tests.interop.zoo.configuration import Configuration
from tests.interop.zoo.whole_list import ZOO

KEPT = Path(__file__).with_name("seen.json")
MAKE = ".venv/bin/python -m tests.interop.zoo.page --write"


@dataclass
class Seen:
    """What was seen in one life.

    `looks`: after each step the freshness (ISO-8601, "now" for now less the data latency, or None) and how many log
    files no compaction has merged. `plans`: how many log files the plans of a step took, and how many remained.
    `refused`: our words, by what was asked. `failed`: queries that fail in Hudi itself, by step.
    """

    looks: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    plans: dict[str, tuple[int, int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def record(self, configuration: Configuration) -> dict[str, Any]:
        """As it is kept, with the digest of what was asked for."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self), sort_keys=True))
        return {"configuration": digest(configuration), **record}


def everything() -> Iterator[Configuration]:
    """All configurations, in the page's order."""
    for listed in ZOO.values():
        yield from listed


def digest(configuration: Configuration) -> str:
    """Of all that the configuration says other than the plain one, but for its note and whether it is quick."""
    said = {
        one.name: getattr(configuration, one.name)
        for one in fields(configuration)
        if one.name not in ("note", "quick") and getattr(configuration, one.name) not in (one.default, {})
    }
    for name in said.keys() & {"columns", "write"}:
        said[name] = said[name].__qualname__
    if "time" in said:
        said["time"] = configuration.time.name
    return hashlib.sha256(repr(sorted(said.items())).encode()).hexdigest()[:12]


def kept() -> dict[str, dict[str, Any]]:
    """The committed records, by the configurations' ids."""
    records: dict[str, dict[str, Any]] = json.loads(KEPT.read_text())
    return records


def note(configuration: Configuration, record: Mapping[str, Any]) -> None:
    """Keep what a run saw, for `page --write`."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{configuration.id}.json").write_text(json.dumps(record))


def take_over() -> None:
    """Put what the last runs saw into the committed records; those of configurations that are gone go too."""
    records = kept() if KEPT.exists() else {}
    for one in everything():
        file = _folder() / f"{one.id}.json"
        if file.exists() and (record := json.loads(file.read_text()))["configuration"] == digest(one):
            records[one.id] = record
    ordered = {one.id: records[one.id] for one in everything() if one.id in records}
    KEPT.write_text(json.dumps(ordered, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def _folder() -> Path:
    return interop_home().parent / "zoo"
