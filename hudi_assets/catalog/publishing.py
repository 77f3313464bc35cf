"""Publishing a table in a Hive metastore: own views, or the tables that Hudi's Hive sync made.

A publisher reads the entry first, then the table, and alters the entry only if it is still the one that it read. So
of two publishers at once the one with the older reading never comes last; it begins anew.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hudi_assets.catalog import connections, glue, hive, partition_table, views
from hudi_assets.catalog.connections import AnyEntry, E
from hudi_assets.catalog.hive import Connection, Entry
from hudi_assets.catalog.publication import PATH, PUBLICATION, properties_of, replaced, said_already
from hudi_assets.catalog.queries import escaped, read_optimized_text
from hudi_assets.catalog.same_table import is_same_location
from hudi_assets.engine import NAMES_FILES, Conflict, HudiAssetsError, HudiTable, InvalidInput, Publication

SOURCE = "_source"
_ATTEMPTS = 5


class Form(StrEnum):
    """How a table stands in a catalog."""

    VIEWS = NAMES_FILES
    SYNCED = "synced"


@dataclass(frozen=True)
class Names:
    """Where a table stands in a catalog."""

    database: str
    ro: str
    rt: str
    form: Form = Form.VIEWS

    @property
    def partitions(self) -> str:
        """The table with the freshness of each partition, where that is published: `t_freshness` beside `t_ro`."""
        return f"{self.ro.removesuffix('_ro')}_freshness"

    @property
    def entries(self) -> tuple[str, str, str]:
        return self.ro, self.rt, self.partitions


def publish(
    uri: str,
    table: HudiTable,
    names: Names,
    on_read: Callable[[Publication], None] | None = None,
    *,
    place: str | None = None,
) -> dict[str, str]:
    """Publish the table as it stands, and return the properties that were set.

    `on_read` is told what is about to be published, before anything is changed. `place` stands for these names in this
    metastore, where its URI is not always the same.

    Raises `InvalidInput` where a name is taken by something else, or synced tables are not there; `Conflict` where
    others publish all the time; `EnvironmentProblem` where the catalog does not answer.
    """
    check_fits(uri, names)
    told = on_read or (lambda _: None)
    for attempt in range(_ATTEMPTS):
        try:
            if names.form is Form.VIEWS:
                with hive.connect(uri) as metastore:
                    return _publish_views(metastore, table, names, told, place or uri)
            with connections.connect(uri) as catalog:
                return _publish_synced(catalog, table, names, told, place or uri)
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def check_fits(uri: str, names: Names) -> None:
    """Raises `InvalidInput` for own views in AWS Glue."""
    if glue.is_glue(uri) and names.form is Form.VIEWS:
        raise InvalidInput(
            "Own views are not published in AWS Glue: their text is Spark's, and Athena and Trino do not read it.",
            where=f"{names.database}.{names.ro}",
            hint="Publish into the tables that Hudi's sync made there: --synced (tables: synced). Or through a Spark "
            "session whose catalog is Glue (a `Catalog` without `uri`).",
        )


def _publish_views(
    metastore: Connection, table: HudiTable, names: Names, on_read: Callable[[Publication], None], place: str
) -> dict[str, str]:
    """The read-optimized view first: it is the one that the promise is about."""
    ro = _own_view(metastore, names, names.ro, table.path)
    rt = _own_view(metastore, names, names.rt, table.path)
    source = _own_source(metastore, names, table.path)
    partitions = _own_partitions(metastore, names, table, place)
    read = table.publication()
    on_read(read)
    properties = properties_of(read, names.partitions)
    query = read_optimized_text(read.schema, read.groups)
    with partition_table.beside_views(partitions, table.storage, read.partitions, properties):
        _put(metastore, names, names.ro, ro, read, query, properties)
        _put_source(metastore, names, source, read)
        _put(metastore, names, names.rt, rt, read, _snapshot_query(names, read.path), properties)
    return properties


def _publish_synced(
    catalog: connections.Connection[E],
    table: HudiTable,
    names: Names,
    on_read: Callable[[Publication], None],
    place: str,
) -> dict[str, str]:
    """Parameters alone: columns, partitions and location are Hive sync's. Where they say it already, nothing.

    Reading the table takes a while, in which Hive sync may alter the entry. So the entry is read again right before
    ours are put into it. Nothing guards what Hive sync does between that reading and the call. In AWS Glue the version
    does: the call is refused then, and all of this begins anew.
    """
    found = ((name, _synced_table(catalog, names, name, table.path)) for name in (names.ro, names.rt))
    before = {name: entry for name, entry in found if entry is not None}
    if not before:
        raise no_synced_table(names)
    partitions = _own_partitions(catalog, names, table, place)
    read = table.publication()
    on_read(read)
    properties = properties_of(read, names.partitions)
    said = said_already([entry.parameters for entry in before.values()], partitions.parameters, properties)
    if said is not None:
        return said
    with partition_table.beside_views(partitions, table.storage, read.partitions, properties):
        for name, old in before.items():
            _put_synced(catalog, names, name, old, table.path, properties)
    return properties


def _put_synced(
    catalog: connections.Connection[E], names: Names, name: str, old: E, path: str, properties: Mapping[str, str]
) -> None:
    entry = _synced_table(catalog, names, name, path)
    if entry is None:
        return
    if _expected(entry) != _expected(old):
        where = f"{names.database}.{name}"
        raise Conflict("Somebody else has published meanwhile.", where=where, hint="Publish again.")
    altered = entry.with_parameters(replaced(entry.parameters, properties))
    catalog.alter(names.database, name, altered, expected=_expected(entry))


def _synced_table(catalog: connections.Connection[E], names: Names, name: str, path: str) -> E | None:
    """The table of this name, if it is the one at `path`. Its location says so; it is Hive sync's."""
    found = catalog.entry(names.database, name)
    if found is None:
        return None
    is_view = found.kind == hive.VIRTUAL_VIEW
    refuse_other_synced(
        f"{names.database}.{name}", is_view=is_view, place=found.location or found.parameters.get(PATH), path=path
    )
    return found


def refuse_other_synced(where: str, *, is_view: bool, place: str | None, path: str) -> None:
    """Raises `InvalidInput` unless what has this name is the table at `path`."""
    hint = "Name this table's own by --ro and --rt (ro_view, rt_view)."
    if is_view:
        raise InvalidInput("This is a view, no synced table.", where=where, hint=hint)
    if place is None:
        raise InvalidInput("This table does not say where it lies.", where=where, hint=hint)
    if not is_same_location(place, path):
        raise InvalidInput(f"This is the table at {place}, not the one at {path}.", where=where, hint=hint)


def _own_view(metastore: Connection, names: Names, name: str, path: str) -> Entry | None:
    """The view of this name, if it is ours to replace."""
    found = metastore.entry(names.database, name)
    if found is None:
        return None
    where, hint = f"{names.database}.{name}", "Choose another name (--ro, --rt; ro_view, rt_view)"
    if found.kind != hive.VIRTUAL_VIEW:
        raise InvalidInput(
            "A table has this name, not a view.",
            where=where,
            hint=f"{hint}. Where Hudi's Hive sync made it, say so: --synced (tables: synced).",
        )
    other = found.parameters.get(PATH)
    if other is None or not is_same_location(other, path):
        whose = f"the table {other}" if other else "somebody else"
        raise InvalidInput(f"This is a view of {whose}.", where=where, hint=f"{hint}, or drop it.")
    return found


def _own_source(metastore: Connection, names: Names, path: str) -> Entry | None:
    """The table that the snapshot view reads, if it is ours to replace."""
    name = names.rt + SOURCE
    found = metastore.entry(names.database, name)
    if found is None:
        return None
    place = views.read_by(found)
    if place is None or not is_same_location(place, path):
        raise not_our_source(f"{names.database}.{name}")
    return found


def _own_partitions(
    metastore: connections.Connection[Any], names: Names, table: HudiTable, place: str
) -> _PartitionTable:
    """The table with the freshness of the partitions, if it is ours to replace.

    Asked for whether it is wanted or not: one that stands there must not go on promising.
    """
    found = metastore.entry(names.database, names.partitions)
    if found is not None and not partition_table.is_ours(found.parameters, table.path):
        if table.config.publishes_partitions:
            raise partition_table.not_ours(f"{names.database}.{names.partitions}")
        found = None
    return _PartitionTable(metastore, names, found, place)


class _PartitionTable:
    """As `partition_table.Standing`."""

    def __init__(
        self, metastore: connections.Connection[Any], names: Names, found: AnyEntry | None, place: str
    ) -> None:
        self._metastore, self._database, self._name, self._entry = metastore, names.database, names.partitions, found
        self.place = f"{place} {names.database}.{names.partitions}".lower()

    @property
    def parameters(self) -> Mapping[str, str] | None:
        return None if self._entry is None else self._entry.parameters

    def put(self, location: str, properties: Mapping[str, str]) -> None:
        if self._entry is None:
            made = partition_table.new_table(self._metastore, self._database, self._name, _user(), location, properties)
            self._metastore.create(self._database, self._name, made)
        else:
            made = partition_table.moved(self._entry, location, properties)
            self._metastore.alter(self._database, self._name, made, expected=_expected(self._entry))
        self._entry = made

    def drop(self) -> None:
        self._metastore.drop(self._database, self._name)
        self._entry = None

    def may_name(self, folder: str, error: Exception) -> bool:
        """A metastore that did not answer may still do it. One that refused is asked."""
        if not isinstance(error, Conflict | hive.Refused):
            return True
        with suppress(HudiAssetsError):
            found = self._metastore.entry(self._database, self._name)
            return found is not None and found.parameters.get(partition_table.FOLDER) == folder
        return True


def no_synced_table(names: Names) -> InvalidInput:
    return InvalidInput(
        "There is no such synced table.",
        where=f"{names.database}.{names.ro}",
        hint="Hudi's Hive sync makes it with its next write (hoodie.datasource.hive_sync.enable), in AWS Glue by its "
        "AwsGlueCatalogSyncTool (hoodie.meta.sync.client.tool.class). Name it by --ro and --rt (ro_view, rt_view).",
    )


def not_our_source(where: str) -> InvalidInput:
    return InvalidInput(
        "Something else has the name of the table that the snapshot view reads.",
        where=where,
        hint="Choose another name for the snapshot view (--rt; rt_view).",
    )


def _put(
    metastore: Connection,
    names: Names,
    name: str,
    old: Entry | None,
    read: Publication,
    query: str,
    properties: Mapping[str, str],
) -> None:
    if old is None:
        made = views.new_view(names.database, name, _user(), read.schema, query, properties)
        metastore.create(names.database, name, made)
        return
    altered = views.with_query(old, names.database, read.schema, query, properties)
    metastore.alter(names.database, name, altered, expected=_expected(old))


def _put_source(metastore: Connection, names: Names, old: Entry | None, read: Publication) -> None:
    """The table of our data source that the snapshot view reads, with the table's columns."""
    name = names.rt + SOURCE
    wanted = views.new_source(names.database, name, _user(), read.schema, read.path)
    if old is None:
        metastore.create(names.database, name, wanted)
    elif views.schema_of(old) != views.schema_of(wanted):
        metastore.alter(names.database, name, views.with_schema(old, read.schema))


def _snapshot_query(names: Names, path: str) -> str:
    """Spark gives a query none of its table's options: hence they stand in the query too."""
    return f"SELECT * FROM `{names.database}`.`{names.rt}{SOURCE}` WITH (`table` '{escaped(path)}')"


def _expected(entry: AnyEntry) -> tuple[str, str] | None:
    value = entry.parameters.get(PUBLICATION)
    return None if value is None else (PUBLICATION, value)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a process without an entry in the system's user list
        return ""
