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

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "in HDFS a change does not go through the folder of the lock's holder",
        _FOLDER,
        'return f"{HOLDERS}/{fences[-1].holder}"',
        "return None",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS whoever takes a lock leaves the folder of its last holder",
        _FOLDER,
        "        for other in others:\n            self._delete_now(other)\n",
        "",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS a holder's folder is made again when it is gone",
        _FOLDER,
        "if self._is_of_lock(target):\n                    raise self._lost() from None",
        "if False:\n                    raise self._lost() from None",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS a change of a holder that lost its lock is taken for a lost answer",
        _FOLDER,
        "if self._is_of_lock(staged) and not",
        "if False and not",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS a new file of a holder makes the holder's folder again",
        _FOLDER,
        "WriteOptions(create_parent=not of_lock)",
        "WriteOptions(create_parent=True)",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS what a lost answer has deleted was not there",
        _FOLDER,
        "return moved if self.exists(moved) else None",
        "return None",
        ("tests/stores/test_hdfs_locks.py::test_an_answer_that_is_lost_is_found_out",),
    ),
    Breakage(
        "in HDFS a created file replaces another's",
        _HDFS,
        "self._give(staged, path, overwrite=False)",
        "self._give(staged, path, overwrite=True)",
        ("tests/stores/test_contract.py::test_a_name_is_taken_once",),
    ),
    Breakage(
        "in HDFS what was claimed stays undone when its process dies",
        _HDFS,
        "if self._holder(path) is not None or not self._finish(path, version):",
        "if True:",
        ("tests/stores/test_hdfs_locks.py::test_what_was_claimed_is_finished_by_whoever_looks",),
    ),
    Breakage(
        "in HDFS a claim of a version that is gone is done",
        _HDFS,
        'if not self._is_still(path, version) and self.exists(f"{claim}/new"):',
        "if False:",
        ("tests/stores/test_hdfs_locks.py::test_a_claim_of_a_version_that_is_gone_changes_nothing",),
    ),
    Breakage(
        "in HDFS the same bytes in the same millisecond are the same version",
        _HDFS,
        "if (new := _version(written, data)) != before:",
        'if (new := f"{data!r}") or True:',
        ("tests/stores/test_hdfs_locks.py::test_an_answer_that_is_lost_is_found_out",),
    ),
    Breakage(
        "in HDFS claims are never swept",
        _HDFS,
        "if self._claimed % _SWEPT_EVERY == 1:",
        "if False:",
        ("tests/stores/test_hdfs_locks.py::test_claims_are_swept_after_a_day",),
    ),
    Breakage(
        "in HDFS a file is replaced by a claim under a lock, out of the reach of whoever takes it over",
        _HDFS,
        "if self._holder(path) is None:\n            return self._replace_by_claim",
        "if True:\n            return self._replace_by_claim",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS what was changed while its successor was written is replaced",
        _HDFS,
        "if not self._is_still(path, version):\n            self._delete_now(staged)",
        "if False:\n            self._delete_now(staged)",
        ("tests/stores/test_hdfs_locks.py::test_under_a_lock_what_was_changed_meanwhile_is_not_replaced",),
    ),
    Breakage(
        "in HDFS a lost answer of publishing is a failure",
        _HDFS,
        "self._give(moved, path, overwrite=False)",
        "self._rename(moved, path, overwrite=False)",
        ("tests/stores/test_hdfs_locks.py::test_a_change_that_arrives_after_the_lock_was_taken_over_is_refused",),
    ),
    Breakage(
        "in HDFS a heartbeat stops when this process releases a lock",
        _HDFS,
        "if not self._is_released(staged):",
        "if True:",
        ("tests/stores/test_hdfs_locks.py::test_a_heartbeat_outlasts_a_lock_that_this_process_released",),
    ),
    Breakage(
        "a lock that this process releases while it is asked is a lost one",
        "hudi_assets/engine/storage/fenced.py",
        "if fence in self._fences:  # else",
        "if True:  # else",
        ("tests/stores/test_hdfs_locks.py::test_a_lock_that_is_released_while_it_is_asked_is_no_lost_one",),
    ),
    Breakage(
        "in HDFS Hudi's lock is changed where nothing is refused after the lease",
        _FILE_LOCK,
        "if not is_inside or relative",
        "if relative",
        ("tests/stores/test_hdfs_locks.py::test_a_lock_path_without_a_scheme_is_refused",),
    ),
    Breakage(
        "in HDFS Hudi's lock is changed among the locks' own files, without the lease",
        _FILE_LOCK,
        'if not is_inside or relative.startswith(f"{LOCKS}/"):',
        "if not is_inside:",
        ("tests/stores/test_hdfs_locks.py::test_a_lock_path_where_no_change_is_refused_after_the_lease",),
    ),
    Breakage(
        "in HDFS a lease that was lost while Hudi's lock was taken is another engine's holder",
        _FILE_LOCK,
        "            except LockLost:\n                raise\n",
        "",
        ("tests/stores/test_hdfs_locks.py::test_hudis_lock_is_changed_under_the_lease",),
    ),
    Breakage(
        "in HDFS Kerberos is found in a path",
        _ERRORS,
        "_OF_KERBEROS.match(text)",
        "_OF_KERBEROS.search(text)",
        ("tests/stores/test_hdfs_errors.py::test_what_the_library_says",),
    ),
    Breakage(
        "in HDFS a standby name node is a refusal",
        _ERRORS,
        'if kind == "StandbyException":',
        "if False:",
        ("tests/stores/test_hdfs_errors.py::test_what_the_library_says",),
    ),
    Breakage(
        "in HDFS a range is asked for beyond a file's end",
        _STREAMS,
        "length = min(length, reader.file_length() - offset)",
        "length = min(length, length)",
        ("tests/stores/test_contract.py::test_a_stream_that_seeks",),
    ),
    Breakage(
        "in HDFS Hudi's lock is not taken beside locked writers",
        _LOCK,
        'config.writers == "locked" and storage.capabilities.file_lock',
        'config.writers == "locked" and storage.capabilities.links',
        ("tests/stores/test_hdfs_locks.py::test_hudis_file_lock_is_inside_ours",),
    ),
    Breakage(
        "in HDFS the lease is not asked for beside Hudi's lock",
        _LOCK,
        "yield HeldLock(shared=check, lease=held.lease)",
        "yield HeldLock(shared=check)",
        ("tests/stores/test_hdfs_locks.py::test_hudis_file_lock_is_inside_ours",),
    ),
    Breakage(
        "in HDFS a dead process's lock of Hudi's stays when it was of another host",
        _FILE_LOCK,
        "if not self.storage.capabilities.put_if_match:  # else",
        "if True:  # else",
        ("tests/stores/test_hdfs_locks.py::test_our_own_is_taken_over_from_any_host",),
    ),
    Breakage(
        "in HDFS a missing right is an unknown failure",
        _ERRORS,
        'if kind in ("AccessControlException", "AuthorizationException"):',
        "if False:",
        ("tests/stores/test_hdfs_errors.py::test_what_the_library_says",),
    ),
    Breakage(
        "in HDFS Java's stack is in an error",
        _ERRORS,
        '"(.*?)(?:\\\\n|',
        '"(.*)(?:',
        ("tests/stores/test_hdfs_errors.py::test_what_the_library_says",),
    ),
    Breakage(
        "in HDFS a table of version 6 is changed beside Hudi's writers, who append to its log files",
        _LOCK,
        "if is_shared and has_leases(storage) and layout.makes_links:",
        "if False:",
        ("tests/stores/test_hdfs_locks.py::test_on_version_6_hudis_writers_are_stopped",),
    ),
    Breakage(
        "a table in Azure is changed",
        "hudi_assets/engine/storage/azure.py",
        "    def check_writable(self)",
        "    def never_called(self)",
        ("tests/stores/test_azure_and_gcs.py::test_changes_and_options_are_refused",),
    ),
    Breakage(
        "a table in GCS is changed",
        "hudi_assets/engine/storage/gcs.py",
        "    def check_writable(self) -> None:\n        self._refuse()",
        "    def check_writable(self) -> None:\n        return",
        ("tests/stores/test_azure_and_gcs.py::test_changes_and_options_are_refused",),
    ),
    Breakage(
        "an account of another cloud is looked for in the public Azure",
        "hudi_assets/engine/storage/azure.py",
        "if found[3] and not",
        "if False and not",
        ("tests/stores/test_azure_and_gcs.py::test_another_cloud_needs_its_endpoint",),
    ),
    Breakage(
        "a path in Azure may hold a key",
        "hudi_assets/engine/storage/azure.py",
        "([a-z0-9][a-z0-9-]{1,62})@",
        "([A-Za-z0-9:-]{2,99})@",
        ("tests/stores/test_azure_and_gcs.py::test_what_is_no_path",),
    ),
)
