"""The kinds of table in the matrix: who writes it, in which table version, with or without Hudi's metadata table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.interop.tables import hudi_options


@dataclass(frozen=True)
class Kind:
    """One column of the matrix. `release` is the Apache Hudi that writes beside us."""

    release: str
    version: int
    metadata: bool

    @property
    def name(self) -> str:
        return f"{self.release}-v{self.version}-metadata-{'on' if self.metadata else 'off'}"

    @property
    def completion_times(self) -> bool:
        """True where an instant has a completion time of its own, by which incremental ranges go."""
        return self.version >= 8

    @property
    def by_0_x(self) -> bool:
        """True where a table that Hudi made is merged by the rules of 0.x."""
        return self.release == "0.15.0"

    @property
    def readers(self) -> tuple[str, ...]:
        """The releases of Apache Hudi that read it right.

        1.2.0 writes the ordering field under a key that 0.15.0 does not look at: late rows win there
        (docs/explanation/merge.md).
        """
        return ("0.15.0", "1.2.0") if (self.release, self.version) == ("0.15.0", 6) else ("1.2.0",)


KINDS = tuple(
    Kind(release, version, metadata)
    for release, version in (("0.15.0", 6), ("1.2.0", 6), ("1.2.0", 8), ("1.2.0", 9))
    for metadata in (False, True)
)


@dataclass(frozen=True)
class Shape:
    """How a table is laid out."""

    log_blocks: str = "avro"
    partitioned: bool = True

    @property
    def name(self) -> str:
        return f"{self.log_blocks}-{'partitioned' if self.partitioned else 'flat'}"

    @property
    def buckets(self) -> int:
        """File groups in a partition: few, so that each has several log files."""
        return 1 if self.partitioned else 2


SHAPES = tuple(Shape(blocks, partitioned) for partitioned in (True, False) for blocks in ("avro", "parquet"))


def shape_of(kind: Kind, topic: str) -> Shape:
    """A cell's shape where the topic is shown on one: over the matrix every shape comes up."""
    return SHAPES[(KINDS.index(kind) + sum(map(ord, topic))) % len(SHAPES)]


def options(kind: Kind, shape: Shape, **more: str) -> dict[str, str]:
    """DataSource options of a writer of Apache Hudi for this kind of table."""
    of_kind = {
        "hoodie.write.table.version": str(kind.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": str(kind.metadata).lower(),
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.logfile.data.block.format": shape.log_blocks,
    }
    partition = "p" if shape.partitioned else ""
    return {**hudi_options(name="t", partition=partition, buckets=shape.buckets), **of_kind, **more}


def other(shape: Shape) -> Shape:
    """The same with the other log blocks."""
    return replace(shape, log_blocks="parquet" if shape.log_blocks == "avro" else "avro")
