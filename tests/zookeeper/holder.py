"""A process that writes a table, and waits for a line before it looks at the lock.

python -m tests.zookeeper.holder TABLE SETTINGS
"""

from __future__ import annotations

import json
import sys

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import LockLost
from hudi_assets.engine.transaction import lock
from tests.races.player import SCHEMA
from tests.tables.local_session import install


def main(path: str, settings: str) -> None:
    table = HudiTable.open(path, settings=json.loads(settings))
    really = lock.HeldLock.check

    def check(held: lock.HeldLock) -> None:
        print("about to publish", flush=True)
        sys.stdin.readline()
        really(held)

    setattr(lock.HeldLock, "check", check)  # noqa: B010
    session = install(setattr)
    try:
        table.upsert(session, session.rows([{"id": "k1", "ts": 5_000, "v": 5}], SCHEMA))
        print("published", flush=True)
    except LockLost as lost:
        print(f"lost: {lost.what}", flush=True)


main(*sys.argv[1:])
