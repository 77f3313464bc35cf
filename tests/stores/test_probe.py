"""A store that overlooks a write's condition answers all the same: it is refused before the first write."""

from __future__ import annotations

from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import EnvironmentProblem, UnsupportedTable
from hudi_assets.engine.hudi_table import table as opening
from hudi_assets.engine.storage import LOCKS
from hudi_assets.engine.storage.probe import FOLDER
from tests.crash.tables import SCHEMA
from tests.stores.memory import MemoryStorage


def overlooking(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    put, copy = obstore.put, obstore.copy

    def put_all_the_same(*asked: Any, **options: Any) -> Any:
        mode = options.get("mode")
        if mode == what or (what == "match" and isinstance(mode, dict)):
            options["mode"] = "overwrite"
        return put(*asked, **options)

    def copy_all_the_same(*asked: Any, **options: Any) -> Any:
        return copy(*asked, **{**options, "overwrite": options.get("overwrite", True) or what == "copy"})

    monkeypatch.setattr(obstore, "put", put_all_the_same)
    monkeypatch.setattr(obstore, "copy", copy_all_the_same)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("create", "If-None-Match:"),
        ("match", "If-Match:"),
        ("copy", "If-None-Match of a copy"),
    ],
)
def test_it_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, what: str, said: str) -> None:
    store = MemoryStorage()
    overlooking(monkeypatch, what)
    for _ in range(2):
        with pytest.raises(UnsupportedTable, match=f"does not keep to {said}") as refused:
            store.check_writable()
    assert "MinIO" in str(refused.value.hint)
    assert store.list_files(FOLDER) == []


def test_a_table_is_not_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage()
    overlooking(monkeypatch, "create")
    monkeypatch.setattr(opening, "open_storage", lambda *_: store)
    with pytest.raises(UnsupportedTable, match="of two writers both would win"):
        HudiTable.create("memory://bucket/table", SCHEMA, record_key=["id"], ordering_field="ts", table_version=9)
    assert store.list_folder("") == ([], [])


def test_what_is_not_implemented_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage()

    def put(*_: Any, **options: Any) -> Any:
        raise GenericError("Server returned non-2xx status code: 501 Not Implemented: <Code>NotImplemented</Code>")

    monkeypatch.setattr(obstore, "put", put)
    with pytest.raises(UnsupportedTable, match=r"conditions on a write \(501\)"):
        store.check_writable()


def test_who_may_not_write_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage()

    def put(*_: Any, **options: Any) -> Any:
        raise obstore.exceptions.PermissionDeniedError("status code: 403 <Code>AccessDenied</Code>")

    monkeypatch.setattr(obstore, "put", put)
    with pytest.raises(EnvironmentProblem, match="may not be written") as refused:
        store.check_writable()
    assert "s3:PutObject" in str(refused.value.hint)


def test_it_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage()
    store.check_writable()
    assert store.list_folder("") == ([], [])
    assert store.list_folder(LOCKS) == ([], [])
    monkeypatch.setattr(obstore, "put", None)
    store.check_writable()


def test_a_lost_answer_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's second try is refused for the first one's sake."""
    store, put = MemoryStorage(), obstore.put
    errors = {"create": obstore.exceptions.AlreadyExistsError, "match": obstore.exceptions.PreconditionError}

    def twice(*asked: Any, **options: Any) -> Any:
        done = put(*asked, **options)
        kind = "match" if isinstance(options.get("mode"), dict) else options.get("mode", "")
        if kind in errors:
            raise errors.pop(kind)("status code: 412")
        return done

    monkeypatch.setattr(obstore, "put", twice)
    store.check_writable()
    assert errors == {}
