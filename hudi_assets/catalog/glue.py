"""AWS Glue's Data Catalog, by boto3: a table is read, and its parameters are replaced, or one is made. No Java.

UpdateTable replaces a table whole, so all that GetTable said of it is sent back. It is sent for the version that was
read (`VersionId`). So what somebody else changes meanwhile is never undone, whoever it is.

Who asks is found by boto3 in its own order, and stands in no address, note, text or error of ours.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from hudi_assets.catalog.hive import Refused
from hudi_assets.catalog.views import Formats
from hudi_assets.engine import Conflict, EnvironmentProblem, InvalidInput, as_s3

_SCHEME: Final = "glue:"
_ADDRESS: Final = re.compile(r"glue://(?P<region>[a-z]{2}[a-z0-9-]*-\d+)(?:/(?P<catalog>\d{12}(?::[\w:/.-]+)?))?/?")
_HINT: Final = "Give glue://REGION or glue://REGION/CATALOG_ID. Credentials are no part of it."
_TIMEOUT_MS: Final = 30_000
_TRIES: Final = 3
_AT_ONCE: Final = 8
# A client takes a tenth of a second, and a role's credentials belong to it.
_KEPT_S: Final = 300.0
_CLIENTS: Final[dict[Hashable, tuple[float, Any]]] = {}

_VERSION: Final = "VersionId"
_GONE: Final = "EntityNotFoundException"
_THERE: Final = "AlreadyExistsException"
_CHANGED: Final = "ConcurrentModificationException"
_DENIED: Final = ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation")
# Words in the codes of credentials that are not taken. What AWS says of these may quote the request with its token.
_NOT_TAKEN: Final = ("Signature", "Token", "UnrecognizedClient", "403")


def is_glue(address: str) -> bool:
    """True for what names AWS Glue, rightly or not."""
    return address.strip().startswith(_SCHEME)


class Address(NamedTuple):
    """`catalog`: its id, an AWS account's. None: the caller's account."""

    region: str
    catalog: str | None


@dataclass(frozen=True)
class Entry:
    """A table as GetTable answers, whole."""

    table: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.table.get("TableType") or "")

    @property
    def parameters(self) -> dict[str, str]:
        return dict(self.table.get("Parameters") or {})

    @property
    def location(self) -> str | None:
        """Where the data lies; None of a view, and of a link to another catalog's table."""
        found: str | None = (self.table.get("StorageDescriptor") or {}).get("Location")
        return found or None

    def with_parameters(self, parameters: Mapping[str, str]) -> Entry:
        """With these; all other fields as they were, the version too."""
        return replace(self, table={**self.table, "Parameters": dict(parameters)})

    def with_location(self, location: str) -> Entry:
        """With its data in another folder, in the place of whatever version there is."""
        storage = {**self.table["StorageDescriptor"], "Location": as_s3(location) or location}
        kept = {field: value for field, value in self.table.items() if field != _VERSION}
        return replace(self, table={**kept, "StorageDescriptor": storage})


class Connection:
    """To one catalog. Use `connect`."""

    def __init__(self, uri: str, catalog: str | None, client: Any) -> None:
        self._uri, self._client = uri, client
        self._of_catalog = {} if catalog is None else {"CatalogId": catalog}

    def entry(self, database: str, name: str) -> Entry | None:
        """None where there is no such table, or no such database."""
        where = f"{self._uri} {database}.{name}"
        try:
            with _told("glue:GetTable", where):
                answer = self._client.get_table(**self._of_catalog, DatabaseName=database.lower(), Name=name.lower())
        except _Gone:
            return None
        return Entry(answer["Table"])

    def entries(self, database: str, names: Sequence[str]) -> dict[str, Entry | None]:
        """Name → its entry, by a question for each, some at once: Glue knows none about several by name.

        After the first one that fails no more are asked.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(names, pool.map(lambda name: self.entry(database, name), names), strict=True))

    def alter(self, database: str, name: str, entry: Entry, *, expected: tuple[str, str] | None = None) -> None:
        """Put `entry` in the place of the version that was read.

        Raises `Conflict` where there is another one by now. `expected`: a parameter and the value that the newest
        version must have, for an entry without a version.
        """
        version = entry.table.get(_VERSION) or self._newest(database, name, expected)
        with _told("glue:UpdateTable", f"{self._uri} {database}.{name}"):
            self._client.update_table(
                **self._of_catalog,
                DatabaseName=database.lower(),
                TableInput=self._input(entry),
                VersionId=version,
                SkipArchive=True,  # Glue keeps every version else, of which an account has a limited number
            )

    def _newest(self, database: str, name: str, expected: tuple[str, str] | None) -> str:
        found = self.entry(database, name)
        if found is None or (expected is not None and found.parameters.get(expected[0]) != expected[1]):
            where = f"{self._uri} {database}.{name}"
            raise Conflict("Somebody else has published meanwhile.", where=where, hint="Publish again.")
        return str(found.table[_VERSION])

    def create(self, database: str, name: str, entry: Entry) -> None:
        """Raises `Conflict` where somebody made it meanwhile."""
        with _told("glue:CreateTable", f"{self._uri} {database}.{name}"):
            self._client.create_table(**self._of_catalog, DatabaseName=database.lower(), TableInput=self._input(entry))

    def drop(self, database: str, name: str) -> None:
        """Take a table out, and no data with it; one that is not there is no error."""
        with suppress(_Gone), _told("glue:DeleteTable", f"{self._uri} {database}.{name}"):
            self._client.delete_table(**self._of_catalog, DatabaseName=database.lower(), Name=name.lower())

    def _input(self, entry: Entry) -> dict[str, Any]:
        """What of a table is ours to say. Glue sets the rest."""
        taken = self._client.meta.service_model.operation_model("UpdateTable").input_shape.members["TableInput"].members
        return {field: value for field, value in entry.table.items() if field in taken}


@contextmanager
def connect(uri: str, *, timeout_ms: int = _TIMEOUT_MS) -> Iterator[Connection]:
    """A connection to the catalog at `uri` (`glue://REGION[/CATALOG_ID]`). `timeout_ms`: for an answer, of all tries.

    Raises `InvalidInput` for what is no such address, `EnvironmentProblem` without boto3 or without credentials.
    """
    address = address_of(uri)
    yield Connection(uri.strip(), address.catalog, _client(address.region, timeout_ms, uri.strip()))


def address_of(uri: str) -> Address:
    """Raises `InvalidInput` for what is none, without a word of it: somebody may have put a secret there."""
    found = _ADDRESS.fullmatch(uri.strip())
    if found is None:
        raise InvalidInput("This is no address of AWS Glue.", hint=_HINT)
    return Address(found["region"], found["catalog"])


def new_table(
    name: str,
    owner: str,
    columns: Iterable[tuple[str, str]],
    location: str,
    formats: Formats,
    parameters: Mapping[str, str],
) -> Entry:
    """An external table. `columns`: name and type of each; `location`: a folder's URI."""
    storage = {
        "Columns": [{"Name": column, "Type": kind.lower()} for column, kind in columns],
        "Location": as_s3(location) or location,  # Athena knows a bucket by this scheme alone
        "InputFormat": formats.reads,
        "OutputFormat": formats.writes,
        "SerdeInfo": {"SerializationLibrary": formats.rows, "Parameters": {"serialization.format": "1"}},
    }
    made = {"Name": name.lower(), "TableType": "EXTERNAL_TABLE", "Parameters": dict(parameters), "PartitionKeys": []}
    return Entry({**made, "StorageDescriptor": storage} | ({"Owner": owner} if owner else {}))


class _Gone(Exception):
    """There is no such table or database."""


def _client(region: str, timeout_ms: int, uri: str) -> Any:
    """A client is kept for some minutes, as long as the environment says the same."""
    said = hash(frozenset(item for item in os.environ.items() if item[0].startswith("AWS_") or item[0] == "HOME"))
    key = (region, timeout_ms, said, os.getpid())
    made_at, client = _CLIENTS.get(key, (0.0, None))
    if client is None or time.monotonic() - made_at > _KEPT_S:
        client = _new_client(region, timeout_ms, uri)
        _CLIENTS[key] = time.monotonic(), client
    return client


def _new_client(region: str, timeout_ms: int, uri: str) -> Any:
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise EnvironmentProblem(
            "AWS Glue needs the package boto3.", where=uri, hint="pip install 'hudi-assets[glue]'"
        ) from error
    seconds = timeout_ms / 1000 / _TRIES
    config = Config(
        connect_timeout=seconds,
        read_timeout=seconds,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
    )
    with _told("a client", uri):
        return boto3.session.Session().client("glue", region_name=region, config=config)


@contextmanager
def _told(action: str, where: str) -> Iterator[None]:
    """What boto3 raises, in words of ours. `action`: as IAM names it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        # To find who asks, boto3 may ask another service first.
        asked = action if action.endswith(f":{error.operation_name}") else str(error.operation_name)
        problem = _refused(error.response.get("Error", {}), asked, where)
        if isinstance(problem, _NotTaken):
            _CLIENTS.clear()
            raise problem.told from None  # what AWS said may quote the request
        raise problem from error
    except (BotoCoreError, ValueError, OSError, RuntimeError) as error:
        # An OSError is of a file with a token, or of a program that gives credentials; a RuntimeError of old ones.
        _CLIENTS.clear()
        raise _not_asked(error, where) from None  # its text may quote settings


class _NotTaken(Exception):
    def __init__(self, told: EnvironmentProblem) -> None:
        super().__init__()
        self.told = told


def _refused(said: Mapping[str, str], action: str, where: str) -> Exception:
    """What Glue answered."""
    code, message = said.get("Code", ""), said.get("Message", "")
    if code == _GONE:
        gone = Conflict("The table, or its database, has gone.", where=where, hint="Publish again.")
        return gone if action in ("glue:CreateTable", "glue:UpdateTable") else _Gone()
    if code == _THERE:
        return Conflict("Somebody else has just made this table.", where=where, hint="Publish again.")
    if code == _CHANGED:
        return Conflict("Somebody else changes the table at the same time.", where=where, hint="Publish again.")
    if code in _DENIED:
        hint = f"Allow {action} on the catalog, the database and the table. Lake Formation has permissions of its own."
        if ":" not in action:
            hint = f"Allow {action} to the credentials that boto3 finds here."
            return EnvironmentProblem(f"AWS denies {action}: {message}", where=where, hint=hint)
        return Refused(f"AWS denies {action}: {message}", where=where, hint=hint)
    if any(word in code for word in _NOT_TAKEN):
        hint = "Renew the credentials that boto3 finds here. The machine's clock has to be right too."
        return _NotTaken(EnvironmentProblem(f"AWS does not take the credentials: {code}.", where=where, hint=hint))
    kind = Refused if code == "InvalidInputException" else EnvironmentProblem
    return kind(f"AWS did not do {action}: {code}: {message}", where=where, hint="Publish again.")


def _not_asked(error: Exception, where: str) -> EnvironmentProblem:
    """Nobody answered, or there is nobody to ask as."""
    from botocore.exceptions import ConnectionError, HTTPClientError, ParamValidationError

    kind = type(error).__name__
    if isinstance(error, ConnectionError | HTTPClientError):
        hint = "Is the region right, and can this machine reach it? AWS_ENDPOINT_URL_GLUE names another endpoint."
        return EnvironmentProblem(f"AWS Glue does not answer ({kind}).", where=where, hint=hint)
    if isinstance(error, ParamValidationError):
        hint = "Install a newer boto3."
        return EnvironmentProblem("This boto3 does not take back what AWS Glue said of it.", where=where, hint=hint)
    hint = "Give the environment variables of an access key, a profile that there is, or this machine a role."
    why = f"{kind}: {error.strerror}" if isinstance(error, OSError) and error.strerror else kind
    return EnvironmentProblem(f"AWS Glue cannot be asked with what boto3 finds ({why}).", where=where, hint=hint)
