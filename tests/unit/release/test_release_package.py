"""The directory of a release: what is in it, what is refused, and that it appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import noren as nr
from noren.errors import ReleaseError, RequirementNotMet
from noren.release.manifest import Manifest, PublishedMeaning, VerdictEntry
from noren.release.package import manifest_digest
from noren.release.release import open_release

TABLE = pa.table(
    {
        "name": [f"person {i}" for i in range(60)],
        "job": [["Nurse", "Clerk", "Cook"][i % 3] for i in range(60)],
        "age": list(range(60)),
        "town": [["Ulm", "Bonn"][i % 2] for i in range(60)],
        "pay": [[0.5, 1.5, None][i % 3] for i in range(60)],
    }
)
POLICY = nr.Policy(
    attributes={
        "name": nr.identifier(),
        "job": nr.sensitive(hierarchy={"tree": {"care": ["Nurse"], "other": ["Clerk", "Cook"]}}),
        "age": nr.sensitive_quasi_identifier(bins=[0, 20, 40, 60]),
        "town": nr.quasi_identifier(),
        "pay": nr.plain(),
    },
    require=[nr.models.FrequencyLDiversity(on=["job", "age"], l=2), nr.models.TCloseness(on="job", t=0.4)],
    title="Staff",
    dependence={"most": 1.0},
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("releases")
    release = nr.anonymize(TABLE, POLICY)
    return {kind: release.save(folder / kind, kind) for kind in ("parquet", "csv")}


@pytest.fixture
def release(original: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(original["parquet"], tmp_path / "release"))


def describe(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrite the descriptor."""
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    change(package)
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def claim(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrite the manifest and its checksum, as a careful forger would."""

    def rewrite(package: dict[str, Any]) -> None:
        block = package["noren"]
        del block["sha256"]
        change(block)
        block["sha256"] = manifest_digest(block)

    describe(release, rewrite)


# ---------------------------------------------------------------- what is in it


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_descriptor_is_a_frictionless_package(original: dict[str, Path], kind: str) -> None:
    folder = original[kind]
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    assert set(package) == {"profile", "name", "title", "resources", "readme", "noren"}
    assert package["profile"] == "data-package"
    assert re.fullmatch(r"[-a-z0-9._/]+", package["name"])
    assert package["title"] == "Staff"
    (resource,) = package["resources"]
    assert set(resource) == {"name", "path", "format", "mediatype", "encoding", "bytes", "hash", "schema"}
    content = (folder / resource["path"]).read_bytes()
    assert resource["path"] == f"data.{kind}"
    assert resource["format"] == kind
    assert resource["encoding"] == "utf-8"
    assert resource["bytes"] == len(content)
    assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    fields = {field["name"]: field for field in resource["schema"]["fields"]}
    assert {name: field["type"] for name, field in fields.items()} == {
        "job": "array",
        "age": "array",
        "town": "string",
        "pay": "number",
    }
    assert fields["job"]["constraints"] == {"minLength": 2, "maxLength": 2, "required": True}


MANIFEST_KEYS = {
    "format", "noren", "title", "records", "suppressed", "rows_are_people", "sample", "columns", "requirements",
    "methods", "randomness", "verdicts", "sha256",
}  # fmt: skip
MEANING_KEYS = {
    "name", "role", "kind", "values", "domain_source", "edges", "measure", "integers", "hidden", "top", "bottom",
    "hierarchy", "distance", "members", "differ",
}  # fmt: skip
FORM_KEYS = {"job": {"design"}, "age": {"design"}, "town": set(), "pay": set()}
VERDICT_KEYS = {"model", "column", "required", "achieved", "holds", "basis"}


def test_the_manifest_holds_what_is_on_the_list_and_nothing_else(original: dict[str, Path]) -> None:
    block = json.loads((original["parquet"] / "datapackage.json").read_text(encoding="utf-8"))["noren"]
    later = {"weight", "margins", "mechanism", "most_rows"}  # said by releases that have them alone
    assert set(block) == MANIFEST_KEYS == (set(Manifest.model_fields) | {"sha256"}) - later
    assert set(PublishedMeaning.model_fields) == MEANING_KEYS
    assert set(VerdictEntry.model_fields) == VERDICT_KEYS
    for column in block["columns"]:
        assert set(column) - MEANING_KEYS == {"form"} | FORM_KEYS[column["name"]]
        assert set(column.get("design", ())) <= {"name", "d", "eta", "p"}
    for verdict in block["verdicts"]:
        assert set(verdict) == VERDICT_KEYS
    assert block["methods"] == [{"name": "decoys", "on": []}]
    assert [column["name"] for column in block["columns"]] == ["job", "age", "town", "pay"]


def test_a_verdict_that_rests_on_the_design_publishes_its_figure(original: dict[str, Path]) -> None:
    """It follows from t and the domain; tests/leaks/test_contents.py has one that rests on the original."""
    found = {(v.model, v.column): v for v in open_release(original["parquet"]).verdicts}
    close = found["t-closeness", "job"]
    assert (close.basis, close.achieved) == ("the published design", pytest.approx(close.required))
    assert found["frequency-l-diversity", "age"].achieved == 2


def test_the_recipient_has_hierarchies_and_bins(original: dict[str, Path]) -> None:
    columns = {statement.name: statement.column for statement in open_release(original["csv"]).statements}
    assert columns["job"].tree.leaves == columns["job"].domain.values == ("Clerk", "Cook", "Nurse")
    assert columns["age"].domain.edges == (0, 20, 40, 60)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_changed_data_is_refused(original: dict[str, Path], kind: str, tmp_path: Path) -> None:
    release = Path(shutil.copytree(original[kind], tmp_path / "release"))
    data = release / f"data.{kind}"
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    with pytest.raises(ReleaseError, match="changed or damaged: its checksum differs"):
        open_release(release)
    data.write_bytes(content[:-1])
    with pytest.raises(ReleaseError, match="changed or damaged"):
        open_release(release)


@pytest.mark.parametrize(
    "change",
    [
        lambda package: package["noren"].update(records=61),
        lambda package: package["noren"]["columns"][0]["design"].update(p=0.5),
        lambda package: package["noren"].update(sha256="0" * 64),
        lambda package: package["noren"].pop("sha256"),
        lambda package: package.pop("noren"),
        lambda package: package.update(noren=[1, 2]),
        lambda package: package.update(resources=[]),
        lambda package: package["resources"][0].pop("hash"),
    ],
)
def test_a_changed_descriptor_is_refused(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    assert open_release(release).records == 60
    describe(release, change)
    with pytest.raises(ReleaseError, match="changed or damaged"):
        open_release(release)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"noren"'])
def test_a_descriptor_that_is_none_is_refused(release: Path, text: str) -> None:
    (release / "datapackage.json").write_text(text)
    with pytest.raises(ReleaseError, match="not the descriptor of a release"):
        open_release(release)


def test_an_incomplete_directory_is_refused(release: Path, tmp_path: Path) -> None:
    (release / "data.parquet").rename(tmp_path / "elsewhere.parquet")
    with pytest.raises(ReleaseError, match=r"data\.parquet is missing"):
        open_release(release)
    (release / "data.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(ReleaseError, match=r"data\.parquet is missing"):
        open_release(release)
    (release / "datapackage.json").unlink()
    with pytest.raises(ReleaseError, match=r"this is not a release \(datapackage\.json is missing\)"):
        open_release(release)
    with pytest.raises(ReleaseError, match="this is not a release"):
        open_release(tmp_path / "absent")


@pytest.mark.parametrize(
    "name", ["../release/data.parquet", "/etc/hosts", "data.parquet/../data.parquet", "", 3, ["x"]]
)
def test_a_descriptor_cannot_point_outside(release: Path, name: object) -> None:
    describe(release, lambda package: package["resources"][0].update(path=name))
    with pytest.raises(ReleaseError, match="lists a data file that no release has"):
        open_release(release)


def test_another_format_version_is_refused_by_number(release: Path) -> None:
    claim(release, lambda block: block.update(format=6))
    with pytest.raises(ReleaseError, match="its format is 6, which this version cannot read"):
        open_release(release)


def test_a_manifest_with_wrong_fields_is_refused(release: Path) -> None:
    claim(release, lambda block: block.update(extra="field"))
    with pytest.raises(ReleaseError, match="1 of its fields are not valid"):
        open_release(release)


EXACT = {"name": "uniform-decoys", "d": 2, "eta": 2, "p": 1.0}


@pytest.mark.parametrize(
    "change",
    [
        lambda block: block["columns"][0]["design"].update(d=9),
        lambda block: block["columns"][0].update(design=None),
        lambda block: block["columns"][0]["hierarchy"][0].reverse(),
        lambda block: block["columns"][0]["hierarchy"][1].pop(),
        lambda block: block["columns"][1].update(edges=[0, 10, 40, 60]),
        lambda block: block["columns"][1].update(values=["[0, 20)", "[20, 40)", "[20, 40)"]),
        lambda block: block["columns"][2].update(design=EXACT),
        lambda block: block["columns"][2].update(values=None),
        lambda block: block["columns"].append(block["columns"][2]),
        lambda block: block.update(layout="records"),
        lambda block: block["columns"][0].update(form="member"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Estimates from it would be wrong without a word."""
    claim(release, change)
    with pytest.raises(ReleaseError, match="of its fields are not valid"):
        open_release(release)


def test_a_release_that_claims_nothing_about_a_secret_is_not_said_to_hold(release: Path) -> None:
    claim(release, lambda block: block.update(requirements=block["requirements"][1:]))
    with pytest.raises(ReleaseError, match="claims nothing about sensitive columns: 'age'"):
        nr.verify(open_release(release))


def test_data_that_is_not_what_the_manifest_says_is_refused_when_it_is_read(release: Path) -> None:
    claim(release, lambda block: block["columns"][2].update(values=["Bonn", "Rom"]))
    opened = open_release(release)
    with pytest.raises(ReleaseError, match="column 'town' holds a value that its published domain does not name"):
        opened.frame()
    claim(release, lambda block: block["columns"][2].update(name="city"))
    with pytest.raises(ReleaseError, match="cannot be read as the manifest describes it"):
        open_release(release).frame()


def test_a_wrong_number_of_records_is_found_when_the_data_are_read(release: Path, tmp_path: Path) -> None:
    claim(release, lambda block: block.update(records=61))
    opened = open_release(release)
    with pytest.raises(ReleaseError, match="the data hold 60 rows, the manifest says 61"):
        opened.estimate("town")
    with pytest.raises(ReleaseError, match=r"README\.md: changed or damaged: it differs from the manifest"):
        nr.verify(opened)
    with pytest.raises(ReleaseError, match="60 rows were written instead of 61"):
        opened.save(tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_unknown_file_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="unknown format 'xlsx'"):
        nr.anonymize(TABLE, POLICY).save(tmp_path / "release", "xlsx")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- whole or not at all


def test_an_existing_target_is_refused_and_kept(tmp_path: Path) -> None:
    made = nr.anonymize(TABLE, POLICY)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "file", "link"):
        for publish in (made.save, lambda path: nr.anonymize(TABLE, POLICY, to=path)):
            with pytest.raises(ReleaseError, match=f"{name} exists already"):
                publish(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]
    assert (tmp_path / "file").read_text() == "mine"
    assert list((tmp_path / "folder").iterdir()) == []


def test_nothing_is_left_when_verification_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from noren.engines.local import LocalEngine

    real = LocalEngine.judge
    seen: list[list[str]] = []

    def doubting(*arguments: Any, **options: Any) -> list:
        seen.append([path.suffix for path in tmp_path.iterdir()])
        return [replace(verdict, holds=False, breaches=3) for verdict in real(*arguments, **options)]

    monkeypatch.setattr(LocalEngine, "judge", doubting)
    with pytest.raises(RequirementNotMet, match=r"not met, so nothing is published: .*3 of 60 records fall short"):
        nr.anonymize(TABLE, POLICY, to=tmp_path / "release")
    assert seen == [[".part"]]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RequirementNotMet):
        nr.anonymize(TABLE, POLICY)


PUBLISH = {
    "save": lambda made, path: made.save(path, "csv"),
    "anonymize": lambda made, path: nr.anonymize(TABLE, POLICY, to=path, file_format="csv"),
}


@pytest.mark.parametrize("verb", PUBLISH)
@pytest.mark.parametrize(
    "place",
    ["noren.statements.set.json_lists", "noren.statements.set.SetStatement.field", "noren.release.package.os.rename"],
)
def test_nothing_is_left_when_writing_fails(
    verb: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = nr.anonymize(TABLE, POLICY)

    def full(*arguments: Any) -> None:
        assert len(list((tmp_path / "new").iterdir())) == 1
        raise OSError("disk full")

    monkeypatch.setattr(place, full)
    with pytest.raises(OSError, match="disk full"):
        PUBLISH[verb](made, tmp_path / "new" / "release")
    assert list(tmp_path.iterdir()) == []
