"""Which catalog an address names, and what publishing asks of one.

`thrift://host:port` is a Hive metastore (`hive`), `glue://REGION` AWS Glue's Data Catalog (`glue`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self, TypeVar

from hudi_assets.catalog import glue, hive, views


class AnyEntry(Protocol):
    """A table or view as its catalog has it, whole."""

    @property
    def kind(self) -> str: ...

    @property
    def parameters(self) -> dict[str, str]: ...

    @property
    def location(self) -> str | None: ...

    def with_parameters(self, parameters: Mapping[str, str]) -> Self:
        """With these parameters in the place of all that it has; the rest as it was."""

    def with_location(self, location: str) -> Self:
        """With its data in another folder."""


E = TypeVar("E", bound=AnyEntry)


class Connection(Protocol[E]):
    """To one catalog."""

    def entry(self, database: str, name: str) -> E | None:
        """None where there is no such table or view."""

    def entries(self, database: str, names: Sequence[str]) -> dict[str, E | None]:
        """Name → its entry."""

    def alter(self, database: str, name: str, entry: E, *, expected: tuple[str, str] | None = None) -> None:
        """Put `entry` in the place of the one that is there. Raises `Conflict` where that is another one now."""

    def create(self, database: str, name: str, entry: E) -> None:
        """Raises `Conflict` where somebody made it meanwhile."""

    def drop(self, database: str, name: str) -> None:
        """Take an entry out, and no data with it."""


@contextmanager
def connect(address: str, *, timeout_ms: int | None = None) -> Iterator[Connection[Any]]:
    """A connection to the catalog at `address`. `timeout_ms`: for an answer; None: half a minute.

    Raises `InvalidInput` for what is no address, `EnvironmentProblem` where nobody answers.
    """
    given = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
    if glue.is_glue(address):
        with glue.connect(address, **given) as in_glue:
            yield in_glue
    else:
        with hive.connect(address, **given) as metastore:
            yield metastore


def external_table(
    catalog: Connection[Any],
    database: str,
    name: str,
    owner: str,
    columns: list[tuple[str, str, str | None]],
    location: str,
    formats: views.Formats,
    parameters: Mapping[str, str],
) -> AnyEntry:
    """A new table over a folder, as `catalog` has it. `columns`: name, type and comment of each."""
    if isinstance(catalog, glue.Connection):
        return glue.new_table(
            name, owner, [(column, kind) for column, kind, _ in columns], location, formats, parameters
        )
    return views.external_table(database, name, owner, columns, location, formats, parameters)
