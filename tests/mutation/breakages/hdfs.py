"""Breakages of what a table in HDFS needs: changes through the holder's folder, lost answers, claims, Hudi's lock; and
of Azure and Google Cloud Storage, which are for looking.
"""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_HDFS = "hudi_assets/engine/storage/hdfs.py"
_FOLDER = "hudi_assets/engine/storage/hdfs_folder.py"
_STREAMS = "hudi_assets/engine/storage/hdfs_streams.py"
_ERRORS = "hudi_assets/engine/storage/hdfs_errors.py"
_LOCK = "hudi_assets/engine/transaction/lock.py"
_FILE_LOCK = "hudi_assets/engine/transaction/file_lock.py"
LOCKS = ("tests/stores/test_hdfs_locks.py",)
SAID = ("tests/stores/test_hdfs_errors.py",)
FOR_LOOKING = ("tests/stores/test_azure_and_gcs.py",)
CONTRACT = ("tests/stores/test_contract.py",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "in HDFS a change does not go through the folder of the lock's holder",
        _FOLDER,
        'return f"{HOLDERS}/{fences[-1].holder}"',
        "return None",
        LOCKS,
    ),
    Breakage(
        "in HDFS whoever takes a lock leaves the folder of its last holder",
        _FOLDER,
        "        for other in others:\n            self._delete_now(other)\n",
        "",
        LOCKS,
    ),
    Breakage(
        "in HDFS a holder's folder is made again when it is gone",
        _FOLDER,
        "if self._is_of_lock(target):\n                    raise self._lost() from None",
        "if False:\n                    raise self._lost() from None",
        LOCKS,
    ),
    Breakage(
        "in HDFS a change of a holder that lost its lock is taken for a lost answer",
        _FOLDER,
        "if self._is_of_lock(staged) and not",
        "if False and not",
        LOCKS,
    ),
    Breakage(
        "in HDFS a new file of a holder makes the holder's folder again",
        _FOLDER,
        "WriteOptions(create_parent=not of_lock)",
        "WriteOptions(create_parent=True)",
        LOCKS,
    ),
    Breakage(
        "in HDFS what a lost answer has deleted was not there",
        _FOLDER,
        "return moved if self.exists(moved) else None",
        "return None",
        LOCKS,
    ),
    Breakage(
        "in HDFS a created file replaces another's",
        _HDFS,
        "self._give(staged, path, overwrite=False)",
        "self._give(staged, path, overwrite=True)",
        CONTRACT,
    ),
    Breakage(
        "in HDFS what was claimed stays undone when its process dies",
        _HDFS,
        "if self._holder(path) is not None or not self._finish(path, version):",
        "if True:",
        LOCKS,
    ),
    Breakage(
        "in HDFS a claim of a version that is gone is done",
        _HDFS,
        'if not self._is_still(path, version) and self.exists(f"{claim}/new"):',
        "if False:",
        LOCKS,
    ),
    Breakage(
        "in HDFS the same bytes in the same millisecond are the same version",
        _HDFS,
        "if (new := _version(written, data)) != before:",
        'if (new := f"{data!r}") or True:',
        LOCKS,
    ),
    Breakage(
        "in HDFS claims are never swept",
        _HDFS,
        "if self._claimed % _SWEPT_EVERY == 1:",
        "if False:",
        LOCKS,
    ),
    Breakage(
        "in HDFS a file is replaced by a claim under a lock, out of the reach of whoever takes it over",
        _HDFS,
        "if self._holder(path) is None:\n            return self._replace_by_claim",
        "if True:\n            return self._replace_by_claim",
        LOCKS,
    ),
    Breakage(
        "in HDFS what was changed while its successor was written is replaced",
        _HDFS,
        "if not self._is_still(path, version):\n            self._delete_now(staged)",
        "if False:\n            self._delete_now(staged)",
        LOCKS,
    ),
    Breakage(
        "in HDFS a lost answer of publishing is a failure",
        _HDFS,
        "self._give(moved, path, overwrite=False)",
        "self._rename(moved, path, overwrite=False)",
        LOCKS,
    ),
    Breakage(
        "in HDFS a heartbeat stops when this process releases a lock",
        _HDFS,
        "if not self._is_released(staged):",
        "if True:",
        LOCKS,
    ),
    Breakage(
        "a lock that this process releases while it is asked is a lost one",
        "hudi_assets/engine/storage/fenced.py",
        "if fence in self._fences:  # else",
        "if True:  # else",
        LOCKS,
    ),
    Breakage(
        "in HDFS Hudi's lock is changed where nothing is refused after the lease",
        _FILE_LOCK,
        "if not is_inside or relative",
        "if relative",
        LOCKS,
    ),
    Breakage(
        "in HDFS Hudi's lock is changed among the locks' own files, without the lease",
        _FILE_LOCK,
        'if not is_inside or relative.startswith(f"{LOCKS}/"):',
        "if not is_inside:",
        LOCKS,
    ),
    Breakage(
        "in HDFS a lease that was lost while Hudi's lock was taken is another engine's holder",
        _FILE_LOCK,
        "            except LockLost:\n                raise\n",
        "",
        LOCKS,
    ),
    Breakage(
        "in HDFS Kerberos is found in a path",
        _ERRORS,
        "_OF_KERBEROS.match(text)",
        "_OF_KERBEROS.search(text)",
        SAID,
    ),
    Breakage("in HDFS a standby name node is a refusal", _ERRORS, 'if kind == "StandbyException":', "if False:", SAID),
    Breakage(
        "in HDFS a range is asked for beyond a file's end",
        _STREAMS,
        "length = min(length, reader.file_length() - offset)",
        "length = min(length, length)",
        CONTRACT,
    ),
    Breakage(
        "in HDFS Hudi's lock is not taken beside locked writers",
        _LOCK,
        'config.writers == "locked" and storage.capabilities.file_lock',
        'config.writers == "locked" and storage.capabilities.links',
        LOCKS,
    ),
    Breakage(
        "in HDFS the lease is not asked for beside Hudi's lock",
        _LOCK,
        "yield HeldLock(shared=check, lease=held.lease)",
        "yield HeldLock(shared=check)",
        LOCKS,
    ),
    Breakage(
        "in HDFS a dead process's lock of Hudi's stays when it was of another host",
        _FILE_LOCK,
        "if not self.storage.capabilities.put_if_match:  # else",
        "if True:  # else",
        LOCKS,
    ),
    Breakage(
        "in HDFS a missing right is an unknown failure",
        _ERRORS,
        'if kind in ("AccessControlException", "AuthorizationException"):',
        "if False:",
        SAID,
    ),
    Breakage("in HDFS Java's stack is in an error", _ERRORS, '"(.*?)(?:\\\\n|', '"(.*)(?:', SAID),
    Breakage(
        "in HDFS a table of version 6 is changed beside Hudi's writers, who append to its log files",
        _LOCK,
        "if is_shared and has_leases(storage) and layout.makes_links:",
        "if False:",
        LOCKS,
    ),
    Breakage(
        "a table in Azure is changed",
        "hudi_assets/engine/storage/azure.py",
        "    def check_writable(self)",
        "    def never_called(self)",
        FOR_LOOKING,
    ),
    Breakage(
        "a table in GCS is changed",
        "hudi_assets/engine/storage/gcs.py",
        "    def check_writable(self) -> None:\n        self._refuse()",
        "    def check_writable(self) -> None:\n        return",
        FOR_LOOKING,
    ),
    Breakage(
        "an account of another cloud is looked for in the public Azure",
        "hudi_assets/engine/storage/azure.py",
        "if found[3] and not",
        "if False and not",
        FOR_LOOKING,
    ),
    Breakage(
        "a path in Azure may hold a key",
        "hudi_assets/engine/storage/azure.py",
        "([a-z0-9][a-z0-9-]{1,62})@",
        "([A-Za-z0-9:-]{2,99})@",
        FOR_LOOKING,
    ),
)
