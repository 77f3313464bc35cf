"""Tables that Apache Hudi wrote, made once for each kind and shape and copied for every test that begins with one.

They are kept beside the interop environment (`matrix-stories/`), so that the next run makes only those whose sources
have changed since.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

from scripts.hudi_client import Hudi, interop_home
from tests.interop import tables
from tests.interop.matrix import kinds, oracle
from tests.interop.matrix.kinds import Kind, Shape
from tests.interop.matrix.subject import Subject

THRESHOLD = 40
"""Event minute up to which the story is compacted: something is left in a log file after it."""


def tell(table: Subject) -> None:
    """Inserts, then updates, a tombstone, late rows and a tie, a delete, and rows that remain."""
    table.hudi_upserts(*((number, number) for number in range(9)))
    table.hudi_upserts((0, 30), (1, 31), (2, 32), (9, 39))
    # k0 and k3 after it: late for k0; a tie for k1; k6 still wins with an old time.
    table.hudi_upserts((3, 63), (4, 64), (5, 65), (0, 20), (1, 31), (6, 26), deleted=[5])
    table.hudi_deletes(8)
    table.hudi_upserts((3, 93), (7, 97), (10, 100), (2, 95))


def story(kind: Kind, shape: Shape, hudi: Callable[[str], Hudi], to: Path) -> Subject:
    """A table with the story told, at a path of its own."""
    home = interop_home() / "matrix-stories" / f"{kind.name}-{shape.name}-{_digest()}"
    known = home / "oracle"
    if not known.exists():
        for older in home.parent.glob(f"{kind.name}-{shape.name}-*"):
            shutil.rmtree(older, ignore_errors=True)
        # Another process may tell the same story: whoever is first has told it.
        own = home.parent / f"telling-{os.getpid()}"
        shutil.rmtree(own, ignore_errors=True)
        table = Subject(kind, shape, own / "t", hudi)
        tell(table)
        (own / "oracle").write_bytes(pickle.dumps((table.oracle, table.mark)))
        try:
            own.rename(home)
        except OSError:
            shutil.rmtree(own)
    shutil.copytree(home / "t", to)
    told, mark = pickle.loads(known.read_bytes())
    return Subject(kind, shape, to, hudi, oracle=told, mark=mark)


def _digest() -> str:
    modules = (kinds, oracle, tables)
    sources = [Path(__file__), *(Path(str(module.__file__)) for module in modules)]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
