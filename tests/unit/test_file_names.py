"""A partition's files by their names, told together and one by one."""

from __future__ import annotations

import pytest

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.layout.v8 import LayoutV8

T = "20260101000000000"
LOG, BASE = f".f_{T}.log.3_1-0-1", f"f_0-1-0_{T}.parquet"


@pytest.mark.parametrize("layout", [LayoutV6(), LayoutV8()])
@pytest.mark.parametrize("partition", ["", "p", "a=1/b=2"])
def test_together_as_one_by_one(layout: LayoutV6 | LayoutV8, partition: str) -> None:
    folder = f"{partition}/" if partition else ""
    names = [LOG, f".f_{T}.log.12", ".hoodie_partition_metadata", BASE, f".g_{T}.log.1_0-0-0", f"{LOG}.crc", "_SUCCESS"]
    files = [FileInfo(folder + name, size) for size, name in enumerate(names)]
    files.append(FileInfo(f"{folder}.f_{T}.log.4_1-0-1", 7, link_target=f"{folder}{LOG}"))
    together = layout.parse_files(files, partition)
    apart = [layout.parse_log_file(f, partition) or layout.parse_base_file(f, partition) for f in files]
    assert together == [one for one in apart if one is not None]
    assert together == [one for f in files if (one := layout.parse_file(f, partition)) is not None]
    assert together[0] == LogFile(folder + LOG, partition, "f", T, 3, "1-0-1", 0, folder + LOG)
    assert together[1] == LogFile(f"{folder}.f_{T}.log.12", partition, "f", T, 12, "", 1, f"{folder}.f_{T}.log.12")
    assert together[2] == BaseFile(folder + BASE, partition, "f", T, "0-1-0", 3)
    assert [one.original for one in together if isinstance(one, LogFile)][-1] == folder + LOG
    assert len(together) == 5


def test_files_that_are_refused_are_refused_among_others() -> None:
    with pytest.raises(CorruptTable, match="leads out of the table"):
        LayoutV6().parse_files([FileInfo(f"p/{LOG}", 1, link_target="/elsewhere")], "p")
    with pytest.raises(UnsupportedTable, match="ORC base files"):
        LayoutV6().parse_files([FileInfo(f"p/{LOG}", 1), FileInfo(f"p/f_0-1-0_{T}.orc", 1)], "p")
