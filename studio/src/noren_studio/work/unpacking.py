"""Unpacks a release from a ZIP file into the session's private folder, and nowhere else.

The file may be hostile. Names that lead out of the folder, links and excessive sizes are refused before anything is
written. Files outside the one release directory are not unpacked.
"""

from __future__ import annotations

import errno
import lzma
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from noren.errors import ReleaseError
from noren.progress import Stage
from noren_studio.texts import recipient as texts

DESCRIPTOR = "datapackage.json"
LARGEST = 32 << 30
"""Most bytes of an unpacked release."""
MOST_FILES = 10_000
LONGEST = 100
"""Most characters in the name of a file."""
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, RuntimeError, ValueError)
NO_STREAM = (None, errno.EINVAL)
"""Values of `errno` in the OSError for an invalid compressed stream; bzip2 sets none."""
RATIO = 500
"""Largest ratio of unpacked to packed size; releases have less than a hundred."""


def unpack_release(stage: Stage, place: str, folder: str, number: int) -> dict[str, str]:
    """Unpack the one release in a ZIP file, and return its path. A refused file leaves nothing behind."""
    target = Path(folder) / f"unpacked-{number}"
    try:
        with zipfile.ZipFile(place) as packed, stage("Unpacking", None):
            inside, members = release_members(packed)
            home = target / _plain(inside.name or Path(place).stem)
            home.mkdir(mode=0o700, parents=True)
            for member, name in members:
                with packed.open(member) as source, (home / name).open("xb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        damaged = isinstance(error, DAMAGED) or (isinstance(error, OSError) and error.errno in NO_STREAM)
        if damaged:
            raise ReleaseError(texts.not_a_zip(Path(place).name), hint=texts.NOT_A_ZIP_HINT) from error
        raise
    return {"release": str(home)}


def release_members(packed: zipfile.ZipFile) -> tuple[PurePosixPath, list[tuple[zipfile.ZipInfo, str]]]:
    """Return the directory of the one release in a ZIP file, and the files directly in it; raise if anything is odd."""
    files = [one for one in packed.infolist() if not one.is_dir()]
    homes = {PurePosixPath(one.filename).parent for one in files if PurePosixPath(one.filename).name == DESCRIPTOR}
    if len(homes) != 1:
        raise ReleaseError(texts.releases_in_zip(len(homes)), hint=texts.NOT_A_ZIP_HINT)
    home = homes.pop()
    chosen = [one for one in files if PurePosixPath(one.filename).parent == home]
    names = [PurePosixPath(one.filename).name for one in chosen]
    links = any(stat.S_ISLNK(one.external_attr >> 16) for one in chosen)
    same = len({name.casefold() for name in names}) < len(names)  # some disks take them for one file
    odd = home.is_absolute() or ".." in home.parts or same or any(map(_leads_elsewhere, names))
    if links or odd or len(files) > MOST_FILES:
        raise ReleaseError(texts.ZIP_ODD, hint=texts.NOT_A_ZIP_HINT)
    grown = any(one.file_size > RATIO * max(1, one.compress_size) for one in chosen)
    if grown or sum(one.file_size for one in chosen) > LARGEST:
        raise ReleaseError(texts.ZIP_LARGE, hint=texts.NOT_A_ZIP_HINT)
    return home, list(zip(chosen, names, strict=True))


def _leads_elsewhere(name: str) -> bool:
    return name in ("", ".", "..") or "\\" in name or len(name) > LONGEST


def _plain(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:60].strip(".") or "release"
