"""`hudi-assets publish`, and what `compact --publish` does after it: a table's freshness and files into a catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, overload

import typer

from hudi_assets.catalog.places import DATABASE, METASTORE, Place, home_metastore, named_metastore
from hudi_assets.catalog.publication import PARTITIONS
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.cli.output import print_facts, print_json, print_text, show_nothing_to_do
from hudi_assets.cli.table import (
    NOTHING_TO_DO,
    AsJson,
    DataLatency,
    EventTimeField,
    EventTimeUnitOption,
    SettingsOption,
    TablePath,
    nothing_to_do,
    open_table,
)
from hudi_assets.engine import DATA_LATENCY, PUBLISH_PARTITIONS, HudiTable, InvalidInput

_NAME = re.compile(r"\w+")
_SHOWN = ("freshness", "threshold", "instant")

MetastoreOption = Annotated[
    str | None,
    typer.Option(
        "--metastore",
        metavar="URI",
        envvar=METASTORE,
        help="A Hive metastore, thrift://host:port, or AWS Glue, glue://REGION[/CATALOG_ID]. "
        "Default: the metastore in the home directory.",
    ),
]
DatabaseOption = Annotated[str, typer.Option(metavar="NAME", envvar=DATABASE, help="The metastore's database.")]
RoOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The read-optimized view. Default: the table's name and _ro.")
]
RtOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The snapshot view. Default: the table's name and _rt.")
]
SyncedOption = Annotated[
    bool, typer.Option("--synced", help="They are tables that Hudi's sync made: set properties of theirs alone.")
]
PartitionsOption = Annotated[
    bool | None,
    typer.Option(
        "--partitions/--no-partitions",
        help="Whether to publish the freshness of each partition too, as a small table (…_freshness). "
        f"Default: as {PUBLISH_PARTITIONS} says.",
    ),
]
PublishOption = Annotated[
    bool,
    typer.Option("--publish", help="Publish freshness and files afterwards, also where nothing is to be compacted."),
]


@dataclass(frozen=True)
class Target:
    """Where to publish, as the options say."""

    metastore: str | None
    database: str
    ro: str | None
    rt: str | None
    synced: bool
    data_latency: str | None
    partitions: bool | None = None

    def names(self, table: HudiTable) -> Names:
        """Raises `InvalidInput` for what no metastore takes as a name."""
        name = table.config.properties.get("hoodie.table.name", "")
        found = Names(
            self.database, self.ro or f"{name}_ro", self.rt or f"{name}_rt", Form.SYNCED if self.synced else Form.VIEWS
        )
        for one in (found.database, found.ro, found.rt):
            if not _NAME.fullmatch(one):
                raise InvalidInput(
                    f"{one!r} cannot be a name in a Hive metastore: letters, digits and underscores can.",
                    hint="Give others by --database, --ro and --rt.",
                )
        return found


@dataclass(frozen=True)
class Published:
    """What was published, and where."""

    names: Names
    properties: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        names = self.names
        found = {"database": names.database, "ro": names.ro, "rt": names.rt, "properties": self.properties}
        return found | ({"partitions": names.partitions} if PARTITIONS in self.properties else {})

    def show(self) -> None:
        print_text(f"Published as {self.names.database}.{self.names.ro} and {self.names.database}.{self.names.rt}.")
        if PARTITIONS in self.properties:
            print_text(f"The freshness of each partition is in {self.names.database}.{self.names.partitions}.")
        values = {key: self.properties.get(f"hudi_assets.{key}", "null") for key in _SHOWN}
        print_facts({key: "unknown" if value == "null" else value for key, value in values.items()})
        if "hudi_assets.reason" in self.properties:
            print_text(self.properties["hudi_assets.reason"])


@overload
def published_by(target: Target, table: HudiTable) -> Published: ...
@overload
def published_by(target: Target | None, table: HudiTable) -> Published | None: ...
def published_by(target: Target | None, table: HudiTable) -> Published | None:
    """Publish the table there; without a target nothing."""
    if target is None:
        return None
    names = target.names(table)
    given = {} if target.data_latency is None else {DATA_LATENCY: target.data_latency}
    if target.partitions is not None:
        given[PUBLISH_PARTITIONS] = str(target.partitions).lower()
    if given:  # as settings: so the table's note of this place keeps them too
        table = table.read_by({**table.given_settings(), **given})
    place = Place(named_metastore(target.metastore) or home_metastore(), names)
    return Published(names, place.publish(table))


def nothing_to_compact(table: HudiTable, reason: str, target: Target | None, as_json: bool) -> NoReturn:
    """End with exit code 3 and the reason; what somebody else compacted is published all the same."""
    published = published_by(target, table)
    if published is None:
        nothing_to_do(reason, as_json)
    if as_json:
        print_json({"nothing_to_do": reason, "published": published.as_json()})
    else:
        show_nothing_to_do(reason, as_json)
        published.show()
    raise typer.Exit(NOTHING_TO_DO)


def publish_table(
    path: TablePath,
    metastore: MetastoreOption = None,
    database: DatabaseOption = "default",
    ro: RoOption = None,
    rt: RtOption = None,
    synced: SyncedOption = False,
    partitions: PartitionsOption = None,
    data_latency: DataLatency = None,
    event_time_field: EventTimeField = None,
    event_time_unit: EventTimeUnitOption = None,
    settings: SettingsOption = None,
    as_json: AsJson = False,
) -> None:
    """Publish freshness and base files in a catalog, by views or as properties of synced tables."""
    table = open_table(path, event_time_field, settings=settings, event_time_unit=event_time_unit)
    published = published_by(Target(metastore, database, ro, rt, synced, data_latency, partitions), table)
    if as_json:
        print_json(published.as_json())
    else:
        published.show()
