"""Tables that other tools made: read as they are, whatever their notation, and judged by class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.release.published import Published
from noren.schema.roles import Role
from noren.sources.source import open_source
from noren.statements import CodeCells, OpenCells
from noren.workflow import foreign as room
from noren.workflow.foreign import read_foreign, verify_table

ARX = """\
sex;age;zip;illness
Male;20-39;130**;flu
Male;20-39;130**;cold
Male;20-39;130**;flu
*;40-59;1485*;flu
*;40-59;1485*;flu
*;[60, 80[;1485*;cold
*;[60, 80[;1485*;ulcer
*;*;*;flu
*;*;*;ulcer
"""
"""As ARX writes: `;` between cells, intervals, `*` for a general value, and in all keys of a row that it dropped."""
TREE = "flu;lungs;*\ncold;lungs;*\nulcer;gut;*\n"
ROLES = {"sex": "quasi-identifier", "age": "quasi-identifier", "zip": "quasi-identifier", "illness": "sensitive"}


@pytest.fixture
def arx(tmp_path: Path) -> Path:
    path = tmp_path / "arx.csv"
    path.write_text(ARX, encoding="utf-8")
    (tmp_path / "illness.csv").write_text(TREE, encoding="utf-8")
    return path


def policy(*require: nr.models.Model, **options: Any) -> nr.Policy:
    attributes: dict[str, Any] = {name: {"role": role} for name, role in ROLES.items()}
    attributes["illness"] |= options.pop("illness", {})
    rules = require or (nr.models.DistinctLDiversity(on="illness", l=2),)
    if all(isinstance(rule, nr.models.KAnonymity) for rule in rules):
        attributes["illness"]["role"] = "plain"  # a secret that nothing is asked for is refused
    return nr.Policy(attributes=attributes | options, require=rules, method=nr.methods.Mondrian())


def read(table: Any, **options: Any) -> Published:
    return read_foreign(open_source(table), {name: Role(role) for name, role in ROLES.items()}, **options)


def test_dropped_rows_belong_to_no_class(arx: Path) -> None:
    foreign = read(arx)
    assert (foreign.records, foreign.suppressed) == (7, 2)
    assert [column.name for column in foreign.statements] == list(ROLES)
    assert read(arx, suppressed=None).records == 9
    assert read(arx, suppressed="").records == 9
    assert read(arx, suppressed="?").suppressed == 0


def test_each_shortfall_names_its_class(arx: Path) -> None:
    foreign, (size, mixed) = verify_table(
        arx, policy(nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="illness", l=2)), show=5
    )
    assert (foreign.records, foreign.suppressed) == (9, 2)
    assert (size.holds, size.achieved, size.required, size.short, size.breaches) == (False, 2, 3, 3, 6)
    assert {tuple(one.keys.items()) for one in size.shortfalls} == {
        (("sex", "*"), ("age", "40-59"), ("zip", "1485*")),
        (("sex", "*"), ("age", "[60, 80["), ("zip", "1485*")),
        (("sex", "*"), ("age", "*"), ("zip", "*")),
    }
    assert (mixed.holds, mixed.achieved, mixed.short, mixed.breaches) == (False, 1, 1, 2)
    assert [(one.keys["age"], one.records, one.achieved) for one in mixed.shortfalls] == [("40-59", 2, 1)]


def test_shortfalls_are_counted_even_if_none_is_shown(arx: Path) -> None:
    _, (size,) = verify_table(arx, policy(nr.models.KAnonymity(k=3)))
    assert (size.short, size.shortfalls) == (3, ())
    _, (size,) = verify_table(arx, policy(nr.models.KAnonymity(k=3)), show=1)
    assert (size.short, len(size.shortfalls)) == (3, 1)


def test_a_table_that_holds(arx: Path) -> None:
    _, verdicts = verify_table(arx, policy(nr.models.KAnonymity(k=2)))
    assert [(one.holds, one.short, one.breaches) for one in verdicts] == [(True, 0, 0)]


def test_dropped_rows_are_a_class_and_part_of_the_whole(arx: Path) -> None:
    """Of nine records five have flu, two a cold and two an ulcer."""
    _, (verdict,) = verify_table(arx, policy(nr.models.TCloseness(on="illness", t=0.2)))
    assert verdict.achieved == pytest.approx(5 / 9)  # one cold, one ulcer: 1/2 - 2/9 twice
    assert verdict.short == 4


def test_a_dropped_row_that_tells_a_secret_is_judged(arx: Path) -> None:
    arx.write_text(ARX.replace("*;*;*;flu\n", ""), encoding="utf-8")
    _, (verdict,) = verify_table(arx, policy(nr.models.KAnonymity(k=2)), show=1)
    assert (verdict.holds, verdict.achieved) == (False, 1)
    assert set(verdict.shortfalls[0].keys.values()) == {"*"}


def test_a_dropped_row_that_tells_nothing_is_left_out(arx: Path) -> None:
    arx.write_text(ARX.replace("*;*;*;flu\n", "*;*;*;*\n").replace("*;*;*;ulcer\n", ""), encoding="utf-8")
    foreign, (verdict,) = verify_table(arx, policy(nr.models.KAnonymity(k=2)))
    assert (verdict.holds, foreign.records, foreign.suppressed) == (True, 7, 1)


def test_values_of_a_hierarchy_file(arx: Path) -> None:
    tree = {"hierarchy": {"csv": str(arx.with_name("illness.csv"))}}
    foreign, _ = verify_table(arx, policy(illness=tree))
    illness = foreign.statements[-1]
    assert illness.is_exact
    assert illness.domain.values == ("cold", "flu", "ulcer")
    assert illness.column.tree is not None
    assert illness.column.tree.levels[1] == ("lungs", "lungs", "gut")


def test_inner_nodes_in_the_secret(arx: Path) -> None:
    """A general illness counts for every value under it: {lungs} leaves flu and cold possible."""
    arx.write_text(ARX.replace("*;40-59;1485*;flu", "*;40-59;1485*;lungs"), encoding="utf-8")
    tree = {"hierarchy": {"csv": str(arx.with_name("illness.csv"))}}
    foreign, (verdict,) = verify_table(arx, policy(illness=tree))
    assert foreign.statements[-1].nodes is not None
    assert (verdict.holds, verdict.achieved) == (True, 2)


def test_every_value_that_the_hierarchy_misses_is_named(arx: Path) -> None:
    text = ARX.replace("1485*;cold", "1485*;measles").replace("130**;cold", "130**;gout")
    arx.write_text(text.replace("*;40-59;1485*;flu", "*;40-59;1485*;lungs"), encoding="utf-8")
    tree = {"hierarchy": {"csv": str(arx.with_name("illness.csv"))}}
    with pytest.raises(nr.errors.PolicyError, match=r"misses 2 values of 'illness': 'gout', 'measles'"):
        verify_table(arx, policy(illness=tree))


@pytest.mark.parametrize("cell", ["", "(missing)"])
def test_missing_secrets(arx: Path, cell: str) -> None:
    """They are one value more, under the root of a hierarchy; beside general values they have no place."""
    tree = {"hierarchy": {"csv": str(arx.with_name("illness.csv"))}}
    arx.write_text(ARX.replace("1485*;cold", f"1485*;{cell}"), encoding="utf-8")
    for options in ({}, tree):
        foreign, (verdict,) = verify_table(
            arx, policy(nr.models.TCloseness(on="illness", t=0.9, distance="equal"), illness=options)
        )
        assert foreign.statements[-1].domain.values == ("cold", "flu", "ulcer", "(missing)")
        assert verdict.achieved == pytest.approx(2 / 3)
    _, (verdict,) = verify_table(arx, policy(nr.models.TCloseness(on="illness", t=0.9, distance="tree"), illness=tree))
    assert 0 < verdict.achieved <= 2 / 3 + 1e-9
    arx.write_text(ARX.replace("1485*;cold", f"1485*;{cell}").replace("*;40-59;1485*;flu", "*;40-59;1485*;lungs"))
    with pytest.raises(nr.errors.PolicyError, match="does not contain missing cells"):
        verify_table(arx, policy(illness=tree))


def test_a_marker_is_missing_where_the_policy_says_so(arx: Path) -> None:
    arx.write_text(ARX.replace("1485*;cold", "1485*;?"), encoding="utf-8")
    rules = policy()
    marked = nr.Policy(
        attributes=rules.attributes, require=rules.require, method=rules.methods, data={"missing_values": ["?"]}
    )  # type: ignore[arg-type]
    assert verify_table(arx, rules)[0].statements[-1].domain.values == ("?", "cold", "flu", "ulcer")
    assert verify_table(arx, marked)[0].statements[-1].domain.values == ("cold", "flu", "ulcer", "(missing)")


def test_missing_keys_equal_each_other_and_nothing_else() -> None:
    rows = {"sex": [None, None, "(missing)", ""], "age": ["1"] * 4, "zip": ["1"] * 4, "illness": list("abab")}
    _, (verdict,) = verify_table(pl.DataFrame(rows), policy(nr.models.KAnonymity(k=2)), show=9)
    assert (verdict.achieved, verdict.short) == (1, 1)
    assert [one.keys["sex"] for one in verdict.shortfalls] == ["(missing)"]


def test_columns_that_the_policy_does_not_want(arx: Path) -> None:
    some = policy(nr.models.KAnonymity(k=2))
    frame = pl.read_csv(arx, separator=";").with_columns(name=pl.lit("x"), note=pl.lit("y"))
    extra = {"name": {"role": "identifier"}}
    rules = nr.Policy(attributes={**some.attributes, **extra}, require=some.require, method=some.methods)
    verdicts = verify_table(frame, rules)[1]
    assert [(v.model, v.column, v.holds, v.breaches) for v in verdicts[1:]] == [
        ("published-columns", "name", False, 9),
        ("published-columns", "note", False, 9),
    ]


def test_a_requirement_on_a_column_that_is_not_there(arx: Path) -> None:
    frame = pl.read_csv(arx, separator=";").drop("illness")
    with pytest.raises(nr.NorenError, match="'illness'"):
        verify_table(frame, policy())


@pytest.mark.parametrize("missing", [False, True])
def test_many_texts_are_compared_as_they_stand(monkeypatch: pytest.MonkeyPatch, arx: Path, missing: bool) -> None:
    """Few texts are coded and many are not: the classes are the same."""
    if missing:
        arx.write_text(ARX.replace("Male", ""), encoding="utf-8")
    rules = policy(nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="illness", l=2))
    coded, few = verify_table(arx, rules, show=9)
    monkeypatch.setattr(room, "MOST_LABELS", 1)
    plain, many = verify_table(arx, rules, show=9)
    assert isinstance(coded.store._cells["age"], CodeCells)
    assert isinstance(plain.store._cells["age"], OpenCells)
    assert [(v.achieved, v.short, v.breaches) for v in few] == [(v.achieved, v.short, v.breaches) for v in many]
    assert _named(few[0].shortfalls) == _named(many[0].shortfalls)


def _named(shortfalls: Sequence[Any]) -> set[tuple[str, ...]]:
    return {tuple(one.keys.values()) for one in shortfalls}


def with_null_in_dictionary() -> pa.Table:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "a"]))
    return pa.table({"q": coded, "x": ["1", "2", "3", "4"]})


@pytest.mark.parametrize(
    ("table", "sizes"),
    [
        (pl.DataFrame({"q": [1.0, -0.0, 0.0], "x": [0.5, -0.0, 0.0]}), [1, 2]),
        (pl.DataFrame({"q": ["a", "b", "a"], "x": ["u", "v", "w"]}).cast(pl.Categorical), [1, 2]),
        (pd.DataFrame({"q": pd.Categorical(["a", None, "a"]), "x": pd.Categorical([1, 2, 1])}), [1, 2]),
        (pd.DataFrame({"q": [1, 2, 1], "x": [True, False, True]}, index=[7, 7, 0]), [1, 2]),
        (with_null_in_dictionary(), [2, 2]),
        (
            pa.table(
                {
                    "q": pa.chunked_array([pa.array(x).dictionary_encode() for x in (["a", "b"], ["b", "c", "b"])]),
                    "x": ["1", "1", "2", "3", "3"],
                }
            ),
            [1, 1, 3],
        ),
        (pa.table({"q": pa.array(["a", "b", None], pa.large_string()).dictionary_encode(), "x": [1, 2, 3]}), [1, 1, 1]),
    ],
    ids=["minus zero", "polars categories", "pandas categories", "an index", "null in a dictionary", "chunks", "large"],
)
def test_forms_of_columns(table: Any, sizes: list[int]) -> None:
    foreign = read_foreign(open_source(table), {"q": Role.QUASI_IDENTIFIER, "x": Role.SENSITIVE})
    cells = foreign.store._cells["q"]
    assert isinstance(cells, CodeCells)
    found = pl.Series(cells.data).value_counts()["count"].sort().to_list()
    assert found == sizes


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (pl.DataFrame({"sex": [], "illness": []}), "a header but no rows"),
        (pl.DataFrame({"hue": ["red"]}), "no column has a role that can be checked"),
        (pl.DataFrame({"sex": ["*"], "age": ["*"], "illness": ["flu"]}), "all records are suppressed"),
        (pl.DataFrame({"sex": [["m"]], "illness": ["flu"]}), "not a single value"),
        (pl.DataFrame({"sex": ["m"], "illness": [[]]}, schema_overrides={"illness": pl.List(pl.String)}), "no value"),
    ],
)
def test_tables_without_an_answer(table: pl.DataFrame, told: str) -> None:
    with pytest.raises(nr.errors.DataError, match=told):
        read(table)


def test_one_record() -> None:
    frame = pl.DataFrame({"sex": ["m"], "age": ["1"], "zip": [None], "illness": ["flu"]})
    rules = policy(nr.models.KAnonymity(k=2), nr.models.DistinctLDiversity(on="illness", l=2))
    foreign, verdicts = verify_table(frame, rules)
    assert foreign.records == 1
    assert [(v.achieved, v.breaches, v.short) for v in verdicts] == [(1, 1, 1), (1, 1, 1)]


def test_a_plain_true_or_false(arx: Path, tmp_path: Path) -> None:
    assert nr.check(arx, policy(nr.models.KAnonymity(k=2))) is True
    assert nr.check(arx, policy(nr.models.KAnonymity(k=3))) is False
    frame = pl.DataFrame({"age": [30, 30, 41, 41], "illness": ["flu", "cold", "flu", "ulcer"]})
    rules = nr.Policy(
        attributes={"age": nr.quasi_identifier(), "illness": nr.sensitive()},
        require=[nr.models.DistinctLDiversity(on="illness", l=2)],
        method=nr.methods.Mondrian(),
        mechanism="ignored",  # a table of few people
    )
    release = nr.anonymize(frame, rules)
    assert nr.check(release, rules) is True
    assert nr.check(release.save(tmp_path / "release"), rules) is True
