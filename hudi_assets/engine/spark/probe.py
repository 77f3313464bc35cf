"""Whether a session's workers can run the engine's tasks, and see the table: asked before anything is published.

A worker needs the same Python, this package in the same version, and what its tasks import. A table on a path of this
machine has to be the same one there. Spark says none of that before a task has failed, in pages of stack traces.

What a session's workers have answered is kept. On a cluster they are asked again when Spark has new executors. It
places the tasks itself: two for each executor reach all of them where they have nothing else to do, and a few rounds
are made. An executor that none has reached is told by its first task that fails.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa

from hudi_assets.engine.errors import EnvironmentProblem, HudiAssetsError
from hudi_assets.engine.spark import worker_answer
from hudi_assets.engine.spark.capabilities import is_connect
from hudi_assets.engine.spark.connect import is_of_this_machine
from hudi_assets.engine.spark.errors import executor_of, spark_problem
from hudi_assets.engine.storage import SCRATCH, Storage

PACKAGE: Final = "hudi-assets"
# What tasks import: distribution → module. The package's own import says what else is missing.
_PACKAGES: Final = {PACKAGE: "hudi_assets.engine", "pyarrow": "pyarrow", "numpy": "numpy", "polars": "polars"}
_STORES: Final = {"s3": "obstore", "s3a": "obstore", "gs": "obstore", "abfs": "obstore", "abfss": "obstore"}
_HDFS: Final = "hdfs-native"
_PROPERTIES: Final = ".hoodie/hoodie.properties"
_ROUNDS: Final = 3
_PAGE: Final = "docs/how-to/cluster.md"
# Spark context, or session of Spark Connect → what was asked → the executors that there were
_ASKED: WeakKeyDictionary[Any, dict[tuple[str, bool], frozenset[str]]] = WeakKeyDictionary()


class Sample(NamedTuple):
    """A file of the table as this process sees it: its path on this machine, and its bytes' SHA-256."""

    path: str
    digest: str


class Workers(Protocol):
    """Of a session. `who` they are in a sentence; `kept_for`: what their answers are kept for."""

    who: str
    kept_for: Any

    def executors(self) -> frozenset[str]:
        """Those that Spark has now, and the driver, as Spark counts; none where nobody can tell."""
        ...

    def ask(self, packages: Mapping[str, str], file: str | None) -> list[dict[str, Any]]:
        """What they say (`worker_answer.answer`)."""
        ...

    def remedy(self, executable: str) -> str:
        """What helps workers that lack a package."""
        ...


def check_workers(session: Any, storage: Storage, *, to_write: bool) -> None:
    """Ask a session's workers, once for each table, and again when there are new ones.

    Args:
        session: A SparkSession whose workers may be elsewhere.
        storage: The table's.
        to_write: Where the table is to be changed a file is written for the workers to find, and removed. Else they
            look at the table's properties.

    Raises:
        EnvironmentProblem: A worker cannot run tasks, or sees another folder where this process has the table. The
            error names the host.
    """
    if is_of_this_machine(session):
        return
    workers: Workers = _Connected(session) if is_connect(session) else _Cluster(session.sparkContext)
    asked = _ASKED.setdefault(workers.kept_for, {})
    question = (storage.base, to_write)
    if question in asked and workers.executors() <= asked[question]:
        return
    packages = _packages(storage)
    for _ in range(_ROUNDS):
        with _sample(storage, to_write) as sample:
            answers = _asked(workers, packages, sample)
        _refuse_packages(workers, answers, packages)
        if sample is not None and (sample.path.endswith(_PROPERTIES) and _read(storage) != sample):
            continue  # they were changed meanwhile
        _refuse_other_table(workers, answers, sample, storage.base)
        if len({(one["host"], one["folder"]) for one in answers}) >= len(workers.executors()) - 1:
            break
    asked[question] = workers.executors()


def _packages(storage: Storage) -> dict[str, str]:
    scheme = storage.base.partition("://")[0] if "://" in storage.base else ""
    more = {_STORES[scheme]: _STORES[scheme]} if scheme in _STORES else {}
    if scheme == "hdfs":
        more = {_HDFS: _HDFS.replace("-", "_")}
    return {**_PACKAGES, **more}


# ------------------------------------------------------------------------------------------ the table


@contextmanager
def _sample(storage: Storage, to_write: bool) -> Iterator[Sample | None]:
    """None for a table in a store, which each worker asks itself."""
    if "://" in storage.base:
        yield None
        return
    written = _written(storage) if to_write else None
    try:
        yield written[1] if written else _read(storage)
    finally:
        if written:
            storage.delete(written[0])


def _written(storage: Storage) -> tuple[str, Sample] | None:
    """None where this process may not write: what asks for it says that better."""
    name, data = f"{SCRATCH}/tmp/{uuid.uuid4().hex}", uuid.uuid4().bytes
    try:
        storage.create(name, data)
    except (HudiAssetsError, OSError):
        return None
    return name, Sample(storage.local_path(name), hashlib.sha256(data).hexdigest())


def _read(storage: Storage) -> Sample:
    digest = hashlib.sha256(storage.read(_PROPERTIES)).hexdigest()
    return Sample(storage.local_path(_PROPERTIES), digest)


def _refuse_other_table(workers: Workers, answers: list[dict[str, Any]], sample: Sample | None, base: str) -> None:
    if sample is None:
        return
    others = [one for one in answers if one["file"]["digest"] != sample.digest]
    if others:
        error = others[0]["file"]["error"]
        seen = f"{sample.path}: {error}" if error else f"{sample.path} has other bytes there"
        raise EnvironmentProblem(
            f"{workers.who} see another folder than this process where the table is ({seen}).",
            where=f"{base}: {_place(others, answers)}",
            hint="Mount the same file system there on every worker, or keep the table in HDFS or a bucket. "
            f"Nothing was written ({_PAGE}).",
        )


# ------------------------------------------------------------------------------------------ packages


def _refuse_packages(workers: Workers, answers: list[dict[str, Any]], packages: Iterable[str]) -> None:
    for name in packages:
        here = _version(name)
        others = [one for one in answers if not _fits(name, here, one["packages"][name])]
        if others:
            found = others[0]["packages"][name]
            have = f"have {name} {found['version']}" if found["version"] else f"lack {name} ({found['error']})"
            raise EnvironmentProblem(
                f"{workers.who} {have}, and this process has {here or name}.",
                where=_place(others, answers),
                hint=workers.remedy(others[0]["executable"]),
            )


def _fits(name: str, here: str | None, there: Mapping[str, str | None]) -> bool:
    """The same version; of a library of others' the same release, up to the first dot. Unknown ones are taken."""
    found = there["version"]
    if found is None:
        return False
    if not here or not found:
        return True
    return here == found if name == PACKAGE else here.partition(".")[0] == found.partition(".")[0]


def _version(name: str) -> str | None:
    """None where the package is not installed, but found on a path."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _place(these: list[dict[str, Any]], answers: list[dict[str, Any]]) -> str:
    first = these[0]
    text = f"host {first['host']}, {first['executable']} (Python {first['python']}) in {first['folder']}"
    hosts, every = ({(one["host"], one["folder"]) for one in some} for some in (these, answers))
    return text if len(every) == 1 else f"{text}; {len(hosts)} of {len(every)} workers"


# ------------------------------------------------------------------------------------------ asking


def _asked(workers: Workers, packages: Mapping[str, str], sample: Sample | None) -> list[dict[str, Any]]:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(worker_answer)  # type: ignore[no-untyped-call]
    try:
        return workers.ask(packages, sample.path if sample else None)
    except Exception as error:
        problem = _other_python(error, workers) or spark_problem(error)
        if problem is None:
            raise
        raise problem from error


def _other_python(error: BaseException, workers: Workers) -> EnvironmentProblem | None:
    """Spark's workers refuse a task of another Python before it begins."""
    if "PYTHON_VERSION_MISMATCH" not in str(error):
        return None
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = re.search(r"different version[^0-9]*(3\.\d+)", str(error))
    there = f", {found[1]}," if found else ""
    return EnvironmentProblem(
        f"{workers.who} run another Python{there} than this process, {here}.",
        where=executor_of(str(error)),
        hint=f"Let PYSPARK_PYTHON name a Python {here} on every worker ({_PAGE}).",
    )


class _Cluster:
    """Of a classic session."""

    who = "Spark's workers"

    def __init__(self, context: Any) -> None:
        self.kept_for = context

    def executors(self) -> frozenset[str]:
        infos = self.kept_for._jsc.sc().statusTracker().getExecutorInfos()
        return frozenset(f"{one.host()}:{one.port()}" for one in infos)

    def ask(self, packages: Mapping[str, str], file: str | None) -> list[dict[str, Any]]:
        """By an RDD: for a DataFrame's functions a worker needs pyarrow before it can say anything."""
        count, answer = 2 * max(1, len(self.executors()) - 1), worker_answer.answer
        tasks = self.kept_for.parallelize(range(count), count)
        return [json.loads(text) for text in tasks.map(lambda _: answer(packages, file)).collect()]

    def remedy(self, executable: str) -> str:
        here = _version(PACKAGE)
        wanted = f"'{PACKAGE}=={here}'" if here else PACKAGE
        return (
            f"Install it on every worker ({executable} -m pip install {wanted}), or send them this environment: "
            f"spark.archives=environment.tar.gz#environment and PYSPARK_PYTHON=./environment/bin/python ({_PAGE})."
        )


class _Connected:
    """Of a session of Spark Connect. How many executors its server has nobody can tell."""

    who = "The workers of the Spark Connect server"

    def __init__(self, session: Any) -> None:
        self.kept_for = session

    def executors(self) -> frozenset[str]:
        return frozenset()

    def ask(self, packages: Mapping[str, str], file: str | None) -> list[dict[str, Any]]:
        """One task for each of the server's cores, as it makes them of a range."""
        answer = worker_answer.answer

        def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow

            for _ in batches:
                pass
            yield pyarrow.RecordBatch.from_pydict({"answer": [answer(packages, file)]})

        rows = self.kept_for.range(1).mapInArrow(tell, "answer string").collect()
        return [json.loads(row["answer"]) for row in rows]

    def remedy(self, executable: str) -> str:
        here = _version(PACKAGE)
        wanted = f"{PACKAGE}=={here}" if here else PACKAGE
        return f"Install {wanted} in the Python of the server's workers, {executable} ({_PAGE})."
