"""File operations that write completely or not at all, sync to disk, and never overwrite by accident.

Whatever Noren keeps is written here at last: a file or a directory is made aside, its content is synced, it is renamed,
and the directory that holds the name is synced. So a power cut leaves what was there before, or all of what is new.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from noren.errors import DataError

DESCRIPTOR = "datapackage.json"
"""The file by which a directory is a release."""


def keep_out(path: Path, release: Path | None = None) -> None:
    """Refuse a path inside any release, or inside this one that is still to be made."""
    inside = path.resolve()
    folders = [inside, *inside.parents]
    if (release is not None and release.resolve() in folders) or any((one / DESCRIPTOR).is_file() for one in folders):
        hint = "A release must not change, and figures may be for the holder only: choose a path outside the release."
        raise DataError(f"{path} lies inside the release.", hint=hint)


def refuse_target(path: Path, release: Path | None = None) -> None:
    """Refuse to write into a release, or over an existing file or directory."""
    keep_out(path, release)
    if path.exists() or path.is_symlink():
        raise DataError(f"{path} exists already.", hint="Choose another name, or remove it first.")


def write_whole(target: Path, content: bytes, *, private: bool = False) -> Path:
    """Write a file under a temporary name and rename it. A private file is readable by its owner only; others follow
    the user's mask."""
    keep_out(target)
    handle, aside = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if not private:
            os.chmod(aside, 0o666 & ~_umask())
        publish_file(Path(aside), target)
    finally:
        Path(aside).unlink(missing_ok=True)
    return target


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a new file with these permissions; if writing fails, nothing is left."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


# ---------------------------------------------------------------------- what lasts


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    if os.name == "nt" and path.is_dir():
        return  # where directories cannot be opened, the system keeps their names by itself
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(work: Path) -> None:
    """Wait until all files of a directory, and their names, are on disk."""
    for path in sorted(work.iterdir()):
        sync(path)
    sync(work)


def publish_file(aside: Path, target: Path) -> None:
    """Rename a temporary file to its target, replacing an existing file."""
    sync(aside)
    os.replace(aside, target)
    sync(target.parent)


def publish_directory(work: Path, target: Path, published: Callable[[], bool]) -> None:
    """Rename a synced directory to its target, and undo it if the new name cannot be synced."""
    try:
        os.rename(work, target)
        sync(target.parent)
    except BaseException:
        with suppress(OSError):
            if published():
                os.rename(target, work)
        raise


def same_as(known: os.stat_result, path: Path) -> bool:
    """Return whether a file or directory is the same as before, perhaps under another name."""
    try:
        return os.path.samestat(known, path.stat())
    except FileNotFoundError:
        return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
