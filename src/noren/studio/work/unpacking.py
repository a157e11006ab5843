"""A release that came as one ZIP file: unpacked into the session's private folder, and nowhere else.

What a stranger packed is not trusted: names that lead out of the folder, links and a size beyond reason are refused
before anything is written, and what is not part of one release directory is not unpacked.
"""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from noren.errors import ReleaseError
from noren.progress import Stage
from noren.studio.texts import recipient as texts

DESCRIPTOR = "datapackage.json"
LARGEST = 32 << 30
"""Bytes that a release may have when it is unpacked."""
MOST_FILES = 10_000
RATIO = 500
"""Times that a file may grow; real ones grow by less than a hundred."""


def unpack_release(stage: Stage, place: str, folder: str, number: int) -> dict[str, str]:
    """Unpack the one release that a ZIP holds; the place of the release."""
    target = Path(folder) / f"unpacked-{number}"
    try:
        with zipfile.ZipFile(place) as packed, stage("Unpacking", None):
            inside, members = release_members(packed)
            home = target / _plain(inside.name or Path(place).stem)
            home.mkdir(mode=0o700, parents=True)
            for member, name in members:
                with packed.open(member) as source, (home / name).open("xb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise ReleaseError(texts.not_a_zip(Path(place).name), hint=texts.NOT_A_ZIP_HINT) from error
    return {"release": str(home)}


def release_members(packed: zipfile.ZipFile) -> tuple[PurePosixPath, list[tuple[zipfile.ZipInfo, str]]]:
    """The directory of the one release in a file, and what stands directly in it."""
    files = [one for one in packed.infolist() if not one.is_dir()]
    homes = {PurePosixPath(one.filename).parent for one in files if PurePosixPath(one.filename).name == DESCRIPTOR}
    if len(homes) != 1:
        raise ReleaseError(texts.releases_in_zip(len(homes)), hint=texts.NOT_A_ZIP_HINT)
    home = homes.pop()
    chosen = [one for one in files if PurePosixPath(one.filename).parent == home]
    names = [PurePosixPath(one.filename).name for one in chosen]
    links = any(stat.S_ISLNK(one.external_attr >> 16) for one in chosen)
    odd = home.is_absolute() or ".." in home.parts or len(set(names)) < len(names) or any("\\" in one for one in names)
    if links or odd or len(files) > MOST_FILES:
        raise ReleaseError(texts.ZIP_ODD, hint=texts.NOT_A_ZIP_HINT)
    grown = any(one.file_size > RATIO * max(1, one.compress_size) for one in chosen)
    if grown or sum(one.file_size for one in chosen) > LARGEST:
        raise ReleaseError(texts.ZIP_LARGE, hint=texts.NOT_A_ZIP_HINT)
    return home, list(zip(chosen, names, strict=True))


def _plain(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:60].strip(".") or "release"
