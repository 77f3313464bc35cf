"""What is said of a wrong path, a missing right, a name node that is gone: by name, and with what to do."""

from __future__ import annotations

import builtins
import sys
import uuid
from typing import Any

import pytest

from hudi_assets.engine import HudiTable, open_storage
from hudi_assets.engine.errors import REMOTE, EnvironmentProblem, InvalidInput
from hudi_assets.engine.storage.hdfs_errors import NoParent, said_by_hdfs
from hudi_assets.engine.storage.remote import Unanswered
from tests.stores.hdfs import Hdfs
from tests.stores.test_changes import new_table
from tests.stores.test_hdfs_tables import new_path

NODE = "org.apache.hadoop.hdfs.server.namenode"
IPC = "org.apache.hadoop.ipc"
ACCESS = "org.apache.hadoop.security.AccessControlException"
NOT_SIMPLE = "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"
SAFE = "SafeModeException: Cannot create x. Name node is in safe mode."
DENIED = (
    'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=mallory, access=WRITE, '
    f'inode=\\\\"/p\\\\":root:supergroup:drwxr-xr-x\\\\n\\\\tat {NODE}.FSPermissionChecker.check")'
)


@pytest.mark.parametrize(
    "path",
    [
        "hdfs://",
        "hdfs:///warehouse/t",
        "hdfs://node",
        "hdfs://node:8020/",
        "hdfs://node/a//b",
        "hdfs://node/../x",
        "hdfs://user@node/t",
        "hdfs://node:x/t",
    ],
)
def test_what_is_no_path_of_a_table(path: str) -> None:
    with pytest.raises(InvalidInput, match="no path of a table in HDFS") as refused:
        open_storage(path)
    assert "hdfs://HOST:PORT/PATH" in str(refused.value.hint)


def test_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"takes no storage options \(got user\)"):
        open_storage("hdfs://node/t", {"user": "me"})


def test_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "hdfs_native":
            raise ImportError("no", name="hdfs_native")
        return real(name, *rest)

    for name in [name for name in sys.modules if name.startswith("hudi_assets.engine.storage.hdfs")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EnvironmentProblem, match="need the package hdfs-native") as refused:
        open_storage("hdfs://node/t")
    assert refused.value.hint == "pip install 'hudi-assets[hdfs]'"


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (FileNotFoundError("/x/none"), FileNotFoundError, "no such file"),
        (FileNotFoundError("rename destination parent /y/z not found.\n\tat"), NoParent, "no such folder"),
        (FileExistsError("rename destination /x/a already exists\n\tat"), FileExistsError, "a file of this name"),
        (RuntimeError(DENIED), PermissionError, "refuses it to mallory, who has no right to write there"),
        (OSError("Connection refused (os error 111)"), Unanswered, "does not answer"),
        (RuntimeError('InvalidArgument("No NameNode hosts found")'), EnvironmentProblem, "No name node is known"),
        (RuntimeError('SASLError("no mechanism")'), EnvironmentProblem, "by Kerberos"),
        (RuntimeError("NoSASLMechanism"), EnvironmentProblem, "by Kerberos"),
        (RuntimeError(f'FatalRPCError("{ACCESS}", "{NOT_SIMPLE}\\n")'), EnvironmentProblem, "by Kerberos"),
        (RuntimeError('FatalRPCError("javax.security.sasl.SaslException", "x")'), EnvironmentProblem, "by Kerberos"),
        (RuntimeError(DENIED.replace("/p", "/data/kerberos_events")), PermissionError, "refuses it to mallory"),
        (RuntimeError(DENIED.replace("/p", "/SASL/GSSAPI")), PermissionError, "refuses it to mallory"),
        (RuntimeError('DataTransferError("of /kerberos/SASLError aborted")'), Unanswered, "does not answer"),
        (RuntimeError(f'RPCError("{IPC}.StandbyException", "READ in state standby\\n")'), Unanswered, "is on standby"),
        (RuntimeError(f'RPCError("{IPC}.RetriableException", "{NODE}.{SAFE}\\n")'), Unanswered, "yet: .*in safe mode"),
        (RuntimeError(f'RPCError("{IPC}.RetriableException", "busy\\n")'), Unanswered, "yet: busy"),
        (RuntimeError(f'RPCError("{NODE}.SafeModeException", "Cannot create\\n")'), OSError, "in safe mode"),
        (RuntimeError('RPCError("a.b.DSQuotaExceededException", "x\\n")'), OSError, "quota"),
        (RuntimeError('RPCError("a.b.FooException", "it is so\\n\\tat a.b.c")'), OSError, r"FooException: it is so\)"),
        (
            RuntimeError('RPCError("a.b.InvalidPathException", "Invalid name\\n")'),
            InvalidInput,
            "such a name",
        ),
    ],
)
def test_what_the_library_says(said: Exception, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as refused, said_by_hdfs("hdfs://node/t/f"):
        raise said
    assert "\tat" not in str(refused.value)
    assert type(refused.value) is kind


def test_a_missing_table(hdfs: Hdfs) -> None:
    with pytest.raises(InvalidInput, match="No such directory"):
        HudiTable.open(f"{hdfs.uri}/nowhere")


def test_a_port_that_is_missing() -> None:
    with pytest.raises(EnvironmentProblem, match="No name node is known") as refused:
        HudiTable.open("hdfs://nowhere/t")
    assert "HADOOP_CONF_DIR" in str(refused.value)


@pytest.fixture
def mallory(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of somebody else's; from now on this process is a user who may only look at it."""
    path = new_path(hdfs)
    new_table(path, 9)
    storage: Any = open_storage(path)
    storage._client.set_permission(storage._at(""), 0o755)
    storage._client.set_permission(storage._at(".hoodie"), 0o755)
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    return path


def test_who_may_only_look_is_told_so(mallory: str) -> None:
    table = HudiTable.open(mallory)
    assert table.validate() == ()
    with pytest.raises(EnvironmentProblem, match="mallory, who has no right to write there") as refused:
        table.recover()
    assert "hdfs dfs -chmod" in str(refused.value)


def test_who_may_not_enter_is_told_so(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{hdfs.uri}/closed/{uuid.uuid4().hex}"
    new_table(path, 9)
    storage: Any = open_storage(path)
    storage._client.set_permission(storage._at(""), 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    with pytest.raises((EnvironmentProblem, PermissionError), match="mallory, who has no right to"):
        HudiTable.open(path)


@pytest.mark.thorough
def test_a_name_node_that_does_not_answer() -> None:
    with pytest.raises((EnvironmentProblem, OSError), match="HDFS does not answer") as refused:
        HudiTable.open("hdfs://127.0.0.1:9/t")
    assert getattr(refused.value, "errno", REMOTE) == REMOTE
