"""Breakages of files: log blocks, HFiles, Parquet footers, and of storage."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a header is believed in another block",
        f"{_ENGINE}/format/log_file/block_times.py",
        "return schema if schema.get(INSTANT_PROPERTY) == block.instant_time else None",
        "return schema",
        ("tests/unit/test_block_times.py::test_a_header_is_believed_where_it_is_whole_and_of_this_block_and_column",),
    ),
    Breakage(
        "a header is believed for another column",
        f"{_ENGINE}/format/log_file/block_times.py",
        "or schema.get(COLUMN_PROPERTY) != column:",
        "or not schema.get(COLUMN_PROPERTY):",
        ("tests/unit/test_block_times.py::test_a_header_is_believed_where_it_is_whole_and_of_this_block_and_column",),
    ),
    Breakage(
        "blocks of HFiles grow to a size at which Hudi's own reader loses records",
        f"{_ENGINE}/format/hfile/file.py",
        "BLOCK_SIZE: Final = 64 * 1024",
        "BLOCK_SIZE: Final = 1024 * 1024",
        ("tests/unit/test_hfile.py::test_blocks_stay_below_the_size_at_which_hudis_reader_loses_records",),
    ),
    Breakage(
        "the checksums of unpacked blocks are not looked at",
        f"{_ENGINE}/format/hfile/blocks.py",
        "    if kind == _Checksum.NONE:\n        return",
        "    if kind >= _Checksum.NONE:\n        return",
        ("tests/unit/test_hfile.py::test_no_flipped_bit_changes_an_entry",),
    ),
    Breakage(
        "an HFile that lacks entries is taken for whole",
        f"{_ENGINE}/format/hfile/file.py",
        "        if count != len(self):",
        "        if count > len(self):",
        ("tests/unit/test_hfile.py::test_a_file_whose_index_leaves_a_block_out_is_refused",),
    ),
    Breakage(
        "a lookup passes over the block before the first greater index key",
        f"{_ENGINE}/format/hfile/file.py",
        "if following is not None and following < prefix:",
        "if following is not None and following <= prefix + b'\\xff':",
        ("tests/unit/test_hfile.py::test_keys_with_a_prefix_are_found",),
    ),
    Breakage(
        "a footer without bounds is a column of nulls",
        f"{_ENGINE}/format/parquet_footer.py",
        "        bounds = _scanned(file, path, kind)",
        "        bounds = None",
        ("tests/unit/test_column_stats.py::test_a_column_of_dictionaries_is_one_of_its_values",),
    ),
    Breakage(
        "bytes of a negative decimal are longer than Java's",
        f"{_ENGINE}/format/parquet_footer.py",
        "(number + (number < 0)).bit_length()",
        "number.bit_length()",
        ("tests/unit/test_column_stats.py::test_bytes_of_decimals_are_as_short_as_javas",),
    ),
)
