"""Tables as Hudi's other indexes leave them, made of tables of ours without Hudi: for tests of milliseconds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hudi_assets.engine import HudiTable

_HOODIE = ".hoodie"
_INDEX_KEYS = ("hoodie.index.type", "hoodie.bucket.index")


def with_random_ids(table: HudiTable, copy: Path, settings: dict[str, str] | None = None) -> HudiTable:
    """A copy of a version 6 table whose file ids name no bucket, and whose properties no index.

    A copy, because a process reads the files of a timeline once.
    """
    source = Path(table.path)
    shutil.copytree(source, copy)
    heads = {id_[:8]: f"{0xC0FFEE:06x}{int(id_[:8]):02x}" for id_ in _file_ids(copy)}
    for file in sorted(copy.rglob("*")):
        if file.is_file():
            _rename(file, heads, in_timeline=file.parent == copy / _HOODIE)
    properties = copy / _HOODIE / "hoodie.properties"
    lines = properties.read_text().splitlines()
    properties.write_text("".join(f"{line}\n" for line in lines if not line.startswith(_INDEX_KEYS)))
    return HudiTable.open(str(copy), settings=settings)


def _file_ids(table: Path) -> set[str]:
    names = (file.name for file in table.rglob("*") if _HOODIE not in file.relative_to(table).parts)
    return {name.removeprefix(".").split("_")[0] for name in names if name.endswith(".parquet") or ".log." in name}


def _rename(file: Path, heads: dict[str, str], *, in_timeline: bool) -> None:
    name = file.name
    for head, other in heads.items():
        if name.removeprefix(".").startswith(f"{head}-"):
            name = name.replace(f"{head}-", f"{other}-", 1)
        if in_timeline:
            # Both are of one length, so Avro's strings stay whole.
            file.write_bytes(file.read_bytes().replace(f"{head}-".encode(), f"{other}-".encode()))
    file.rename(file.with_name(name))


def compaction_as_insert(table: Path, instant: str) -> None:
    """A compaction of a version 6 table made a delta commit that wrote base files, as inserts of Hudi's do."""
    timeline = table / _HOODIE
    body = json.loads((timeline / f"{instant}.commit").read_text())
    body |= {"operationType": "UPSERT", "compacted": False}
    (timeline / f"{instant}.commit").unlink()
    (timeline / f"{instant}.compaction.requested").unlink()
    (timeline / f"{instant}.compaction.inflight").unlink()
    (timeline / f"{instant}.deltacommit.requested").write_bytes(b"")
    (timeline / f"{instant}.deltacommit.inflight").write_text(json.dumps(body))
    (timeline / f"{instant}.deltacommit").write_text(json.dumps(body))


def of_index(table: HudiTable, index: str, **settings: str) -> HudiTable:
    """An empty table whose properties state another index than the bucket index."""
    properties = Path(table.path) / _HOODIE / "hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(_INDEX_KEYS)]
    lines += [f"{key}={value}" for key, value in {"hoodie.index.type": index, **settings}.items()]
    properties.write_text("".join(f"{line}\n" for line in lines))
    return HudiTable.open(table.path)
