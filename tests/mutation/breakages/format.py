"""Breakages of files: log blocks, HFiles, Parquet footers, and of storage."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
HFILES = ("tests/unit/test_hfile.py", "tests/property/test_hfile.py")
COLUMN_STATS = ("tests/unit/test_column_stats.py",)
BLOCK_TIMES = ("tests/unit/test_block_times.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a header is believed in another block",
        f"{_ENGINE}/format/log_file/block_times.py",
        "return schema if schema.get(INSTANT_PROPERTY) == block.instant_time else None",
        "return schema",
        BLOCK_TIMES,
    ),
    Breakage(
        "a header is believed for another column",
        f"{_ENGINE}/format/log_file/block_times.py",
        "or schema.get(COLUMN_PROPERTY) != column:",
        "or not schema.get(COLUMN_PROPERTY):",
        BLOCK_TIMES,
    ),
    Breakage(
        "blocks of HFiles grow to a size at which Hudi's own reader loses records",
        f"{_ENGINE}/format/hfile/file.py",
        "BLOCK_SIZE: Final = 64 * 1024",
        "BLOCK_SIZE: Final = 1024 * 1024",
        HFILES,
    ),
    Breakage(
        "the checksums of unpacked blocks are not looked at",
        f"{_ENGINE}/format/hfile/blocks.py",
        "    if kind == _Checksum.NONE:\n        return",
        "    if kind >= _Checksum.NONE:\n        return",
        HFILES,
    ),
    Breakage(
        "an HFile that lacks entries is taken for whole",
        f"{_ENGINE}/format/hfile/file.py",
        "        if count != len(self):",
        "        if count > len(self):",
        HFILES,
    ),
    Breakage(
        "a lookup passes over the block before the first greater index key",
        f"{_ENGINE}/format/hfile/file.py",
        "if following is not None and following < prefix:",
        "if following is not None and following <= prefix + b'\\xff':",
        HFILES,
    ),
    Breakage(
        "a footer without bounds is a column of nulls",
        f"{_ENGINE}/format/parquet_footer.py",
        "        bounds = _scanned(file, path, kind)",
        "        bounds = None",
        COLUMN_STATS,
    ),
    Breakage(
        "bytes of a negative decimal are longer than Java's",
        f"{_ENGINE}/format/parquet_footer.py",
        "(number + (number < 0)).bit_length()",
        "number.bit_length()",
        COLUMN_STATS,
    ),
)
