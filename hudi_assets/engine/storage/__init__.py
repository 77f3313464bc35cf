"""Files: the only package of the engine that calls the file system, or a store of objects.

A table owns one `Storage`. It is picklable, so that Spark's workers reach the same files. Everything above it names
files by table-relative paths, and asks `capabilities` where stores differ.

- `interface`: `Storage`, what a store states (`Capabilities`), and `FileInfo`, a file as a listing shows it.
- `local`: storage on a local path. `named_file`: whatever fails there names its file. `new_stream`: how a new one ends.
- `hdfs`: HDFS; `hdfs_folder` how a file gets its name there, `hdfs_streams`, `hdfs_errors`.
- `azure`, `gcs`: for looking.
- `fenced`: the locks that are asked before each change of a store.
- `probe`: whether a store keeps to conditions on a write.
- `at_once`: many requests at a time, where a store has to be waited for.
- `unchanged`: writing over what was read, and over nothing else.
- `aws`: what S3 is by name, which Spark and catalogs ask too.
- `opening`: which storage a path is on.
"""

from hudi_assets.engine.storage.at_once import each
from hudi_assets.engine.storage.interface import LOCKS, SCRATCH, Capabilities, Fence, FileInfo, NewFile, Storage
from hudi_assets.engine.storage.local import LocalStorage
from hudi_assets.engine.storage.opening import folder_storage, open_storage
from hudi_assets.engine.storage.unchanged import change, read_to_change, write_over

__all__ = [
    "LOCKS",
    "SCRATCH",
    "Capabilities",
    "Fence",
    "FileInfo",
    "LocalStorage",
    "NewFile",
    "Storage",
    "change",
    "each",
    "folder_storage",
    "open_storage",
    "read_to_change",
    "write_over",
]
