"""What is published: it comes back from disk as it was, whatever its labels; and the un-aggregated form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError, ReleaseError
from noren.release.manifest import Manifest
from noren.release.release import Release, open_release
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement, OpenCells, SetCells, SetStatement

LABELS = [
    "Köln", "漢字", "a, b", 'say "hi"', "[x]", '["x", "y"]', '{"k": 1}', "two\nlines", "it's", " spaced ", "null", "NA",
    "back\\slash", "tab\there", "semi;colon", "é", "#", "-", "1,5", "𝒳",
]  # fmt: skip
N = 240


def strange_table() -> pa.Table:
    """Columns of every kind, protected and plain, with labels that files find hard."""
    i = np.arange(N)
    texts = [None if k % 21 == 20 else LABELS[k % 21] for k in i]
    whole = [int(k) for k in i % 7 * 5 - 12]
    real = [[0.5, -0.25, 1e-7, 41.0, 1e16, 3.0][k % 6] for k in i]
    flags = [bool(k % 3) for k in i]

    def holes(cells: list) -> list:
        return [None if k % 11 == 10 else cell for k, cell in enumerate(cells)]

    return pa.table(
        {
            "text": texts,
            "whole": whole,
            "real": real,
            "flag": flags,
            "big": [f"v{k % 80:02}" for k in i],
            "holes": holes(whole),
            "plain text": texts,
            "plain, whole": holes(whole),
            "plain.real": holes(real),
            'plain "flag"': holes(flags),
            "zip": [f"{k % 9:05}" for k in i],
            "note": [None if k % 50 == 0 else f'note "{k}", ümlaut\n[{k}]' for k in i],
        }
    )


PROTECTED = ("text", "whole", "real", "flag", "big", "holes")


@pytest.fixture(scope="module")
def strange() -> Release:
    table = strange_table()
    policy = nr.Policy(
        attributes={name: nr.sensitive() if name in PROTECTED else nr.plain() for name in table.column_names},
        require=[
            nr.models.FrequencyLDiversity(on=["text", "whole", "big"], l=3),
            nr.models.TCloseness(on=["flag", "real"], t=0.4),
            nr.models.EntropyLDiversity(on="holes", l=1.5),
        ],
        title="Seltsame Tabelle – 漢字",
        dependence={"most": 1.0},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("noren.engines.engine.OPEN_LIMIT", 150)
        return nr.anonymize(table, policy)


def test_texts_of_a_polars_frame_can_be_an_open_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars hands over string views, which Arrow cannot reorder."""
    import polars as pl

    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 50)
    data = pl.DataFrame({"note": [f"n{i}" for i in range(100)], "s": list("abcd") * 25})
    rules = nr.Policy(
        attributes={"note": nr.plain(), "s": nr.sensitive()}, require=[nr.models.FrequencyLDiversity(on="s", l=2)]
    )
    release = nr.anonymize(data, rules)
    assert release.column("note").column.is_open
    assert sorted(release.frame()["note"]) == sorted(data["note"])


def test_records_of_a_polars_frame_can_be_dropped() -> None:
    import polars as pl

    data = pl.DataFrame({"k": ["p", "q", "r", "s"] * 5, "s": ["a", None, "b", "c"] * 5})
    rules = nr.Policy(
        attributes={"k": nr.plain(), "s": nr.sensitive(missing="drop")},
        require=[nr.models.FrequencyLDiversity(on="s", l=2)],
        dependence={"most": 1.0},
    )
    assert nr.anonymize(data, rules).frame()["k"].unique().sort().to_list() == ["p", "r", "s"]


def test_the_holder_is_told_of_a_small_rest() -> None:
    from noren.workflow.anonymize import run

    table = pa.table({"s": ["caf\u00e9", "coffee", "tea"] * 7 + ["x"]})
    rules = nr.Policy(
        attributes={"s": nr.sensitive(min_count=5, rare="merge")}, require=[nr.models.FrequencyLDiversity(on="s", l=2)]
    )
    notes = run(table, rules).facts.notes
    assert any("even (other) has fewer than min_count records" in note for note in notes)


def test_the_strange_table_has_every_form_and_kind(strange: Release) -> None:
    kinds = {
        statement.name: (statement.is_exact, None if statement.column.is_open else statement.domain.kind)
        for statement in strange.statements
    }
    assert kinds == {
        "text": (False, "string"),
        "whole": (False, "integer"),
        "real": (False, "number"),
        "flag": (False, "boolean"),
        "big": (False, "string"),
        "holes": (False, "string"),
        "plain text": (True, "string"),
        "plain, whole": (True, "integer"),
        "plain.real": (True, "number"),
        'plain "flag"': (True, "boolean"),
        "zip": (True, "string"),
        "note": (True, None),
    }
    assert set(strange.designs) == set(PROTECTED)
    assert strange.designs["big"].d == 80


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_saved_and_opened_it_is_the_same(strange: Release, file_format: Any, tmp_path: Path) -> None:
    saved = strange.save(tmp_path / "release", file_format)
    back = open_release(saved)
    assert back.manifest.model_dump_json() == strange.manifest.model_dump_json()
    assert_frame_equal(back.frame(), strange.frame())
    names = ["README.md", f"data.{file_format}", "datapackage.json"]
    assert sorted(path.name for path in saved.iterdir()) == names
    again = open_release(back.save(tmp_path / "again", "csv" if file_format == "parquet" else "parquet"))
    assert_frame_equal(again.frame(), strange.frame())


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_streamed_to_disk_it_opens_as_well(file_format: Any, tmp_path: Path) -> None:
    table = strange_table().select(["text", "plain text", "plain, whole"])
    policy = nr.Policy(
        attributes={"text": nr.sensitive(), "plain text": nr.plain(), "plain, whole": nr.plain()},
        require=[nr.models.FrequencyLDiversity(on="text", l=2)],
        dependence={"most": 1.0},
    )
    release = nr.anonymize(table, policy, to=tmp_path / "deep" / "release", file_format=file_format)
    back = open_release(tmp_path / "deep" / "release")
    assert_frame_equal(back.frame(), release.frame())
    published = back.frame().select("plain text", "plain, whole")
    assert sorted(map(str, published.rows())) == sorted(map(str, pl.from_arrow(table.select(published.columns)).rows()))


def test_plain_columns_are_published_as_they_are(strange: Release) -> None:
    frame, table = strange.frame(), strange_table()
    for name in ("plain text", "plain, whole", "plain.real", 'plain "flag"', "zip", "note"):
        assert sorted(map(str, frame[name].to_list())) == sorted(map(str, table[name].to_pylist())), name
    assert frame.schema["plain, whole"] == pl.Int64
    assert frame.schema["plain.real"] == pl.Float64
    assert frame.schema['plain "flag"'] == pl.Boolean


def test_sets_are_lists_in_domain_order(strange: Release) -> None:
    frame = strange.frame()
    for name in PROTECTED:
        entry = strange.column(name)
        places = {value: place for place, value in enumerate(entry.domain.typed_values())}
        codes = np.array([[places[value] for value in cell] for cell in frame[name].to_list()])
        assert codes.shape == (N, entry.design.eta)
        assert (np.diff(codes, axis=1) > 0).all(), name


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_single_column_keeps_its_missing_cells(file_format: Any, tmp_path: Path) -> None:
    table = pa.table({"a": ["x", None, "y", None, "x"]})
    release = nr.anonymize(
        table, nr.Policy(attributes={"a": nr.plain()}, require=[]), to=tmp_path / "release", file_format=file_format
    )
    assert sorted(open_release(release.path).frame()["a"].to_list(), key=str) == [None, None, "x", "x", "y"]


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_batches_that_span_row_groups_change_nothing(
    strange: Release, file_format: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noren.release.store.MOST_ROWS", 8)
    monkeypatch.setattr("noren.sources.csv.BLOCK_BYTES", 6_000)
    monkeypatch.setattr("noren.release.store.rows_at_once", lambda columns: 13)
    back = open_release(strange.save(tmp_path / "release", file_format))
    assert len(list(back.batches(["big"]))) > 5
    assert_frame_equal(back.frame(), strange.frame())


def test_open_columns_of_a_file_are_kept_over_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 50)
    monkeypatch.setattr("noren.sources.csv.BLOCK_BYTES", 400)
    notes = [f"note {i}" if i % 7 else "" for i in range(120)]
    (tmp_path / "notes.csv").write_text("note,k\n" + "".join(f"{note},{i % 2}\n" for i, note in enumerate(notes)))
    release = nr.anonymize(
        tmp_path / "notes.csv", nr.Policy(attributes={"note": nr.plain(), "k": nr.plain()}, require=[])
    )
    assert release.column("note").column.is_open
    assert sorted(cell or "" for cell in release.frame()["note"].to_list()) == sorted(notes)


def alice() -> Release:
    """The one record of Table III, with the sets of Example 4 and a column published as it is."""
    domains = {
        "age": ("integer", ("33", "41", "50"), (0, 1)),
        "address": ("string", ("10105", "20001", "32515"), (0, 2)),
        "disease": ("string", ("Cold", "Flu", "HIV"), (0, 2)),
    }
    design = DecoyDesign(d=3, eta=2)
    columns = [
        SetStatement(Column(role=Role.SENSITIVE).over(name, Domain(values, kind)), design)
        for name, (kind, values, _) in domains.items()
    ]
    record = ExactStatement(Column(role=Role.PLAIN).over("record", Domain(("first",))))
    cells = {name: SetCells.from_codes(3, np.array([members])) for name, (_, _, members) in domains.items()}
    manifest = Manifest(
        noren="0", records=1, columns=(*columns, record), requirements=(), methods=(), randomness="fresh", verdicts=()
    )
    return Release(manifest, MemoryStore(cells | {"record": CodeCells(1, np.array([0]))}))


def test_the_un_aggregated_form_is_table_iii_b() -> None:
    expanded = alice().expand()
    assert expanded.select("age", "address", "disease").rows() == [
        (33, "10105", "Cold"),
        (33, "10105", "HIV"),
        (33, "32515", "Cold"),
        (33, "32515", "HIV"),
        (41, "10105", "Cold"),
        (41, "10105", "HIV"),
        (41, "32515", "Cold"),
        (41, "32515", "HIV"),
    ]
    assert expanded["record"].to_list() == ["first"] * 8
    assert expanded["record_"].to_list() == [0] * 8


def test_records_of_the_un_aggregated_form_can_be_told_apart() -> None:
    table = pa.table({"a": list("abc"), "b": list("xyz")})
    policy = nr.Policy(
        attributes={"a": nr.sensitive(), "b": nr.plain()}, require=[nr.models.FrequencyLDiversity(on="a", l=2)]
    )
    release = nr.anonymize(table, policy)
    expanded = release.expand()
    assert expanded.columns == ["record", "a", "b"]
    assert expanded.group_by("record", maintain_order=True).agg("a")["a"].to_list() == release.frame()["a"].to_list()


def test_the_un_aggregated_form_has_a_limit() -> None:
    assert len(alice().expand(limit=8)) == 8
    with pytest.raises(QueryError, match="would have 8 rows, more than 7"):
        alice().expand(limit=7)


def test_a_release_tells_what_it_is(strange: Release) -> None:
    assert repr(alice()) == "<Release of 1 records: age, address, disease, record; sets: age, address, disease>"
    assert {verdict.column for verdict in strange.verdicts} == set(PROTECTED)
    assert all(verdict.holds for verdict in strange.verdicts)
    assert isinstance(strange.cells(["note"])["note"], OpenCells)


def test_the_csv_holds_json_arrays(strange: Release, tmp_path: Path) -> None:
    saved = strange.save(tmp_path / "release", "csv")
    frame = pl.read_csv(saved / "data.csv", infer_schema=False)
    decoded = [json.loads(cell) for cell in frame["text"].to_list()]
    assert decoded == strange.frame()["text"].to_list()
    assert [json.loads(cell) for cell in frame["flag"].to_list()] == strange.frame()["flag"].to_list()


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("age", pa.array([["33"], ["41"]])),
        ("age", pa.array([["33", "41", "50"]])),
        ("age", pa.array([["33", "33"]])),
        ("age", pa.array([["41", "33"]])),
        ("age", pa.array([["33", "99"]])),
        ("age", pa.array([["33", None]])),
        ("age", pa.array([None, ["33", "41"]])),
        ("age", pa.array(["33"])),
        ("record", pa.array(["second"])),
        ("record", pa.array([None], pa.string())),
    ],
)
def test_cells_that_the_manifest_does_not_allow_are_refused(column: str, cells: pa.Array) -> None:
    with pytest.raises(ReleaseError, match=f"column '{column}' "):
        alice().column(column).from_arrow(cells)


@pytest.mark.parametrize("name", ["town", "ill"])
def test_a_condition_on_the_column_that_is_asked_for_holds_there(name: str) -> None:
    """Whether its values are published or hidden in sets."""
    people = pl.DataFrame(
        {"town": ["Ulm", "Bonn", "Hof"] * 40, "ill": [*["flu"] * 40, *["cold"] * 40, *["gout"] * 30, *["hiv"] * 10]}
    )
    attributes = {"town": "quasi-identifier", "ill": "sensitive"}
    policy = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="ill", l=2)])
    wanted = {"town": ["Ulm", "Hof"], "ill": ["flu", "gout"]}[name]
    found = nr.anonymize(people, policy).estimate(name, where={name: wanted}).frame
    counts = dict(zip(found[name].to_list(), found["count"].to_list(), strict=True))
    assert {value for value, count in counts.items() if count} <= set(wanted)
    assert sum(counts.values()) < 120
