"""A failed write names its file, though the system names none once a file is open."""

from __future__ import annotations

import errno
import gc
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine.spark.session import capture
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.storage.named_file import naming
from hudi_assets.engine.table.base_file_writer import write_base_file

ROWS = pa.table(
    {"_hoodie_record_key": [f"key {n}" for n in range(5_000)], "_hoodie_file_name": [""] * 5_000, "v": range(5_000)}
)


@pytest.fixture(autouse=True)
def small_files() -> Iterator[None]:
    """A limit on the size of files: the one fault of a disk that a test can make without being root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


def stream(storage: LocalStorage) -> None:
    with storage.open_new("p/file") as out:
        out.write(b"x" * 2_000)


def late_stream(storage: LocalStorage) -> None:
    """What is small enough stays in the memory until the file is closed."""
    with storage.open_new("p/file") as out:
        for _ in range(20):
            out.write(b"x" * 100)


def copied(storage: LocalStorage) -> None:
    Path(storage.uri("p")).mkdir()
    storage.copy("source", "p/file")


WRITES: dict[str, Callable[[LocalStorage], object]] = {
    "base file": lambda storage: write_base_file(storage, "p/file", ROWS, "{}", None),
    "stream": stream,
    "stream that is closed": late_stream,
    "replaced": lambda storage: storage.replace("p/file", b"x" * 2_000),
    "copied": copied,
}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    (tmp_path / "source").write_bytes(b"x" * 2_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return LocalStorage(str(tmp_path))


@pytest.mark.parametrize("what", WRITES)
def test_the_file_is_named(storage: LocalStorage, what: str) -> None:
    with pytest.raises(OSError, match="too large") as failed:
        WRITES[what](storage)
    assert failed.value.errno == errno.EFBIG
    assert failed.value.filename == storage.uri("p/file")
    # What was to be shown whole is not there at all.
    left = {p.name for p in Path(storage.base).rglob("*") if p.is_file()} - {"source"}
    assert left == ({"file"} if what == "copied" else set())


def test_a_task_names_it_too(storage: LocalStorage) -> None:
    problem = capture(WRITES["base file"], storage)
    assert storage.uri("p/file") in str(problem)


def test_a_file_that_cannot_be_opened_is_the_only_error(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more is raised where the stream that never was is forgotten."""
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    Path(storage.uri("p")).mkdir()

    def no_more(path: Path, mode: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr("hudi_assets.engine.storage.named_file.io.FileIO", no_more)
    with pytest.raises(OSError, match="Too many open files") as failed:
        storage.open_new("p/file")
    assert failed.value.filename == storage.uri("p/file")
    del failed
    gc.collect()
    assert unraisable == []


def test_a_name_that_is_known_stays() -> None:
    with pytest.raises(FileNotFoundError) as failed, naming("/other"):
        Path("/nowhere/at/all").read_bytes()
    assert failed.value.filename == "/nowhere/at/all"
