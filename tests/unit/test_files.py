"""What is written lasts: its content is on the disk before it has its name, and its name before anybody is told.

The system calls are read with strace where it may be used, and from the `os` module everywhere: every file is synced
once, then its directory, then it is renamed, then the directory that holds the name is synced.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import noren as nr
from noren.files import write_whole
from noren.release.export import export
from noren.secret import SigningKey

TABLE = pl.DataFrame(
    {
        "id": [f"p{i}" for i in range(60)],
        "town": ["Ulm", "Bonn", "Kiel"] * 20,
        "ill": ["flu", "cold", "gout", "burn"] * 15,
    }
)
POLICY = """
[attributes]
id = "identifier"
town = "plain"
ill = "sensitive"
[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 2
[dependence]
most = 1.0
[randomness]
record_key = "id"
secret = "people.key"
"""
Call = tuple[str, str, str]
"""What was done (sync, rename), to which path, and under which name it is then."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What is synced and renamed, in order."""
    log: list[Call] = []
    opened: dict[int, str] = {}
    real_open, real_sync = os.open, os.fsync

    def open_(path, *rest, **more):
        handle = real_open(path, *rest, **more)
        opened[handle] = os.path.realpath(path)
        return handle

    def sync(handle):
        number = handle if isinstance(handle, int) else handle.fileno()
        real_sync(number)
        log.append(("sync", opened[number], ""))

    def renaming(real: Callable) -> Callable:
        def call(old, new, **more):
            real(old, new, **more)
            log.append(("rename", os.path.realpath(os.path.dirname(old)) + "/" + os.path.basename(old), str(new)))

        return call

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", renaming(os.rename))
    monkeypatch.setattr(os, "replace", renaming(os.replace))
    return log


def holder(folder: Path) -> Path:
    nr.Secret.create(folder / "people.key")
    (folder / "policy.toml").write_text(POLICY)
    TABLE.write_csv(folder / "people.csv")
    return folder / "policy.toml"


def demand_lasting_directory(log: list[Call], target: Path) -> int:
    """The directory and each of its files were synced once before it had its name, and its parent after; where."""
    at = next(i for i, (what, _, name) in enumerate(log) if what == "rename" and Path(name) == target)
    aside = log[at][1]
    before = [path for what, path, _ in log[:at] if what == "sync" and path.startswith(aside)]
    assert sorted(before) == sorted([aside, *(f"{aside}/{path.name}" for path in target.iterdir())])
    assert before[-1] == aside, "the names in the directory after the files"
    assert ("sync", str(target.parent), "") in log[at:]
    return at


def demand_lasting_file(log: list[Call], target: Path) -> int:
    """The file was synced once before it had its name, and its directory after."""
    at = max(i for i, (what, _, name) in enumerate(log) if what == "rename" and Path(name) == target)
    assert [call for call in log if call[1] == log[at][1]] == [("sync", log[at][1], ""), log[at]]
    assert ("sync", str(target.parent), "") in log[at:]
    return at


def demand_lasting_run(log: list[Call], target: Path, register: Path) -> None:
    """The release lasts, and the register knew of it before it had its name."""
    assert demand_lasting_file(log, register) < demand_lasting_directory(log, target)
    between = log[demand_lasting_file(log, register) : demand_lasting_directory(log, target)]
    assert ("sync", str(register.parent), "") in between


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_and_its_register_last(form, tmp_path, calls):
    policy, key = holder(tmp_path), SigningKey.create(tmp_path / "sign.key")
    calls.clear()
    target = tmp_path / "new" / "parents" / "release"
    nr.anonymize(TABLE, policy, to=target, file_format=form, sign=key)
    assert (target / "datapackage.sig").exists()
    demand_lasting_run(calls, target, tmp_path / "people.key.register")
    named = next(i for i, call in enumerate(calls) if Path(call[2]) == target)
    for parent in (tmp_path, tmp_path / "new"):
        assert ("sync", str(parent), "") in calls[:named], "so that the new directories last"


def test_a_saved_release_lasts(tmp_path, calls):
    made = nr.anonymize(TABLE.drop("id"), nr.Policy(attributes={"town": "plain", "ill": "plain"}))
    demand_lasting_directory(calls, made.save(tmp_path / "release") and tmp_path / "release")


def test_a_written_file_lasts(tmp_path, calls):
    write_whole(tmp_path / "page.html", b"text")
    demand_lasting_file(calls, tmp_path / "page.html")
    assert [what for what, _, _ in calls] == ["sync", "rename", "sync"]


def test_an_exported_table_lasts(tmp_path, calls):
    policy = nr.Policy(
        attributes={"town": "plain", "ill": nr.sensitive()}, require=[nr.models.FrequencyLDiversity(on="ill", l=2)]
    )
    made = nr.anonymize(TABLE.drop("id"), policy)
    export(made, tmp_path / "wide.csv", "wide-csv")
    demand_lasting_file(calls, tmp_path / "wide.csv")


def test_keys_last(tmp_path, calls):
    nr.Secret.create(tmp_path / "people.key")
    SigningKey.create(tmp_path / "sign.key")
    for name in ("people.key", "sign.key", "sign.key.pub"):
        at = calls.index(("sync", str(tmp_path / name), ""))
        assert ("sync", str(tmp_path), "") in calls[at:]
    demand_lasting_file(calls, tmp_path / "people.key.register")


LINE = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)\) += 0$")


def read_trace(text: str, folder: Path) -> list[Call]:
    """What strace saw of files below a folder."""
    log: list[Call] = []
    for line in text.splitlines():
        found = LINE.match(line)
        if found is None or str(folder) not in line:
            continue
        if "sync" in found[1]:
            path = re.search(r"<(.*)>", found[2])
            assert path is not None
            log.append(("sync", path[1], ""))
        else:
            old, new = re.findall(r'"([^"]*)"', found[2])
            log.append(("rename", old, new))
    return log


def can_trace(folder: Path) -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", folder / "try", "true"], capture_output=True, check=False).returncode == 0


def test_the_system_is_told_to_keep_a_run(tmp_path):
    if not can_trace(tmp_path):
        pytest.skip("no strace here, or it may not be used")
    policy, target, trace = holder(tmp_path), tmp_path / "release", tmp_path / "trace"
    watched = "trace=fsync,fdatasync,rename,renameat,renameat2"
    code = "import sys, noren; noren.anonymize(sys.argv[1], sys.argv[2], to=sys.argv[3])"
    subprocess.run(
        [
            *("strace", "-f", "-y", "-s", "4096", "-e", watched, "-o", trace),
            *(sys.executable, "-c", code, tmp_path / "people.csv", policy, target),
        ],
        check=True,
        capture_output=True,
    )
    demand_lasting_run(read_trace(trace.read_text(), tmp_path), target, tmp_path / "people.key.register")
