"""What a session's workers are asked before anything is published, with a Spark that has none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from hudi_assets.engine import EnvironmentProblem, HudiTable
from hudi_assets.engine.spark import connect, probe
from hudi_assets.engine.spark.probe import check_workers
from hudi_assets.engine.spark.worker_answer import answer
from hudi_assets.engine.storage import LocalStorage
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
Change = Callable[[int, dict[str, Any]], object]


class Context:
    """A Spark context whose tasks run here; `change` makes their answers those of other workers."""

    def __init__(self, change: Change = lambda _number, _said: None, executors: Iterable[int] = (1,)) -> None:
        self.change, self.ports, self.rounds, self.files = change, [0, *executors], 0, list[set[str]]()
        self.master = "spark://there:7077"
        tracker = SimpleNamespace(getExecutorInfos=self.executors)
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker))

    def executors(self) -> list[Any]:
        return [SimpleNamespace(host=lambda: "there", port=lambda n=port: n) for port in self.ports]

    def parallelize(self, numbers: Sequence[int], _: int) -> Any:
        self.rounds += 1
        return SimpleNamespace(
            map=lambda task: SimpleNamespace(collect=lambda: [self.said(n, task(n)) for n in numbers])
        )

    def said(self, number: int, text: str) -> str:
        said = json.loads(text) | {"folder": f"work/{number % (len(self.ports) - 1)}"}
        self.change(number, said)
        return json.dumps(said)


class Cluster:
    """A classic session on a cluster."""

    def __init__(self, *how: Any) -> None:
        self.sparkContext = Context(*how)


class Connected:
    """A session of Spark Connect. `change`: as of `Context`."""

    def __init__(self, change: Change = lambda _number, _said: None) -> None:
        self.change, self.asked = change, 0

    def range(self, _: int) -> Connected:
        self.asked += 1
        return self

    def mapInArrow(self, tell: Callable[[Any], Any], _: str) -> Connected:  # noqa: N802
        self.rows = [row for batch in tell(iter([])) for row in batch.to_pylist()]
        return self

    def collect(self) -> list[dict[str, str]]:
        said = json.loads(self.rows[0]["answer"])
        self.change(0, said)
        return [{"answer": json.dumps(said)}]


Connected.__module__ = "pyspark.sql.connect.session"


def version(name: str, found: str | None, of: Iterable[int] = range(9)) -> Change:
    def change(number: int, said: dict[str, Any]) -> None:
        if number in of:
            said["packages"][name] = {"version": found, "error": None if found else "ImportError: broken"}

    return change


def tree(table: HudiTable) -> set[str]:
    return {str(path) for path in Path(table.path).rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return created(tmp_path / "t", SCHEMA)


def test_they_are_asked_once_and_again_when_there_are_new_ones(table: HudiTable) -> None:
    session = Cluster()
    for _ in range(3):
        check_workers(session, table.storage, to_write=True)
    assert session.sparkContext.rounds == 1
    session.sparkContext.ports.append(2)
    for _ in range(3):
        check_workers(session, table.storage, to_write=True)
    assert session.sparkContext.rounds == 2
    session.sparkContext.ports.pop()
    check_workers(session, table.storage, to_write=True)
    assert session.sparkContext.rounds == 2
    check_workers(session, LocalStorage(created(f"{table.path}2", SCHEMA).path), to_write=True)
    assert session.sparkContext.rounds == 3


def test_one_that_no_task_reached_is_tried_for_again(table: HudiTable) -> None:
    def all_by_the_first(_: int, said: dict[str, Any]) -> None:
        said["folder"] = "work/0"

    session = Cluster(all_by_the_first, (1, 2, 3))
    check_workers(session, table.storage, to_write=True)
    assert session.sparkContext.rounds == 3
    check_workers(session, table.storage, to_write=True)
    assert session.sparkContext.rounds == 3


@pytest.mark.parametrize("kind", [Cluster, Connected])
@pytest.mark.parametrize(
    ("name", "here", "there", "words"),
    [
        ("hudi-assets", "99.0", "1.0", "have hudi-assets 1.0, and this process has 99.0"),
        ("hudi-assets", "99.0", None, r"lack hudi-assets \(ImportError: broken\), and this process has 99.0"),
        ("hudi-assets", None, None, r"lack hudi-assets \(ImportError: broken\), and this process has hudi-assets"),
        ("hudi-assets", "1.0", "1.0", None),
        ("hudi-assets", "1.0", "1.0.1", "have hudi-assets 1.0.1"),
        ("hudi-assets", None, "1.0", None),
        ("hudi-assets", "1.0", "", None),
        ("numpy", "2.4.1", "1.26.0", "have numpy 1.26.0, and this process has 2.4.1"),
        ("numpy", "2.4.1", "2.5.0", None),
        ("polars", "2.4.1", None, "lack polars"),
        ("pyarrow", "26.0.1", "17.0.0", "have pyarrow 17"),
    ],
)
def test_other_packages(
    kind: Any,
    table: HudiTable,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    here: str | None,
    there: str | None,
    words: str | None,
) -> None:
    own = probe._version
    monkeypatch.setattr(probe, "_version", lambda asked: here if asked == name else own(asked))
    session = kind(version(name, there))
    if words is None:
        check_workers(session, table.storage, to_write=True)
        return
    before = tree(table)
    with pytest.raises(EnvironmentProblem, match=words) as raised:
        check_workers(session, table.storage, to_write=True)
    assert "host " in str(raised.value.where)
    assert "docs/how-to/cluster.md" in str(raised.value.hint)
    assert tree(table) == before


def test_how_many_of_them_is_said(table: HudiTable) -> None:
    with pytest.raises(EnvironmentProblem, match="in work/0; 1 of 3 workers"):
        check_workers(Cluster(version("numpy", None, of=[0]), (1, 2, 3)), table.storage, to_write=True)


@pytest.mark.parametrize("kind", [Cluster, Connected])
@pytest.mark.parametrize("to_write", [True, False])
@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"digest": None, "error": "No such file or directory"}, "No such file or directory"),
        ({"digest": "other", "error": None}, "has other bytes there"),
    ],
)
def test_another_folder_where_the_table_is(
    kind: Any, table: HudiTable, to_write: bool, found: dict[str, str | None], words: str
) -> None:
    before = tree(table)
    with pytest.raises(EnvironmentProblem, match=f"see another folder.*{words}.*{table.path}: host "):
        check_workers(kind(lambda _, said: said.update(file=found)), table.storage, to_write=to_write)
    assert tree(table) == before


def test_a_file_is_written_for_them_alone_and_removed(table: HudiTable) -> None:
    before, seen = tree(table), list[set[str]]()
    session = Cluster(lambda _number, _said: seen.append(tree(table) - before))
    check_workers(session, table.storage, to_write=False)
    assert seen == [set(), set()]
    seen.clear()
    check_workers(session, table.storage, to_write=True)
    assert [len(more) for more in seen] == [1, 1]
    assert all("/.hoodie/.aux/hudi_assets/tmp/" in name for more in seen for name in more)
    assert tree(table) == before


def test_where_nothing_can_be_written_they_look_at_the_properties(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise EnvironmentProblem("Read-only file system")

    monkeypatch.setattr(LocalStorage, "create", refuse)
    check_workers(Cluster(), table.storage, to_write=True)
    with pytest.raises(EnvironmentProblem, match=r"hoodie\.properties has other bytes"):
        check_workers(
            Cluster(lambda _, said: said.update(file={"digest": "x", "error": None})), table.storage, to_write=True
        )


def test_properties_that_change_meanwhile_are_looked_at_again(table: HudiTable) -> None:
    properties = Path(table.path, ".hoodie/hoodie.properties")

    def change(number: int, _: dict[str, Any]) -> None:
        if number == 0 and session.sparkContext.rounds == 1:
            properties.write_text(properties.read_text() + "a=b\n")

    session = Cluster(change)
    check_workers(session, table.storage, to_write=False)
    assert session.sparkContext.rounds == 2


@pytest.mark.parametrize(("base", "package"), [("s3://bucket/t", "obstore"), ("hdfs://host:1/t", "hdfs-native")])
def test_of_a_table_in_a_store_they_need_its_package(base: str, package: str) -> None:
    storage: Any = SimpleNamespace(base=base)
    files = []

    def change(_: int, said: dict[str, Any]) -> None:
        files.append(said["file"])
        said["packages"][package] = {"version": None, "error": "no"}

    with pytest.raises(EnvironmentProblem, match=f"lack {package}"):
        check_workers(Cluster(change), storage, to_write=True)
    assert files == [None, None]


@pytest.mark.parametrize("kind", [Cluster, Connected])
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("(node7 executor 3): ModuleNotFoundError: No module named 'pyarrow'", "workers lack a package"),
        ("(node7 executor 3): [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", "3.9, than this"),
    ],
)
def test_workers_that_cannot_answer(kind: Any, table: HudiTable, said: str, words: str) -> None:
    def fail(*_: object) -> None:
        raise PySparkException(said)

    with pytest.raises(EnvironmentProblem, match=f"{words}.*host node7, executor 3"):
        check_workers(kind(fail), table.storage, to_write=True)


def test_a_server_of_this_machine_is_not_asked(table: HudiTable) -> None:
    session = Connected()
    connect._OF_THIS_MACHINE.add(session)
    check_workers(session, table.storage, to_write=True)
    assert session.asked == 0


def test_a_compaction_asks_before_it_plans(
    table: HudiTable, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hudi_assets.engine.spark import session as spark_session

    table.upsert(session, session.rows([{"id": "a", "ts": 5}], SCHEMA))
    before = tree(table)

    def refuse(*_: object, **__: object) -> None:
        raise EnvironmentProblem("They lack it.")

    monkeypatch.setattr(spark_session, "ready_workers", refuse)
    with pytest.raises(EnvironmentProblem, match="They lack it"):
        table.compact(session, threshold=10)
    assert tree(table) == before


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    said = json.loads(answer({"no-such-thing": "no_such_thing", "json": "json"}, str(tmp_path / "none")))
    assert said["packages"]["no-such-thing"]["error"] == "ModuleNotFoundError: No module named 'no_such_thing'"
    assert said["packages"]["json"] == {"version": "", "error": None}  # of no distribution
    assert said["file"] == {"digest": None, "error": "No such file or directory"}
