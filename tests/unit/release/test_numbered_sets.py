"""Sets that are kept once: the same release as with lists, telling nothing more, refused where somebody changed it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.errors import ReleaseError
from noren.release import set_tally
from noren.release.package import checksum, manifest_digest, page_of
from noren.statements import SetCells
from noren.statements.set_cells import NumberedSets, SetOrder, numberable

N = 400
JOBS = ["clerk", "cook", "miner", "nurse", "priest", "smith"]


DIVERSE = {"model": "frequency-l-diversity", "l": 3}


def people(rows: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    jobs, ages = rng.integers(0, 6, rows), rng.integers(0, 9, rows)
    town = rng.choice(["Bonn", "Ulm"], rows)
    return pl.DataFrame({"town": town, "job": np.array(JOBS)[jobs], "age": ages, "ID": rng.integers(0, 5, rows)})


def rules() -> nr.Policy:
    attributes = {"town": "plain", "job": "sensitive", "age": "sensitive", "ID": "sensitive"}
    return nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on=["job", "age", "ID"], l=3)])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 100)
    monkeypatch.setattr(set_tally, "ROWS_PER_SET", 2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> nr.Release:
    return nr.anonymize(people(), rules())


@pytest.fixture
def release(made: nr.Release, tmp_path: Path) -> Path:
    return made.save(tmp_path / "release")


def fitted(release: Path, change: Callable[[dict[str, Any]], Any] = lambda block: None) -> None:
    """Checksums, after something was changed."""
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    block = package["noren"]
    block.pop("sha256")
    change(block)
    package["noren"] = {**block, "sha256": manifest_digest(block)}
    for item in [*package["resources"], package["readme"]]:
        file = release / item["path"]
        item |= {"bytes": file.stat().st_size, "hash": f"sha256:{checksum(file)}"}
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def changed(release: Path, name: str, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    path = release / name
    pq.write_table(change(pq.read_table(path)), path, compression="zstd", store_schema=False, **options)
    fitted(release)


def test_both_forms_are_one_release(
    made: nr.Release, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 10_000)
    lists = nr.open_release(made.save(tmp_path / "lists"))
    numbers = nr.open_release(release)
    assert {path.name for path in release.iterdir()} - {path.name for path in lists.path.iterdir()} == {"sets.parquet"}
    assert pl.read_parquet(release / "data.parquet").schema == {
        "town": pl.String, "job_set": pl.UInt8, "age_set": pl.UInt8, "ID": pl.List(pl.Int64),
    }  # fmt: skip
    assert numbers.frame().equals(lists.frame())
    assert numbers.frame().equals(made.frame())
    assert numbers.expand().equals(lists.expand())
    for verified in (numbers, release, lists):
        assert [(v.holds, v.achieved) for v in nr.verify(verified, original=people())] == [
            (v.holds, v.achieved) for v in nr.verify(made, original=people())
        ]
    for estimator in ("linear", "likelihood"):
        found = [one.estimate("job", {"town": "Ulm"}, estimator).frame for one in (lists, numbers)]
        np.testing.assert_allclose(found[0]["count"], found[1]["count"], rtol=1e-12)
    for name in ("job", "age"):
        one, other = numbers.cells([name])[name], lists.cells([name])[name]
        np.testing.assert_array_equal(numbers.column(name).tally(one), lists.column(name).tally(other))


def test_numbers_follow_from_the_lists_alone(release: Path) -> None:
    """By contents in domain order, and no set but those that a cell shows."""
    shown = nr.open_release(release).frame()
    data, sets = pl.read_parquet(release / "data.parquet"), pl.read_parquet(release / "sets.parquet")
    for name in ("job", "age"):
        expected = sorted({tuple(cell) for cell in shown[name].to_list()})
        assert [tuple(cell) for cell in sets[name].drop_nulls().to_list()] == expected
        assert [expected[number] for number in data[f"{name}_set"]] == [tuple(cell) for cell in shown[name].to_list()]
    assert sets.columns == ["id", "job", "age"], "a column that is itself called ID keeps its lists"


@pytest.mark.parametrize("names", [["job", "age"], ["age", "job"], ["age"]])
def test_columns_of_any_number_of_sets_share_the_table(names: list[str], tmp_path: Path) -> None:
    policy = nr.Policy(attributes=dict.fromkeys(names, "sensitive"), require=[{**DIVERSE, "on": names}])
    made = nr.anonymize(people().select(names), policy, to=tmp_path / "release")
    assert not nr.verify(tmp_path / "release").failed
    sets = pl.read_parquet(tmp_path / "release" / "sets.parquet")
    assert sets["id"].to_list() == list(range(made.frame()["age"].n_unique()))


def test_the_page_says_how_to_read_it(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (release / "README.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("Python without Noren"))
    steps = line.split("`")[1].split("; ")
    monkeypatch.chdir(release)
    names: dict[str, Any] = {}
    exec("; ".join(steps[:-1]), names)
    assert eval(steps[-1], names).equals(nr.open_release(release).frame())
    assert 'ON data."job_set" = sets.id' in page
    assert 'sets[[name]][data[[paste0(name, "_set")]] + 1]' in page


@pytest.mark.parametrize("reader", ["pandas", "duckdb"])
def test_no_reader_shows_a_number_under_the_name_of_a_hidden_column(reader: str, release: Path) -> None:
    module = pytest.importorskip(reader)
    data, sets = str(release / "data.parquet"), str(release / "sets.parquet")
    if reader == "pandas":
        titles = list(module.read_parquet(data).columns)
    else:
        titles = module.sql(f"SELECT * FROM '{data}'").columns
        query = f"SELECT sets.job FROM '{data}' AS data JOIN '{sets}' AS sets ON data.job_set = sets.id"
        shown = sorted(map(tuple, nr.open_release(release).frame()["job"].to_list()))
        assert sorted(tuple(row[0]) for row in module.sql(query).fetchall()) == shown
    assert titles == ["town", "job_set", "age_set", "ID"]


def test_a_column_whose_title_is_taken_keeps_its_lists(tmp_path: Path) -> None:
    policy = nr.Policy(
        attributes={"age": "sensitive", "Age_Set": "plain"},
        require=[{**DIVERSE, "on": "age"}],
        dependence={"most": 1.0},
    )
    frame = people().select("age", pl.lit(1).alias("Age_Set"))
    nr.anonymize(frame, policy, to=tmp_path / "release")
    assert pl.read_parquet(tmp_path / "release" / "data.parquet").schema["age"] == pl.List(pl.Int64)


def test_a_release_of_the_format_before_opens(release: Path) -> None:
    def earlier(table: pa.Table) -> pa.Table:
        return table.rename_columns([name.removesuffix("_set") for name in table.column_names])

    shown = nr.open_release(release).frame()
    changed(release, "data.parquet", earlier)
    path, data = release / "datapackage.json", release / "data.parquet"
    names = {"job": "job", "age": "age", "town": "town", "ID": "ID"}
    page = page_of(nr.open_release(release).manifest, data, False, names)
    (release / "README.md").write_text(page, encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace('_set"', '"'), encoding="utf-8")
    fitted(release, lambda block: block.update(format=4))
    assert nr.open_release(release).frame().equals(shown)
    assert not nr.verify(release).failed


def test_a_csv_file_holds_lists(release: Path, tmp_path: Path) -> None:
    again = nr.open_release(release).save(tmp_path / "csv", "csv")
    assert {path.name for path in again.iterdir()} == {"README.md", "data.csv", "datapackage.json"}
    assert nr.open_release(again).frame().equals(nr.open_release(release).frame())
    back = nr.open_release(again).save(tmp_path / "back")
    assert (back / "data.parquet").read_bytes() == (release / "data.parquet").read_bytes()
    assert (back / "sets.parquet").read_bytes() == (release / "sets.parquet").read_bytes()


@pytest.mark.parametrize(("rows", "kept"), [(9_999, False), (10_000, True)])
def test_small_releases_are_one_file(rows: int, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    policy = nr.Policy(attributes={"age": "sensitive"}, require=[nr.models.FrequencyLDiversity(on="age", l=3)])
    made = nr.anonymize(people(rows).select("age"), policy, to=tmp_path / "release")
    assert (tmp_path / "release" / "sets.parquet").exists() is kept
    assert not nr.verify(made).failed


def test_sets_that_nearly_all_differ_are_lists(tmp_path: Path) -> None:
    policy = nr.Policy(attributes={"age": "sensitive"}, require=[nr.models.FrequencyLDiversity(on="age", l=5)])
    made = nr.anonymize(pl.DataFrame({"age": np.arange(N) % 18}), policy, to=tmp_path / "release")
    assert not (tmp_path / "release" / "sets.parquet").exists()
    assert not nr.verify(made).failed


# ---------------------------------------------------------------- forged


def with_column(name: str, cells: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(name)
        new = pa.array(cells(table.column(name).to_pylist()), table.schema.field(name).type)
        return table.set_column(at, name, new)

    return change


def swapped(sets: list[Any]) -> list[Any]:
    return [sets[1], sets[0], *sets[2:]]


FORGED_SETS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "out of order": with_column("age", swapped),
    "one twice": with_column("age", lambda sets: [sets[1], *sets[1:]]),
    "a missing one": with_column("age", lambda sets: [None, *sets[1:]]),
    "too small": with_column("age", lambda sets: [sets[0][:2], *sets[1:]]),
    "a value twice": with_column("age", lambda sets: [[0, 1, 1], *sets[1:]]),
    "values out of order": with_column("age", lambda sets: [[2, 1, 0], *sets[1:]]),
    "a value of no domain": with_column("job", lambda sets: [["clerk", "cook", "secret"], *sets[1:]]),
    "one more than said": with_column("job", lambda sets: [*sets[:-1], ["nurse", "priest", "smith"]]),
    "other numbers": with_column("id", swapped),
    "no numbers": lambda table: table.drop_columns(["id"]),
    "no column": lambda table: table.drop_columns(["job"]),
    "texts for lists": lambda table: table.set_column(2, "age", pa.array([str(i) for i in range(len(table))])),
    "fewer rows": lambda table: table.slice(0, len(table) - 1),
}


@pytest.mark.parametrize("name", FORGED_SETS)
def test_a_forged_table_of_sets_is_refused_when_it_is_opened(name: str, release: Path) -> None:
    changed(release, "sets.parquet", FORGED_SETS[name])
    with pytest.raises(ReleaseError, match=r"sets\.parquet: it is not the table that 'job', 'age' needs"):
        nr.open_release(release)


def test_a_text_that_stands_in_the_dictionary_alone_is_refused(release: Path) -> None:
    def hidden(table: pa.Table) -> pa.Table:
        lists = table.column("job").combine_chunks()
        flat = lists.flatten().dictionary_encode()
        longer = pa.DictionaryArray.from_arrays(flat.indices, pa.array([*flat.dictionary.to_pylist(), "hidden"]))
        gone = pa.array([one is None for one in lists.to_pylist()])
        new = pa.ListArray.from_arrays(lists.offsets, longer, mask=gone)
        return table.set_column(1, "job", new)

    changed(release, "sets.parquet", hidden)
    with pytest.raises(ReleaseError, match=r"sets\.parquet: it is not the table"):
        nr.open_release(release)


def test_a_set_that_no_cell_shows_is_refused(release: Path) -> None:
    changed(release, "data.parquet", with_column("age_set", lambda ids: [max(number, 1) for number in ids]))
    with pytest.raises(ReleaseError, match="lists sets of 'age' that no cell shows"):
        nr.verify(release)


FORGED_DATA: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a set that does not exist": with_column("age_set", lambda ids: [200, *ids[1:]]),
    "no set": with_column("age_set", lambda ids: [None, *ids[1:]]),
    "numbers of another type": lambda table: table.set_column(2, "age_set", table.column("age_set").cast(pa.int64())),
    "lists": lambda table: table.set_column(2, "age_set", pa.array([[0, 1, 2]] * len(table))),
}


@pytest.mark.parametrize("name", FORGED_DATA)
def test_a_forged_number_is_refused(name: str, release: Path) -> None:
    changed(release, "data.parquet", FORGED_DATA[name])
    with pytest.raises(ReleaseError, match=r"column 'age' (names a set|should hold numbers)"):
        nr.open_release(release).frame()


def test_a_column_besides_is_refused(release: Path) -> None:
    changed(release, "sets.parquet", lambda table: table.append_column("note", pa.array(["x"] * len(table))))
    with pytest.raises(ReleaseError, match="it has the column 'note'"):
        nr.verify(release)


@pytest.mark.parametrize("sets", [0, 85, 2**40, True, "many", 83.0])
def test_a_manifest_that_counts_sets_wrongly_is_refused(sets: Any, release: Path) -> None:
    fitted(release, lambda block: block["columns"][2].update(sets=sets))
    with pytest.raises(ReleaseError):
        nr.open_release(release)


def test_formats_without_numbers_open_and_have_none(
    made: nr.Release, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 10_000)
    old = made.save(tmp_path / "old")
    fitted(old, lambda block: block.update(format=3))
    assert nr.open_release(old).frame().equals(made.frame())
    assert not nr.verify(old).failed
    fitted(release, lambda block: block.update(format=3))
    with pytest.raises(ReleaseError, match="not the descriptor of a release"):
        nr.open_release(release)


# ---------------------------------------------------------------- cells


@pytest.mark.parametrize(("d", "eta"), [(2, 1), (6, 3), (18, 5), (20, 2), (25, 3), (64, 2), (70, 2), (200, 1), (9, 9)])
def test_sets_are_numbered_in_ascending_order(d: int, eta: int) -> None:
    every = np.array(list(combinations(range(d), eta)))
    order, cells = SetOrder.of(d, eta), SetCells.from_codes(d, every)
    np.testing.assert_array_equal(order.numbers(cells), np.arange(len(every)))
    np.testing.assert_array_equal(order.universe.codes(eta), every)


def test_too_many_sets_are_not_numbered() -> None:
    assert numberable(18, 5)
    assert not numberable(30, 5)
    assert not numberable(60_000, 59_999), "few sets, but of very many values"
    assert not numberable(3, 0)


@pytest.mark.parametrize(("d", "eta"), [(7, 3), (80, 2)])
def test_numbered_sets_say_what_sets_say(d: int, eta: int) -> None:
    rng = np.random.default_rng(1)
    codes = np.sort(np.argsort(rng.random((300, d)), axis=1)[:, :eta], axis=1)
    plain, order = SetCells.from_codes(d, codes), SetOrder.of(d, eta)
    cells = NumberedSets(order.universe, order.numbers(plain))
    truth = rng.integers(0, d, len(plain))
    assert len(cells) == len(plain)
    assert cells.is_mask is plain.is_mask
    np.testing.assert_array_equal(cells.data, plain.data)
    np.testing.assert_array_equal(cells.sizes(), plain.sizes())
    np.testing.assert_array_equal(cells.codes(eta), codes)
    np.testing.assert_array_equal(cells.contains(truth), plain.contains(truth))
    np.testing.assert_array_equal(cells.inclusions(), plain.inclusions())
    for sets, counts in (cells.count_sets(), plain.count_sets()):
        found = dict(zip(map(tuple, sets.codes(eta).tolist()), counts.tolist(), strict=True))
        assert found == {row: int((codes == row).all(axis=1).sum()) for row in map(tuple, codes.tolist())}
    distinct, ids = cells.distinct()
    np.testing.assert_array_equal(distinct.take(ids).codes(eta), codes)
    halves = [cells.take(slice(0, 100)), cells.take(np.arange(100, 300))]
    for parts in (halves, [plain.take(slice(0, 100)), halves[1]], [halves[0], plain.take(slice(100, 300))]):
        np.testing.assert_array_equal(type(parts[0]).concat(parts).data, plain.data)
    np.testing.assert_array_equal(cells.unpack(cells.pack()).data, plain.data)


def test_a_set_of_another_size_is_never_written(made: nr.Release) -> None:
    tally = set_tally.SetTally(made.statements)
    batch = next(iter(made.batches()))
    tally.number_sets({**batch, "age": SetCells(9, np.full(len(batch["age"]), 3, np.uint16))})
    with pytest.raises(nr.errors.NorenError, match="holds a set that its design does not draw"):
        tally.columns()
