"""Releases with terms: what is written is read again, what was tampered with is refused or found out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.errors import ModelDoesNotApply, ReleaseError
from noren.release.manifest import Manifest, read_column, write_column
from noren.release.package import manifest_digest, page_of
from noren.release.store import MemoryStore
from noren.schema.knowledge import knowledge_rows as rows
from noren.statements import TermCells
from noren.workflow.anonymize import run
from noren.workflow.verify import check, read_claims
from tests.oracles.terms import World
from tests.unit.term_world import CLOSE, DIVERSE, WORLD, N, known, policy, table

FORMATS = ("parquet", "csv")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("releases")
    release = nr.anonymize(table(), policy(k=3))
    return {form: release.save(folder / form, form) for form in FORMATS}  # type: ignore[arg-type]


def copied(originals: dict[str, Path], form: str, folder: Path) -> Path:
    return Path(shutil.copytree(originals[form], folder / "release"))


def signed(directory: Path) -> nr.Release:
    """A directory whose checksums were made to fit again, opened: a forger can do that too."""
    descriptor = directory / "datapackage.json"
    package = json.loads(descriptor.read_text(encoding="utf-8"))
    for resource in [*package["resources"], package["readme"]]:
        path = directory / resource["path"]
        resource |= {"bytes": path.stat().st_size, "hash": f"sha256:{sha256(path.read_bytes()).hexdigest()}"}
    block = package["noren"]
    block.pop("sha256")
    block["sha256"] = manifest_digest(block)
    descriptor.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return nr.open_release(directory)


def rewrite(directory: Path, name: str, change: Callable[[dict[str, list[Any]]], Any]) -> None:
    """Change a file column by column; terms are lists, whichever format they are written in."""
    (path,) = directory.glob(f"{name}.*")
    if path.suffix == ".parquet":
        columns = pq.read_table(path).to_pydict()
        change(columns)
        pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
        return
    columns = pv.read_csv(path, convert_options=pv.ConvertOptions(strings_can_be_null=False)).to_pydict()
    if "signs" in columns:
        columns["signs"] = [json.loads(cell) for cell in columns["signs"]]
    change(columns)
    if "signs" in columns:
        columns["signs"] = [json.dumps(cell, ensure_ascii=False) for cell in columns["signs"]]
    pv.write_csv(pa.table(columns), path)


# ---------------------------------------------------------------- there and back

ODD = (
    "NA", "null", "nan", "1", "1.0", "007", "true", "a,b", 'q"uote', "two\nlines", "ünï", "(missing)", "[]", "'", "\\"
)  # fmt: skip
"""Terms and labels that a careless reader would take for something else."""


@pytest.mark.parametrize("form", FORMATS)
def test_odd_labels_and_terms_survive(form: str, tmp_path: Path) -> None:
    pairs = [(label, term) for i, label in enumerate(ODD) for term in ODD[i : i + 8]]
    weights = {label: 1 / (i + 3) for i, label in enumerate(ODD)}
    priors = {label: 1 / len(ODD) for label in ODD}
    knowledge = nr.Knowledge.from_pairs([*pairs, ("bare", "")], weights=weights, priors=priors)
    signs = [[ODD[i % len(ODD)]] for i in range(N)]
    original = table().set_column(4, "signs", pa.array(signs))
    rules = policy(knowledge, [DIVERSE | {"l": 2, "c": 9.0}])
    release = nr.anonymize(original, rules, to=tmp_path / "r", file_format=form)  # type: ignore[arg-type]
    opened = nr.open_release(tmp_path / "r")
    assert opened.frame().sort("row").equals(release.frame().sort("row"))
    assert opened.frame()["signs"].explode().n_unique() > 10
    again = opened.column("signs").column.known
    assert again.labels == knowledge.labels
    assert np.allclose(again.label_weights, knowledge.label_weights, rtol=1e-15)
    assert again.priors == pytest.approx(knowledge.priors, rel=1e-12)
    assert sorted(zip(*list(rows(again).values())[:2], strict=True), key=str) == sorted(
        zip(*list(rows(knowledge).values())[:2], strict=True), key=str
    )
    assert nr.verify(opened)[0].holds is True


def test_a_table_is_written_once_for_columns_that_share_it(tmp_path: Path) -> None:
    knowledge, other = known(), nr.Knowledge.from_pairs([("P", "p"), ("Q", "p")])
    sets = {"role": "quasi-sensitive", "separator": ";"}
    rules = nr.Policy(
        attributes={
            "age": "quasi-identifier",
            "one": sets | {"knowledge": knowledge},
            "two": sets | {"knowledge": other},
            "three": sets | {"knowledge": knowledge},
        },
        require=[nr.models.QSDiversity(on=("one", "three", "two"), c=2, l=2)],
        method={"name": "suppress", "nodes": 50},
    )
    data = pa.table({"age": [1, 2], "one": ["cough", ""], "two": ["p", "p"], "three": ["", "ache;cough"]})
    nr.anonymize(data, rules, to=tmp_path / "r")
    names = sorted(path.name for path in (tmp_path / "r").iterdir())
    assert names == ["README.md", "data.parquet", "datapackage.json", "knowledge-1.parquet", "knowledge-2.parquet"]
    opened = nr.open_release(tmp_path / "r")
    found = {column.name: column.column.known for column in opened.statements if column.terms is not None}
    assert found["one"] is found["three"]
    assert found["one"] is not found["two"]
    assert [opened.column(name).side for name in found] == ["knowledge-1", "knowledge-2", "knowledge-1"]


@pytest.mark.parametrize("form", FORMATS)
def test_many_batches_and_row_groups(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in small batches, shuffled through buckets, written in row groups: the same as all at once."""
    original, rules = table(2500), policy(k=2, generalise="incognito", nodes=50)
    whole = nr.anonymize(original, rules)
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", 97)
    monkeypatch.setattr("noren.release.store.MOST_ROWS", 1024)
    monkeypatch.setattr("noren.engines.shuffle.MEMORY_BYTES", 0)
    monkeypatch.setattr("noren.engines.shuffle.BUCKET_BYTES", 5000)
    nr.anonymize(original, rules, to=tmp_path / "r", file_format=form)  # type: ignore[arg-type]
    if form == "parquet":
        assert pq.ParquetFile(tmp_path / "r" / "data.parquet").num_row_groups == 3
    opened = nr.open_release(tmp_path / "r")
    assert opened.frame().sort("row").equals(whole.frame().sort("row"))
    assert nr.verify(opened)[0].holds is True


# ---------------------------------------------------------------- files that were changed


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["data", "knowledge-1"])
def test_a_changed_file_is_refused(originals: dict[str, Path], form: str, name: str, tmp_path: Path) -> None:
    release = copied(originals, form, tmp_path)
    path = release / f"{name}.{form}"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(ReleaseError, match="checksum differs"):
        nr.open_release(release)
    path.unlink()
    with pytest.raises(ReleaseError, match="is missing"):
        nr.open_release(release)


@pytest.mark.parametrize("form", FORMATS)
def test_terms_put_back_are_found_out(originals: dict[str, Path], form: str, tmp_path: Path) -> None:
    release = copied(originals, form, tmp_path)
    true = dict(zip(table()["row"].to_pylist(), table()["signs"].to_pylist(), strict=True))
    place = {term: i for i, term in enumerate(known().terms)}

    def put_back(columns: dict[str, list[Any]]) -> None:
        columns["signs"] = [sorted(set(true[row]), key=place.__getitem__) for row in columns["row"]]

    rewrite(release, "data", put_back)
    (verdict,) = nr.verify(signed(release))
    assert verdict.holds is False
    assert verdict.breaches > 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "cell",
    [["warts"], ["cough", "cough"], ["sneeze", "cough"], None, [None]],
    ids=["strange", "twice", "order", "null", "hole"],
)
def test_cells_that_are_no_sets_of_terms_are_refused(
    originals: dict[str, Path], form: str, cell: Any, tmp_path: Path
) -> None:
    release = copied(originals, form, tmp_path)
    assert known().terms.index("cough") < known().terms.index("sneeze")
    rewrite(release, "data", lambda columns: columns["signs"].__setitem__(3, cell))
    opened = signed(release)
    for ask in (opened.frame, lambda: nr.verify(opened)):
        with pytest.raises(ReleaseError, match="'signs'"):
            ask()


@pytest.mark.parametrize("form", FORMATS)
def test_another_knowledge_table_hides_nothing_from_who_has_the_true_one(
    originals: dict[str, Path], form: str, tmp_path: Path
) -> None:
    """Every label with every sign: by that table nothing is ever revealed."""
    release = copied(originals, form, tmp_path)
    bare = nr.anonymize(table(), policy(require=[DIVERSE | {"c": 1000.0, "l": 2}], nodes=1))
    bare.save(tmp_path / "bare", form)  # type: ignore[arg-type]
    for name in (f"data.{form}", "README.md"):
        shutil.copy(tmp_path / "bare" / name, release / name)
    harmless = [(label, term) for label in WORLD.labels for term in sorted(known().terms)]

    def change(columns: dict[str, list[Any]]) -> None:
        columns["label"], columns["term"] = [label for label, _ in harmless], [term for _, term in harmless]

    block = json.loads((tmp_path / "bare" / "datapackage.json").read_text())
    block["noren"]["requirements"] = nr.open_release(originals[form]).manifest.model_dump(mode="json")["requirements"]
    (release / "datapackage.json").write_text(json.dumps(block, ensure_ascii=False, indent=1) + "\n")
    rewrite(release, "knowledge-1", change)
    forged = signed(release)
    with pytest.raises(nr.errors.ReleaseError, match="a verdict on qs-diversity"):
        nr.verify(forged)
    (found,) = check(forged, read_claims(forged))
    block = json.loads((release / "datapackage.json").read_text())
    block["noren"]["verdicts"][0].update(required=found.required, achieved=found.achieved)
    (release / "datapackage.json").write_text(json.dumps(block, ensure_ascii=False, indent=1) + "\n")
    manifest = signed(release).manifest
    (release / "README.md").write_text(page_of(manifest, release / f"data.{form}", False), encoding="utf-8")
    forged = signed(release)
    assert [verdict.holds for verdict in nr.verify(forged)] == [True], "who trusts the release's table is fooled"
    assert [verdict.model for verdict in nr.verify(forged, policy(k=1)).failed] == ["qs-diversity", "published-domain"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "change",
    [
        lambda columns: columns.pop("term"),
        lambda columns: columns.pop("label"),
        lambda columns: columns.update(weight=[0.0] * len(columns["label"])),
        lambda columns: columns.update(prior=[0.7] * len(columns["label"])),
        lambda columns: columns.update(weight=["heavy"] * len(columns["label"])),
        lambda columns: columns.update(term=[""] * len(columns["label"])),
        lambda columns: columns.update(label=[""] * len(columns["label"])),
    ],
    ids=["no terms", "no labels", "weights 0", "priors", "weights", "empty terms", "empty labels"],
)
def test_a_knowledge_table_that_makes_no_sense_is_refused(
    originals: dict[str, Path], form: str, change: Any, tmp_path: Path
) -> None:
    release = copied(originals, form, tmp_path)
    rewrite(release, "knowledge-1", change)
    with pytest.raises(ReleaseError, match="not the table that 'signs' needs"):
        signed(release)


@pytest.mark.parametrize("number", [None, 2, 0])
def test_a_manifest_must_number_its_tables(originals: dict[str, Path], number: int | None) -> None:
    manifest = nr.open_release(originals["parquet"]).manifest.model_dump(mode="json")
    manifest["columns"][-1]["knowledge"] = number
    with pytest.raises(ValueError, match=r"numbered from 1 on|numbers from 1 on"):
        Manifest.model_validate(manifest)
    exact = write_column(nr.open_release(originals["parquet"]).column("row"))
    assert read_column(exact).is_exact
    with pytest.raises(ValueError, match="of every column only"):
        read_column(exact | {"knowledge": 1})


# ---------------------------------------------------------------- releases in memory


def test_codes_outside_the_terms_are_refused() -> None:
    release = nr.anonymize(table(), policy(k=3))
    cells = release.cells(release.columns)
    signs = cells["signs"]
    assert isinstance(signs, TermCells)
    for wrong in (signs.d, -1):
        forged = TermCells(signs.d, signs.offsets, np.where(np.arange(len(signs.data)) == 5, wrong, signs.data))
        with pytest.raises(ModelDoesNotApply, match="outside its 6 terms"):
            nr.verify(nr.Release(release.manifest, MemoryStore(cells | {"signs": forged})))


def test_a_release_without_its_table_is_not_judged() -> None:
    release = nr.anonymize(table(), policy(k=3))
    with pytest.raises(ModelDoesNotApply, match="needs the knowledge table"):
        nr.verify(nr.Release(Manifest.model_validate(release.manifest.model_dump(mode="json")), release.store))


def test_a_policy_brings_its_own_knowledge() -> None:
    """With a sign that only colds have, the release that was safe is so no more."""
    release = nr.anonymize(table(), policy(k=3))
    sharper = World({**WORLD.labels, "Cold": frozenset(known().terms)})
    for label in ("Flu", "Measles", "Migraine", "Allergy"):
        sharper = World({**sharper.labels, label: frozenset({label.lower()})})
    found = nr.verify(release, policy(known(sharper), k=3))
    assert [verdict.model for verdict in found.failed] == [found[0].model, "published-domain"]
    assert nr.verify(release, policy(k=3))[0].holds is True


# ---------------------------------------------------------------- with the original


@pytest.mark.parametrize("model", [DIVERSE, CLOSE])
def test_the_original_settles_it(model: dict[str, Any]) -> None:
    rules = policy(require=[model], k=3)
    release = nr.anonymize(table(), rules)
    found = {verdict.model: verdict for verdict in nr.verify(release, rules, original=table())}
    assert found.keys() == {model["model"], "truth-in-set", "tight-classes", "terms-are-true"}
    assert all(verdict.holds is True for verdict in found.values())
    other = table(seed=2)
    assert any(verdict.holds is False for verdict in nr.verify(release, rules, original=other))


def test_terms_that_nobody_had_are_found_out() -> None:
    rules = policy(k=3)
    release = nr.anonymize(table(), rules)
    cells = release.cells(release.columns)
    signs = cells["signs"]
    assert isinstance(signs, TermCells)
    coughs = np.full(N, known().terms.index("cough"))
    records, codes = np.concatenate([signs.owner, np.arange(N)]), np.concatenate([signs.data, coughs])
    more = TermCells.from_entries(signs.d, N, records, codes)
    forged = nr.Release(release.manifest, MemoryStore(cells | {"signs": more}))
    found = {verdict.model: verdict for verdict in nr.verify(forged, rules, original=table())}
    assert found["terms-are-true"].holds is False
    assert found["terms-are-true"].breaches == N - sum("cough" in own for own in table()["signs"].to_pylist())


def test_the_original_needs_the_policy_that_says_how_its_sets_are_written() -> None:
    release = nr.anonymize(table(), policy(k=3))
    with pytest.raises(nr.errors.DataError, match="sets of terms in the original cannot be read without a policy"):
        nr.verify(release, original=table())
    with pytest.raises(nr.errors.DataError, match="no column 'signs'"):
        nr.verify(release, policy(k=3), original=table().drop_columns(["signs"]))


def test_unknown_terms_that_were_dropped_are_dropped_from_the_prior_too() -> None:
    """The holder's figure and the auditor's, who has the original, are the same."""
    signs = [[*own, "unheard"] if i % 4 == 0 else own for i, own in enumerate(table()["signs"].to_pylist())]
    people = table().set_column(4, "signs", pa.array(signs, pa.list_(pa.string())))
    rules = policy(require=[CLOSE])
    rules.attributes["signs"] = rules.attributes["signs"].model_copy(update={"unknown": "drop"})
    outcome = run(people, rules)
    (found,) = [one for one in nr.verify(outcome.release, rules, original=people) if one.model == "qs-closeness"]
    (held,) = [one for one in outcome.facts.verdicts if one.model == "qs-closeness"]
    assert found.achieved == pytest.approx(held.achieved, abs=1e-12)


def test_terms_are_listed_under_a_condition_on_a_general_column() -> None:
    """Term by term it is what a condition on that term alone gives."""
    release = nr.anonymize(table(), policy(k=3))
    where = {"age": ["20", "21", "22"]}
    found = release.estimate("signs", where=where).frame
    for row in found.to_dicts():
        alone = release.count({"signs": [row["signs"]]} | where)
        assert (row["low"], row["high"]) == (alone.low, alone.high)
        assert row["count"] == pytest.approx(alone.count)


def test_diversity_of_labels_is_measured_at_these_sizes() -> None:
    statement = nr.anonymize(table(), policy(k=3)).column("signs")
    assert [one.l for one in nr.models.QSDiversity.probes(statement)] == [2, 3, 5, 10]
