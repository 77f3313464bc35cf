"""What is damaged, and what may come of it. Each target makes one case from a seeded generator."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import Plan
from hudi_assets.engine.storage import LocalStorage, open_storage
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.table.metadata.own_timeline import ROOT
from hudi_assets.engine.table.metadata.reader import read_files
from hudi_assets.engine.timeline.instants import Timeline
from hudi_assets.engine.transaction.file_lock import FileSystemLock
from hudi_assets.engine.transaction.lock import write_lock
from tests.fuzz.mutations import HOSTILE_TEXT, damage, damage_json
from tests.fuzz.table import Fuzzed, ask_everything, forget, snapshot

Target = Callable[[random.Random, Fuzzed], str]
_PROPERTIES = ".hoodie/hoodie.properties"


class WrongRows(Exception):
    """The table answered, and wrongly."""


def _same_rows(fuzzed: Fuzzed, what: str) -> None:
    """The table says what is wrong, or answers as if nothing were."""
    rows, _ = ask_everything(fuzzed)
    if rows is not None and rows != fuzzed.rows:
        raise WrongRows(f"{what}: {len(fuzzed.rows - rows)} rows are gone, {len(rows - fuzzed.rows)} are new")


@contextmanager
def _damaged(rng: random.Random, fuzzed: Fuzzed, files: list[Path]) -> Iterator[str]:
    """One of the files damaged, for a while; which, and how."""
    file = rng.choice(files)
    kind, data = damage(rng, file.read_bytes())
    with fuzzed.damaged(file, data):
        yield f"{file.name}: {kind}"


def _has_bytes(file: Path) -> bool:
    return file.stat().st_size > 0


def log_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Any byte of any log file: values inside a block have no checksum, so rows are compared in other tests."""
    with _damaged(rng, fuzzed, fuzzed.files(lambda name: ".log." in name)) as what:
        ask_everything(fuzzed)
    return what


def base_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    with _damaged(rng, fuzzed, fuzzed.files(lambda name: name.endswith(".parquet"))) as what:
        ask_everything(fuzzed)
    return what


def plan_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Plans, pending and executed; executing the damaged one writes inside the table or is refused."""
    with _damaged(rng, fuzzed, fuzzed.files(lambda name: name.endswith(".compaction.requested"))) as what:
        ask_everything(fuzzed)
        try:
            plan = HudiTable.open(str(fuzzed.path)).pending_plan()
            for op in plan.operations if isinstance(plan, Plan) else ():
                for path in (*op.log_files, *(p for c in op.carried_over for p in (c.link, c.target, c.made_from))):
                    assert os.path.realpath(fuzzed.path / path).startswith(f"{os.path.realpath(fuzzed.path)}/")
                    assert not path.startswith(".hoodie")
        except HudiAssetsError:
            pass
    return what


def commit_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Commits and delta commits: no row is taken from them, so none may change."""
    file = rng.choice(fuzzed.files(lambda name: name.startswith(".hoodie/2") and name.endswith(("commit", "inflight"))))
    before = file.read_bytes()
    kind, data = damage_json(rng, before) if before else damage(rng, before)
    with fuzzed.damaged(file, data):
        _same_rows(fuzzed, f"{file.name}: {kind}")
    return f"{file.name}: {kind}"


def properties(rng: random.Random, fuzzed: Fuzzed) -> str:
    file = fuzzed.path / _PROPERTIES
    before = file.read_bytes()
    if rng.random() < 0.5:
        kind, data = damage(rng, before)
    else:
        lines = before.decode("latin-1").splitlines()
        at = rng.randrange(len(lines))
        key, _, _ = lines[at].partition("=")
        value = rng.choice(HOSTILE_TEXT)
        lines[at] = f"{key}={value}"
        kind, data = f"{key}={value[:40]!r}", "\n".join(lines).encode("utf-8", "surrogatepass")
    with fuzzed.damaged(file, data):
        ask_everything(fuzzed)
    return kind


_STAMPS = (
    *("20261121000000000", "99991231235959999", "00000000000000000", "20269999999999999", "20261121000000"),
    *("2026112100000000", "٢٠٢٦١١٢١٠٠٠٠٠٠٠٠٠", "20261121000000000x", "-0261121000000000", "1", "2" * 200),
)
_ENDINGS = (
    *("commit", "deltacommit", "deltacommit.inflight", "deltacommit.requested", "inflight", "clean", "clean.inflight"),
    *("clean.requested", "rollback", "rollback.inflight", "rollback.requested", "savepoint", "savepoint.inflight"),
    *("restore", "restore.inflight", "restore.requested", "replacecommit", "replacecommit.requested", "indexing"),
    *("compaction.requested", "compaction.inflight", "logcompaction.requested", "x", "commit.x", "commit.", ".commit"),
    *("deltacommit.requested.inflight", "schemacommit", "COMMIT", "commit.crc", "compaction", "clustering.requested"),
)


def timeline_name(rng: random.Random, fuzzed: Fuzzed) -> str:
    """A stray file on the timeline, empty or full of anything."""
    name = f"{rng.choice(_STAMPS)}.{rng.choice(_ENDINGS)}"
    file = fuzzed.path / ".hoodie" / name
    if len(name.encode()) > 200 or file.exists():
        return name
    file.write_bytes(rng.choice((b"", b"{}", b"Obj\x01", rng.randbytes(50))))
    try:
        ask_everything(fuzzed)
    finally:
        file.unlink()
    return name


def data_name(rng: random.Random, fuzzed: Fuzzed) -> str:
    """A stray file among the data, named as one of Hudi's or nearly so: never read as rows of the table."""
    like = rng.choice(fuzzed.files(lambda name: ".log." in name or name.endswith(".parquet")))
    name = "".join(rng.choice("0123456789_-.xp٣ ") if rng.random() < 0.08 else c for c in like.name)
    file = like.with_name(name)
    if file.exists():
        return name
    file.write_bytes(rng.randbytes(30))
    try:
        ask_everything(fuzzed)
    finally:
        file.unlink()
    return name


def scratch_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Our own scratch files, locks and heartbeats: only hints, so whatever is in them no answer changes."""
    names = ("event_times.json", "event_times.json", "memory.json", "write.lock.json", "execute.lock.json")
    folder = fuzzed.path / ".hoodie/.aux/hudi_assets"
    choices = [folder / name for name in names]
    choices += [fuzzed.path / ".hoodie/lock", fuzzed.path / ".hoodie/.heartbeat" / rng.choice(("x", "1", "2" * 17))]
    file = rng.choice(choices)
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_bytes() if file.exists() else b'{"action":"a","host":"h","since":"s","logs":{},"column":"ts"}'
    kind, data = damage_json(rng, before)
    file.write_bytes(data)
    try:
        _same_rows(fuzzed, file.name)
        storage = open_storage(str(fuzzed.path))
        config = HudiTable.open(str(fuzzed.path), settings={"hudi_assets.writers": "locked"}).config
        refused = None
        try:
            with write_lock(storage, config, wait_s=0):
                pass
        except HudiAssetsError as error:
            refused = str(error)
        # Only Hudi's lock file holds anybody up, whatever stands in it, and the message names it.
        assert refused is None if file.name != "lock" else FileSystemLock.of(storage, config).path in (refused or "")
    finally:
        file.unlink(missing_ok=True)
    return f"{file.name}: {kind}"


def unfinished_service(rng: random.Random, fuzzed: Fuzzed) -> str:
    """A damaged clean or rollback that a crash left before its end: `recover` finishes it, or says what is wrong."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        copy = Path(shutil.copytree(fuzzed.path, Path(folder, "table")))
        services = [p for kind in ("clean", "rollback") for p in copy.glob(f".hoodie/2*.{kind}.requested")]
        requested = rng.choice(sorted(services))
        done = requested.with_suffix("")
        done.unlink()
        if rng.random() < 0.5:
            done.with_name(f"{done.name}.inflight").unlink()
        kind, data = damage(rng, requested.read_bytes())
        requested.write_bytes(data)
        outside = sorted(str(p) for p in Path(folder).iterdir())
        forget()
        with suppress(HudiAssetsError):
            HudiTable.open(str(copy)).recover()
        assert outside == sorted(str(p) for p in Path(folder).iterdir())
        assert (copy / _PROPERTIES).exists()
        with suppress(HudiAssetsError):
            snapshot(HudiTable.open(str(copy)))
    return f"{requested.name}: {kind}"


def partition_metadata(rng: random.Random, fuzzed: Fuzzed) -> str:
    with _damaged(rng, fuzzed, fuzzed.files(lambda name: name.endswith(".hoodie_partition_metadata"))) as what:
        _same_rows(fuzzed, what)
    return what


def log_header(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Text inside a block's header replaced by hostile text of the same length."""
    file = rng.choice(fuzzed.files(lambda name: ".log." in name))
    before = file.read_bytes()
    start = before.find(b'{"type":"record"')
    if start < 0:
        return f"{file.name}: no schema"
    end = start + len(_json_at(before, start))
    schema = json.loads(before[start:end])
    _, hostile = damage_json(rng, json.dumps(schema).encode())
    fitted = hostile[: end - start].ljust(end - start, b" ")
    with fuzzed.damaged(file, before[:start] + fitted + before[end:]):
        ask_everything(fuzzed)
    return f"{file.name}: {hostile[:100]!r}"


def _json_at(data: bytes, start: int) -> bytes:
    depth = 0
    for at in range(start, len(data)):
        depth += (data[at] == ord("{")) - (data[at] == ord("}"))
        if depth == 0:
            return data[start : at + 1]
    raise AssertionError("the schema in the header does not end")


def avro_timeline_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Clean, rollback and savepoint files, and the archived timeline."""
    endings = ("clean", "rollback", "restore", "savepoint")
    files = fuzzed.files(lambda name: name.startswith(".hoodie/2") and any(f".{e}" in Path(name).name for e in endings))
    files += fuzzed.files(lambda name: name.startswith(".hoodie/archived/"))
    with _damaged(rng, fuzzed, [*filter(_has_bytes, files)]) as what:
        ask_everything(fuzzed)
    return what


_GOLDEN = Path(__file__).parents[1] / "golden"


def metadata_table(rng: random.Random, fuzzed: Fuzzed) -> str:
    """A file of a metadata table that Hudi wrote, or a stray one on its timeline: a listing, or what is wrong."""
    written = json.loads((_GOLDEN / "hfiles.json").read_text())
    name = rng.choice(sorted(written))
    layout = LayoutV6() if name.endswith("v6") else LayoutV8()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=fuzzed.path.parent) as folder:
        files = Path(shutil.copytree(_GOLDEN / name, Path(folder, ROOT, "files")))
        timeline = Path(folder, ROOT, layout.timeline_folder)
        timeline.mkdir(parents=True)
        for file_name in written[name]["timeline"]:
            (timeline / file_name).touch()
        if rng.random() < 0.1:
            what = f"{rng.choice(_STAMPS)}.{rng.choice(_ENDINGS)}"
            (timeline / what[:200]).touch()
        else:
            file = rng.choice(sorted(files.iterdir()))
            kind, data = damage(rng, file.read_bytes())
            file.write_bytes(data)
            what = f"{file.name}: {kind}"
        with suppress(HudiAssetsError):
            read_files(LocalStorage(folder), layout, Timeline(()))
    return f"{name}: {what}"


def layered_timeline_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Version 9: Avro contents of any instant; no row is taken from them."""
    files = fuzzed.files(lambda name: name.startswith(".hoodie/timeline/2"))
    with _damaged(rng, fuzzed, [*filter(_has_bytes, files)]) as what:
        _same_rows(fuzzed, what)
    return what


def layered_archive_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Version 9: the archived timeline, which tells what is committed, and where a log file belongs."""
    with _damaged(rng, fuzzed, fuzzed.files(lambda name: name.startswith(".hoodie/timeline/history/"))) as what:
        ask_everything(fuzzed)
    return what


def layered_timeline_name(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Version 9: a stray file on the timeline, with two times or one."""
    times = [rng.choice(_STAMPS) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
    file = fuzzed.path / ".hoodie/timeline" / f"{'_'.join(times)}.{rng.choice(_ENDINGS)}"
    if len(file.name.encode()) > 200 or file.exists():
        return file.name
    file.write_bytes(rng.choice((b"", b"{}", b"Obj\x01", rng.randbytes(50))))
    try:
        ask_everything(fuzzed)
    finally:
        file.unlink()
    return file.name


def layered_data_file(rng: random.Random, fuzzed: Fuzzed) -> str:
    """Version 9: any byte of a log file or base file."""
    return rng.choice((log_file, base_file, data_name, log_header))(rng, fuzzed)


OF_VERSION_9: dict[str, Target] = {
    target.__name__: target
    for target in (layered_timeline_file, layered_archive_file, layered_timeline_name, layered_data_file)
}
TARGETS: dict[str, Target] = OF_VERSION_9 | {
    target.__name__: target
    for target in (
        *(log_file, log_header, base_file, plan_file, commit_file, properties, timeline_name, data_name),
        *(scratch_file, partition_metadata, avro_timeline_file, unfinished_service, metadata_table),
    )
}
