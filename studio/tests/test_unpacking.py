"""A ZIP file that somebody packed: one release comes out of it, into the private folder, or nothing does."""

from __future__ import annotations

import contextlib
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from noren.errors import ReleaseError
from noren.progress import Meter
from noren_studio.work.unpacking import DESCRIPTOR, unpack_release


@contextlib.contextmanager
def stage(name: str, total: int | None) -> Iterator[Meter]:
    yield lambda done, *, note="", total=None: None


def packed(folder: Path, files: Mapping[str, str]) -> Path:
    target = folder / "given.zip"
    with zipfile.ZipFile(target, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return target


def test_the_release_and_nothing_else_comes_out(tmp_path: Path) -> None:
    given = packed(tmp_path, {f"ours/{DESCRIPTOR}": "{}", "ours/data.csv": "a", "notes.txt": "b", "ours/deep/c": "c"})
    (tmp_path / "private").mkdir()
    found = Path(unpack_release(stage, str(given), str(tmp_path / "private"), 1)["release"])
    assert found == tmp_path / "private" / "unpacked-1" / "ours"
    assert sorted(one.name for one in found.iterdir()) == ["data.csv", DESCRIPTOR]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.txt": "x"},
        {f"a/{DESCRIPTOR}": "{}", f"b/{DESCRIPTOR}": "{}"},
        {f"../out/{DESCRIPTOR}": "{}"},
        {f"/abs/{DESCRIPTOR}": "{}"},
        {f"a/{DESCRIPTOR}": "{}", "a/..\\..\\x": "x"},
        {f"a/{DESCRIPTOR}": "{}", "a/big": "0" * 3_000_000},
    ],
    ids=["empty", "no release", "two", "upwards", "absolute", "backslash", "bomb"],
)
def test_what_a_stranger_packed_oddly_writes_nothing(tmp_path: Path, files: Mapping[str, str]) -> None:
    given = tmp_path / "given.zip"
    with zipfile.ZipFile(given, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    with pytest.raises(ReleaseError) as error:
        unpack_release(stage, str(given), str(tmp_path), 1)
    assert error.value.hint
    assert [one.name for one in tmp_path.rglob("*")] == ["given.zip"]


def test_links_and_files_that_are_no_zip_are_refused(tmp_path: Path) -> None:
    given = tmp_path / "given.zip"
    link = zipfile.ZipInfo("a/passwd")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(given, "w") as file:
        file.writestr(f"a/{DESCRIPTOR}", "{}")
        file.writestr(link, "/etc/passwd")
    with pytest.raises(ReleaseError, match="links"):
        unpack_release(stage, str(given), str(tmp_path), 1)
    given.write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(ReleaseError, match="cannot be read as a ZIP file"):
        unpack_release(stage, str(given), str(tmp_path), 1)


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_stream_is_refused_and_nothing_of_it_stays(how: int, tmp_path: Path) -> None:
    given = tmp_path / "given.zip"
    with zipfile.ZipFile(given, "w", how) as file:
        file.writestr(f"a/{DESCRIPTOR}", "{}")
        file.writestr("a/data.csv", "".join(f"{number * 7919 % 10007},x\n" for number in range(4_000)))
        place = file.getinfo("a/data.csv").header_offset + 30 + len("a/data.csv")
        length = file.getinfo("a/data.csv").compress_size
    whole = given.read_bytes()
    refused = 0
    for at in range(place, place + length, length // 12):
        given.write_bytes(whole[:at] + bytes(255 - byte for byte in whole[at : at + 9]) + whole[at + 9 :])
        try:
            unpack_release(stage, str(given), str(tmp_path), 1)
        except ReleaseError:
            refused += 1
            assert [one.name for one in tmp_path.rglob("*")] == ["given.zip"]
    assert refused >= 12


@pytest.mark.parametrize("name", ["a/..", "a/" + "x" * 300, "a/DATA.csv"])
def test_names_that_no_disk_takes_are_refused(name: str, tmp_path: Path) -> None:
    given = packed(tmp_path, {f"a/{DESCRIPTOR}": "{}", "a/data.csv": "a", name: "x"})
    with pytest.raises(ReleaseError):
        unpack_release(stage, str(given), str(tmp_path), 1)
    assert [one.name for one in tmp_path.rglob("*")] == ["given.zip"]
