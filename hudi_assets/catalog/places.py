"""Where a table is published: which metastore is meant, and what the table itself remembers of it.

A metastore is named by its address, `thrift://host:port`, or `home:/directory`, the one that runs in a home directory
and has another port each time; AWS Glue by `glue://REGION`. A table keeps a note of each place below its `.hoodie`, so
that whoever cleans it knows which views name its files. The note says by which settings the publisher read the table,
and which machine's place it is: elsewhere the same words lead to another metastore.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hudi_assets.catalog import connections
from hudi_assets.catalog.connections import AnyEntry
from hudi_assets.catalog.metastore import Metastore, MetastoreError
from hudi_assets.catalog.publication import PARTITIONS, PATH, PUBLICATION, VIEW_DIGEST
from hudi_assets.catalog.publishing import Form, Names, check_fits, publish
from hudi_assets.engine import (
    NOTED_DIGESTS,
    PUBLISHED_NOTES,
    EnvironmentProblem,
    HudiAssetsError,
    HudiTable,
    Storage,
)
from hudi_assets.home import home

METASTORE = "HUDI_ASSETS_METASTORE"
DATABASE = "HUDI_ASSETS_DATABASE"
_HOME = "home:"
# For a question: a tick that looks at many tables must not wait long for a metastore that hangs.
_QUICK_MS = 5_000
_MOST_DIGESTS = 20
_LOOPBACK = ("localhost", "127.", "::1")


def named_metastore(uri: str | None = None) -> str | None:
    """The address that a setting or the environment gives; None where neither does."""
    return uri or os.environ.get(METASTORE) or None


def home_metastore() -> str:
    """The one in the home directory."""
    return f"{_HOME}{home()}"


@dataclass(frozen=True)
class Found:
    """What a metastore says of a place.

    `properties`: of the read-optimized entry. `together`: the snapshot entry is of the same publication, and so is the
    table with the freshness of the partitions where there is to be one. They are not where a publisher died between
    them, or somebody dropped one.
    """

    properties: Mapping[str, str]
    together: bool

    @property
    def path(self) -> str:
        return self.properties[PATH]


@dataclass(frozen=True)
class Place:
    """A table's names in a metastore."""

    metastore: str
    names: Names

    def address(self) -> str:
        """Where it is spoken to. The one of a home directory is started for this process where it does not run."""
        if self.home_directory is None:
            return self.metastore
        try:
            return Metastore(self.home_directory).acquire(os.getpid())
        except MetastoreError as error:
            hint = f"Or name another metastore: --metastore thrift://host:port, {METASTORE}, `uri`."
            raise EnvironmentProblem(str(error), hint=hint) from error

    @property
    def was_never_used(self) -> bool:
        """True for a home directory in which nothing was published: no metastore is started to ask it."""
        return self.home_directory is not None and not Metastore(self.home_directory).exists

    @property
    def machine(self) -> str | None:
        """Which one these words mean here. None where they mean the same everywhere, or a home that was never used.

        For a home directory an id that is kept in it: it goes where the directory goes. For an address of this
        machine's own, the machine's name.
        """
        if self.home_directory is None:
            own = any(_host_of(one).startswith(_LOOPBACK) for one in self.metastore.split(","))
            return socket.gethostname() if own else None
        with suppress(OSError):
            return _id_file(self.home_directory).read_text("utf-8").strip() or None
        return None

    def found(self) -> Found | None:
        """What stands there; None where there is no such entry, or none of ours. Asks the metastore."""
        with connections.connect(self.address(), timeout_ms=_QUICK_MS) as metastore:
            ro = metastore.entry(self.names.database, self.names.ro)
            if not _is_ours(ro):
                return None
            rt = metastore.entry(self.names.database, self.names.rt)
            told = ro is not None and PARTITIONS in ro.parameters
            partitions = metastore.entry(self.names.database, self.names.partitions) if told else None
        return self._found(ro, rt, partitions)

    def _found(self, ro: AnyEntry | None, rt: AnyEntry | None, partitions: AnyEntry | None) -> Found | None:
        if ro is None or not _is_ours(ro):
            return None
        beside = [rt]
        if rt is None and self.names.form is Form.SYNCED:  # Hive sync may be told to make one of the two alone
            beside = []
        if PARTITIONS in ro.parameters:
            beside.append(partitions)
        wanted = ro.parameters.get(PUBLICATION)
        return Found(
            ro.parameters, all(one is not None and one.parameters.get(PUBLICATION) == wanted for one in beside)
        )

    def publish(self, table: HudiTable) -> dict[str, str]:
        """Publish the table here, and note it with the table, first: a crash in between leaves no view unprotected.

        And once more afterwards: a clean beside a first publication saw no view yet, and forgot the note.
        """
        check_fits(self.metastore, self.names)
        address = self.address()
        _note(table, self, address)
        file = self.note_file
        properties = publish(
            address, table, self.names, lambda read: _note_view(table, file, read.view_digest), place=file
        )
        with suppress(HudiAssetsError, OSError):  # readers were told already: whoever follows hears what
            _note(table, self, None)
        note_only_view(table, file, properties[VIEW_DIGEST])
        return properties

    @property
    def note_file(self) -> str:
        """Two machines' places of the same words have a file each."""
        return self.earlier_note_file if self.machine is None else _file({**asdict(self), "machine": self.machine})

    @property
    def earlier_note_file(self) -> str:
        """As an earlier day's publisher noted it, who named no machine."""
        return _file(asdict(self))

    @property
    def home_directory(self) -> Path | None:
        return Path(self.metastore.removeprefix(_HOME)) if self.metastore.startswith(_HOME) else None


@dataclass(frozen=True)
class Note:
    """What a table notes of a place. `file` is its own; `settings` and `machine` are None in notes of earlier days.

    `settings`: by which the publisher read the table, beyond its own. `host`: where he was, for people.
    """

    file: str
    place: Place
    settings: Mapping[str, str] | None = None
    machine: str | None = None
    host: str | None = None

    def check_reachable(self, table: HudiTable) -> None:
        """Raises `EnvironmentProblem` where the place is another machine's, or is gone: what answers here is another.

        Of an earlier day's note nobody knows: what is here is asked.
        """
        if self.machine == self.place.machine and not self.place.was_never_used:
            return
        if self.machine is None and not self.place.was_never_used:
            return
        raise EnvironmentProblem(
            f"It stands in {self.place.metastore} of the machine {self.host or '(not noted)'}, and that is not here.",
            where=self.place.metastore,
            hint=f"Call again on that machine. Where that catalog is gone for good, delete {self.path(table)}.",
        )

    def path(self, table: HudiTable) -> str:
        return f"{table.path}/{self.file}"


def found_together(places: Collection[Place]) -> dict[Place, Found | None]:
    """What stands at each, by one question to each metastore and database."""
    found: dict[Place, Found | None] = {}
    by_database: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        by_database.setdefault((place.metastore, place.names.database), []).append(place)
    for (_, database), group in by_database.items():
        names = [name for place in group for name in place.names.entries]
        with connections.connect(group[0].address(), timeout_ms=_QUICK_MS) as metastore:
            entries = metastore.entries(database, names)
        found |= {place: place._found(*(entries[name] for name in place.names.entries)) for place in group}
    return found


def _is_ours(ro: AnyEntry | None) -> bool:
    return ro is not None and PATH in ro.parameters


def notes_of(table: HudiTable) -> Iterator[Note]:
    """Where the table was published, as it notes itself."""
    storage = table.storage
    for file in storage.list_files(PUBLISHED_NOTES):
        with suppress(ValueError, KeyError, TypeError, FileNotFoundError):
            said = json.loads(storage.read(f"{PUBLISHED_NOTES}/{file.name}"))
            names = said["names"]
            place = Place(said["metastore"], Names(names["database"], names["ro"], names["rt"], Form(names["form"])))
            more = {key: said.get(key) for key in ("settings", "machine", "host")}
            yield Note(f"{PUBLISHED_NOTES}/{file.name}", place, **more)


def forget(table: HudiTable, note: Note) -> None:
    """The table does not stand there any more."""
    table.storage.delete(note.file)


def note_only_view(table: HudiTable, file: str, digest: str) -> None:
    """Into a note: the view that stands there has this digest, and no other one can."""
    _note_views(table, file, lambda _: [digest])


def _note_view(table: HudiTable, file: str, digest: str) -> None:
    """Into a note: a view with this digest may stand there too, from now on. Where nobody knew which, nobody does.

    Nor after many publishers that did not come to an end, as where the metastore may be read and not altered.
    """

    def noted(before: list[str] | None) -> list[str] | None:
        now = None if before is None else sorted({*before, digest})
        return None if now is None or len(now) > _MOST_DIGESTS else now

    _note_views(table, file, noted)


def _note_views(table: HudiTable, file: str, noted: Callable[[list[str] | None], list[str] | None]) -> None:
    storage = table.storage
    with suppress(HudiAssetsError, OSError, ValueError, TypeError, AttributeError):
        said = json.loads(storage.read(file))
        before = said.get(NOTED_DIGESTS)
        if (now := noted(before)) != before:
            storage.replace(file, json.dumps({**said, NOTED_DIGESTS: now}, sort_keys=True).encode())


def _note(table: HudiTable, place: Place, address: str | None) -> None:
    """A table that this process may not write into keeps no note: nobody protects its views from a clean.

    Of a metastore that does not answer there is no new note: nobody could ever ask it, and nothing is published there.
    `address`: where it is asked; None where it has answered.
    """
    storage = table.storage
    with suppress(OSError):
        _make_id(place)
    said: dict[str, Any] = {**asdict(place), "settings": table.given_settings(), "machine": place.machine}
    file = place.note_file
    if storage.exists(file):
        with suppress(HudiAssetsError, OSError, ValueError, AttributeError):
            before = json.loads(storage.read(file))
            if before.items() >= said.items():
                _forget_earlier(storage, place)
                return
            said[NOTED_DIGESTS] = before.get(NOTED_DIGESTS)
    elif address is not None:
        with connections.connect(address, timeout_ms=_QUICK_MS) as metastore:
            metastore.entry(place.names.database, place.names.ro)
    with suppress(HudiAssetsError, OSError):
        storage.replace(file, json.dumps({**said, "host": socket.gethostname()}, sort_keys=True).encode())
        _forget_earlier(storage, place)


def _forget_earlier(storage: Storage, place: Place) -> None:
    if place.machine is not None:
        with suppress(HudiAssetsError, OSError):
            storage.delete(place.earlier_note_file)


def _host_of(uri: str) -> str:
    """Empty where it says none: whoever connects refuses it."""
    try:
        return urlsplit(uri.strip()).hostname or ""
    except ValueError:
        return ""


def _file(words: Mapping[str, Any]) -> str:
    return f"{PUBLISHED_NOTES}/{hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:16]}.json"


def _id_file(home_directory: Path) -> Path:
    return Metastore(home_directory).directory / "id"


def _make_id(place: Place) -> None:
    """Of several processes the first one's stays."""
    if place.home_directory is None or place.machine is not None:
        return
    file = _id_file(place.home_directory)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".id.{uuid.uuid4().hex}")
    draft.write_text(uuid.uuid4().hex, "utf-8")
    try:
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink()
