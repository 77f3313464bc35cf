"""What the engine may ask of any store: the same cases for each of them."""

from __future__ import annotations

import errno
import functools
import pickle
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.storage import Storage, each
from tests.stores.memory import MemoryStorage

RACERS = 16
NAMES = [
    "a b",
    "a%2Fb",
    "a%b",
    "a+b",
    "ä",
    "a#b",
    "a?b",
    "a~b",
    "a=b",
    "a:b",
    "x'y\"z",
    "{x,y}",
    "a&b",
    "[a]",
    "a|b",
    "a*",
]


def race(act: Callable[[int], object]) -> list[int]:
    """Which of RACERS that begin at once were not refused."""
    won: list[int] = []
    barrier = threading.Barrier(RACERS)

    def run(number: int) -> None:
        barrier.wait()
        try:
            act(number)
        except Conflict:
            return
        won.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def names(store: Storage, directory: str) -> list[str]:
    return sorted(file.path for file in store.list_files(directory))


# -- looking ------------------------------------------------------------------------------------


def test_of_nothing_there_is_nothing(store: Storage) -> None:
    assert not store.exists("a")
    assert not store.is_directory("a")
    assert store.list_folder("a") == ([], [])
    assert store.list_folder("") == ([], [])
    assert store.modified_ms("a") is None
    assert store.delete("a") is False
    store.delete_tree("a")
    for ask in (store.size, store.read, store.open):
        with pytest.raises(FileNotFoundError) as missing:
            ask("a")
        assert missing.value.errno == errno.ENOENT
        assert missing.value.filename == store.uri("a")


def test_a_large_folder_is_known_by_its_first_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have many pages, each a request."""
    store, asked = MemoryStorage(), list[str]()
    for number in range(5):
        store.create(f"a/{number}", b"x")
    store.create("b/c_$folder$", b"")
    real = obstore.list

    def counted(*given: Any, **how: Any) -> Iterator[Any]:
        for page in real(*given, **how):
            asked.extend(one["path"] for one in page)
            yield page

    monkeypatch.setattr(obstore, "list", counted)
    monkeypatch.delattr(obstore, "list_with_delimiter")
    assert store.is_directory("a")
    assert len(asked) == 1
    assert not store.is_directory("b")
    assert store.is_directory("")


def test_a_folder_is_listed_with_its_own_files_alone(store: Storage) -> None:
    for path in ("top", "a/1", "a/2", "a/b/3", "a/b/c/4", "ab/5"):
        store.create(path, path.encode())
    files, folders = store.list_folder("a")
    assert sorted(file.path for file in files) == ["a/1", "a/2"]
    assert {file.size for file in files} == {3}
    assert folders == ["a/b"]
    assert names(store, "") == ["top"]
    assert store.list_directories("a") == ["a/b"]
    assert [folder for folder in store.list_directories("") if not folder.startswith(".")] == ["a", "ab"]
    assert store.is_directory("a/b")
    assert not store.is_directory("a/1")
    assert not store.is_directory("to")
    assert store.exists("a/1")
    assert store.exists("a")


@pytest.mark.parametrize("name", NAMES)
def test_any_name(store: Storage, name: str) -> None:
    path = f"{name}/{name}"
    if ":" in name and store.base.startswith("hdfs:"):
        with pytest.raises(InvalidInput, match="no file of such a name"):
            store.create(path, b"1")
        return
    store.create(path, b"1")
    assert store.list_directories("") == [name] or name in store.list_directories("")
    assert names(store, name) == [path]
    assert store.read(path) == b"1"
    assert store.delete(path)
    assert not store.exists(path)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "nul\0nul"])
def test_no_name_leads_out(store: Storage, path: str) -> None:
    for ask in (
        store.read,
        store.delete,
        store.exists,
        store.list_files,
        store.open_new,
        store.modified_ms,
        store.size,
    ):
        with pytest.raises(CorruptTable, match="leads out"):
            ask(path)


def test_a_listing_of_many(store: Storage) -> None:
    each(store, lambda n: store.touch(f"many/{n:04d}"), range(1_050))
    assert names(store, "many") == [f"many/{n:04d}" for n in range(1_050)]
    store.delete_tree("many")
    assert names(store, "many") == []


def test_a_listing_tells_when_content_changed(store: Storage) -> None:
    store.create("f", b"one")
    (before,) = (file for file in store.list_files("") if file.name == "f")
    assert before.version is not None or before.inode is not None
    assert (before.size, before.modified_ms) == (store.size("f"), store.modified_ms("f"))
    store.replace("f", b"two")
    (after,) = (file for file in store.list_files("") if file.name == "f")
    assert (before.version, before.inode) != (after.version, after.inode)


def test_times_are_the_stores(store: Storage) -> None:
    before = time.time_ns() // 1_000_000
    times = []
    for number in range(3):
        store.create(f"f{number}", b"x")
        modified = store.modified_ms(f"f{number}")
        assert modified is not None
        times.append(modified)
        time.sleep(0.3)
    slack = 50 if store.capabilities.exact_times else 1_050
    assert before - slack <= times[0] <= times[1] <= times[2] <= time.time_ns() // 1_000_000 + slack
    whole_seconds = all(time_ % 1_000 == 0 for time_ in times)
    assert whole_seconds != store.capabilities.exact_times


def test_touching_makes_young(store: Storage) -> None:
    store.touch("f")
    first = store.modified_ms("f")
    assert first is not None
    assert store.size("f") == 0
    time.sleep(1.1)
    store.touch("f")
    second = store.modified_ms("f")
    assert second is not None
    assert second > first


# -- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 3_000_000])
def test_a_stream_that_seeks(store: Storage, size: int) -> None:
    content = random.Random(size).randbytes(size)
    store.create("f", content)
    assert store.read("f") == content
    rng = random.Random(7)
    with store.open("f") as stream:
        assert stream.seek(0, 2) == size
        assert stream.read() == b""
        for _ in range(40):
            at, length = rng.randint(0, size), rng.randint(0, 100_000)
            stream.seek(at)
            assert stream.read(length) == content[at : at + length]
            assert stream.tell() == min(size, at + length)
        stream.seek(0)
        assert stream.read() == content


def test_ranges(store: Storage) -> None:
    store.create("f", b"0123456789")
    store.create("empty", b"")
    asked = [(0, 4), (3, 4), (8, 100), (10, 5), (50, 5), (2, 0)]
    assert [store.read_at("f", *one) for one in asked] == [b"0123", b"3456", b"89", b"", b"", b""]
    assert store.read_at("empty", 0, 5) == b""
    with pytest.raises(FileNotFoundError):
        store.read_at("gone", 0, 5)


def test_parquet(store: Storage) -> None:
    table = pa.table({f"c{n}": list(range(50_000)) for n in range(5)})
    with store.open_new("t.parquet") as out, pq.ParquetWriter(out, table.schema) as writer:
        for start in range(0, 50_000, 10_000):
            writer.write_table(table.slice(start, 10_000))
    with store.open("t.parquet") as source, pq.ParquetFile(source) as file:
        assert file.metadata.num_row_groups == 5
        assert file.read(columns=["c3"]).column("c3").equals(table.column("c3"))
        assert file.read().equals(table)


# -- writing ------------------------------------------------------------------------------------


def test_a_name_is_taken_once(store: Storage) -> None:
    store.create("d/f", b"one")
    for content in (b"two", b"one"):
        with pytest.raises(Conflict, match="created this file first"):
            store.create("d/f", content)
    assert store.read("d/f") == b"one"
    store.create("d/empty", b"")
    with pytest.raises(Conflict):
        store.create("d/empty", b"")


def _create(store: Storage, path: str, same: bool, racer: int) -> None:
    store.create(path, b"x" if same else b"%d" % racer)


@pytest.mark.parametrize("same", [True, False])
def test_one_creates(store: Storage, same: bool) -> None:
    """Also where all write the same: then no content tells who was first."""
    assert store.capabilities.put_if_absent
    for number in range(5):
        won = race(functools.partial(_create, store, f"r/{number}", same))
        assert len(won) == 1
        assert same or store.read(f"r/{number}") == b"%d" % won[0]


def test_one_publishes(store: Storage) -> None:
    for racer in range(RACERS):
        store.create(f"s/{racer}", b"%d" % racer)
    won = race(lambda racer: store.publish(f"s/{racer}", "p/f"))
    assert len(won) == 1
    assert store.read("p/f") == b"%d" % won[0]
    assert not store.exists(f"s/{won[0]}")
    with pytest.raises(FileNotFoundError):
        store.publish(f"s/{won[0]}", "p/g")
    assert not store.exists("p/g")


def test_a_published_file(store: Storage) -> None:
    store.create("s/f", b"whole")
    (staged,) = store.list_files("s")
    store.publish("s/f", "p/f")
    (published,) = store.list_files("p")
    assert (published.size, store.read("p/f")) == (5, b"whole")
    assert names(store, "s") == []
    if store.capabilities.links:  # then it is the same file under another name
        assert (published.inode, published.modified_ms) == (staged.inode, staged.modified_ms)


def test_replacing(store: Storage) -> None:
    store.replace("d/f", b"one")
    store.replace("d/f", b"another")
    assert store.read("d/f") == b"another"


def test_replacing_what_is_unchanged(store: Storage) -> None:
    store.create("f", b"one")
    if not store.capabilities.put_if_match:
        with pytest.raises(UnsupportedTable):
            store.replace_if("f", b"two", "1")
        assert store.read("f") == b"one"
        return
    content, first = store.read_with_version("f")
    assert content == b"one"
    second = store.replace_if("f", b"two", first)
    assert store.read_with_version("f") == (b"two", second)
    with pytest.raises(Conflict, match="changed this file first"):
        store.replace_if("f", b"three", first)
    won = race(lambda racer: store.replace_if("f", b"by %d" % racer, second))
    assert len(won) == 1
    assert store.read("f") == b"by %d" % won[0]
    with pytest.raises(Conflict):
        store.replace_if("gone", b"x", first)
    assert not store.exists("gone")


@pytest.mark.parametrize("size", [10, 25_000_000])
def test_a_stream_commits(store: Storage, size: int) -> None:
    """Nothing is visible before it is closed, and what was there stays until then."""
    store.create("d/old", b"old")
    with store.open_new("d/new") as new, store.open_new("d/old") as old:
        for _ in range(5):
            new.write(b"x" * (size // 5))
        old.write(b"young")
        new.flush()
        assert not store.exists("d/new")
        assert store.read("d/old") == b"old"
    assert store.size("d/new") == size
    assert store.read("d/old") == b"young"
    assert names(store, "d") == ["d/new", "d/old"]


def test_a_stream_aborts(store: Storage) -> None:
    store.create("d/old", b"old")

    def fail(path: str, size: int) -> None:
        with store.open_new(path) as out:
            out.write(b"x" * size)
            raise ZeroDivisionError

    for path in ("d/new", "d/old"):
        for size in (3, 12_000_000):
            with pytest.raises(ZeroDivisionError):
                fail(path, size)
    out = store.open_new("d/new")
    out.write(b"x")
    out.abort()
    out.abort()
    out.close()
    assert out.closed
    forgotten = store.open_new("d/new")
    forgotten.write(b"x")
    del forgotten
    assert names(store, "d") == ["d/old"]
    assert store.read("d/old") == b"old"


def test_copies(store: Storage) -> None:
    content = random.Random(1).randbytes(1_000_000)
    store.create("f", content)
    store.create("empty", b"")
    store.copy("f", "g")
    store.copy("empty", "h")
    assert store.read("g") == content
    assert store.read("h") == b""
    with pytest.raises(FileExistsError):
        store.copy("empty", "g")
    with pytest.raises(FileNotFoundError):
        store.copy("gone", "i")
    assert not store.exists("i")
    assert store.read("g") == content


def test_links(store: Storage) -> None:
    store.create("f", b"x")
    makers = (store.hard_link, store.symlink)
    if not store.capabilities.links:
        for make in makers:
            with pytest.raises(OSError, match="no links"):
                make("f", "g")
        with pytest.raises(OSError, match="no links"):
            store.own("f")
        return
    for number, make in enumerate(makers):
        make("f", f"g{number}")
        assert store.read(f"g{number}") == b"x"


def test_a_tree_is_deleted(store: Storage) -> None:
    for path in ("a/1", "a/b/2", "ab/3"):
        store.create(path, b"x")
    store.delete_tree("a")
    assert not store.is_directory("a")
    assert store.exists("ab/3")


# -- changing -----------------------------------------------------------------------------------


def test_what_may_be_changed_has_a_lock(store: Storage) -> None:
    """The first change of a table asks it, and whoever only looks is told so by `UnsupportedTable`."""
    try:
        store.check_writable()
    except UnsupportedTable:
        return
    assert store.capabilities.put_if_absent
    assert store.capabilities.put_if_match or store.local_path("f")
    store.check_writable()
    store.make_folder("d")
    store.sync("")
    assert store.list_files("") == []


# -- many at once -------------------------------------------------------------------------------


def test_many_answers_come_in_the_order_asked(store: Storage) -> None:
    paths = [f"m/{n:03d}" for n in range(100)]
    each(store, lambda path: store.create(path, path.encode() * int(path[-3:])), paths)
    assert each(store, store.size, paths) == [5 * n for n in range(100)]
    assert each(store, store.delete, [*paths, "m/gone"]) == [True] * 100 + [False]
    assert each(store, store.size, []) == []


def test_the_first_error_of_many_is_raised(store: Storage) -> None:
    store.create("there", b"x")
    with pytest.raises(FileNotFoundError) as missing:
        each(store, store.size, ["there", "gone 1", "there", "gone 2"])
    assert missing.value.filename == store.uri("gone 1")


def test_a_store_travels(store: Storage) -> None:
    again = pickle.loads(pickle.dumps(store))
    assert (again.base, again.capabilities) == (store.base, store.capabilities)
    assert hash(again) == hash(store)
