"""Files: the only package of the engine that calls the file system.

A table owns one `Storage`. It is picklable, so that Spark's workers reach the same files. Everything above it names
files by table-relative paths. There are local paths for now. An object store, or HDFS, is another class with the
methods of `Storage`, and a line in `opening`.

- `interface`: `Storage`, and `FileInfo`, a file as a listing shows it.
- `local`: storage on a local path. `named_file`: whatever fails there names its file.
- `opening`: which storage a path is on.
"""

from hudi_assets.engine.storage.interface import SCRATCH, FileInfo, Storage
from hudi_assets.engine.storage.local import LocalStorage
from hudi_assets.engine.storage.opening import folder_storage, open_storage

__all__ = ["SCRATCH", "FileInfo", "LocalStorage", "Storage", "folder_storage", "open_storage"]
