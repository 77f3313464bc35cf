"""What S3 is by name: the schemes of its paths, and where the environment says that it is. Needs no package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SCHEMES: Final = ("s3", "s3a")
"""Of paths that are opened here."""
_HADOOPS: Final = ("s3a://", "s3n://")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")


def endpoint_of(environment: Mapping[str, str]) -> str:
    """Where S3 is; "" where the environment does not say: at Amazon's."""
    return _first(environment, _ENDPOINTS)


def region_of(environment: Mapping[str, str]) -> str:
    """The bucket's region; "" where the environment does not say."""
    return _first(environment, _REGIONS)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next(filter(None, map(environment.get, names)), "")


def as_s3(location: str) -> str | None:
    """A location in a bucket as `s3://…`; None for any other location.

    Args:
        location: As somebody wrote it: `s3://`, or by a name of Hadoop's, `s3a://` or `s3n://`.
    """
    if location.startswith("s3://"):
        return location
    return next((f"s3://{location[len(name) :]}" for name in _HADOOPS if location.startswith(name)), None)
