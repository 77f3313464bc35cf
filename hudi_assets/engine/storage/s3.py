"""S3, and what speaks its protocol (MinIO and others): paths `s3://bucket/prefix` and `s3a://bucket/prefix`.

Credentials are those of the options, else those that AWS's own tools find: the environment, a profile, the role of the
container or machine. They are looked up in the process that uses them, and are part of no pickle, text or error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from obstore.store import S3Store

from hudi_assets.engine.errors import EnvironmentProblem, InvalidInput
from hudi_assets.engine.storage.interface import Capabilities
from hudi_assets.engine.storage.objects import ObjectStorage

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_CAPABILITIES: Final = Capabilities(
    put_if_absent=True,
    put_if_match=True,
    links=False,
    exact_times=False,
    copy=True,
    append=False,
    rename=False,
    at_once=32,
)
_SECRET: Final = ("access_key_id", "secret_access_key", "session_token")
_PLAIN: Final = ("endpoint", "region", "profile", "virtual_hosted")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
# A store that is gone is told after half a minute, not after the library's three.
_RETRIES: Final[Any] = {"max_retries": 8, "backoff": {"max_backoff": timedelta(seconds=5)}}


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

    def _client(self) -> ObjectStore:
        options = self._options
        endpoint = options.get("endpoint") or next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
        settings: dict[str, Any] = {key: options[key] for key in ("endpoint", "region") if key in options}
        if options.get("virtual_hosted", "false") == "true":
            settings["virtual_hosted_style_request"] = True
        profile = options.get("profile") or _profile_of_environment()
        if profile and not self._secrets:
            settings["credential_provider"] = _credentials_of_profile(profile)
        return S3Store(
            self.bucket,
            **settings,
            **self._secrets,
            # Whoever names an endpoint without TLS means it.
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": timedelta(minutes=2)},
            retry_config=_RETRIES,
            # S3 refuses a taken name of a copy only so.
            copy_if_not_exists="multipart",
        )


def open_s3(path: str, options: Mapping[str, str]) -> S3Storage:
    """The storage of a path. Raises `InvalidInput`, with nothing that could be a secret, for what is none."""
    scheme, _, rest = path.partition("://")
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        hint = "Give s3://BUCKET/PATH. Credentials are no part of a path."
        raise InvalidInput(f"A path of {scheme}:// does not begin with the name of a bucket.", hint=hint)
    prefix = prefix.strip("/")
    if not prefix or any(part in ("", ".", "..") for part in prefix.split("/")):
        raise InvalidInput(
            "A table needs a folder of its own in the bucket.",
            where=f"{scheme}://{bucket}",
            hint="Give s3://BUCKET/PATH.",
        )
    unknown = sorted(set(options) - {*_PLAIN, *_SECRET})
    if unknown:
        hint = f"There are: {', '.join((*_PLAIN, *_SECRET))}."
        raise InvalidInput(f"There is no storage option {', '.join(unknown)}.", where=f"{scheme}://{bucket}", hint=hint)
    return S3Storage(f"{scheme}://{bucket}/{prefix}", options)


def _profile_of_environment() -> str | None:
    """As AWS's tools: an access key in the environment goes before a profile."""
    return None if os.environ.get("AWS_ACCESS_KEY_ID") else os.environ.get("AWS_PROFILE")


def _credentials_of_profile(profile: str) -> Any:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        hint = "pip install 'hudi-assets[s3]'"
        raise EnvironmentProblem(f"The profile {profile} needs the package boto3.", hint=hint) from error
    try:
        return Boto3CredentialProvider(boto3.session.Session(profile_name=profile))
    except (BotoCoreError, ValueError) as error:
        hint = "Correct the name, or the files that AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name."
        raise EnvironmentProblem(f"The profile {profile} gives no credentials.", hint=hint) from error
