"""Tables in HDFS, changed from here: the same answers as of the same steps on a disk."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action
from tests.crash.tables import SCHEMA, snapshot
from tests.stores.hdfs import Hdfs
from tests.stores.test_changes import SETTINGS, live, new_table
from tests.tables.local_session import LocalSession


def new_path(hdfs: Hdfs) -> str:
    return f"{hdfs.uri}/tables/{uuid.uuid4().hex}"


@pytest.mark.parametrize("version", [6, pytest.param(8, marks=pytest.mark.thorough), 9])
def test_every_kind_of_change(version: int, hdfs: Hdfs, session: LocalSession, tmp_path: Path) -> None:
    path = new_path(hdfs)
    table = new_table(path, version)
    assert live(table, session) == live(new_table(str(tmp_path / "t"), version), session)
    assert snapshot(HudiTable.open(path)) == snapshot(table)
    kinds = {instant.action for instant in table.state().timeline.instants}
    assert {Action.CLEAN, Action.DELTA_COMMIT} <= kinds
