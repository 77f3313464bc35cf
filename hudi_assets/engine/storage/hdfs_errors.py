"""What HDFS answers, in our words. The library gives the name of Java's exception, and its stack in the text."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_assets.engine.errors import REMOTE, EnvironmentProblem, InvalidInput
from hudi_assets.engine.storage.remote import Unanswered

_REMOTE_ERROR: Final = re.compile(r'RPCError\("([\w.$]+)", "(.*?)(?:\\n|"\)|$)', re.DOTALL)
_WHO: Final = re.compile(r"user=([^,]+), access=(\w+)")
_NO_PARENT: Final = "rename destination parent"
_NO_NAME_NODE: Final = "No NameNode hosts found"
_SAFE_MODE: Final = "the name node is in safe mode, in which nothing is changed"
# The library's own errors by their names, and what the name node says. A path may have any of these words in it.
_OF_KERBEROS: Final = re.compile(r"\W*(SASLError|GSSAPIError|NoSASLMechanism)\b")
_NOT_SIMPLE: Final = "SIMPLE authentication is not enabled"
_HINT_NODE: Final = (
    "Give hdfs://HOST:PORT/PATH, or let HADOOP_CONF_DIR name the folder whose hdfs-site.xml knows this name service."
)


class NoParent(OSError):
    """The folder is not there that a file was to get its name in."""


@contextmanager
def said_by_hdfs(uri: str) -> Iterator[None]:
    """Turn the library's errors into `OSError` and ours."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's, or in our words already
        raise _in_our_words(error, uri) from None


def _in_our_words(error: Exception, uri: str) -> Exception:
    text = str(error)
    if isinstance(error, FileNotFoundError):
        if _NO_PARENT in text:
            return NoParent(errno.ENOENT, "there is no such folder", uri)
        return FileNotFoundError(errno.ENOENT, "there is no such file", uri)
    if isinstance(error, FileExistsError):
        return FileExistsError(errno.EEXIST, "there is a file of this name", uri)
    if _NO_NAME_NODE in text:
        return EnvironmentProblem("No name node is known for this path.", where=uri, hint=_HINT_NODE)
    if _OF_KERBEROS.match(text):
        return _asks_by_kerberos(uri)
    found = _REMOTE_ERROR.search(text)
    if found is not None:
        return _of_java(found[1].rpartition(".")[2], found[2].replace('\\"', '"'), uri)
    return Unanswered(REMOTE, f"HDFS does not answer ({text.splitlines()[0][:200] if text else ''})", uri)


def _asks_by_kerberos(uri: str) -> EnvironmentProblem:
    hint = "Get a ticket (kinit), and see that Kerberos's library (libgssapi_krb5) is installed."
    return EnvironmentProblem("HDFS asks by Kerberos who this is, and was not told.", where=uri, hint=hint)


def _of_java(kind: str, said: str, uri: str) -> Exception:
    if kind == "SaslException" or said.startswith(_NOT_SIMPLE):
        return _asks_by_kerberos(uri)
    if kind in ("AccessControlException", "AuthorizationException"):
        who = _WHO.search(said)
        told = f"HDFS refuses it to {who[1]}, who has no right to {who[2].lower()} there" if who else "HDFS refuses it"
        return PermissionError(errno.EACCES, told, uri)
    if kind == "InvalidPathException":
        hint = "HDFS takes no colon in a name, and no part that is empty, '.' or '..'."
        return InvalidInput("HDFS has no file of such a name.", where=uri, hint=hint)
    if kind in ("ParentNotDirectoryException", "NotDirectoryException"):
        return NotADirectoryError(errno.ENOTDIR, "a part of the path is a file", uri)
    if kind == "PathIsNotEmptyDirectoryException":
        return IsADirectoryError(errno.EISDIR, "it is a folder", uri)
    if kind.endswith("QuotaExceededException"):
        return OSError(errno.EDQUOT, "the folder's quota in HDFS is used up", uri)
    if kind == "SafeModeException":
        return OSError(REMOTE, _SAFE_MODE, uri)
    if kind == "StandbyException":
        return Unanswered(REMOTE, f"HDFS does not answer: the name node is on standby ({said[:200]})", uri)
    if kind == "RetriableException":
        why = _SAFE_MODE if "SafeModeException" in said else said[:200]
        return Unanswered(REMOTE, f"HDFS does not answer yet: {why}", uri)
    return OSError(REMOTE, f"HDFS refuses it ({kind}: {said[:200]})", uri)
