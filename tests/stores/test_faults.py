"""A network and a store that fail: nothing is refused for what was done, and nothing counts as done that was not."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.storage import Storage, open_storage
from tests.stores.faults import FAULTS, Proxy, running_proxy
from tests.stores.minio import BUCKET, Minio

ANSWERED = ("500, not done", "503")
"""Nothing was done, and the store says so: whoever asks again succeeds."""


@pytest.fixture
def proxy(minio: Minio) -> Iterator[Proxy]:
    with running_proxy(minio.port) as server:
        yield server


@pytest.fixture
def store(minio: Minio, proxy: Proxy) -> Storage:
    options = {**minio.options, "endpoint": proxy.endpoint}
    return open_storage(f"s3://{BUCKET}/faults/{uuid.uuid4().hex}", options)


@pytest.mark.parametrize("content", [b"", b"x"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_is_created_once(store: Storage, proxy: Proxy, fault: str, content: bytes) -> None:
    proxy.spoil("PUT", fault)
    store.create("f", content)
    assert store.read("f") == content
    with pytest.raises(Conflict):
        store.create("f", content)


@pytest.mark.parametrize("fault", FAULTS)
def test_another_ones_file_is_not_taken_for_ours(store: Storage, proxy: Proxy, fault: str) -> None:
    store.create("f", b"the same")
    proxy.spoil("PUT", fault)
    with pytest.raises(Conflict):
        store.create("f", b"the same")


def test_no_answer_ever(store: Storage, proxy: Proxy) -> None:
    """The file was written by the first try: reading it back tells."""
    proxy.spoil("PUT", "done, and the answer is lost", times=1_000)
    store.create("f", b"x")
    proxy.spoil("PUT", "lost on the way", times=1_000)
    with pytest.raises(OSError, match="not known") as unknown:
        store.create("g", b"x")
    assert unknown.value.filename == store.uri("g")
    assert not store.exists("g")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_is_changed_once(store: Storage, proxy: Proxy, fault: str) -> None:
    store.create("f", b"one")
    _, first = store.read_with_version("f")
    proxy.spoil("PUT", fault)
    second = store.replace_if("f", b"two", first)
    assert store.read_with_version("f") == (b"two", second)
    proxy.spoil("PUT", fault)
    with pytest.raises(Conflict):
        store.replace_if("f", b"three", first)
    assert store.read("f") == b"two"


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "409"])
def test_a_published_file_is_there_or_refused(store: Storage, proxy: Proxy, fault: str, method: str) -> None:
    """Who is refused takes the write back, and its files go: so a doubt may end as a refusal, never as half a file."""
    store.create("staged", b"whole")
    proxy.spoil(method, fault)
    try:
        store.publish("staged", "f")
    except (Conflict, OSError):
        assert fault not in ANSWERED
        assert not store.exists("f") or store.read("f") == b"whole"
    else:
        assert store.read("f") == b"whole"
        assert not store.exists("staged")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "409"])
def test_a_stream_commits_whole(store: Storage, proxy: Proxy, fault: str) -> None:
    content = random.Random(3).randbytes(11_000_000)
    for method in ("PUT", "POST"):
        path = f"f-{method}"
        proxy.spoil(method, fault)
        try:
            with store.open_new(path) as out:
                out.write(content)
        except OSError:
            assert fault not in ANSWERED
            assert not store.exists(path) or store.read(path) == content
        else:
            assert store.read(path) == content


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "409"])
def test_what_only_looks_is_asked_again(store: Storage, proxy: Proxy, fault: str) -> None:
    content = random.Random(4).randbytes(300_000)
    store.create("d/f", content)
    for method, look in (
        ("GET", lambda: store.read("d/f") == content),
        ("GET", lambda: store.read_at("d/f", 1_000, 5) == content[1_000:1_005]),
        ("GET", lambda: [file.size for file in store.list_files("d")] == [300_000]),
        ("HEAD", lambda: store.size("d/f") == 300_000),
    ):
        proxy.spoil(method, fault)
        assert look()


def test_an_answer_that_is_cut_is_never_taken_for_the_whole(store: Storage, proxy: Proxy) -> None:
    content = random.Random(5).randbytes(300_000)
    store.create("f", content)
    for ask in (lambda: store.read("f"), lambda: store.read_at("f", 0, 300_000), lambda: store.open("f").read()):
        proxy.cut(1)
        with suppress(OSError):
            assert ask() == content
        proxy.cut(0)
        assert ask() == content


def test_what_is_replaced_while_it_is_read_is_not_mixed(store: Storage) -> None:
    store.create("f", b"a" * 3_000_000)
    with store.open("f") as stream:
        assert stream.read(10) == b"a" * 10
        store.replace("f", b"b" * 3_000_000)
        with pytest.raises(Conflict, match="changed while it was read"):
            stream.read()


def test_opening_asks_once_and_a_footer_costs_nothing_more(store: Storage, proxy: Proxy) -> None:
    store.create("f", bytes(3_000_000))
    proxy.seen.clear()
    with store.open("f") as stream:
        for back in (8, 60_000, 3_000):
            stream.seek(-back, 2)
            assert len(stream.read()) == back
    assert [method for method, _ in proxy.seen] == ["GET"]


def test_the_whole_is_read_by_one_request_more(store: Storage, proxy: Proxy) -> None:
    content = random.Random(6).randbytes(3_000_000)
    store.create("f", content)
    proxy.seen.clear()
    with store.open("f") as stream:
        assert stream.read() == content
    assert [method for method, _ in proxy.seen] == ["GET", "GET"]


def test_what_is_refused_is_not_asked_again_in_another_way(store: Storage, proxy: Proxy) -> None:
    proxy.refuse("GET", 403, b"<Code>AccessDenied</Code>")
    with pytest.raises(PermissionError):
        store.open("f")
    assert [method for method, _ in proxy.seen] == ["GET"]
