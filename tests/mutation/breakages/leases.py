"""Breakages of what a table on a store of objects needs: leases, the fence before each change, the probe."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_LEASE = "hudi_assets/engine/transaction/lease.py"
_OBJECTS = "hudi_assets/engine/storage/objects.py"
_PROBE = "hudi_assets/engine/storage/probe.py"
LEASES = ("tests/stores/test_leases.py",)
PROBES = ("tests/stores/test_probe.py",)
RACES = ("tests/stores/test_late_races.py",)
DOUBTS = ("tests/stores/test_doubts.py",)
LATE = ("tests/stores/test_late_commits.py",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "the fields of Hudi's lock stand in another order",
        _LEASE,
        '{"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}',
        '{"owner": self.owner, "expired": self.expired, "validUntil": self.valid_until}',
        LEASES,
    ),
    Breakage(
        "a lease is taken as soon as it ends, whatever the clocks",
        _LEASE,
        "now_ms <= self.valid_until + _DRIFT_MS",
        "now_ms <= self.valid_until",
        LEASES,
    ),
    Breakage("what its holder has released is waited for", _LEASE, "not self.expired and now_ms", "now_ms", LEASES),
    Breakage(
        "a lost lease is taken again",
        _LEASE,
        "                self._version = None\n                raise self._lost() from None",
        "                self._put(self._read()[1])",
        LEASES,
    ),
    Breakage("the fence asks once the lease has ended", _LEASE, "self._times.validity_ms / 2", "0", LEASES),
    Breakage(
        "a wall's clock that is put back makes a lease longer",
        _LEASE,
        "return min(self._valid_until - _now_ms(), self._given_at + self._times.validity_ms - _uptime_ms())",
        "return self._valid_until - _now_ms()",
        LEASES,
    ),
    Breakage(
        "a lease is never renewed",
        "hudi_assets/engine/transaction/renewing.py",
        "                renew()\n",
        "                pass\n",
        LEASES,
    ),
    Breakage(
        "a failed renewal is the last one",
        "hudi_assets/engine/transaction/renewing.py",
        '                log.warning("%s could not be renewed: %s", where, error)\n',
        '                log.warning("%s could not be renewed: %s", where, error)\n                return\n',
        ("tests/unit/test_renewing.py",),
    ),
    Breakage("nothing is asked before a change", _LEASE, "storage.fenced(lease), ", "", LEASES),
    Breakage(
        "a lock's file of no meaning is overwritten",
        _LEASE,
        '            raise CorruptTable("The lock\'s file cannot be read.", where=where, hint=hint)\n',
        '            return cls(True, 0, "")\n',
        LEASES,
    ),
    Breakage(
        "a file that was made after the lock was lost counts",
        _OBJECTS,
        "                self._may_change(path)  # nor says that it has\n",
        "",
        LEASES,
    ),
    Breakage(
        "a tree is deleted after the lock was lost",
        _OBJECTS,
        "                with self._changing(directory):\n",
        "                if True:\n",
        LEASES,
    ),
    Breakage(
        "a stream ends well after the lock was lost",
        "hudi_assets/engine/storage/object_streams.py",
        "            if not self._aborted:\n                self._give_up_if_refused()\n",
        "",
        LEASES,
    ),
    Breakage(
        "a store is not asked about copies",
        _PROBE,
        "lambda: obstore.copy(store, staged, key, overwrite=False)",
        "lambda: obstore.put(store, key, b'3', mode='create', use_multipart=False)",
        PROBES,
    ),
    Breakage(
        "a store that overlooks a condition is written",
        _PROBE,
        "    raise _ignores(condition, where)\n",
        "",
        PROBES,
    ),
    Breakage(
        "the file-system lock is taken on a store",
        "hudi_assets/engine/transaction/lock_providers.py",
        "    shared = STORAGE_BASED if on_a_store else FILE_SYSTEM\n",
        "    shared = FILE_SYSTEM\n",
        LEASES,
    ),
    Breakage(
        "a commit that arrived too late stays",
        "hudi_assets/engine/transaction/publish.py",
        "                self.storage.take_back(path)\n",
        "                pass\n",
        LATE,
    ),
    Breakage(
        "a plan that arrived too late stays",
        "hudi_assets/engine/transaction/publish.py",
        "                self.storage.take_back(requested)\n",
        "                pass\n",
        LATE,
    ),
    Breakage(
        "a plan that somebody executes is taken back",
        "hudi_assets/engine/transaction/publish.py",
        "            if not begun and self._says(requested, content):\n",
        "            if self._says(requested, content):\n",
        LATE,
    ),
    Breakage(
        "a commit that its successor has accepted is taken back",
        "hudi_assets/engine/transaction/publish.py",
        "            if self._taken_back(instant, action, path, begun) and self._says(path, content):\n",
        "            if self._says(path, content):\n",
        LATE,
    ),
    Breakage(
        "a commit that arrives while it is taken back stays",
        "hudi_assets/engine/transaction/recover.py",
        "                publisher.withdraw_late(instant.timestamp, Action.DELTA_COMMIT)\n",
        "                pass\n",
        LATE,
    ),
    Breakage(
        "a commit that arrives while it is rolled back stays",
        "hudi_assets/engine/transaction/rollback.py",
        "            self.table.publisher.withdraw_late(target.timestamp, _timeline_action(target.action))\n",
        "            pass\n",
        RACES,
    ),
    Breakage(
        "a compaction that was completed while it was taken over is executed again",
        "hudi_assets/engine/transaction/publish.py",
        "        if self._completed_paths(instant, Action.COMPACTION):\n",
        "        if False:\n",
        RACES,
    ),
    Breakage(
        "an execution that was stopped as it began overwrites what another began",
        "hudi_assets/engine/transaction/publish.py",
        "                self.storage.replace_if(path, begun, version)\n",
        "                self.storage.replace(path, begun)\n",
        RACES,
    ),
    Breakage(
        "a write that gives signs of life is taken back",
        "hudi_assets/engine/transaction/recover.py",
        "        if beats is not None and beats.is_alive(instant.timestamp):\n            continue\n",
        "",
        LATE,
    ),
    Breakage(
        "two executions of a plan are taken for one",
        "hudi_assets/engine/transaction/other_executors.py",
        "        if said != begun:\n",
        "        if False:\n",
        LATE,
    ),
    Breakage(
        "a version 6 table is written into a bucket",
        "hudi_assets/engine/table/layout/v6.py",
        "        if not storage.capabilities.links:\n",
        "        if False:\n",
        LATE,
    ),
    Breakage(
        "a file that is known by its writer counts after the lock was lost",
        _OBJECTS,
        "                self._may_change(path)  # as above\n",
        "",
        DOUBTS,
    ),
    Breakage(
        "a lock is released while a request of its holder may arrive yet",
        _LEASE,
        "        lease.let_end()\n",
        "        pass\n",
        DOUBTS,
    ),
    Breakage(
        "a lock of whose holder all was answered is not released",
        _LEASE,
        "        if self._doubted:\n",
        "        if True:\n",
        DOUBTS,
    ),
    Breakage(
        "a file whose answer was lost for good makes no doubt",
        _OBJECTS,
        "        self._tell_doubt(path)\n        raise Unanswered(REMOTE",
        "        raise Unanswered(REMOTE",
        DOUBTS,
    ),
    Breakage(
        "the old name of the renewals' setting is not known",
        _LEASE,
        "named = RENEWAL if properties.get(RENEWAL) or not properties.get(OLD_RENEWAL) else OLD_RENEWAL",
        "named = RENEWAL",
        DOUBTS,
    ),
    Breakage(
        "Hudi executes a plan of version 6 in a bucket",
        "hudi_assets/engine/actions/compaction/hudi_executor.py",
        "        self.table.check_writable()\n",
        "",
        DOUBTS,
    ),
    Breakage(
        "a name whose answer was lost is refused",
        _OBJECTS,
        "            if not self._is_copy(staged, path):\n",
        "            if True:\n",
        ("tests/stores/test_lost_answers.py",),
    ),
)
