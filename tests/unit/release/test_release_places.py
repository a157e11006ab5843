"""Releases in stores: written aside, the descriptor last, opened and verified where they lie; all of it or nothing."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.errors import DataError, ReleaseError
from noren.release.package import stage_release
from noren.sources.place import Place, Upload, place_of
from tests.contracts.test_engines import CASES, table
from tests.s3 import KEYS, Store, running


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with running() as found:
        yield found


@pytest.fixture(params=["folders", "objects"])
def target(request: pytest.FixtureRequest, tmp_path: Path, store: Store) -> Place:
    """A place in a store with folders, and in one without."""
    address = (tmp_path / "a" / "release").as_uri() if request.param == "folders" else store.address("a/release")
    return Place.parse(address)


def names(target: Place) -> list[str]:
    return sorted(one.name for one in target.iterdir())


@pytest.mark.parametrize("case", ["decoys", "anatomy"])
def test_a_release_in_a_store_is_the_release(case: str, target: Place, tmp_path: Path) -> None:
    made = nr.anonymize(table(), CASES[case], to=target)
    opened = nr.open_release(target)
    assert opened.frame().equals(made.frame())
    assert nr.verify(target, CASES[case], original=table()).hold
    beside = ["groups-1.parquet"] if case == "anatomy" else []
    assert names(target) == sorted(["README.md", "data.parquet", "datapackage.json", *beside])
    assert opened.directory is None
    assert opened.save(tmp_path / "copy").is_dir()
    assert nr.open_release(tmp_path / "copy").frame().equals(made.frame())


def test_what_exists_is_refused_and_a_release_takes_nothing_in(target: Place) -> None:
    nr.anonymize(table(), CASES["decoys"], to=target)
    with pytest.raises(ReleaseError, match="exists already"):
        nr.anonymize(table(), CASES["decoys"], to=target)
    with pytest.raises(DataError, match="lies inside a release"):
        nr.anonymize(table(), CASES["decoys"], to=target / "more")
    strange = target / "notes.txt"
    with strange.sink() as sink:
        sink.write(b"x")
    with pytest.raises(ReleaseError, match=r"notes\.txt.*does not describe"):
        nr.verify(target)


def test_without_the_descriptor_nothing_opens_and_damage_is_seen(target: Place) -> None:
    nr.anonymize(table(), CASES["decoys"], to=target)
    whole = (target / "data.parquet").read_bytes()
    with (target / "data.parquet").sink() as sink:
        sink.write(whole[:-1] + b"x")
    with pytest.raises(ReleaseError, match="its checksum differs"):
        nr.open_release(target)
    (target / "datapackage.json").unlink()
    with pytest.raises(ReleaseError, match="this is not a release"):
        nr.open_release(target)


def test_a_signature_is_written_and_read_there(target: Place, tmp_path: Path) -> None:
    key = nr.SigningKey.create(tmp_path / "key")
    nr.anonymize(table(), CASES["decoys"], to=target, sign=key)
    assert nr.open_release(target).signer == key.public
    assert nr.verify(target, signer=key.public).hold


@pytest.mark.parametrize("name", ["data.parquet", "README.md", "datapackage.json"])
def test_what_the_store_refuses_leaves_nothing(name: str, store: Store) -> None:
    store.refused = name
    with pytest.raises(ReleaseError, match=f"a/release/{name}: the store refused"):
        nr.anonymize(table(), CASES["decoys"], to=store.address("a/release"))
    assert store.names() == []
    store.refused = None
    assert nr.anonymize(table(), CASES["decoys"], to=store.address("a/release")).records == 383


def interrupted(target: Place) -> None:
    """A run that has written some data and is ended."""
    with stage_release(target) as there:
        assert isinstance(there.cells, Place)
        with (there.cells / "1-data-00000.parquet").sink() as sink:
            sink.write(b"x")
        raise KeyboardInterrupt


def overtaken(target: Place) -> None:
    """A run during which somebody else writes to the target."""
    with stage_release(target) as there:
        (there.work / "datapackage.json").write_text("{}")
        target.mkdir()
        with (target / "theirs").sink() as sink:
            sink.write(b"x")


def test_what_somebody_else_put_there_meanwhile_stays_and_nothing_is_published(target: Place) -> None:
    with pytest.raises(ReleaseError, match="exists already"):
        overtaken(target)
    assert names(target) == ["theirs"]


def test_an_error_in_between_leaves_nothing(target: Place) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(target)
    assert names(target.parent) == []
    assert target.is_flat or not target.exists()


def test_a_store_that_gives_back_something_else_is_refused(
    target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"content")
    target.mkdir()
    (target / "file").put(tmp_path / "file")
    real = Place.sink

    def short(self: Place) -> Any:
        sink = real(self)
        sink.write(b"more")
        return sink

    monkeypatch.setattr(Place, "sink", short)
    with pytest.raises(ReleaseError, match="returns other data than were written"):
        (target / "another").put(tmp_path / "file")


def test_an_upload_knows_its_size_and_checksum(target: Place) -> None:
    from noren.release.store import Part

    target.mkdir()
    file = target / "part.parquet"
    upload = Upload(file)
    assert not file.exists()
    for piece in (b"one", memoryview(b"two"), b"x" * 100_000):
        upload.write(piece)
    upload.close()
    assert Part.of(file) == Part("part.parquet", upload.size, upload.hexdigest())
    assert upload.tell() == 100_006


def test_addresses_are_read_and_shown_without_what_is_secret() -> None:
    place = Place.parse("s3a://bucket/a%20b/c?region=x&endpoint_override=host")
    assert str(place) == "s3://bucket/a b/c"
    assert pickle.loads(pickle.dumps(place)) == place
    assert [str(one) for one in place.parents] == ["s3://bucket/a b"]
    assert (place / "d.parquet").with_name("e.x").name == "e.x"
    with pytest.raises(ReleaseError, match="the address holds a password") as refused:
        Place.parse("s3://key:hidden@bucket/a")
    assert "hidden" not in str(refused.value)
    assert place_of("file:///data/a%20b") == Path("/data/a b")
    assert place_of("release") == Path("release")
    assert place_of(Path("s3://bucket/a/b")) == place_of("s3://bucket/a/b")
    assert nr.release.release.is_release(Path("s3://bucket/a/b"))
    assert place_of(Path("s3/a")) == Path("s3/a")
    with pytest.raises(ReleaseError, match=r"s3://bucket/\.: a release needs a folder"):
        nr.anonymize(table(), CASES["decoys"], to="s3://bucket")
    with pytest.raises(ReleaseError, match="cannot be written to ftp://"):
        nr.anonymize(table(), CASES["decoys"], to="ftp://host/release")


def test_a_store_gets_parquet(target: Place) -> None:
    with pytest.raises(ReleaseError, match="releases in a store are written as Parquet"):
        nr.anonymize(table(), CASES["decoys"], to=target, file_format="csv")
    assert names(target) == []


def test_a_refusal_of_the_store_names_the_place_and_nothing_else(store: Store) -> None:
    store.refused = "release"
    with pytest.raises(ReleaseError, match=r"^s3://bucket/a/release") as refused:
        nr.anonymize(table(), CASES["decoys"], to=store.address("a/release"))
    assert "endpoint" not in str(refused.value)


def test_the_command_line_takes_addresses(store: Store, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table(), tmp_path / "table.parquet")
    (tmp_path / "policy.toml").write_text(CASES["decoys"].to_toml())
    target = store.address("release")
    made = CliRunner().invoke(main, ["anonymize", str(tmp_path / "table.parquet"), str(tmp_path / "policy.toml"),
                                    "--to", target, "--json"])  # fmt: skip
    assert made.exit_code == 0, made.output
    assert json.loads(made.output)["release"] == "s3://bucket/release"
    for words in (["verify", target], ["count", target, "--where", "age=30"], ["measure", target]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert "endpoint" not in done.output
    file = CliRunner().invoke(main, ["anonymize", str(tmp_path / "table.parquet"), str(tmp_path / "policy.toml"),
                                    "--to", (tmp_path / "there").as_uri()])  # fmt: skip
    assert file.exit_code == 0, file.output
    assert nr.open_release((tmp_path / "there").as_uri()).directory == tmp_path / "there"
