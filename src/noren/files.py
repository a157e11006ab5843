"""Writing a file for a person: whole or not at all, never into a release, never over something by accident."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from noren.errors import DataError

DESCRIPTOR = "datapackage.json"
"""The file by which a directory is a release."""


def keep_out(path: Path, release: Path | None = None) -> None:
    """Refuse a place inside any release, or inside this one that is still to be made."""
    inside = path.resolve()
    folders = [inside, *inside.parents]
    if (release is not None and release.resolve() in folders) or any((one / DESCRIPTOR).is_file() for one in folders):
        hint = "A release stays as it was published, and figures may be for the holder only: put it elsewhere."
        raise DataError(f"{path} lies inside the release.", hint=hint)


def refuse_target(path: Path, release: Path | None = None) -> None:
    """Refuse to write into a release, or over anything."""
    keep_out(path, release)
    if path.exists() or path.is_symlink():
        raise DataError(f"{path} exists already.", hint="Choose another name, or remove it first.")


def write_whole(target: Path, content: bytes, *, private: bool = False) -> Path:
    """Write a file aside and rename it. A private one is its owner's alone, others are as the user's mask says."""
    keep_out(target)
    handle, aside = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if not private:
            os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, target)
    finally:
        Path(aside).unlink(missing_ok=True)
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
