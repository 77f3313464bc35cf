"""What the rest of the engine knows of a Spark session and of a DataFrame: next to nothing.

It hands both on to the functions of `session` and asks them for nothing itself. So these protocols name one method
each, which every release of PySpark has. A SparkSession is a `Session[DataFrame]`. The tests' session without Spark is
one too, with frames of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Frame(Protocol):
    """Rows that a session holds: a DataFrame."""

    def count(self) -> int:
        """How many rows."""
        ...


FrameT = TypeVar("FrameT", bound=Frame)
_MadeT = TypeVar("_MadeT", bound=Frame, covariant=True)


class Session(Protocol[_MadeT]):
    """A SparkSession. The parameter is the kind of frame that it makes: queries return that kind."""

    def range(
        self,
        start: int,
        end: int | None = None,
        step: int = 1,
        numPartitions: int | None = None,  # noqa: N803
    ) -> _MadeT:
        """A frame with one column `id`: the numbers from `start` to before `end`."""
        ...


def spark_of(session: Session[Frame]) -> SparkSession:
    """The same session, for what calls Spark."""
    return cast("SparkSession", session)


def data_of(frame: Frame) -> DataFrame:
    """The same rows, for what calls Spark."""
    return cast("DataFrame", frame)


def as_made_by(session: Session[FrameT], frame: Any) -> FrameT:
    """A DataFrame, as the kind of frame that the session makes."""
    return cast("FrameT", frame)
