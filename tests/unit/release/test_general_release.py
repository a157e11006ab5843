"""Releases of general values and groups: what their manifest may say, their files, and what a recipient may ask."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

import noren as nr
from noren.errors import QueryError, ReleaseError
from noren.release.manifest import Manifest, read_column
from noren.release.package import checksum, manifest_digest
from noren.release.store import MemoryStore, with_sides, write_sides
from noren.statements import CodeCells, GroupTable

N = 120
TABLE = pa.table(
    {
        "age": [20 + i * 7 % 40 for i in range(N)],
        "town": [["Ulm", "Bonn", "Köln"][i % 3] for i in range(N)],
        "note": [f"n{i}" for i in range(N)],
        "ill": [["flu", "burn", "gout", "cold"][i // 3 % 4] for i in range(N)],
        "pay": [[10, 20, 30][i % 3] for i in range(N)],
    }
)
TOWNS = {"tree": {"Rhine": ["Bonn", "Köln"], "Danube": ["Ulm", "Passau"]}}


def policy(method: str = "mondrian", **more: Any) -> nr.Policy:
    return nr.Policy(
        attributes={
            "age": "quasi-identifier",
            "town": {"role": "quasi-identifier", "hierarchy": TOWNS},
            "note": "plain",
            "ill": "sensitive",
            "pay": "sensitive",
        },
        require=[nr.models.FrequencyLDiversity(on=["ill", "pay"], l=2)],
        method=method,
        dependence={"most": 1.0},
        **more,
    )


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder = tmp_path_factory.mktemp("general")
    made = {method: nr.anonymize(TABLE, policy(method)) for method in ("mondrian", "rating")}
    return {
        (method, kind): release.save(folder / f"{method}-{kind}", kind)
        for method, release in made.items()
        for kind in ("parquet", "csv")
    }


@pytest.fixture
def copy(originals, tmp_path) -> Callable[..., Path]:
    def make(method: str, kind: str = "csv") -> Path:
        return Path(shutil.copytree(originals[method, kind], tmp_path / "release"))

    return make


def edit(release: Path, change: Callable[[dict[str, Any]], Any] = lambda block: None) -> None:
    """Change the manifest and put every checksum right, as a careful forger would."""
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    block = package["noren"]
    del block["sha256"]
    change(block)
    block["sha256"] = manifest_digest(block)
    for resource in package["resources"]:
        file = release / resource["path"]
        resource |= {"bytes": file.stat().st_size, "hash": f"sha256:{checksum(file)}"}
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- what a manifest may say

NODE = {
    "name": "q",
    "role": "quasi-identifier",
    "form": "node",
    "kind": "string",
    "values": ("a", "b", "c"),
    "nodes": (("a or b", ((0, 2),)), ("c", ((2, 3),))),
}
BARE = {name: said for name, said in NODE.items() if name != "nodes"}
TREE = {**BARE, "hierarchy": (("a", "b", "c"), ("x", "x", "c"), ("*", "*", "*"))}
VALUES = {"name": "s", "role": "sensitive", "form": "group", "kind": "string", "values": ("a", "b")}
GROUP = {**VALUES, "groups": 2, "number": 1}


def test_sound_entries_stand():
    assert read_column(NODE).nodes.labels == ("a or b", "c")
    assert read_column(TREE).nodes.labels == ("a", "b", "c", "x", "*")
    assert read_column(GROUP).is_class
    assert read_column(GROUP).kinds == 2


WRONG = {
    "groups without ids": ({**NODE, "groups": 3}, "has the fields nodes"),
    "ids without groups": (VALUES, "has the fields groups, number"),
    "no group": ({**GROUP, "groups": 0}, "numbers from 1 on"),
    "half a group": ({**GROUP, "groups": 1.5}, "numbers from 1 on"),
    "groups that are none": ({**GROUP, "groups": None}, "numbers from 1 on"),
    "table 0": ({**GROUP, "number": 0}, "numbers from 1 on"),
    "nodes of groups": ({**GROUP, "nodes": NODE["nodes"]}, "has the fields groups, number"),
    "nodes twice": ({**TREE, "nodes": NODE["nodes"]}, "from a hierarchy or from a list"),
    "no nodes": (BARE, "from a hierarchy or from a list"),
    "one label for two": ({**NODE, "nodes": (("x", ((0, 1),)), ("x", ((1, 3),)))}, "two general values have one label"),
    "a node beyond the values": ({**NODE, "nodes": (("x", ((0, 4),)),)}, "rising runs"),
    "a node below the values": ({**NODE, "nodes": (("x", ((-1, 2),)),)}, "rising runs"),
    "a node of nothing": ({**NODE, "nodes": (("x", ()),)}, "rising runs"),
    "a node that falls": ({**NODE, "nodes": (("x", ((2, 1),)),)}, "rising runs"),
    "another tree": ({**TREE, "hierarchy": (("a", "b", "d"), ("*", "*", "*"))}, "hierarchy is not over the values"),
    "a short tree": ({**TREE, "hierarchy": (("a", "b"), ("*", "*"))}, "hierarchy is not over the values"),
    "a value twice": ({**NODE, "values": ("a", "b", "b")}, "lists its values, each once"),
    "no values": ({**NODE, "values": None}, "lists its values"),
    "a design": (
        {**GROUP, "design": {"name": "uniform-decoys", "d": 2, "eta": 2, "p": 1.0}},
        "has the fields groups, number",
    ),
    "a form of the future": ({**GROUP, "form": "riddle"}, "a form that this version knows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_entry_that_contradicts_itself_is_refused(case):
    fields, why = WRONG[case]
    with pytest.raises(ValueError, match=why):
        read_column(fields)


DRAWN = {**VALUES, "design": {"name": "uniform-decoys", "d": 2, "eta": 2, "p": 1.0}}
MEMBER = {**DRAWN, "form": "member", "name": "m"}
FIELDS = {"noren": "1", "records": 3, "requirements": (), "methods": (), "randomness": "fresh", "verdicts": ()}


@pytest.mark.parametrize("others", [[NODE], [GROUP], [{**DRAWN, "form": "set"}]])
def test_shuffled_members_stand_beside_exact_columns_alone(others):
    """One row has one member of a person's sets, so nothing else of the person may vary or be hidden."""
    exact = {**VALUES, "form": "exact", "name": "e", "role": "plain"}
    assert Manifest(**FIELDS, columns=[MEMBER, exact]).rows_per_record == 2
    assert Manifest(**FIELDS, columns=[MEMBER, exact, {**MEMBER, "name": "n"}]).rows_per_record == 4
    with pytest.raises(ValidationError, match="beside exact columns alone"):
        Manifest(**FIELDS, columns=[MEMBER, exact, *others])


@pytest.mark.parametrize("columns", [[NODE], [GROUP], [GROUP, NODE], [NODE, {**DRAWN, "form": "set"}]])
def test_nobody_is_left_out_a_negative_number_of_times(columns):
    assert Manifest(**FIELDS, columns=columns).suppressed == 0
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Manifest(**FIELDS, columns=columns, suppressed=-1)


def test_side_tables_are_numbered_without_gaps():
    with pytest.raises(ValidationError, match="not numbered from 1 on"):
        Manifest(**FIELDS, columns=[{**GROUP, "number": 2}])
    assert Manifest(**FIELDS, columns=[GROUP, {**GROUP, "name": "t", "number": 2}]).columns[1].side == "groups-2"


# ---------------------------------------------------------------- group tables in files

DOMAINS = {
    "integers": ("integer", ("-3", "0", "12345678901")),
    "numbers": ("number", ("-0.5", "1e-07", "2", "2.25")),
    "booleans": ("boolean", ("false", "true")),
    "missing texts": ("string", ("a", "b", "(missing)")),
    "other": ("string", ("a", "(other)", "(missing)")),
    "texts that need care": ("string", ("病", 'a "b"', "x,y", "l\nm", " pad ", "007", "nan", "NULL", "é", "e\u0301")),
}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("case", DOMAINS)
def test_group_tables_survive_their_file(case, kind, tmp_path):
    value_kind, values = DOMAINS[case]
    entry = read_column({**GROUP, "kind": value_kind, "values": values, "groups": 3})
    group, value = (part.ravel() for part in np.indices((3, len(values))))
    table = GroupTable(3, len(values), group, value, np.arange(1, len(group) + 1))
    write_sides(tmp_path, [entry.with_side(table)], f".{kind}")
    again = with_sides(tmp_path, [entry], f".{kind}")[0].table
    for part in ("group", "value", "count"):
        assert getattr(again, part).tolist() == getattr(table, part).tolist()
    assert (again.groups, again.d) == (3, len(values))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_descriptor_ties_ids_to_their_tables(originals, kind):
    folder = originals["rating", kind]
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    data, *tables = package["resources"]
    assert [resource["name"] for resource in tables] == ["groups-1", "groups-2"]
    title = " (group)" if kind == "csv" else "_group"
    assert data["schema"]["foreignKeys"] == [
        {"fields": [name + title], "reference": {"resource": f"groups-{number}", "fields": ["group"]}}
        for number, name in ((1, "ill"), (2, "pay"))
    ]
    types = {field["name"]: field["type"] for field in data["schema"]["fields"]}
    grouped = {f"ill{title}": "integer", f"pay{title}": "integer"}
    assert types == {"age": "integer", "town": "string", "note": "string", **grouped}
    assert tables[1]["schema"]["fields"][1] == {"name": "value", "type": "integer"}
    general = json.loads((originals["mondrian", kind] / "datapackage.json").read_text(encoding="utf-8"))
    (data,) = general["resources"]
    assert {field["name"]: field["type"] for field in data["schema"]["fields"]}["age"] == "string"
    assert "foreignKeys" not in data["schema"]


# ---------------------------------------------------------------- damaged releases


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_group_table_that_is_gone_or_changed_is_refused(copy, kind):
    release = copy("rating", kind)
    table = release / f"groups-2.{kind}"
    content = table.read_bytes()
    table.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    with pytest.raises(ReleaseError, match=rf"groups-2\.{kind}: changed or damaged: its checksum differs"):
        nr.open_release(release)
    table.unlink()
    with pytest.raises(ReleaseError, match=rf"groups-2\.{kind} is missing"):
        nr.open_release(release)


DAMAGE: dict[str, Callable[[list[list[str]]], Any]] = {
    "a group without rows": lambda rows: [row for row in rows if row[0] != "0"],
    "no group at all": lambda rows: [],
    "a negative count": lambda rows: [[rows[0][0], rows[0][1], "-1"], *rows[1:]],
    "a count of nothing": lambda rows: [[rows[0][0], rows[0][1], "0"], *rows[1:]],
    "half a count": lambda rows: [[rows[0][0], rows[0][1], "0.5"], *rows[1:]],
    "a missing count": lambda rows: [[rows[0][0], rows[0][1], ""], *rows[1:]],
    "a group beyond the last": lambda rows: [*rows, ["9999", rows[0][1], "1"]],
    "a negative group": lambda rows: [["-1", rows[0][1], "1"], *rows],
    "a value outside the domain": lambda rows: [[rows[0][0], "Xq7", "1"], *rows[1:]],
    "a missing value": lambda rows: [[rows[0][0], "", "1"], *rows[1:]],
    "a value twice in a group": lambda rows: [rows[0], *rows],
    "another order": lambda rows: rows[::-1],
    "a ragged row": lambda rows: [*rows, ["1"]],
}
RAGGED = ("a ragged row", "parquet")  # a Parquet file has none


@pytest.mark.parametrize(
    ("case", "kind"), [(case, kind) for case in DAMAGE for kind in ("parquet", "csv") if (case, kind) != RAGGED]
)
def test_a_damaged_group_table_is_refused_even_if_its_checksum_is_right(copy, case, kind):
    release = copy("rating", kind)
    table = release / f"groups-1.{kind}"
    frame = pl.read_csv(table, infer_schema=False) if kind == "csv" else pl.read_parquet(table).cast(pl.String)
    rows = DAMAGE[case]([list(row) for row in frame.rows()])
    if kind == "csv":
        table.write_text("\n".join(["group,value,count", *map(",".join, rows)]) + "\n", encoding="utf-8")
    else:
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        named = zip(("group", "value", "count"), columns, strict=True)
        pq.write_table(pa.table({name: pa.array(cells, pa.string()) for name, cells in named}), table)
    edit(release)
    with pytest.raises(ReleaseError) as caught:
        nr.open_release(release)
    assert "Xq7" not in str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_group_table_without_its_columns_is_refused(copy, kind):
    release = copy("rating", kind)
    wrong = pl.DataFrame({"group": [0], "value": ["flu"]})
    path = release / f"groups-1.{kind}"
    wrong.write_csv(path) if kind == "csv" else wrong.write_parquet(path)
    edit(release)
    with pytest.raises(ReleaseError, match="not the table that 'ill' needs"):
        nr.open_release(release)


def test_a_file_that_is_no_table_is_refused(copy):
    release = copy("rating", "parquet")
    (release / "groups-1.parquet").write_bytes(b"PAR1 not really")
    edit(release)
    with pytest.raises(ReleaseError, match="not the table that 'ill' needs"):
        nr.open_release(release)


@pytest.mark.parametrize("change", ["fewer", "more", "other"])
def test_tables_are_those_that_the_manifest_names(copy, change):
    release = copy("rating")
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    if change == "fewer":
        package["resources"].pop()
    elif change == "more":
        package["resources"].append(dict(package["resources"][-1], path="groups-3.csv"))
    else:
        package["resources"][1]["path"] = "../release/groups-1.csv"
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="lists a data file that no release has"):
        nr.open_release(release)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("forged", ["99999", "-1", "x", ""])
def test_an_id_that_no_group_has_is_refused(copy, forged, kind):
    release = copy("rating", kind)
    data = release / f"data.{kind}"
    frame = pl.read_csv(data, infer_schema=False) if kind == "csv" else pl.read_parquet(data).cast(pl.String)
    title = "ill (group)" if kind == "csv" else "ill_group"
    ids = [forged or None, *frame[title].to_list()[1:]]
    frame = frame.with_columns(pl.Series(title, ids, dtype=pl.String))
    frame.write_csv(data) if kind == "csv" else frame.write_parquet(data)
    edit(release)
    opened = nr.open_release(release)
    for ask in (lambda: opened.cells(["ill"]), lambda: opened.estimate("ill")):
        with pytest.raises(ReleaseError, match="column 'ill' names a group that does not exist"):
            ask()
    with pytest.raises(ReleaseError):
        nr.verify(opened)


def test_ids_that_do_not_add_up_to_their_table_fail_verification(copy):
    release = copy("rating")
    data = release / "data.csv"
    head, first, *rest = data.read_text(encoding="utf-8").splitlines()
    assert head.endswith('"ill (group)","pay (group)"')
    before, group, last = first.rsplit(",", 2)
    moved = f"{before},{min({line.rsplit(',', 2)[1] for line in rest} - {group})},{last}"
    data.write_text("\n".join([head, moved, *rest]) + "\n", encoding="utf-8")
    edit(release)
    verdict = next(v for v in nr.verify(nr.open_release(release)) if v.column == "ill")
    assert verdict.holds is False
    assert "as many records as their table says" in verdict.statement


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_general_value_outside_the_catalogue_is_refused(copy, kind):
    release = copy("mondrian", kind)
    data = release / f"data.{kind}"
    frame = pl.read_csv(data, infer_schema=False) if kind == "csv" else pl.read_parquet(data)
    frame = frame.with_columns(pl.Series("town", ["Atlantis", *frame["town"].to_list()[1:]]))
    frame.write_csv(data) if kind == "csv" else frame.write_parquet(data)
    edit(release)
    with pytest.raises(ReleaseError, match="column 'town' holds a value that its published domain does not name") as e:
        nr.open_release(release).frame()
    assert "Atlantis" not in str(e.value)
    assert not isinstance(e.value.__cause__, Exception)


# ---------------------------------------------------------------- what a recipient may ask


@pytest.mark.parametrize("method", ["mondrian", "rating"])
def test_what_has_no_meaning_is_refused_in_words(originals, method):
    opened = nr.open_release(originals[method, "csv"])
    with pytest.raises(QueryError, match="general values and no sets to expand"):
        opened.expand()
    with pytest.raises(QueryError, match="no interval for the population"):
        opened.estimate("ill", population=True)
    with pytest.raises(QueryError, match="no interval for the population"):
        opened.count({"ill": "flu"}, population=True)


def test_a_release_says_what_is_general_and_what_is_grouped(originals):
    general, groups = (nr.open_release(originals[method, "parquet"]) for method in ("mondrian", "rating"))
    assert repr(general) == "<Release of 120 records: age, town, note, ill, pay; general values: age, town>"
    assert repr(groups) == "<Release of 120 records: age, town, note, ill, pay; groups of values: ill, pay>"


@pytest.mark.parametrize("method", ["mondrian", "rating"])
def test_the_frame_is_the_same_from_memory_and_both_files(originals, method, tmp_path):
    first, second = (nr.open_release(originals[method, kind]) for kind in ("parquet", "csv"))
    frame = first.frame()
    assert frame.equals(second.frame())
    assert frame.height == N
    second.save(tmp_path / "third", "parquet")
    again = nr.open_release(tmp_path / "third")
    assert again.frame().equals(frame)
    for release in (first, again):
        grouped = {statement.name for statement in release.statements if statement.table is not None}
        assert grouped == ({"ill", "pay"} if method == "rating" else set())
    names = {path.name for path in (tmp_path / "third").iterdir()}
    groups = {"groups-1.parquet", "groups-2.parquet"} if method == "rating" else set()
    assert names == {"README.md", "data.parquet", "datapackage.json"} | groups
    kinds = {"mondrian": [pl.String, pl.String, pl.String, pl.String, pl.Int64]}
    assert frame.dtypes == kinds.get(method, [pl.Int64, pl.String, pl.String, pl.Int64, pl.Int64])


def small(suppressed: int) -> nr.Release:
    """Five records by hand: two towns, one of them general, a group column, an exact one."""
    node = {**NODE, "nodes": (("a", ((0, 1),)), ("b or c", ((1, 3),)))}
    exact = {"name": "x", "role": "plain", "form": "exact", "kind": "string", "values": ("m", "n")}
    groups = GroupTable(1, 2, np.array([0, 0]), np.array([0, 1]), np.array([3, 2]))
    columns = [read_column(node), read_column({**GROUP, "groups": 1}).with_side(groups), read_column(exact)]
    manifest = Manifest(**{**FIELDS, "records": 5}, suppressed=suppressed, columns=columns)
    cells = {
        "q": CodeCells(2, np.array([0, 0, 1, 1, 1])),
        "s": CodeCells(1, np.zeros(5, int)),
        "x": CodeCells(2, np.array([0, 1, 1, 0, 0])),
    }
    return nr.Release(manifest, MemoryStore(cells))


def test_people_who_were_left_out_are_no_random_sample():
    """Also where the column asked for is exact: an interval would not know of them."""
    with pytest.raises(QueryError, match="no interval for the population"):
        small(4).estimate("x", population=True)


@pytest.mark.parametrize("suppressed", [0, 4])
def test_suppressed_records_add_to_the_upper_bound_and_to_nothing_else(suppressed):
    release = small(suppressed)
    bounds = {"a": (2, 2), "b": (0, 3), "c": (0, 3)}
    for value, count, low, high in release.estimate("q").frame.select("q", "count", "low", "high").iter_rows():
        assert (low, high) == (bounds[value][0], bounds[value][1] + suppressed)
        assert low <= count <= bounds[value][1]
    groups = release.estimate("s").frame
    assert groups["low"].to_list() == [3, 2]
    assert groups["high"].to_list() == [3 + suppressed, 2 + suppressed]
    exact = release.count({"x": "m"})
    assert (exact.count, exact.low, exact.high) == (3, 3, 3 + suppressed)
    both = release.count({"x": "n", "q": ["a"]})
    assert (both.count, both.low, both.high) == (1, 1, 1 + suppressed)
