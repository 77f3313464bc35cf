"""Files: the only package of the engine that calls the file system, or a store of objects.

A table owns one `Storage`. It is picklable, so that Spark's workers reach the same files. Everything above it names
files by table-relative paths, and asks `Capabilities` where stores differ. Actions, table and timeline call it.

- `interface`: `Storage`, what a store states, and `FileInfo`, a file as a listing shows it. Begin here.
- `opening`: which storage a path is on.
- `local.LocalStorage`: a local path. `named_file`: whatever fails there names its file. `new_stream`: how one
  ends.
- `objects.ObjectStorage`: what buckets have in common, with `object_streams` and `object_errors`. `s3`, `azure`, `gcs`:
  each kind; the last two for looking. `aws`: what S3 is by name.
- `hdfs.HdfsStorage`; `hdfs_folder` how a file gets its name there, `hdfs_streams`, `hdfs_errors`. `remote`,
  `remote_stream`: what every store that is reached by a network has in common.
- `fenced.Fenced`: the locks that are asked before each change of a store. `forks`: no store is used in a fork.
- `probe`: whether a store keeps to conditions on a write.
- `folders`: what a folder of this machine says of changes in it, and a listing that is kept in few bytes.
- `at_once`: many requests at a time. `unchanged`: writing over what was read, and over nothing else.
"""

from hudi_assets.engine.storage.at_once import each
from hudi_assets.engine.storage.folders import Folder, Listing, list_again
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
    "Folder",
    "Listing",
    "LocalStorage",
    "NewFile",
    "Storage",
    "change",
    "each",
    "folder_storage",
    "list_again",
    "open_storage",
    "read_to_change",
    "write_over",
]
