"""S3, and what speaks its protocol (MinIO and others): paths `s3://bucket/prefix` and `s3a://bucket/prefix`.

Credentials are those of the options, else those that AWS's own library finds, in its order. They are looked up in the
process that uses them, and are part of no pickle, text or error.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from obstore.store import S3Store

from hudi_assets.engine.errors import EnvironmentProblem, InvalidInput
from hudi_assets.engine.storage.aws import endpoint_of, region_of
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
_SECRET: Final = ("access_key_id", "secret_access_key", "session_token")
_PLAIN: Final = ("endpoint", "region", "profile", "virtual_hosted")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
# A store that is gone is told after half a minute, not after the library's three. One request may take two minutes.
_UNBOUNDED_S: Final = (120.0, 30.0, 5.0)
_KEPT_S: Final = 60.0
_FOUND: Final[dict[tuple[str | None, int], tuple[float, Any]]] = {}
# The library begins no try after the second time. It may wait for the third before that, and each try has the first.
_SHARES: Final = (0.6, 0.29, 0.1)


class S3Storage(ObjectStorage):
    """A prefix of a bucket on S3."""

    def __init__(self, base: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(base)
        given = dict(options or {})
        self._options = {key: value for key, value in sorted(given.items()) if key in _PLAIN}
        self._secrets: dict[str, Any] = {key: value for key, value in given.items() if key in _SECRET}

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def __reduce__(self) -> tuple[object, ...]:
        return (S3Storage, (self.base, self._options))

    @property
    def _place(self) -> Hashable | None:
        return (self.base, *self._options.items(), endpoint_of(os.environ))

    def _client(self, request_s: float | None) -> ObjectStore:
        options = self._options
        endpoint = options.get("endpoint") or endpoint_of(os.environ)
        settings: dict[str, Any] = {key: options[key] for key in ("endpoint", "region") if key in options}
        if options.get("virtual_hosted", "false") == "true":
            settings["virtual_hosted_style_request"] = True
            if endpoint:  # the library takes one as it is
                settings["endpoint"] = _hosting(self.bucket, endpoint)
        if self._secrets:
            settings["credential_provider"] = self._given
        elif os.environ.get("AWS_SKIP_SIGNATURE", "").lower() != "true":  # a bucket that asks nobody who he is
            settings["credential_provider"] = _found_by_aws(options.get("profile"), self.base)
            # Else the region of a profile would go before the environment's.
            if region := options.get("region") or region_of(os.environ):
                settings["region"] = region
        one, tries, pause = _times(request_s)
        return S3Store(
            self.bucket,
            **settings,
            # Whoever names an endpoint without TLS means it.
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": one, "connect_timeout": one},
            retry_config={**RETRIES, "retry_timeout": tries, "backoff": {"max_backoff": pause}},
            # S3 refuses a taken name of a copy only so.
            copy_if_not_exists="multipart",
        )

    def _given(self) -> Any:
        """The options' identity, whole: nothing of the environment's is added."""
        given = self._secrets
        return {
            "access_key_id": given["access_key_id"],
            "secret_access_key": given["secret_access_key"],
            "token": given.get("session_token"),
            "expires_at": None,
        }


def _times(request_s: float | None) -> tuple[timedelta, timedelta, timedelta]:
    """For how long one try lasts, until when another is begun, and the longest pause before that."""
    shares = [math.inf if request_s is None else request_s * share for share in _SHARES]
    one, tries, pause = (timedelta(seconds=min(times)) for times in zip(shares, _UNBOUNDED_S, strict=True))
    return one, tries, pause


def open_s3(path: str, options: Mapping[str, str]) -> S3Storage:
    """The storage of a path. Raises `InvalidInput`, with nothing that could be a secret, for what is none."""
    scheme, _, rest = path.partition("://")
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        hint = "Give s3://BUCKET/PATH. Credentials are no part of a path."
        raise InvalidInput(f"A path of {scheme}:// does not begin with the name of a bucket.", hint=hint)
    folder = table_folder(prefix)
    if not folder:
        raise InvalidInput(
            "A table needs a folder of its own in the bucket.",
            where=f"{scheme}://{bucket}",
            hint="Give s3://BUCKET/PATH.",
        )
    unknown = sorted(set(options) - {*_PLAIN, *_SECRET})
    if unknown:
        hint = f"There are: {', '.join((*_PLAIN, *_SECRET))}."
        raise InvalidInput(f"There is no storage option {', '.join(unknown)}.", where=f"{scheme}://{bucket}", hint=hint)
    if set(options) & set(_SECRET) and not {"access_key_id", "secret_access_key"} <= set(options):
        hint = "Give both, or neither: then the environment's are used."
        raise InvalidInput(
            "The storage options access_key_id and secret_access_key go together.",
            where=f"{scheme}://{bucket}",
            hint=hint,
        )
    return S3Storage(f"{scheme}://{bucket}/{folder}", options)


def _hosting(bucket: str, endpoint: str) -> str:
    """An endpoint with the bucket in the name of its host."""
    parts = urlsplit(endpoint)
    return parts._replace(netloc=f"{bucket}.{parts.netloc}").geturl()


def _found_by_aws(profile: str | None, where: str) -> Any:
    """The identity that AWS's own library finds, in its order, of the profile that is asked for, if any.

    To look takes longer than most requests, and each task of Spark's opens its table anew. So what was found is kept
    for a minute, as long as the environment says the same.
    """
    said = hash(frozenset(item for item in os.environ.items() if item[0].startswith("AWS_") or item[0] == "HOME"))
    found_at, found = _FOUND.get((profile, said), (-math.inf, None))
    if time.monotonic() - found_at > _KEPT_S:
        _FOUND.clear()
        found = _looked_up_by_aws(profile, where)
        _FOUND[profile, said] = time.monotonic(), found
    return found


def _looked_up_by_aws(profile: str | None, where: str) -> Any:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        raise EnvironmentProblem(
            "Tables on S3 need the package boto3.", hint="pip install 'hudi-assets[s3]'"
        ) from error
    try:
        # What expires is asked for again in time: boto3 renews it a quarter of an hour before.
        return Boto3CredentialProvider(boto3.session.Session(profile_name=profile), ttl=timedelta(minutes=5))
    except (BotoCoreError, ValueError) as error:
        named = profile or os.environ.get("AWS_PROFILE")
        if named is None and isinstance(error, ValueError):
            hint = "Give the environment variables of an access key, a profile, or this machine a role."
            raise EnvironmentProblem("No credentials for the store were found.", where=where, hint=hint) from error
        hint = "Correct the name, or the files that AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name."
        raise EnvironmentProblem(
            f"The profile {named or 'default'} gives no credentials.", where=where, hint=hint
        ) from error
