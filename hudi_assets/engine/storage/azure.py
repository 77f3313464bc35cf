"""Azure's Data Lake and Blob storage, for looking: paths `abfs(s)://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`.

Credentials are the environment's, as obstore finds them (AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN,
AZURE_CLIENT_ID and its kin, a machine's identity). They are part of no pickle, text or error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from obstore.store import AzureStore

from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.storage.interface import Capabilities
from hudi_assets.engine.storage.objects import RETRIES, ObjectStorage
from hudi_assets.engine.storage.remote import table_folder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_CAPABILITIES: Final = Capabilities(
    put_if_absent=True,
    put_if_match=True,
    links=False,
    exact_times=False,
    at_once=32,
    late_requests=True,
)
_PATH: Final = re.compile(r"abfss?://([a-z0-9][a-z0-9-]{1,62})@([a-z0-9]{3,24})((?:\.[A-Za-z0-9-]+)*)(?:/(.*))?")
_PUBLIC: Final = ".core.windows.net"


def _endpoint() -> str:
    return os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT") or ""


class AzureStorage(ObjectStorage):
    """A folder of a container. What a change needs was tried on an emulator alone: it is refused."""

    has_suffixes = False
    writer_key = "hudi_assets_writer"  # no hyphens there

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def __reduce__(self) -> tuple[object, ...]:
        return (AzureStorage, (self.base,))

    def check_writable(self) -> None:
        raise UnsupportedTable(
            "A table in Azure can be looked at, but not changed: what a change needs was not tried there.",
            where=self.base,
            hint="Nothing was changed. Change it with Apache Hudi.",
        )

    def _client(self, request_s: float | None) -> ObjectStore:
        del request_s
        container, _, host = self.bucket.partition("@")
        endpoint = _endpoint()
        given: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        return AzureStore(
            container,
            account_name=host.partition(".")[0],
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": timedelta(minutes=2)},
            retry_config=RETRIES,
            **given,
        )


def open_azure(path: str, options: Mapping[str, str]) -> AzureStorage:
    """The storage of a path. Raises `InvalidInput`, with nothing that could be a secret, for what is none."""
    scheme = path.partition("://")[0]
    if options:
        hint = "Leave them out: credentials are the environment's (AZURE_STORAGE_ACCOUNT_KEY and its kin)."
        raise InvalidInput(f"A table in Azure takes no storage options (got {', '.join(sorted(options))}).", hint=hint)
    found = _PATH.fullmatch(path)
    folder = table_folder(found[4]) if found else ""
    if found is None or not folder:
        hint = f"Give {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH. Credentials are no part of it."
        raise InvalidInput(f"A path of {scheme}:// that names no container, account and folder.", hint=hint)
    if found[3] and not found[3].lower().endswith(_PUBLIC) and not _endpoint():
        raise InvalidInput(
            f"The account's host ends in {found[3]}. Without an endpoint the public Azure would be asked instead.",
            where=f"{scheme}://{found[1]}@{found[2]}{found[3]}",
            hint="Let AZURE_STORAGE_ENDPOINT say where the account is.",
        )
    return AzureStorage(f"{scheme}://{found[1]}@{found[2]}{found[3]}/{folder}")
