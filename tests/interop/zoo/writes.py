"""How Hudi writes a batch of the story: by its DataSource, or by SQL with its defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scripts.hudi_client import Hudi
from tests.interop.zoo.configuration import BEFORE, STORY, VERSION, Batch, Configuration, Deletes

OPERATION = "hoodie.datasource.write.operation"
# With a limit for small files 1.2.0 itself fails to merge a partial update into a base file without log files.
_SQL_SETTINGS = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.write.auto.upgrade": "false",
}
MERGE = (
    "merge into {table} t using (select concat('k', id) id, {start} + ({minute} + id) * {step} ts, '{number}' a, "
    "case when id % 2 = 0 then 'a' else 'b' end p from range(9) where id in ({keys})) s "
    "on t.id = s.id and t.p = s.p when matched then update set t.ts = s.ts, t.a = s.a"
)
UPDATE = "update {table} set a = '{number}', ts = {start} + ({minute} + b) * {step} where b in ({keys})"
DELETE = "delete from {table} where b in ({keys})"


def write(hudi: Hudi, configuration: Configuration, path: Path, number: int) -> None:
    """Batch `number` of the story, as the configuration writes it."""
    (configuration.write or by_frame)(hudi, configuration, path, number)


def by_frame(hudi: Hudi, configuration: Configuration, path: Path, number: int) -> None:
    write_batch(hudi, configuration, path, STORY[number], number)


def write_batch(hudi: Hudi, configuration: Configuration, path: Path, batch: Batch, number: int, **given: str) -> None:
    """Any batch, by the DataSource; `number` marks its rows."""
    deletes = batch.kind == "D" and configuration.deletes is Deletes.OPERATION
    options = {**configuration.writer_options(), **({OPERATION: "delete"} if deletes else {}), **given}
    hudi.write(path, configuration.rows(batch, number), options)


def operations(**by_number: str) -> Callable[[Hudi, Configuration, Path, int], None]:
    """Batches of another operation than upsert: `_3="insert_overwrite"` for the fourth."""

    def written(hudi: Hudi, configuration: Configuration, path: Path, number: int) -> None:
        operation = by_number.get(f"_{number}")
        given = {OPERATION: operation} if operation else {}
        write_batch(hudi, configuration, path, STORY[number], number, **given)

    return written


def by_sql(
    change: str, properties: str, last: str = "", settings: Mapping[str, str] | None = None
) -> Callable[[Hudi, Configuration, Path, int], None]:
    """A table of CREATE TABLE with these properties; each update is the statement `change`.

    `last`: stands in the place of the fifth batch. `settings`: of the session, beside those of all.
    """

    def written(hudi: Hudi, configuration: Configuration, path: Path, number: int) -> None:
        table = f"zoo_{abs(hash(str(path)))}"
        with _settings(hudi, {**_SQL_SETTINGS, VERSION: str(configuration.version), **(settings or {})}):
            form = last if last and number == BEFORE - 1 else change
            for statement in _statements(configuration, path, number, table, form, properties):
                hudi.ask("sql", statement=statement)

    return written


def _statements(
    configuration: Configuration, path: Path, number: int, table: str, change: str, properties: str
) -> Iterator[str]:
    batch, time = STORY[number], configuration.time
    if number == 0:
        columns = "id string, ts bigint, a string, b bigint, p string"
        yield (
            f"create table {table} ({columns}) using hudi partitioned by (p) location '{path}' "
            f"tblproperties (type='mor'{properties})"
        )
        values = ", ".join(f"('k{n}', {time.at(batch.minute + n)}, '0-{n}', {n}, '{'ab'[n % 2]}')" for n in batch.keys)
        yield f"insert into {table} (id, ts, a, b, p) values {values}"
        return
    form = DELETE if batch.kind == "D" else change
    yield form.format(
        table=table,
        start=time.at(0),
        step=time.step,
        minute=batch.minute,
        number=number,
        keys=", ".join(map(str, batch.keys)),
    )


@contextmanager
def _settings(hudi: Hudi, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of Hudi's session, for a while."""
    for key, value in settings.items():
        hudi.ask("sql", statement=f"set {key}={value}")
    try:
        yield
    finally:
        for key in settings:
            hudi.ask("sql", statement=f"reset {key}")
