"""A Hive metastore by its own protocol: an entry is read, and altered or made. No Java, no Spark.

The calls here are in every release from 2.3 to 4. `get_table` is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport import TSocket, TTransport

from hudi_assets.catalog.thrift_values import Answer, Struct, Value, call, listed, structure, text, texts
from hudi_assets.engine import Conflict, EnvironmentProblem, InvalidInput

# Fields of a table (hive_metastore.thrift).
NAME, DATABASE, OWNER, STORAGE, PARAMETERS, ORIGINAL_TEXT, EXPANDED_TEXT, KIND = 1, 2, 3, 7, 9, 10, 11, 12
VIRTUAL_VIEW = "VIRTUAL_VIEW"
_PORT = 9083
_TIMEOUT_MS = 30_000
# Fields of the results: the exceptions that a call declares.
_NO_SUCH_OBJECT = 2
_ALREADY_EXISTS = 1
# What a server says whose parameter is not the expected one (HIVE-26882).
_MODIFIED = "has been modified"
_ITS_LOG = "The metastore's own log says why. Publish again once that is mended."
# Of a descriptor of storage.
_LOCATION = 2
_NO_SUCH_DATABASE = 3
# Calls that change nothing, so that another server of the same metastore may be asked instead.
_QUESTION, _QUESTION_OF_MANY = _QUESTIONS = ("get_table_req", "get_table_objects_by_name_req")


class Refused(EnvironmentProblem):
    """The metastore answered, and did not do it."""


@dataclass(frozen=True)
class Entry:
    """A table or view as the metastore has it, whole."""

    table: Struct

    @property
    def kind(self) -> str:
        return self.table.text(KIND) or ""

    @property
    def parameters(self) -> dict[str, str]:
        return self.table.texts(PARAMETERS)

    @property
    def location(self) -> str | None:
        """Where the data lies, as the metastore has it; of a view None."""
        return self.table.struct(STORAGE).text(_LOCATION) if STORAGE in self.table.fields else None

    @property
    def text(self) -> str | None:
        """Of a view."""
        return self.table.text(EXPANDED_TEXT)

    def with_parameters(self, parameters: Mapping[str, str]) -> Entry:
        """With these parameters alone; all other fields as they were."""
        return self.replaced({PARAMETERS: texts(dict(parameters))})

    def with_location(self, location: str) -> Entry:
        """With its data in another folder."""
        return self.replaced({STORAGE: structure(self.table.struct(STORAGE).fields | {_LOCATION: text(location)})})

    def replaced(self, fields: dict[int, Value]) -> Entry:
        """With these fields; all others as they were."""
        return Entry(Struct(self.table.fields | fields))


class Address(NamedTuple):
    """Of one server."""

    uri: str
    host: str
    port: int


class Connection:
    """To one metastore, which may have several servers. Use `connect`."""

    def __init__(self, servers: Sequence[Address], timeout_ms: int) -> None:
        self._left = list(servers)
        self._timeout_ms = timeout_ms
        self._answered = False
        self._open()

    def close(self) -> None:
        self._transport.close()

    def entry(self, database: str, name: str) -> Entry | None:
        """None where there is no such table or view."""
        wanted = structure({1: text(database), 2: text(name)})
        answer = self._call(_QUESTION, {1: wanted})
        if _NO_SUCH_OBJECT in answer.result.fields:
            return None
        self._check(answer, f"{database}.{name}")
        return Entry(answer.result.struct(0).struct(1))

    def entries(self, database: str, names: Sequence[str]) -> dict[str, Entry | None]:
        """Name → its entry, by one question."""
        wanted = structure({1: text(database), 2: listed(names)})
        answer = self._call(_QUESTION_OF_MANY, {1: wanted})
        if answer.refused is not None:  # it knows no such question
            return {name: self.entry(database, name) for name in names}
        if _NO_SUCH_DATABASE in answer.result.fields:
            return dict.fromkeys(names)
        self._check(answer, database)
        found = {(one.text(NAME) or "").lower(): Entry(one) for one in answer.result.struct(0).fields[1].data.items}
        return {name: found.get(name.lower()) for name in names}

    def alter(self, database: str, name: str, entry: Entry, *, expected: tuple[str, str] | None = None) -> None:
        """Put `entry` in the place of the one that is there, in one call.

        `expected`: a parameter and the value that it must still have. Metastores that know no such condition
        (before 2.3.10, 3.1.4 and 4.0) do without. Raises `Conflict` where it has another.
        """
        context = {"DO_NOT_UPDATE_STATS": "true"}
        if expected is not None:
            context |= {"expected_parameter_key": expected[0], "expected_parameter_value": expected[1]}
        arguments = {1: text(database), 2: text(name), 3: Value(12, entry.table), 4: structure({1: texts(context)})}
        answer = self._call("alter_table_with_environment_context", arguments)
        self._check(answer, f"{database}.{name}")

    def create(self, database: str, name: str, entry: Entry) -> None:
        """Raises `Conflict` where somebody made it meanwhile."""
        answer = self._call("create_table", {1: Value(12, entry.table)})
        if _ALREADY_EXISTS in answer.result.fields:
            raise Conflict(
                "Somebody else has just made this entry.",
                where=f"{self._uri} {database}.{name}",
                hint="Publish again.",
            )
        self._check(answer, f"{database}.{name}")

    def drop(self, database: str, name: str) -> None:
        """Take an entry out, and no data with it; one that is not there is no error."""
        answer = self._call("drop_table", {1: text(database), 2: text(name), 3: Value(2, False)})
        if 1 not in answer.result.fields:
            self._check(answer, f"{database}.{name}")

    def _open(self) -> None:
        """To the next server that accepts a connection."""
        while True:
            server = self._left.pop(0)
            socket = TSocket.TSocket(server.host, server.port)
            socket.setTimeout(self._timeout_ms)
            self._uri, self._transport = server.uri, TTransport.TBufferedTransport(socket)
            try:
                self._transport.open()
            except (TException, OSError) as error:
                if not self._left:
                    raise _unreachable(server.uri, error) from error
            else:
                self._protocol = TBinaryProtocol(self._transport)
                return

    def _call(self, method: str, arguments: dict[int, Value]) -> Answer:
        """A server that accepts the connection and does not answer the first question is left for the next one."""
        while True:
            try:
                answer = call(self._protocol, method, arguments)
            except (TException, OSError, EOFError) as error:
                if self._answered or method not in _QUESTIONS or not self._left:
                    raise _unreachable(self._uri, error) from error
                self.close()
                self._open()
            else:
                self._answered = True
                return answer

    def _check(self, answer: Answer, what: str) -> None:
        """Raise what the server declared."""
        where = f"{self._uri} {what}"
        if answer.refused is not None:
            raise Refused(f"The metastore refused the call: {answer.refused}", where=where, hint=_ITS_LOG)
        said = next((_message(value.data) for number, value in answer.result.fields.items() if number), None)
        if said is None:
            return
        if _MODIFIED in said:
            raise Conflict("Somebody else has published meanwhile.", where=where, hint="Publish again.")
        raise Refused(f"The metastore did not do it: {said}", where=where, hint=_ITS_LOG)


@contextmanager
def connect(uri: str, *, timeout_ms: int = _TIMEOUT_MS) -> Iterator[Connection]:
    """A connection to the metastore at `uri` (`thrift://host:port`; of several, the first that answers).

    Raises `EnvironmentProblem` where none answers. Kerberos (hive.metastore.sasl.enabled) is not spoken.
    """
    servers = [_address(one.strip()) for one in uri.split(",") if one.strip()]
    if not servers:
        raise InvalidInput("No metastore is named.", hint="Give thrift://host:port.")
    connection = Connection(servers, timeout_ms)
    try:
        yield connection
    finally:
        connection.close()


def _address(uri: str) -> Address:
    try:
        parts = urlsplit(uri)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{uri!r} is no Hive metastore: {error}.", hint="Give thrift://host:port.") from error
    if scheme != "thrift" or not host:
        raise InvalidInput(
            f"{uri!r} is no Hive metastore.",
            hint="Give thrift://host:port, or glue://REGION for AWS Glue. Metastores over HTTP are not spoken.",
        )
    return Address(uri, host, port or _PORT)


def _unreachable(uri: str, error: Exception) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"The Hive metastore does not answer: {str(error).strip() or type(error).__name__}.",
        where=uri,
        hint="Is it running? One that asks for Kerberos (hive.metastore.sasl.enabled) hangs up: publish there by "
        "Spark (`catalog_resource` without `uri`), whose session has the ticket.",
    )


def _message(found: Any) -> str:
    return (found.text(1) or "no reason given") if isinstance(found, Struct) else str(found)
