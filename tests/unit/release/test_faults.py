"""A run that is interrupted at any file operation leaves a whole release or none, and nothing half-written beside it.

Python announces its file operations to audit hooks, so a fault can be raised at each of them in turn; Arrow's
writers are wrapped besides, because they write by themselves.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.errors import ReleaseError, SecretError
from noren.secret import DrawnColumn, KeyRule, Publication, Register
from tests.leaks.world import use_buckets

TABLE = pa.table(
    {
        "id": [f"p{i}" for i in range(60)],
        "age": [20 + i % 30 for i in range(60)],
        "ill": [("flu", "cold", "gout", "burn")[i % 4] for i in range(60)],
        "signs": [("cough", "cough;fever", "fever", "")[i % 4] for i in range(60)],
    }
)
DECOYS = """
[attributes]
id = "identifier"
age = "quasi-identifier"
ill = "sensitive"
signs = "plain"
[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 2
[dependence]
most = 1.0
"""
MEMOISED = DECOYS + '[randomness]\nrecord_key = "id"\nsecret = "secret.key"\n'
GROUPS = DECOYS + '[method]\nname = "anatomy"\n'
TERMS = """
[attributes]
id = "identifier"
age = "quasi-identifier"
ill = "identifier"
signs = { role = "quasi-sensitive", separator = ";", knowledge = "knowledge.csv" }
[[require]]
model = "qs-diversity"
on = "signs"
c = 2.0
l = 2
[method]
name = "suppress"
k = 5
nodes = 20
[people]
key = "id"
"""
POLICIES = {"decoys": DECOYS, "memoised": MEMOISED, "anatomy": GROUPS, "terms": TERMS}
FAULTS: dict[str, Callable[[], BaseException]] = {
    "full disk": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "interrupt": KeyboardInterrupt,
}
WRITING = {"os.rename", "os.mkdir", "os.chmod", "os.remove", "os.rmdir", "os.listdir", "os.scandir", "shutil.rmtree"}


class Trap:
    """Raises at the k-th file operation below a folder, once; counts them all."""

    def __init__(self) -> None:
        self.folder = ""
        self.at = 0
        self.seen = 0
        self.make: Callable[[], BaseException] | None = None

    def arm(self, folder: Path, at: int, make: Callable[[], BaseException]) -> None:
        self.folder, self.at, self.seen, self.make = str(folder), at, 0, make

    def disarm(self) -> None:
        self.make = None

    @property
    def sprung(self) -> bool:
        return self.make is None

    def step(self) -> None:
        if self.make is None:
            return
        self.seen += 1
        if self.seen == self.at:
            make, self.make = self.make, None
            raise make()

    def hear(self, event: str, details: tuple[Any, ...]) -> None:
        if self.make is None or (event != "open" and event not in WRITING):
            return
        if details and str(details[0]).startswith(self.folder):
            self.step()


TRAP = Trap()
sys.addaudithook(TRAP.hear)


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    """The trap, also inside Arrow's writers."""

    def wrapped(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            TRAP.step()
            made = real(*arguments, **options)
            TRAP.step()
            return made

        return call

    class Writer(pv.CSVWriter):
        write_table = wrapped(pv.CSVWriter.write_table)
        close = wrapped(pv.CSVWriter.close)

    monkeypatch.setattr(pv, "CSVWriter", Writer)
    monkeypatch.setattr(pv, "write_csv", wrapped(pv.write_csv))
    monkeypatch.setattr(pq, "write_table", wrapped(pq.write_table))
    monkeypatch.setattr(pq.ParquetWriter, "write_table", wrapped(pq.ParquetWriter.write_table))
    monkeypatch.setattr(pq.ParquetWriter, "close", wrapped(pq.ParquetWriter.close))
    monkeypatch.setattr(os, "fsync", wrapped(os.fsync))
    monkeypatch.setattr(Path, "write_text", wrapped(Path.write_text))
    yield TRAP
    TRAP.disarm()


def holder(folder: Path, way: str) -> Path:
    (folder / "knowledge.csv").write_text("label,term\na,cough\na,fever\nb,cough\nb,fever\nc,\n")
    (folder / "policy.toml").write_text(POLICIES[way])
    if way == "memoised":
        nr.Secret.create(folder / "secret.key")
    return folder / "policy.toml"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("way", "kind"), [("decoys", "parquet"), ("memoised", "csv"), ("anatomy", "csv"), ("terms", "parquet")]
)
def test_a_fault_at_any_file_operation_leaves_nothing(way, kind, fault, tmp_path, trap, monkeypatch):
    if way == "decoys":
        use_buckets(monkeypatch, 20)
    policy = nr.Policy.load(holder(tmp_path, way))
    public = tmp_path / "public"
    kept = sorted(path.name for path in tmp_path.iterdir())
    for at in range(1, 400):
        target = public / "deep" / "release"
        trap.arm(tmp_path, at, FAULTS[fault])
        try:
            nr.anonymize(TABLE, policy, to=target, file_format=kind)
        except (OSError, KeyboardInterrupt, nr.NorenError):
            trap.disarm()
            assert not target.exists()
            assert not public.exists(), f"operation {at} left {list(public.rglob('*'))}"
            assert sorted(path.name for path in tmp_path.iterdir()) == kept
            if way == "memoised":
                Register.open(tmp_path / "secret.key")  # whole, at every moment
            continue
        sprung = trap.sprung
        trap.disarm()
        assert nr.open_release(target).records == 60
        if not sprung:  # it saw all of its operations; otherwise it got over the fault
            break
        shutil.rmtree(public)
    assert at > 8, "the trap must have been sprung"
    assert trap.seen < trap.at


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_saving_leaves_nothing(fault, tmp_path, trap):
    made = nr.anonymize(TABLE, nr.Policy.load(holder(tmp_path, "anatomy")))
    for at in range(1, 200):
        trap.arm(tmp_path, at, FAULTS[fault])
        try:
            made.save(tmp_path / "release", "csv")
        except (OSError, KeyboardInterrupt, nr.NorenError):
            trap.disarm()
            assert sorted(p.name for p in tmp_path.iterdir()) == ["knowledge.csv", "policy.toml"]
            continue
        sprung = trap.sprung
        trap.disarm()
        assert nr.open_release(tmp_path / "release").records == 60
        if not sprung:
            break
        shutil.rmtree(tmp_path / "release")
    assert at > 8


KILLED = """
import os, signal, sys
import noren as nr
from tests.unit.release import test_faults as faults
count = 0
def hear(event, details):
    global count
    if event in ("open", *faults.WRITING) and details and str(details[0]).startswith(sys.argv[3]):
        count += 1
        if count == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hear)
nr.anonymize(faults.TABLE, sys.argv[1], to=sys.argv[3] + "/release")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
@pytest.mark.parametrize("at", [2, 4, 6, 8])
def test_a_killed_run_leaves_nothing_that_opens_and_does_not_stand_in_the_way(at, tmp_path):
    policy = holder(tmp_path, "decoys")
    public = tmp_path / "public"
    public.mkdir()
    command = [sys.executable, "-c", KILLED, str(policy), str(at), str(public)]
    root = Path(__file__).parents[3]
    ended = subprocess.run(command, cwd=root, capture_output=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (public / "release").exists()
    for left in public.iterdir():
        assert left.name.startswith(".release-")
        assert left.suffix == ".part"
        assert left.stat().st_mode & 0o077 == 0, "what is left can be read by its owner only"
    made = nr.anonymize(TABLE, policy, to=public / "release")
    assert nr.open_release(made.path).records == 60


def test_a_release_with_any_part_missing_or_cut_off_does_not_open(tmp_path):
    """What a copy that was broken off leaves."""
    for way, kind in (("anatomy", "csv"), ("terms", "parquet")):
        folder = tmp_path / way
        folder.mkdir()
        whole = nr.anonymize(TABLE, holder(folder, way), to=folder / "whole", file_format=kind).path
        for name in [path.name for path in whole.iterdir()]:
            for cut in (None, 0, 10, -1):
                broken = Path(shutil.copytree(whole, folder / f"broken-{name}-{cut}"))
                content = (broken / name).read_bytes()
                (broken / name).unlink()
                if cut is not None:
                    (broken / name).write_bytes(content[: cut if name != "datapackage.json" or cut != -1 else -3])
                with pytest.raises(ReleaseError):
                    nr.open_release(broken)


# ---------------------------------------------------------------- the register and the secret

ENTRY = DrawnColumn(("a", "b", "c"), "uniform-decoys", 2, 1.0)


def release_of(name: str) -> Publication:
    return Publication(KeyRule("id"), {name: ENTRY}, people=np.arange(5, dtype=np.uint64))


def registered(folder: Path) -> set[str]:
    return set(Register.open(folder / "s.key").contents.drawn)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_the_register_is_written_keeps_the_old_one(fault, tmp_path, trap):
    nr.Secret.create(tmp_path / "s.key")
    Register.open(tmp_path / "s.key").record(release_of("old"))
    for at in range(1, 40):
        register = Register.open(tmp_path / "s.key")
        trap.arm(tmp_path, at, FAULTS[fault])
        try:
            register.record(release_of("old"))
        except (OSError, KeyboardInterrupt, SecretError):
            trap.disarm()
            assert sorted(path.name for path in tmp_path.iterdir()) == ["s.key", "s.key.register"]
            assert registered(tmp_path) == {"old"}
            continue
        trap.disarm()
        break
    assert at > 2
    assert Register.open(tmp_path / "s.key").contents.releases >= 2


def test_a_torn_register_is_refused_and_never_begun_anew(tmp_path):
    nr.Secret.create(tmp_path / "s.key")
    Register.open(tmp_path / "s.key").record(release_of("old"))
    path = tmp_path / "s.key.register"
    whole = path.read_bytes()
    hostile = [b"", b"[]", b"noren-register-1", whole.replace(b"noren-register-1", b"noren-register-2"), whole + b"x"]
    for content in [*(whole[:cut] for cut in range(0, len(whole) - 1, 37)), *hostile]:
        path.write_bytes(content)
        with pytest.raises(SecretError):
            Register.open(tmp_path / "s.key")
        assert path.read_bytes() == content, "it is not written over"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_the_secret_is_made_leaves_neither_it_nor_a_register(fault, tmp_path, trap):
    for at in range(1, 40):
        trap.arm(tmp_path, at, FAULTS[fault])
        try:
            nr.Secret.create(tmp_path / "s.key")
        except (OSError, KeyboardInterrupt, SecretError):
            trap.disarm()
            assert list(tmp_path.iterdir()) == []
            continue
        trap.disarm()
        break
    assert at > 2
    assert Register.open(tmp_path / "s.key").contents.releases == 0


def test_a_torn_secret_is_refused(tmp_path):
    nr.Secret.create(tmp_path / "s.key")
    whole = (tmp_path / "s.key").read_bytes()
    for cut in range(0, len(whole) - 1, 5):
        (tmp_path / "s.key").write_bytes(whole[:cut])
        with pytest.raises(SecretError):
            nr.Secret.load(tmp_path / "s.key")
        with pytest.raises(SecretError, match="never overwritten"):
            nr.Secret.create(tmp_path / "s.key")
