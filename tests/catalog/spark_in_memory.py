"""A Spark session in this process that understands a few statements, with the synced table `t_ro`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hudi_assets.catalog import spark_sql
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.engine import HudiTable


class Spark:
    """Tables by name, with their properties; `place` is the location. `fails`: how the statement begins that does."""

    version = "4.0.0"

    def __init__(self) -> None:
        self.catalog = self
        self.tables: dict[str, dict[str, str]] = {}
        self.fails: str | None = None
        self.told: list[str] = []

    def tableExists(self, name: str) -> bool:  # noqa: N802
        return self._plain(name) in self.tables

    def getTable(self, name: str) -> Any:  # noqa: N802
        return type("Found", (), {"tableType": self.tables[self._plain(name)]["kind"]})

    def properties(self, _: object, __: str, name: str) -> dict[str, str]:
        return {key: value for key, value in self.tables[name].items() if key not in ("kind", "place")}

    def sql(self, statement: str) -> None:
        self.told.append(statement)
        if self.fails is not None and statement.startswith(self.fails):
            raise RuntimeError(self.fails)
        verb, name = re.match(r"([A-Z ]+?)(?: IF EXISTS)? `default`\.`(\w+)`", statement).groups()  # type: ignore[union-attr]
        pairs = dict(re.findall(r"'([^']*)' = '([^']*)'", statement))
        location = re.search("LOCATION '(.*?)'", statement)
        if verb.startswith("DROP"):
            self.tables.pop(name)
        elif verb.startswith("CREATE"):
            assert verb.startswith("CREATE OR REPLACE") or name not in self.tables
            self.tables[name] = {"kind": "VIEW" if "VIEW" in verb else "EXTERNAL", **pairs}
        elif "UNSET" in statement:
            for key in re.findall("'(.*?)'", statement):
                del self.tables[name][key]
        else:
            self.tables[name] |= pairs
        if location is not None:
            self.tables[name]["place"] = location[1]

    def publish(self, table: HudiTable) -> dict[str, str]:
        return spark_sql.publish_by_spark(self, table, _SYNCED)  # type: ignore[arg-type]

    def remove(self) -> None:
        spark_sql.remove_by_spark(self, _SYNCED)  # type: ignore[arg-type]

    def _plain(self, name: str) -> str:
        return name.split(".")[1].strip("`")


_SYNCED = Names("default", "t_ro", "t_rt", Form.SYNCED)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    made = Spark()
    made.tables["t_ro"] = {"kind": "EXTERNAL"}
    monkeypatch.setattr(spark_sql, "properties_by_spark", made.properties)
    monkeypatch.setattr(spark_sql, "_synced", lambda *_: ["t_ro"])
    return made
