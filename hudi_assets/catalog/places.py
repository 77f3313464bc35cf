"""Where a table is published: which metastore is meant, and what the table itself remembers of it.

A metastore is named by its address, `thrift://host:port`, or `home:/directory`, the one that runs in a home directory
and has another port each time. A table keeps a note of each place below its `.hoodie`, so that whoever cleans it knows
which views name its files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hudi_assets.catalog.metastore import Metastore, MetastoreError
from hudi_assets.catalog.publishing import Form, Names, publish
from hudi_assets.engine import EnvironmentProblem, HudiAssetsError, HudiTable, open_storage
from hudi_assets.home import home

METASTORE = "HUDI_ASSETS_METASTORE"
DATABASE = "HUDI_ASSETS_DATABASE"
_HOME = "home:"
_NOTES = ".hoodie/.aux/hudi_assets/published"


def named_metastore(uri: str | None = None) -> str | None:
    """The address that a setting or the environment gives; None where neither does."""
    return uri or os.environ.get(METASTORE) or None


def home_metastore() -> str:
    """The one in the home directory."""
    return f"{_HOME}{home()}"


@dataclass(frozen=True)
class Place:
    """A table's names in a metastore."""

    metastore: str
    names: Names

    def address(self) -> str:
        """Where it is spoken to. The one of a home directory is started for this process where it does not run."""
        if not self.metastore.startswith(_HOME):
            return self.metastore
        try:
            return Metastore(Path(self.metastore.removeprefix(_HOME))).acquire(os.getpid())
        except MetastoreError as error:
            hint = f"Or name another metastore: --metastore thrift://host:port, {METASTORE}, `uri`."
            raise EnvironmentProblem(str(error), hint=hint) from error

    @property
    def was_never_used(self) -> bool:
        """True for a home directory in which nothing was published: no metastore is started to ask it."""
        return self.metastore.startswith(_HOME) and not Metastore(Path(self.metastore.removeprefix(_HOME))).exists

    def publish(self, table: HudiTable) -> dict[str, str]:
        """Publish the table here, and note it with the table."""
        properties = publish(self.address(), table, self.names)
        _note(table, self)
        return properties


def noted_places(table: HudiTable) -> Iterator[Place]:
    """Where the table was published, as it notes itself."""
    storage = open_storage(table.path)
    for file in storage.list_files(_NOTES):
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(storage.read(f"{_NOTES}/{file.name}"))
            names = said["names"]
            yield Place(said["metastore"], Names(names["database"], names["ro"], names["rt"], Form(names["form"])))


def forget(table: HudiTable, place: Place) -> None:
    """The table does not stand there any more."""
    open_storage(table.path).delete(_file_of(place))


def _note(table: HudiTable, place: Place) -> None:
    """A table that this process may not write into keeps no note: nobody protects its views from a clean."""
    storage = open_storage(table.path)
    with suppress(HudiAssetsError, OSError):
        if not storage.exists(_file_of(place)):
            storage.replace(_file_of(place), json.dumps(asdict(place), sort_keys=True).encode())


def _file_of(place: Place) -> str:
    text = json.dumps(asdict(place), sort_keys=True)
    return f"{_NOTES}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
