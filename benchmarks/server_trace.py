"""The requests that a MinIO has served, by its own trace."""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

if TYPE_CHECKING:
    from tests.stores.minio import Minio

# MinIO's names → the column they are counted in. What is not here is counted by its own name.
KINDS: Final = {
    "ListObjectsV1": "LIST",
    "ListObjectsV2": "LIST",
    "HeadObject": "HEAD",
    "GetObject": "GET",
    "PutObject": "PUT",
    "NewMultipartUpload": "PUT",
    "PutObjectPart": "PUT",
    "CompleteMultipartUpload": "PUT",
    "CopyObject": "COPY",
    "CopyObjectPart": "COPY",
    "DeleteObject": "DELETE",
    "DeleteMultipleObjects": "DELETE",
}
COLUMNS: Final = tuple(dict.fromkeys(KINDS.values()))
Told = dict[str, Any]
_PATH: Final = "/minio/admin/v3/trace?s3=true&threshold=0s"


@contextmanager
def traced(minio: Minio) -> Iterator[list[Told]]:
    """What the server says of each request that it serves meanwhile: complete once the context has ended."""
    told: list[Told] = []
    connection = http.client.HTTPConnection("127.0.0.1", minio.port, timeout=60)
    connection.request("GET", _PATH, headers=_signed(minio, minio.endpoint + _PATH))
    answer = connection.getresponse()
    if answer.status != http.client.OK:
        raise RuntimeError(f"MinIO gives no trace: {answer.status}")
    marks = [f"trace-{uuid.uuid4().hex}" for _ in range(2)]
    begun = threading.Event()
    reading = threading.Thread(target=_read, args=(answer, told, marks, begun), daemon=True)
    reading.start()
    while not begun.wait(0.1):  # the server subscribes a little after it answers
        _ask_for(minio, marks[0])
    try:
        yield told
    finally:
        _ask_for(minio, marks[1])
        reading.join(60)
        connection.close()
        if reading.is_alive():
            raise RuntimeError("MinIO's trace has not come to its end")


def _read(answer: http.client.HTTPResponse, told: list[Told], marks: list[str], begun: threading.Event) -> None:
    for line in answer:
        if not line.strip():
            continue
        request = json.loads(line)
        if marks[0] in request["path"]:
            begun.set()
        elif marks[1] in request["path"]:
            return
        else:
            told.append(request)


def _ask_for(minio: Minio, name: str) -> None:
    """A request that changes nothing, told by the name in it."""
    connection = http.client.HTTPConnection("127.0.0.1", minio.port, timeout=60)
    try:
        path = f"/lake/{name}"
        connection.request("HEAD", path, headers=_signed(minio, minio.endpoint + path, "HEAD"))
        connection.getresponse().read()
    finally:
        connection.close()


def _signed(minio: Minio, url: str, method: str = "GET") -> dict[str, str]:
    request = AWSRequest(method, url)
    S3SigV4Auth(Credentials(minio.access_key_id, minio.secret_access_key), "s3", "us-east-1").add_auth(request)
    return dict(request.headers.items())


def counted(minio: Minio, action: Callable[[], object]) -> Counter[str]:
    """Requests by kind that an action made."""
    with traced(minio) as told:
        action()
    return Counter(kind_of(request) for request in told)


def kind_of(request: Told) -> str:
    name = str(request["funcname"]).removeprefix("s3.")
    return KINDS.get(name, name)
