"""`hudi-assets publish`, by the command line's own entry: its texts, its exit codes, and what then stands there."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from hudi_assets import cli
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publishing import Names
from tests.catalog.conftest import Served
from tests.catalog.tables import HOUR, make_table, row, write
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hudi-assets", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_it_publishes_in_the_home_directorys_catalog(
    tmp_path: Path,
    home: Path,
    served: Served,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = make_table(tmp_path / "by_hand")
    write(table, session, row("a", HOUR))
    table.compact(session)
    assert run(monkeypatch, "publish", table.path) == 0
    out = capsys.readouterr().out
    assert out.startswith("Published as default.by_hand_ro and default.by_hand_rt.\nfreshness  20")
    found = Place(served.uri, Names("default", "by_hand_ro", "by_hand_rt")).found()
    assert found is not None
    assert found.properties["hudi_assets.instant"] == table.freshness().instant
    assert run(monkeypatch, "publish", table.path, "--json", "--ro", "r", "--rt", "s") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["database"], told["ro"], told["rt"]) == ("default", "r", "s")
    renamed = Place(served.uri, Names("default", "r", "s")).found()
    assert renamed is not None
    assert renamed.properties.items() >= told["properties"].items()


def test_a_compaction_with_nothing_to_do_publishes_what_others_compacted(
    tmp_path: Path,
    served: Served,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = make_table(tmp_path / "idle")
    write(table, session, row("a", HOUR))
    table.compact(session)
    monkeypatch.setenv("HUDI_ASSETS_METASTORE", served.uri)
    assert run(monkeypatch, "compact", table.path, "--publish", "--json") == 3
    told = json.loads(capsys.readouterr().out)
    assert "nothing_to_do" in told
    assert told["published"]["properties"]["hudi_assets.instant"] == table.freshness().instant
    assert run(monkeypatch, "compact", table.path, "--publish") == 3
    assert "Published as default.idle_ro" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--ro", "a-b"), 2, "'a-b' cannot be a name in a Hive metastore"),
        (("--metastore", "http://somewhere"), 2, "'http://somewhere' is no Hive metastore."),
        (("--database", "nowhere"), 1, "The metastore did not do it"),
        (("--synced",), 2, "There is no such synced table."),
    ],
)
def test_what_cannot_be_published_is_said(
    tmp_path: Path,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("HUDI_ASSETS_METASTORE", served.uri)
    assert run(monkeypatch, "publish", make_table(tmp_path / "t").path, *options) == code
    assert said in capsys.readouterr().err


def test_a_metastore_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_table(tmp_path / "t").path
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        uri = f"thrift://127.0.0.1:{taken.getsockname()[1]}"
        assert run(monkeypatch, "publish", path, "--metastore", uri) == 1
    assert "The Hive metastore does not answer" in capsys.readouterr().err
