"""Storage on a local path, or on a file system that is mounted like one."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO, Final

from hudi_assets.engine.errors import (
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    UnsupportedTable,
    machine_problem,
)
from hudi_assets.engine.storage.interface import SCRATCH, Capabilities, Fence, FileInfo, NewFile, leads_out
from hudi_assets.engine.storage.named_file import NamedWriter, naming

_CAPABILITIES: Final = Capabilities(
    put_if_absent=True,
    put_if_match=False,
    links=True,
    exact_times=True,
    at_once=1,
    folder_times=True,
    file_lock=True,
)
_NOTHING_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(frozen=True)
class LocalStorage:
    """A local (or locally mounted) directory."""

    base: str
    scratch: str = f"{SCRATCH}/tmp"

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def _at(self, path: str) -> Path:
        return Path(self._name(path))

    def _name(self, path: str) -> str:
        if leads_out(path):
            raise CorruptTable("A file name leads out of the table.", where=f"{self.base}: {path}")
        return f"{self.base}/{path}" if path else self.base

    def uri(self, path: str) -> str:
        return str(self._at(path))

    def local_path(self, path: str) -> str:
        return str(self._at(path))

    def exists(self, path: str) -> bool:
        return _stat(self._name(path)) is not None

    def is_directory(self, path: str) -> bool:
        found = _stat(self._name(path))
        return found is not None and S_ISDIR(found.st_mode)

    def list_files(self, directory: str) -> list[FileInfo]:
        return self.list_folder(directory)[0]

    def list_folder(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        prefix = f"{directory}/" if directory else ""
        files: list[FileInfo] = []
        folders: list[str] = []
        try:
            entries = os.scandir(self._name(directory))
        except FileNotFoundError:
            return files, folders
        with entries:
            for entry in entries:
                path = prefix + entry.name
                try:
                    if entry.is_file(follow_symlinks=False):
                        files.append(FileInfo.of(path, None, entry.stat()))
                    elif entry.is_symlink():
                        self._add_link(directory, path, files, folders)
                    elif entry.is_dir():
                        folders.append(path)
                except FileNotFoundError:
                    continue
        folders.sort()
        return files, folders

    def _add_link(self, directory: str, path: str, files: list[FileInfo], folders: list[str]) -> None:
        """Put what a symbolic link leads to into a listing; the link itself where that is not there."""
        name = self._name(path)
        try:
            target = self._link_target(directory, os.readlink(name))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            target = None  # the file has taken the link's place since it was listed
        try:
            stat = os.stat(name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
                raise
            if os.path.islink(name):
                files.append(FileInfo(path, 0, target, links=0, broken=True))
            return
        if S_ISDIR(stat.st_mode):
            folders.append(path)
        elif S_ISREG(stat.st_mode):
            files.append(FileInfo.of(path, target, stat))

    def _link_target(self, directory: str, text: str) -> str:
        base, folder = os.path.realpath(self.base), os.path.realpath(self._at(directory))
        target = os.path.realpath(os.path.join(folder, text))
        # A partition may itself be a link to another disk; what it holds then lies inside it.
        if not target.startswith((f"{base}/", f"{folder}/")):
            return target
        if not os.path.isabs(text):
            return os.path.normpath(os.path.join(directory, text))
        if target.startswith(f"{base}/"):
            return os.path.relpath(target, base)
        return os.path.join(directory, os.path.relpath(target, folder))

    def list_directories(self, directory: str) -> list[str]:
        prefix = f"{directory}/" if directory else ""
        try:
            with os.scandir(self._name(directory)) as entries:
                return sorted(prefix + e.name for e in entries if _is_directory(e))
        except FileNotFoundError:
            return []

    def size(self, path: str) -> int:
        return os.path.getsize(self._name(path))

    def modified_ms(self, path: str) -> int | None:
        try:
            return os.stat(self._name(path)).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return None

    def read(self, path: str) -> bytes:
        return self._at(path).read_bytes()

    def read_with_version(self, path: str) -> tuple[bytes, str]:
        raise self._no_versions()

    def replace_if(self, path: str, data: bytes, version: str) -> str:
        raise self._no_versions()

    def _no_versions(self) -> UnsupportedTable:
        return UnsupportedTable("A file system cannot write a file only where it is unchanged.", where=self.base)

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        with open(self._name(path), "rb") as file:
            file.seek(offset)
            return file.read(length)

    def open(self, path: str) -> BinaryIO:
        return open(self._at(path), "rb")

    def create(self, path: str, data: bytes) -> None:
        try:
            self._create(path, data)
        except OSError as error:
            raise machine_problem(error, f"{self.base}: {path}") or error from error

    def _create(self, path: str, data: bytes) -> None:
        target = self._at(path)
        # An empty file (a marker) is whole at once; any other is written elsewhere, and shown when it is whole.
        scratch = self._write_scratch(data) if data else None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if scratch is None:
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            else:
                # link() fails where rename() would overwrite: whole content and exclusive at once.
                os.link(scratch, target)
        except FileExistsError:
            raise _taken(f"{self.base}: {path}") from None
        finally:
            if scratch is not None:
                os.unlink(scratch)
        _sync(target.parent)

    def touch(self, path: str) -> None:
        target = self._at(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        except OSError as error:
            raise machine_problem(error, f"{self.base}: {path}") or error from error

    def replace(self, path: str, data: bytes) -> None:
        target = self._at(path)
        with naming(target):
            scratch = self._write_scratch(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            self._forget_checksum(target)
            os.replace(scratch, target)
            _sync(target.parent)

    def _write_scratch(self, data: bytes) -> Path:
        folder = self._at(self.scratch)
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / uuid.uuid4().hex
        try:
            with open(scratch, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            scratch.unlink(missing_ok=True)  # a full disk is no place for half a file
            raise
        return scratch

    def open_new(self, path: str) -> NewFile:
        target = self._at(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._forget_checksum(target)
        return NamedWriter(target)

    def publish(self, staged: str, path: str) -> None:
        source, target = self._at(staged), self._at(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._forget_checksum(target)
            # As in `create`: link() fails where rename() would overwrite.
            os.link(source, target)
        except FileExistsError:
            raise _taken(f"{self.base}: {path}") from None
        except OSError as error:
            if error.errno == errno.EXDEV:
                self._publish_elsewhere(source, target, path)
            else:
                raise machine_problem(error, f"{self.base}: {path}") or error from error
        os.unlink(source)

    def _publish_elsewhere(self, source: Path, target: Path, path: str) -> None:
        """Where a partition is a link to another disk: the bytes go there under a name that no reader takes."""
        beside = target.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            shutil.copyfile(source, beside)
            _sync(beside)
            os.link(beside, target)
        except FileExistsError:
            raise _taken(f"{self.base}: {path}") from None
        except OSError as error:
            raise machine_problem(error, f"{self.base}: {path}") or error from error
        finally:
            beside.unlink(missing_ok=True)

    def hard_link(self, target: str, link: str) -> None:
        os.link(self._name(target), self._name(link))

    def symlink(self, target: str, link: str) -> None:
        folder = os.path.realpath(self._at(link).parent)
        os.symlink(os.path.relpath(os.path.realpath(self._at(target)), folder), self._at(link))

    def own(self, link: str) -> None:
        folder = self._at(self.scratch)
        folder.mkdir(parents=True, exist_ok=True)
        scratch, place = folder / uuid.uuid4().hex, self._at(link)
        try:
            os.link(place.resolve(), scratch)
        except OSError:  # a file system without hard links
            shutil.copyfile(place, scratch)
            _sync(scratch)
        os.replace(scratch, place)
        _sync(place.parent)

    def copy(self, source: str, target: str) -> None:
        name = self._at(target)
        with naming(name), open(self._at(source), "rb") as reader, open(name, "xb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())

    def sync(self, path: str) -> None:
        _sync(self._at(path))

    def delete(self, path: str) -> bool:
        target = self._at(path)
        self._forget_checksum(target)
        try:
            os.unlink(target)
        except FileNotFoundError:
            return False
        return True

    def take_back(self, path: str) -> None:
        self.delete(path)

    def _forget_checksum(self, target: Path) -> None:
        # Java's checksummed local file system refuses a file whose `.crc` does not match.
        target.with_name(f".{target.name}.crc").unlink(missing_ok=True)

    def delete_tree(self, directory: str) -> None:
        shutil.rmtree(self._at(directory), ignore_errors=True)

    def make_folder(self, directory: str) -> None:
        self._at(directory).mkdir(parents=True, exist_ok=True)

    def fenced(self, fence: Fence) -> AbstractContextManager[None]:
        del fence
        return nullcontext()

    def renew_fences(self) -> None:
        return None

    def check_writable(self) -> None:
        folder = Path(self.base)
        while not folder.exists():
            folder = folder.parent
        try:
            # Without a name where the system can: a killed process leaves nothing.
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            if error.errno == errno.EROFS:
                hint = "Mount this file system for writing. What only looks (status, validate, read, …) needs no more."
            else:
                hint = "Give this user write permission, or run as the table's owner."
            raise EnvironmentProblem(
                f"The directory cannot be written: {error.strerror}.", where=str(folder), hint=hint
            ) from error


def _taken(where: str) -> Conflict:
    hint = "Look at the table again before going on."
    return Conflict("Another process created this file first.", where=where, hint=hint)


def _stat(name: str) -> os.stat_result | None:
    """What a name leads to; None where nothing is there. What a closed folder hides may be there: that is refused."""
    try:
        return os.stat(name)
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        if error.errno != errno.EACCES:
            raise
        folders = [str(folder) for folder in reversed(Path(name).parents)]
        by_whom = os.access in os.supports_effective_ids
        closed = next((f for f in folders if not os.access(f, os.X_OK, effective_ids=by_whom)), folders[-1])
        raise EnvironmentProblem(
            f"This user may not enter a folder, and so not look for {name}: {error.strerror}.",
            where=closed,
            hint="Give this user permission to enter it (chmod o+x, setfacl -m u:USER:x), or run as the table's owner.",
        ) from error


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False  # a symbolic link to itself
        raise


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(handle)
    finally:
        os.close(handle)
