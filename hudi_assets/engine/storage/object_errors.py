"""What a store of objects answers, in our words.

The library's errors hold the whole request and answer: an access key's name, or what was signed. None of that goes on.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from obstore.exceptions import BaseError, InvalidPathError, PreconditionError, UnauthenticatedError

from hudi_assets.engine.errors import REMOTE, Conflict, CorruptTable, EnvironmentProblem, InvalidInput
from hudi_assets.engine.storage.remote import Unanswered

_STATUS: Final = re.compile(r"status code: (\d{3})|\bstatus: (\d{3})")
_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_NO_RANGE: Final = ("value for CONTENT_RANGE", "non-partial response")
# A store sends who asks in another region elsewhere, and the library does not follow.
_NO_LOCATION: Final = "redirect without LOCATION"
_OTHER_REGION: Final = ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")


@contextmanager
def said_by_store(uri: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn the library's errors into `OSError` and ours. `passed`: those that the caller handles itself."""
    try:
        yield
    except passed as error:
        _forget(error)
        raise
    except (BaseError, OSError) as error:
        if not _is_the_librarys(error):
            raise
        text = str(error)
        _forget(error)
        raise _in_our_words(error, text, uri) from None


def _forget(error: BaseException | None) -> None:
    """Take the words out of the library's errors: they stay in the context of whatever is raised in their place."""
    while error is not None:
        if _is_the_librarys(error):
            error.args = ()
        error = error.__context__


def _is_the_librarys(error: BaseException) -> bool:
    """True for its own errors, and for those of Python that it raises: the system's have a number."""
    return isinstance(error, BaseError) or (isinstance(error, OSError) and error.errno is None)


def _in_our_words(error: Exception, text: str, uri: str) -> Exception:
    status, code = _status(text), _code(text)
    if _is_beyond_the_end(text):
        return OSError(errno.ERANGE, "the file ends before that", uri)
    if code in ("NoSuchBucket", "ContainerNotFound"):
        return InvalidInput("There is no such bucket.", where=uri, hint="Correct the path or the endpoint.")
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "there is no such file", uri)
    if isinstance(error, PreconditionError):
        return Conflict("The file has changed while it was read.", where=uri, hint="Look at the table again.")
    if isinstance(error, InvalidPathError):
        hint = "Rename or delete the object below it whose name has two slashes in a row, or a part that is . or .."
        return CorruptTable("A name in the bucket is none that a file can have.", where=uri, hint=hint)
    if _NO_LOCATION in text or code in _OTHER_REGION:
        hint = "Set AWS_REGION, or the option region, to the bucket's region."
        return EnvironmentProblem("The bucket is in another region.", where=uri, hint=hint)
    if status in (401, 403):
        return PermissionError(errno.EACCES, f"the store refuses it ({code or status})", uri)
    if status is None and isinstance(error, UnauthenticatedError):  # nothing was asked of the store
        return PermissionError(errno.EACCES, "no credentials are found for the store, or they cannot be renewed", uri)
    if status == 400 and not code:  # all that a HEAD is told where the region is another one
        return OSError(REMOTE, "the store refuses it (400): is AWS_REGION the bucket's region?", uri)
    answer = f" ({' '.join(filter(None, (str(status), code)))})" if status else ""
    if status is not None and status < 500 and status != 429:
        return OSError(REMOTE, f"the store refuses it{answer}", uri)
    return Unanswered(REMOTE, f"the store does not answer{answer}", uri)


def is_of_the_range(error: Exception) -> bool:
    """True where a range is what fails: of an empty file stores refuse one, or answer in a way of their own."""
    text = str(error)
    return _is_beyond_the_end(text) or any(words in text for words in _NO_RANGE)


def _is_beyond_the_end(text: str) -> bool:
    return _status(text) == 416 or "StartTooLarge" in text


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2]) if found else None


def _code(text: str) -> str:
    found = _CODE.search(text)
    return found[1] if found else ""
