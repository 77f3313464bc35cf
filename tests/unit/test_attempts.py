"""Files that a task attempt wrote get their names whole, at once, and only where nobody has them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import Conflict, EnvironmentProblem
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.attempts import Staged, forget_staged, publish, stage, staged_instants, write_staged
from hudi_assets.engine.timeline.markers import marked_files

INSTANT = "20260101000000000"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path / "t"))


def written(storage: LocalStorage, path: str, data: bytes) -> Staged:
    file = stage(INSTANT, path, "CREATE")
    write_staged(storage, file, data)
    return file


def test_each_attempt_has_a_place_of_its_own(storage: LocalStorage) -> None:
    one, other = written(storage, "p=a/file", b"one"), written(storage, "p=a/file", b"other")
    assert storage.list_files("p=a") == []
    assert staged_instants(storage) == [INSTANT]
    names: list[str] = []
    publish(storage, INSTANT, [one], names)
    assert names == ["p=a/file"]
    assert marked_files(storage, INSTANT) == names
    assert storage.read("p=a/file") == b"one"
    assert not storage.exists(one.at)
    with pytest.raises(Conflict, match="created this file first"):
        publish(storage, INSTANT, [other], names)
    assert storage.read("p=a/file") == b"one"
    forget_staged(storage, INSTANT)
    assert staged_instants(storage) == []


def test_what_was_named_before_a_conflict_is_told(storage: LocalStorage) -> None:
    files = [written(storage, name, b"x") for name in ("a", "b", "a")]
    names: list[str] = []
    with pytest.raises(Conflict):
        publish(storage, INSTANT, files, names)
    assert names == ["a", "b"]


def test_what_another_process_took_back_is_not_published(storage: LocalStorage) -> None:
    file = written(storage, "a", b"x")
    forget_staged(storage, INSTANT)
    with pytest.raises(Conflict, match="taken its instant back"):
        publish(storage, INSTANT, [file], [])


def test_a_partition_on_another_disk(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be a link to one: no file can be linked across."""
    link = os.link

    def within(source: Any, target: Any) -> None:
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        link(source, target)

    file, again = written(storage, "p=a/file", b"bytes"), written(storage, "p=a/file", b"others")
    monkeypatch.setattr(os, "link", within)
    publish(storage, INSTANT, [file], [])
    with pytest.raises(Conflict):
        publish(storage, INSTANT, [again], [])
    assert [(found.name, found.size) for found in storage.list_files("p=a")] == [("file", 5)]
    assert not storage.exists(file.at)


def test_a_full_disk_names_the_file(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: LocalStorage, path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LocalStorage, "sync", full)
    with pytest.raises(EnvironmentProblem, match="No space left") as refused:
        written(storage, "p=a/file", b"x")
    assert refused.value.where == f"{storage.base}: p=a/file"
