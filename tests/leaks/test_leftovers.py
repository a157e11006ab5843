"""Whatever goes wrong, nothing stays on disk; and while all goes well, no working file holds what must not be seen."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.engines import shuffle
from noren.report.page import write_page
from noren.secret import Register
from noren.statements.set_cells import SetOrder
from tests.leaks.world import IDENTIFIERS, ILLS, JOBS, WARDS, holder, people, use_buckets, use_small_batches


class Boom(Exception):
    """Something that no code expects."""


FULL_DISK = OSError(errno.ENOSPC, "No space left on device")
# where it breaks, and at which call
POINTS = {
    "drawing": ("noren.workflow.draft.draw_columns", 2),
    "the check of the truth": ("noren.statements.set_cells.SetCells.contains", 3),
    "the check of the design": ("noren.workflow.draft.Draft.demand_heads", 1),
    "opening the buckets": ("pyarrow.ipc.new_stream", 3),
    "scattering": ("noren.engines.shuffle.pack_batch", 4),
    "reading a bucket back": ("noren.engines.shuffle.unpack_batch", 5),
    "writing": ("noren.statements.set.SetStatement.to_arrow", 1),
    "verifying": ("noren.engines.local.LocalEngine.judge", 1),
    "describing": ("noren.workflow.anonymize.write_descriptor", 1),
    "keeping the register": ("noren.secret.register._write", 1),
    "renaming": ("os.rename", 1),
}


def break_at(monkeypatch, where: str, call: int, error: BaseException) -> None:
    """Let the call-th use of a function raise."""
    real = resolve_name(where)
    calls = 0

    def broken(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == call:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(where, broken)


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def temp(tmp_path, monkeypatch) -> Path:
    """A directory for temporary files that nobody else uses."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("error", [Boom(), KeyboardInterrupt(), FULL_DISK], ids=["bug", "ctrl-c", "disk full"])
@pytest.mark.parametrize("point", POINTS)
def test_nothing_stays_when_a_run_breaks(point, error, temp, tmp_path, monkeypatch):
    _, policy = holder(tmp_path / "holder", memoised=True)
    before = below(tmp_path / "holder")
    use_small_batches(monkeypatch, 100)
    use_buckets(monkeypatch)
    break_at(monkeypatch, *POINTS[point], error)
    with pytest.raises(type(error)):
        nr.anonymize(people(), policy, to=tmp_path / "new" / "public" / "release")
    assert not (tmp_path / "new").exists()
    assert below(temp) == []
    assert below(tmp_path / "holder") == before
    known = Register.open(tmp_path / "holder" / "deep-secret.key").contents
    assert known.releases == 0


def test_after_a_broken_run_the_next_one_succeeds(temp, tmp_path, monkeypatch):
    _, policy = holder(tmp_path / "holder", memoised=True)
    with monkeypatch.context() as patch:
        break_at(patch, *POINTS["renaming"], Boom())
        with pytest.raises(Boom):
            nr.anonymize(people(), policy, to=tmp_path / "release")
    nr.anonymize(people(), policy, to=tmp_path / "release")
    assert below(tmp_path / "release") == ["README.md", "data.parquet", "datapackage.json"]
    assert below(temp) == []


def test_what_stood_beside_the_target_is_left_alone(tmp_path, monkeypatch):
    _, policy = holder(tmp_path / "holder")
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "other").write_text("here first")
    break_at(monkeypatch, *POINTS["verifying"], Boom())
    with pytest.raises(Boom):
        nr.anonymize(people(), policy, to=tmp_path / "public" / "release")
    assert below(tmp_path / "public") == ["other"]


def test_a_target_that_appears_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    _, policy = holder(tmp_path / "holder")
    target = tmp_path / "release"
    real = resolve_name("noren.workflow.anonymize.write_descriptor")

    def rival(*args):
        target.mkdir()
        (target / "rival").write_text("first")
        return real(*args)

    monkeypatch.setattr("noren.workflow.anonymize.write_descriptor", rival)
    with pytest.raises(nr.errors.ReleaseError, match="exists already"):
        nr.anonymize(people(), policy, to=target)
    assert below(tmp_path) == sorted(
        [*(f"holder/{name}" for name in below(tmp_path / "holder")), "holder", "release", "release/rival"]
    )


def test_a_broken_save_leaves_nothing(tmp_path, monkeypatch):
    _, policy = holder(tmp_path / "holder")
    release = nr.anonymize(people(), policy)
    break_at(monkeypatch, "noren.release.release.write_descriptor", 1, Boom())
    with pytest.raises(Boom):
        release.save(tmp_path / "public" / "release")
    assert not (tmp_path / "public").exists()


@pytest.mark.parametrize("line", ["1,Qzx", ",Qzx,ward,1,01001,30,Baker,Flu,too,many"])
def test_an_unreadable_table_leaves_no_file_of_keys(line, temp, tmp_path):
    """An open file that nobody closes would also be a warning, and warnings are errors here."""
    data, policy = holder(tmp_path / "holder", memoised=True)
    with data.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(nr.errors.DataError, match="cells, the header has 8"):
        nr.anonymize(data, policy, to=tmp_path / "release")
    assert below(temp) == []


def test_buckets_hold_sets_and_no_truth(temp, tmp_path, monkeypatch):
    """The working files are opened in the middle of a run, as someone with access to the disk might."""
    _, policy = holder(tmp_path / "holder", memoised=True)
    files: dict[str, bytes] = {}
    modes: set[int] = set()
    real = shuffle.unpack_batch

    def spied(batch, like):
        if not files:
            for path in (tmp_path / "public").rglob("*"):
                modes.add((tmp_path / "public" / path.relative_to(tmp_path / "public").parts[0]).stat().st_mode & 0o777)
                if path.is_file():
                    files[path.name] = path.read_bytes()
        return real(batch, like)

    monkeypatch.setattr(shuffle, "unpack_batch", spied)
    use_small_batches(monkeypatch, 100)
    use_buckets(monkeypatch)
    release = nr.anonymize(people(), policy, to=tmp_path / "public" / "release")
    assert len(files) >= 8
    assert modes == {0o700}
    assert below(tmp_path / "public") == [
        "release",
        "release/README.md",
        "release/data.parquet",
        "release/datapackage.json",
    ]
    assert below(temp) == []

    content = b"\0".join(files.values())
    private = [str(value) for name in IDENTIFIERS for value in people()[name].to_pylist()]
    for word in [*private, *WARDS, *IDENTIFIERS, *JOBS, *ILLS]:
        assert word.encode() not in content
    numbers = people()["insurance_no"].to_numpy()
    assert not any(number.tobytes() in content for number in numbers)
    parts = [pa.ipc.open_stream(part).read_all() for part in files.values()]
    table = pa.concat_tables(parts)
    assert table.num_rows == people().num_rows
    assert table.column_names == ["row", "zip", "age", "job", "ill"]
    for name, eta in (("age", 2), ("job", 2), ("ill", 3)):
        numbers, domain = table[name].to_numpy(), release.column(name).domain
        assert numbers.dtype == np.uint8
        values = np.array(domain.typed_values(), object)[SetOrder.of(len(domain), eta).codes[numbers]]
        assert sorted(map(tuple, values.tolist())) == sorted(map(tuple, release.frame()[name].to_list()))


@pytest.mark.parametrize("inside", ["release/report.html", "release/deep/report.html", "release", "link/report.html"])
def test_the_report_is_never_written_into_the_release(inside, tmp_path):
    data, policy = holder(tmp_path / "holder")
    (tmp_path / "link").symlink_to(tmp_path / "release")
    command = [
        "anonymize",
        str(data),
        str(policy),
        "--to",
        str(tmp_path / "release"),
        "--report",
        str(tmp_path / inside),
    ]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "lies inside the release" in result.output
    assert below(tmp_path) == sorted(["holder", *(f"holder/{name}" for name in below(tmp_path / "holder")), "link"])


def test_the_report_overwrites_nothing(tmp_path):
    data, policy = holder(tmp_path / "holder")
    content = data.read_bytes()
    command = ["anonymize", str(data), str(policy), "--to", str(tmp_path / "release"), "--report", str(data)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "exists already" in result.output
    assert data.read_bytes() == content
    assert not (tmp_path / "release").exists()


def test_a_report_that_cannot_be_written_leaves_no_half(tmp_path, monkeypatch):
    break_at(monkeypatch, "os.replace", 1, FULL_DISK)
    with pytest.raises(OSError, match="No space left"):
        write_page(tmp_path / "report.html", "text")
    assert below(tmp_path) == []
