"""The descriptor of a release: its words, its checksums and its limits, up to the edge of each."""

from __future__ import annotations

import hashlib
import json
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import ReleaseError
from noren.release import closed, package, store
from noren.release.manifest import MOST_RECORDS, Manifest
from noren.release.package import (
    _resource,
    _standard,
    _text,
    aside,
    describe_package,
    manifest_digest,
    refuse_existing,
    write_cells,
    write_descriptor,
)
from noren.release.set_tally import SetTally
from noren.release.signature import SIGNATURE, write_signature
from noren.release.store import Part, store_for
from noren.schema.knowledge import Knowledge
from noren.secret.signing import SigningKey
from noren.statements import SetCells, SetStatement
from tests.statements import exact_column, group_column, set_column, term_column

PEOPLE = pl.DataFrame({"town": ["Ulm", "Köln", "'Bonn"] * 4, "pay": [float(i) for i in range(12)]})


def made(**options: Any) -> nr.Release:
    roles = {"town": "plain", "pay": {"role": "plain", "bins": [-inf, 4, inf]}}
    return nr.anonymize(PEOPLE, nr.Policy(attributes=roles, **options))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return made().save(tmp_path / "release")


# ---------------------------------------------------------------------- words


def test_checksums_of_manifests_do_not_change() -> None:
    """Releases out there hold them: sorted keys, no spaces, nothing but ASCII."""
    expected = hashlib.sha256(b'{"a":["\\u00fc",1.5],"b":{"c":null,"d":true}}').hexdigest()
    assert manifest_digest({"b": {"d": True, "c": None}, "a": ["ü", 1.5]}) == expected


def test_descriptors_are_readable_and_written_in_one_way() -> None:
    assert _text({"a": ["ü"]}) == '{\n "a": [\n  "ü"\n ]\n}\n'


def test_infinite_edges_are_said_in_words() -> None:
    value = {"edges": [-inf, 4, inf, nan, 2.5, True, "inf"], "none": None}
    assert _standard(value) == {"edges": ["-Infinity", 4, "Infinity", "NaN", 2.5, True, "inf"], "none": None}
    finite = {"edges": [1, 2.5]}
    assert _standard(finite) is finite


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_open_intervals_survive_standard_json(file_format: Any, tmp_path: Path) -> None:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    release = made()
    path = release.save(tmp_path / "release", file_format)
    json.loads((path / "datapackage.json").read_text(), parse_constant=refuse)
    opened = nr.open_release(path)
    assert opened.column("pay").domain.edges == (-inf, 4, inf)
    assert opened.frame().equals(release.frame())
    assert all(verdict.holds for verdict in nr.verify(path))


def test_a_release_without_a_title_is_called_so(saved: Path, tmp_path: Path) -> None:
    assert json.loads((saved / "datapackage.json").read_text())["title"] == "Release"
    titled = made(title="Wages").save(tmp_path / "titled")
    assert json.loads((titled / "datapackage.json").read_text())["title"] == "Wages"


def test_files_are_described_with_their_kind(tmp_path: Path) -> None:
    for name, media in (("data.csv", "text/csv"), ("data.parquet", "application/vnd.apache.parquet")):
        (tmp_path / name).write_bytes(b"it's\n")
        found = _resource("data", tmp_path / name, {"fields": []})
        assert (found["format"], found["mediatype"]) == (name.removeprefix("data."), media)
        assert ("escape" in found["schema"]) is (name == "data.csv"), "an apostrophe escapes in texts alone"
    (tmp_path / "data.csv").write_bytes(b"its\n")
    assert "escape" not in _resource("data", tmp_path / "data.csv", {"fields": []})["schema"]


def test_numbers_of_groups_refer_to_their_table(tmp_path: Path) -> None:
    """As readers of the standard expect it; a table of terms has no number to refer to."""
    known = Knowledge.from_pairs([("flu", "cough")])
    columns = (exact_column("town", 2), group_column("pay", 3), term_column("signs", ("cough",), known))
    manifest = Manifest(
        noren="0", records=3, columns=columns, requirements=(), methods=(), randomness="fresh", verdicts=()
    )
    for name in ("data", "groups-1", "knowledge-1"):
        (tmp_path / f"{name}.parquet").touch()
    data, groups, knowledge = describe_package(tmp_path, tmp_path / "data.parquet", manifest)["resources"]
    assert [field["name"] for field in data["schema"]["fields"]] == ["town", "pay_group", "signs"]
    assert data["schema"]["foreignKeys"] == [
        {"fields": ["pay_group"], "reference": {"resource": "groups-1", "fields": ["group"]}}
    ]
    assert groups["title"] == "Which values of pay each group holds"
    assert knowledge["title"] == "What links the terms of signs to labels"
    alone = manifest.model_copy(update={"columns": columns[:1]})
    (data,) = describe_package(tmp_path, tmp_path / "data.parquet", alone)["resources"]
    assert "foreignKeys" not in data["schema"]


def test_several_files_are_one_resource(tmp_path: Path) -> None:
    parts = [Part("data-00000.parquet", 5, "ab"), Part("data-00001.parquet", 6, "cd")]
    found = _resource("data", tmp_path / "data-00000.parquet", {"fields": []}, parts)
    assert found["path"] == ["data-00000.parquet", "data-00001.parquet"]
    assert (found["format"], found["mediatype"]) == ("parquet", "application/vnd.apache.parquet")
    assert found["bytes"] == 11
    assert [part["hash"] for part in found["parts"]] == ["sha256:ab", "sha256:cd"]


@pytest.mark.parametrize(
    ("file_format", "tallied", "kept"), [("parquet", True, 2), ("parquet", False, None), ("csv", True, None)]
)
def test_sets_are_numbers_in_parquet_where_they_were_tallied(
    file_format: Any, tallied: bool, kept: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noren.release.set_tally.LEAST_ROWS", 1)
    monkeypatch.setattr("noren.release.set_tally.ROWS_PER_SET", 1)
    columns = [set_column("ill", 4)]
    batches = [{"ill": SetCells.from_codes(4, np.array(rows))} for rows in ([[0, 1], [2, 3]], [[0, 1]], [[2, 3]])]
    tally = SetTally.of(columns, batches) if tallied else None
    path, rows, (column,) = write_cells(tmp_path, columns, batches, file_format, tally)
    assert (path.name, rows) == (f"data.{file_format}", 4)
    assert isinstance(column, SetStatement)
    assert column.sets == kept
    read = [column.to_arrow(batch["ill"]).to_pylist() for batch in store_for(path).batches([column])]
    assert [cell for part in read for cell in part] == [["0", "1"], ["2", "3"], ["0", "1"], ["2", "3"]]


def test_data_in_several_files_are_read_in_their_order(tmp_path: Path) -> None:
    release = made()
    cells = release.cells(release.columns)
    paths = [tmp_path / f"data-{number:05}.parquet" for number in range(3)]
    for number, path in enumerate(paths):
        some = {name: column.take(slice(4 * number, 4 * number + 4)) for name, column in cells.items()}
        assert store.write_data(path, release.statements, [some]) == 4
    write_descriptor(tmp_path, paths[0], release.manifest, parts=[Part.of(path) for path in paths])
    opened = nr.open_release(tmp_path)
    assert opened.frame().equals(release.frame())
    assert not nr.verify(tmp_path).failed
    paths[1].unlink()
    with pytest.raises(ReleaseError, match=r"data-00001\.parquet is missing"):
        nr.open_release(tmp_path)


def test_a_file_has_its_size_and_its_checksum(saved: Path) -> None:
    page, descriptor = saved / "README.md", saved / "datapackage.json"
    text, said = page.read_text(), descriptor.read_text()
    page.write_text(text.replace("e", "a", 1))
    with pytest.raises(ReleaseError, match="its checksum differs"):
        nr.open_release(saved)
    page.write_text(text)
    size = page.stat().st_size
    assert f'"bytes": {size},' in said
    descriptor.write_text(said.replace(f'"bytes": {size},', f'"bytes": {size + 1},'))
    with pytest.raises(ReleaseError, match="its checksum differs"):
        nr.open_release(saved)


def test_a_release_may_be_signed_later(saved: Path, tmp_path: Path) -> None:
    """Its page says nothing of a signature then, which is no fault; a page that tells of one that is not there is."""
    key = SigningKey.create(tmp_path / "signing.key")
    assert not nr.verify(saved).failed
    write_signature(saved / "datapackage.json", key)
    assert nr.open_release(saved).signer == key.public
    assert not nr.verify(saved).failed
    signed = made().save(tmp_path / "signed", sign=key)
    assert not nr.verify(signed).failed
    assert (signed / "README.md").read_text() != (saved / "README.md").read_text()
    (signed / SIGNATURE).unlink()
    with pytest.raises(ReleaseError, match="it differs from the manifest"):
        nr.verify(signed)


# ---------------------------------------------------------------------- limits


def test_limits_are_those_of_what_is_written() -> None:
    """What is written must be read again, and what is larger than anything written is refused unread."""
    assert store.MOST_ROWS == 65_536
    assert closed.UNPACKED == package.MOST_BYTES == 256 * 1024**2
    assert closed.MOST_PAIRS == 64 * 1024**2


def test_numbers_of_records_are_exact_as_floats() -> None:
    """JSON readers in other languages have no larger whole numbers."""
    assert int(float(MOST_RECORDS - 1)) == MOST_RECORDS - 1
    assert int(float(MOST_RECORDS + 1)) != MOST_RECORDS + 1


def test_a_descriptor_has_a_largest_size(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (saved / "datapackage.json").stat().st_size
    monkeypatch.setattr(package, "MOST_BYTES", size)
    assert nr.open_release(saved).rows == 12
    monkeypatch.setattr(package, "MOST_BYTES", size - 1)
    with pytest.raises(ReleaseError, match="it is not the descriptor of a release"):
        nr.open_release(saved)


def test_half_a_character_is_no_text(saved: Path) -> None:
    path = saved / "datapackage.json"
    path.write_text(path.read_text().replace('"title": "Release"', '"title": "\\ud800"'))
    with pytest.raises(ReleaseError, match="it is not the descriptor of a release"):
        nr.open_release(saved)


# ---------------------------------------------------------------------- places


def test_a_place_that_leads_nowhere_is_taken(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "new")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(ReleaseError, match=f"{name} exists already"):
            refuse_existing(tmp_path / name)


def test_parents_are_made_and_go_where_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()

    def fails() -> None:
        with aside(tmp_path / "kept/a/b/release") as work:
            (work / "data.csv").touch()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fails()
    assert list(tmp_path.rglob("*")) == [tmp_path / "kept"]
    with aside(tmp_path / "kept/a/b/release") as work:
        (work / "data.csv").touch()
    assert [path.name for path in (tmp_path / "kept/a/b/release").iterdir()] == ["data.csv"]


@pytest.mark.parametrize("name", ["datapackage.json", "data.parquet", "README.md"])
def test_a_link_is_no_file_of_a_release(saved: Path, name: str, tmp_path: Path) -> None:
    (saved / name).rename(tmp_path / "elsewhere")
    (saved / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="is missing"):
        nr.open_release(saved)
