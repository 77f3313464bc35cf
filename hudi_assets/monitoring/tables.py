"""Which tables are watched, and with what: from the command line, or from a file of theirs in TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_assets.engine import InvalidInput, check_own_settings, parse_latency

_KEYS = {"path", "slo", "settings", "dagster"}
_TEXTS = ("slo", "dagster")
_HINT = 'Each table is [[table]] with path = "…", and slo = "6h" and settings = { "hudi_assets.…" = "…" } if need be.'


@dataclass(frozen=True, slots=True)
class Monitored:
    """A table to look at. `slo_ms`: how far its freshness may lag; None where nobody said.

    `dagster`: its name in Dagster, where that is another than the table's own.
    """

    path: str
    slo_ms: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    dagster: str | None = None


def watched_tables(
    paths: Sequence[str], file: Path | None, slo: str | None, settings: Mapping[str, str]
) -> tuple[Monitored, ...]:
    """Those of `paths` and of `file`, each once. `slo` and `settings` are for whichever states none of its own."""
    check_own_settings(settings, "--set")
    default = slo_ms(slo, "--slo")
    found = {_place(path): Monitored(_place(path), default, settings) for path in paths}
    for one in _of_file(file, default, settings) if file is not None else ():
        found[one.path] = one
    if not found:
        raise InvalidInput("No table is given.", hint="Give paths, or --tables FILE.")
    return tuple(found.values())


def slo_ms(text: str | None, where: str) -> int | None:
    try:
        return None if text is None else parse_latency(text)
    except InvalidInput:
        raise InvalidInput(f"{text!r} is no duration.", where=where, hint="Write 90m, 6h or 1d.") from None


def _place(path: str) -> str:
    """One name for one place: two of them would be two series that say the same."""
    return path if "://" in path else os.path.abspath(path)


def _of_file(file: Path, default: int | None, settings: Mapping[str, str]) -> list[Monitored]:
    try:
        with file.open("rb") as opened:
            body = tomllib.load(opened)
    except FileNotFoundError:
        raise InvalidInput("There is no such file of tables.", where=str(file), hint=_HINT) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The file of tables is no TOML: {error}.", where=str(file), hint=_HINT) from None
    tables = body.get("table")
    wrong = sorted(body.keys() - {"table"})
    if wrong or not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        said = f"has {wrong[0]!r}, which is not known" if wrong else "names no tables"
        raise InvalidInput(f"The file of tables {said}.", where=str(file), hint=_HINT)
    return [_table(one, default, settings, f"{file}, table {number}") for number, one in enumerate(tables, 1)]


def _table(values: dict[str, Any], default: int | None, settings: Mapping[str, str], where: str) -> Monitored:
    own = values.get("settings", {})
    wrong = next(iter(sorted(values.keys() - _KEYS)), None)
    if wrong is not None:
        raise InvalidInput(f"{wrong!r} is not known.", where=where, hint=_HINT)
    if not isinstance(values.get("path"), str) or not all(isinstance(values.get(key, ""), str) for key in _TEXTS):
        raise InvalidInput("A table needs a path, slo is a text, and so is dagster.", where=where, hint=_HINT)
    if not isinstance(own, dict) or not all(isinstance(value, str) for value in own.values()):
        raise InvalidInput("settings has texts alone.", where=where, hint=_HINT)
    check_own_settings(own, where)
    slo = slo_ms(values["slo"], where) if "slo" in values else default
    return Monitored(_place(values["path"]), slo, {**settings, **own}, values.get("dagster"))
