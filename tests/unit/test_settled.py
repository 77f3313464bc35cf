"""Timeline files that another engine is still filling are read again; old ones are taken as they are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.whole_files import read_settled

WHOLE = b"[1, 2, 3]"


def decode(data: bytes) -> bytes:
    if data not in (b"", WHOLE):
        raise CorruptTable("half a file")
    return data


class Filled(LocalStorage):
    """A folder whose file another thread fills once it was read for the first time."""

    def read(self, path: str) -> bytes:
        data = super().read(path)
        threading.Thread(target=Path(self.uri(path)).write_bytes, args=(WHOLE,)).start()
        return data


@pytest.mark.parametrize("seen_first", [b"", WHOLE[:4]])
def test_a_file_that_is_being_filled_is_read_again(tmp_path: Path, seen_first: bytes) -> None:
    (tmp_path / "f").write_bytes(seen_first)
    assert read_settled(Filled(str(tmp_path)), "f", decode) == WHOLE


def test_an_old_empty_file_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    os.utime(tmp_path / "f", (1, 1))
    assert read_settled(LocalStorage(str(tmp_path)), "f", decode) == b""


def test_an_old_damaged_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(WHOLE[:4])
    os.utime(tmp_path / "f", (1, 1))
    with pytest.raises(CorruptTable):
        read_settled(LocalStorage(str(tmp_path)), "f", decode)
