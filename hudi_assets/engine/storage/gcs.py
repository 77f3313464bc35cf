"""Google Cloud Storage, for looking: paths `gs://BUCKET/PATH`.

Credentials are the environment's, as obstore finds them (GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT, a
machine's identity). They are part of no pickle, text or error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from obstore.store import GCSStore

from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.storage.interface import Capabilities
from hudi_assets.engine.storage.objects import RETRIES, ObjectStorage
from hudi_assets.engine.storage.remote import table_folder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# A condition on a write wants a generation there, which the engine does not ask for yet.
_CAPABILITIES: Final = Capabilities(
    put_if_absent=True,
    put_if_match=False,
    links=False,
    exact_times=False,
    at_once=32,
    late_requests=True,
)
_PATH: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220})(?:/(.*))?")


class GcsStorage(ObjectStorage):
    """A prefix of a bucket. What a change needs is not there: it is refused."""

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def __reduce__(self) -> tuple[object, ...]:
        return (GcsStorage, (self.base,))

    def check_writable(self) -> None:
        self._refuse()

    def read_with_version(self, path: str) -> tuple[bytes, str]:
        self._refuse()

    def replace_if(self, path: str, data: bytes, version: str) -> str:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedTable(
            "A table in GCS can be looked at, but not changed: what a change needs was not tried there.",
            where=self.base,
            hint="Nothing was changed. Change it with Apache Hudi.",
        )

    def _client(self, request_s: float | None) -> ObjectStore:
        del request_s
        # Another address is only in a file of Google's credentials: whoever writes one without TLS there means it.
        options: Any = {"allow_http": True, "timeout": timedelta(minutes=2)}
        return GCSStore(self.bucket, client_options=options, retry_config=RETRIES)


def open_gcs(path: str, options: Mapping[str, str]) -> GcsStorage:
    """The storage of a path. Raises `InvalidInput`, with nothing that could be a secret, for what is none."""
    if options:
        hint = "Leave them out: credentials are the environment's (GOOGLE_APPLICATION_CREDENTIALS)."
        raise InvalidInput(f"A table in GCS takes no storage options (got {', '.join(sorted(options))}).", hint=hint)
    found = _PATH.fullmatch(path)
    folder = table_folder(found[2]) if found else ""
    if found is None or not folder:
        hint = "Give gs://BUCKET/PATH. Credentials are no part of it."
        raise InvalidInput("A path of gs:// that names no bucket and folder.", hint=hint)
    return GcsStorage(f"gs://{found[1]}/{folder}")
