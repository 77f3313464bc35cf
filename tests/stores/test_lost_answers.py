"""Answers that fail to come, without a server: what was done counts, and the library's words are not passed on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, InvalidPathError

from hudi_assets.engine.errors import Conflict, CorruptTable
from hudi_assets.engine.storage import each
from tests.stores.memory import MemoryStorage
from tests.stores.test_credentials import everything_said

SECRET = "asecretthatnobodysees"
LOST = f"Generic S3 error: HTTP error: {SECRET}"


class Lossy:
    """`obstore.put` whose first answers are errors. `done`: what they speak of was done all the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseError, *, done: bool, times: int = 1) -> None:
        self._put, self._error, self._done, self._left = obstore.put, error, done, times
        monkeypatch.setattr(obstore, "put", self)

    def __call__(self, *args: object, **options: object) -> object:
        if not self._left:
            return self._put(*args, **options)  # type: ignore[arg-type]
        self._left -= 1
        if self._done:
            self._put(*args, **options)  # type: ignore[arg-type]
        raise self._error


# The library tries again by itself: then the store refuses the second try for the first one's sake.
ERRORS = (GenericError(LOST), AlreadyExistsError(LOST))


@pytest.mark.parametrize("error", ERRORS)
def test_what_was_created_is_not_refused(monkeypatch: pytest.MonkeyPatch, error: BaseError) -> None:
    store = MemoryStorage()
    Lossy(monkeypatch, error, done=True)
    store.create("f", b"")
    assert store.size("f") == 0
    with pytest.raises(Conflict):
        store.create("f", b"")


@pytest.mark.parametrize("error", ERRORS)
def test_what_was_not_created_is_created(monkeypatch: pytest.MonkeyPatch, error: BaseError) -> None:
    store = MemoryStorage()
    Lossy(monkeypatch, error, done=False)
    store.create("f", b"x")
    assert store.read("f") == b"x"


def test_what_was_changed_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage()
    store.create("f", b"one")
    for done in (True, False):
        _, before = store.read_with_version("f")
        Lossy(monkeypatch, GenericError(LOST), done=done)
        after = store.replace_if("f", b"two", before)
        assert store.read_with_version("f") == (b"two", after)
        with pytest.raises(Conflict):
            store.replace_if("f", b"three", before)


def test_what_is_not_known_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage()
    Lossy(monkeypatch, GenericError(LOST), done=False, times=10)
    with pytest.raises(OSError, match="it is not known whether the store has written it") as unknown:
        store.create("f", b"x")
    assert SECRET not in everything_said(unknown.value)


@pytest.mark.parametrize("status", [301, 400, 403, 404, 412, 416, 500])
def test_the_librarys_words_go_nowhere(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    def fail(*args: object, **options: object) -> None:
        try:
            raise GenericError(f"another one: {SECRET}")
        except GenericError:
            raise GenericError(f"status code: {status} <Code>SlowDown</Code> {SECRET}")  # noqa: B904

    store = MemoryStorage()
    for name in ("get", "get_range", "head", "list_with_delimiter", "put", "copy", "delete"):
        monkeypatch.setattr(obstore, name, fail)
    for call in (
        lambda: store.read("f"),
        lambda: store.open("f"),
        lambda: store.list_folder("d"),
        lambda: store.size("f"),
        lambda: store.replace("f", b"x"),
        lambda: store.copy("f", "g"),
    ):
        with pytest.raises(OSError, match=r"SlowDown|ends before") as failed:
            call()
        assert SECRET not in everything_said(failed.value)


@pytest.mark.parametrize("call", ["head", "delete"])
def test_what_is_published_is_not_refused_for_its_staged_file(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*args: object) -> None:
        raise GenericError(LOST)

    store = MemoryStorage()
    store.create("staged", b"x")
    with monkeypatch.context() as patched:
        patched.setattr(obstore, call, fail)
        store.publish("staged", "f")
    assert store.read("f") == b"x"


def test_a_mark_of_emrs_is_no_file() -> None:
    store = MemoryStorage()
    store.create("d/x_$folder$", b"")
    store.create("d/f", b"")
    assert [file.path for file in store.list_files("d")] == ["d/f"]


def test_a_name_that_no_file_can_have_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise InvalidPathError(LOST)

    monkeypatch.setattr(obstore, "list_with_delimiter", fail)
    with pytest.raises(CorruptTable) as wrong:
        MemoryStorage().list_folder("d")
    assert "two slashes" in str(wrong.value.next_step)


def test_after_an_error_nothing_more_is_begun() -> None:
    """Also where the first one asked takes longest."""
    failed, begun = threading.Event(), []

    def ask(number: int) -> None:
        begun.append(number)
        if number == 1:
            failed.set()
            raise ZeroDivisionError
        failed.wait(10)
        time.sleep(2 if number == 0 else 0.05)

    with pytest.raises(ZeroDivisionError):
        each(MemoryStorage(), ask, range(200))
    assert len(begun) < 50


_FORK = """
import os
from tests.stores.memory import MemoryStorage
store = MemoryStorage()
store.create("f", b"x")
for ask in (store.read, MemoryStorage().read):
    if (child := os.fork()) == 0:
        try:
            ask("f")
        except BaseException as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(store.read("f"))
"""


def test_a_fork_is_told_and_does_not_wait() -> None:
    """With S3 it would wait for ever, also by a store that it opens itself."""
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("a fork of one that has used a store") == 2
    assert done.stdout.endswith("b'x'\n")


@pytest.mark.parametrize("error", ERRORS)
def test_a_name_that_was_given_is_not_refused(monkeypatch: pytest.MonkeyPatch, error: BaseError) -> None:
    store = MemoryStorage()
    store.replace("staged", b"bytes")
    copy, left = obstore.copy, [1]

    def losing(*asked: object, **options: object) -> None:
        copy(*asked, **options)  # type: ignore[arg-type]
        if left:
            left.pop()
            raise error

    monkeypatch.setattr(obstore, "copy", losing)
    store.publish("staged", "name")
    assert (store.exists("staged"), store.read("name")) == (False, b"bytes")
    store.replace("staged", b"other")
    with pytest.raises(Conflict, match="created this file first"):
        store.publish("staged", "name")
    assert store.read("name") == b"bytes"
