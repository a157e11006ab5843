"""Tables made elsewhere whose sensitive cells are sets, or members of sets in rows of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.sources.value_sets import looks_like_sets, read_sets
from noren.statements import FoundSets, MemberStatement, SetStatement
from noren.workflow.foreign import describe_cells, open_published, spell_interval, verify_table

ILLS = [["Fever", "Flu"], ["Cold", "Cancer"], ["Cancer", "Fever"], ["HIV", "Flu"]]


def rules(l: int = 2, **options: Any) -> nr.Policy:  # noqa: E741
    return nr.Policy(
        attributes={"age": "quasi-identifier", "ill": {"role": "sensitive"} | options.pop("ill", {})},
        require=[{"model": "frequency-l-diversity", "on": "ill", "l": l}],
        **options,
    )


def written(form: str) -> list[Any]:
    texts = {
        "braces": "{{{}}}".format,
        "brackets": "[{}]".format,
        "bars": str,
    }
    if form == "lists":
        return ILLS
    if form == "json":
        return [str(one).replace("'", '"') for one in ILLS]
    return [texts[form]({"bars": "|"}.get(form, ", ").join(one)) for one in ILLS]


@pytest.mark.parametrize("form", ["braces", "brackets", "bars", "json", "lists"])
def test_every_way_of_writing_sets_is_recognised(form: str, tmp_path: Path) -> None:
    table = pl.DataFrame({"age": [41, 42, 43, 43], "ill": written(form)})
    path = tmp_path / "table.parquet"
    table.write_parquet(path)
    for given in (table, path):
        found, (verdict,) = verify_table(given, rules())
        assert (verdict.holds, verdict.achieved, found.records) == (True, 2, 4)
        assert verify_table(given, rules(3))[1][0].holds is False
        assert found.column("ill").domain.values == ("Cancer", "Cold", "Fever", "Flu", "HIV")
    values, (verdict,) = verify_table(path, rules(), cells={"ill": "values"}) if form != "lists" else (None, (None,))
    if values is not None:
        assert (values.column("ill").is_exact, verdict.achieved) == (True, 1)


@pytest.mark.parametrize("separator", [", ", "; ", ";", "|"])
def test_declared_sets_need_no_brackets(separator: str) -> None:
    table = pl.DataFrame({"age": [41, 42, 43, 43], "ill": [separator.join(one) for one in ILLS]})
    found, (verdict,) = verify_table(table, rules(), cells={"ill": "sets"})
    assert (verdict.holds, verdict.achieved) == (True, 2)
    assert found.column("ill").domain.values == ("Cancer", "Cold", "Fever", "Flu", "HIV")
    if separator != "|":
        assert verify_table(table, rules())[1][0].achieved == 1, "a text with a comma may be a value"


def test_declared_sets_are_split_at_one_separator() -> None:
    table = pl.DataFrame({"age": [41, 42], "ill": ["tumour, benign|flu", "tumour, benign"]})
    found, (verdict,) = verify_table(table, rules(), cells={"ill": "sets"})
    assert (verdict.achieved, found.column("ill").domain.values) == (1, ("flu", "tumour, benign"))


@pytest.mark.parametrize("form", ["braces", "lists"])
def test_sets_may_identify_too(form: str, tmp_path: Path) -> None:
    """Paper 000's Table IV in a Parquet file: every column is a sensitive quasi-identifier, and holds lists."""
    path = tmp_path / "table.parquet"
    pl.DataFrame({"ill": written(form)}).write_parquet(path)
    require = [{"model": "frequency-l-diversity", "on": "ill", "l": 2}]
    found, (verdict,) = verify_table(path, nr.Policy(attributes={"ill": "sensitive-quasi-identifier"}, require=require))
    assert (verdict.holds, verdict.achieved, found.records) == (True, 2, 4)


def test_a_row_that_is_suppressed_may_have_a_list_beside(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"age": ["41", "42", "*", "*"], "ill": ILLS}).write_parquet(path)
    found, (verdict,) = verify_table(path, rules())
    assert (found.records, verdict.records) == (4, 4), "what still says something stays a class of its own"


def test_a_value_that_a_set_names_twice_counts_once() -> None:
    table = pl.DataFrame({"age": [1, 2], "ill": ["{Flu, Flu}", "{Flu, F\u200blu, Cold}"]})
    found, (verdict,) = verify_table(table, rules())
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (False, 1, 1)
    assert isinstance(found.column("ill"), FoundSets)


@pytest.mark.parametrize("cell", ["", "{}", "{Flu, }", "[null]"])
def test_a_cell_without_a_value_is_no_set(cell: str) -> None:
    table = pl.DataFrame({"age": [1, 2], "ill": ["{Flu, Cold}", cell]})
    with pytest.raises(nr.errors.DataError, match="but one cell lists no value"):
        verify_table(table, rules(), cells={"ill": "sets"})


def test_texts_of_which_some_are_no_sets_stay_values() -> None:
    column = pl.Series(["{Flu, Cold}", "Cold"]).to_arrow()
    assert not looks_like_sets(column, "ill")
    assert read_sets(column, "ill").to_pylist() == [["Flu", "Cold"], ["Cold"]]


def test_a_label_of_the_hierarchy_is_a_value(tmp_path: Path) -> None:
    (tmp_path / "ill.csv").write_text("Flu;{Flu, Cold};*\nCold;{Flu, Cold};*\nHIV;HIV;*\n", encoding="utf-8")
    table = pl.DataFrame({"age": [1, 1], "ill": ["{Flu, Cold}", "{Flu, Cold}"]})
    tree = {"hierarchy": {"csv": str(tmp_path / "ill.csv")}}
    assert verify_table(table, rules(ill=tree))[0].column("ill").nodes is not None


def test_many_values_need_sets_of_one_size() -> None:
    sets = [f"{{v{i}, v{(i + 1) % 70}}}" for i in range(70)]
    table = pl.DataFrame({"age": range(70), "ill": sets})
    assert verify_table(table, rules())[1][0].achieved == 2
    with pytest.raises(nr.errors.DataError, match="2 to 3 of more than 64 values"):
        verify_table(table.with_columns(ill=pl.Series([*sets[:-1], "{v69, v0, v1}"])), rules())


def test_the_policy_declares_the_design_where_the_sizes_agree() -> None:
    table = pl.DataFrame({"age": [41, 42, 43, 43], "ill": written("braces")})
    found, _ = verify_table(table, rules())
    assert isinstance(found.column("ill"), SetStatement)
    assert found.column("ill").design == nr.designs.DecoyDesign(d=5, eta=2)
    assert describe_cells(found) == [
        "ill: read as a set of 2 of 5 values, drawn as the policy's method draws (uniform-decoys)"
    ]
    for other in (rules(3), rules(method="mondrian")):
        found, _ = verify_table(table, other)
        assert isinstance(found.column("ill"), FoundSets)
        assert describe_cells(found) == ["ill: read as sets of 2 of 5 values, drawn by an undeclared design"]


def test_what_only_a_design_shows_is_not_decided_without_one() -> None:
    """Far apart as the values are, some may be believed more than others; closeness cannot be judged at all."""
    table = pl.DataFrame({"age": [1, 2], "ill": ["{1, 3}", "{2, 4}"]})
    far = {"model": "semantic-diversity", "on": "ill", "l": 2, "d": 2}
    near = {"model": "t-closeness", "on": "ill", "t": 0.2, "distance": "equal"}
    attributes = {"age": "quasi-identifier", "ill": {"role": "sensitive", "distance": "ordinal"}}
    # four values of which l = 2 are two apart leave no counts, so the method would not draw such sets
    _, (verdict,) = verify_table(table, nr.Policy(attributes=attributes, require=[far]))
    assert (verdict.holds, verdict.achieved) == (None, 2)
    assert "the design of the sets is not declared" in verdict.statement
    _, (verdict,) = verify_table(table, nr.Policy(attributes=attributes, require=[far | {"d": 3}]))
    assert verdict.holds is False
    with pytest.raises(nr.errors.ModelDoesNotApply, match="t-closeness"):
        verify_table(table, nr.Policy(attributes=attributes, require=[near], method="mondrian"))
    budget = {"model": "local-privacy", "on": "ill", "epsilon": 9.0}
    with pytest.raises(nr.errors.ModelDoesNotApply, match="not declared"):
        verify_table(table, nr.Policy(attributes=attributes, require=[budget], method="pram"))


@pytest.mark.parametrize(("cells", "told"), [({"ill": "words"}, "never 'words'"), ({"il": "sets"}, "no column 'il'")])
def test_a_declaration_that_means_nothing(cells: dict[str, Any], told: str) -> None:
    with pytest.raises(nr.errors.QueryError, match=told):
        verify_table(pl.DataFrame({"age": [1], "ill": ["a"]}), rules(), cells=cells)


def test_measures_say_how_cells_were_read() -> None:
    table = pl.DataFrame({"age": [41, 42, 43, 43], "ill": written("braces")})
    found = nr.measure(table, rules())
    assert found.value("frequency-l-diversity") == 2
    assert found.to_dict()["cells"] == list(found.cells)
    assert "a set of 2 of 5 values" in found.cells[0]
    assert nr.measure(table, quasi=["age"], sensitive=["ill"]).cells == (
        "ill: read as sets of 2 of 5 values, drawn by an undeclared design",
    )
    assert nr.measure(table, quasi=["age"], sensitive=["ill"], cells={"ill": "values"}).cells == ()


# ---------------------------------------------------------------- beside the original

KNOWN = "label,term\nFlu,cough\nFlu,fever\nCold,cough\nUlcer,pain\n"


def test_sets_that_lack_a_true_value_are_seen() -> None:
    table = pl.DataFrame({"age": [41, 42, 43, 43], "ill": written("braces")})
    true = pl.DataFrame({"age": [41, 42, 43, 43], "ill": ["Flu", "Cancer", "Fever", "HIV"]})
    _, (asked, truth) = verify_table(table, rules(), original=true)
    assert (asked.holds, truth.model, truth.holds) == (True, "truth-in-set", True)
    four = true.with_columns(ill=pl.lit("HIV"))
    assert verify_table(table, rules(), original=four)[1][1].holds is False
    less = verify_table(table, rules(), original=true[:3])[1][1]
    assert (less.holds, "the original has 3 records" in less.statement) == (False, True)


def test_general_values_must_cover_the_original() -> None:
    asked = nr.Policy(
        attributes={"age": "quasi-identifier", "ill": "sensitive"},
        require=[{"model": "distinct-l-diversity", "on": "ill", "l": 2}],
        method="mondrian",
    )
    table = pl.DataFrame({"age": ["40-49"] * 2 + ["50-59"] * 2, "ill": ["Flu", "HIV", "Flu", "Cold"]})
    true = pl.DataFrame({"age": [41, 44, 50, 59], "ill": ["Flu", "HIV", "Flu", "Cold"]})
    assert [v.holds for v in verify_table(table, asked, original=true)[1]] == [True, True]
    other = true.with_columns(age=pl.Series([41, 41, 41, 59]))
    assert [v.holds for v in verify_table(table, asked, original=other)[1]] == [True, False]
    starred = pl.concat([table, pl.DataFrame({"age": ["*"], "ill": ["*"]})])
    assert verify_table(starred, asked, original=pl.concat([true, true[:1]]))[1][1].holds is True


def test_the_prior_of_beliefs_is_that_of_the_original(tmp_path: Path) -> None:
    """Among the patients half have a cough alone; whoever sees the table without it can only estimate that."""
    (tmp_path / "known.csv").write_text(KNOWN, encoding="utf-8")
    signs = {"role": "quasi-sensitive", "separator": ";", "knowledge": str(tmp_path / "known.csv")}
    asked = nr.Policy(
        attributes={"age": "quasi-identifier", "signs": signs},
        require=[{"model": "qs-closeness", "on": "signs", "t": 0.3}],
        method="mondrian",
    )
    table = pl.DataFrame({"age": ["4*"] * 2 + ["5*"] * 2, "signs": ["cough", "cough;fever", "cough", "pain"]})
    true = pl.DataFrame({"age": [41, 44, 50, 59], "signs": ["cough", "cough;fever", "cough;fever", "pain"]})
    alone = verify_table(table, asked)[1][0]
    beside = verify_table(table, asked, original=true)[1]
    assert (alone.basis, beside[0].basis) == ("an estimate from the release", "the original")
    prior, group = np.array([0.625, 0.125, 0.25]), np.array([0.75, 0.25, 0.0])
    other = np.array([0.25, 0.25, 0.5])
    worst = max(np.linalg.norm(group - prior), np.linalg.norm(other - prior))
    assert beside[0].achieved == pytest.approx(worst)
    assert [(v.model, v.holds) for v in beside[1:]] == [("terms-are-true", True)]
    assert verify_table(true, asked, original=table)[1][1].holds is False


# ---------------------------------------------------------------- shuffled rows, and questions


TABLE_9 = np.array([[143, 72, 60, 86, 99], [108, 70, 65, 64, 93], [188, 108, 155, 130, 179], [83, 62, 73, 57, 105]])
"""Paper 003, Table 9: how many rows of each group show each level."""
GROUPS = ["male, over 50", "female, over 50", "male, under 50", "female, under 50"]


def reported() -> pl.DataFrame:
    rows = [(group, level + 1) for group, times in zip(GROUPS, TABLE_9, strict=True) for level in range(5)
            for _ in range(times[level])]  # fmt: skip
    return pl.DataFrame(rows, schema=["who", "level"], orient="row")


def obesity(**method: str) -> nr.Policy:
    return nr.Policy(
        attributes={"who": "quasi-identifier", "level": {"role": "sensitive", "distance": "ordinal"}},
        require=[{"model": "semantic-diversity", "on": "level", "l": 2, "d": 2, "most": 0.6}],
        method={"name": "decoys", "design": "simple"} | method,
    )


@pytest.mark.parametrize(("method", "cells"), [({"form": "records"}, None), ({}, {"level": "shuffled"})])
def test_shuffled_rows_are_counted_by_the_design_that_is_declared(method: Any, cells: Any) -> None:
    """Paper 003, Table 10, first row: 117.75, 52.5, 11.5, 20.5, 27.75 (DEFINITIONS, part 4)."""
    release = open_published(reported(), obesity(**method), cells=cells)
    assert release.records == 1000
    assert isinstance(release.column("level"), MemberStatement)
    found = release.estimate("level", {"who": GROUPS[0]}, estimator="linear").frame["count"].to_list()
    assert found == pytest.approx([117.75, 52.5, 11.5, 20.5, 27.75])


def test_rows_that_do_not_make_whole_people_are_refused() -> None:
    with pytest.raises(nr.errors.DataError, match="1,999 rows, which cannot be 2 rows per person"):
        open_published(reported()[1:], obesity(form="records"))


def test_shuffled_rows_need_a_design() -> None:
    stricter = obesity(form="records").model_copy(
        update={"require": (nr.models.SemanticDiversity(on="level", l=2, d=2),)}
    )
    with pytest.raises(nr.errors.PolicyError, match=r"believe a value of some set with 0\.6"):
        verify_table(reported(), stricter)
    table = pl.DataFrame({"age": [1, 1], "ill": ["Flu", "Cold"]})
    with pytest.raises(nr.errors.PolicyError, match="no method that draws them"):
        verify_table(table, rules(method="mondrian"), cells={"ill": "shuffled"})


def test_sets_without_a_design_answer_nothing() -> None:
    table = pl.DataFrame({"age": [41, 42, 43, 43], "ill": written("braces")})
    release = open_published(table, rules(3))
    assert release.count({"age": "43"}).count == 2
    with pytest.raises(nr.errors.QueryError, match="not declared") as caught:
        release.count({"ill": "HIV"})
    assert "decoys" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("label", "spelled"),
    [
        ("72-77", "[72, 77]"), ("10...29", "[10, 29]"), ("[60, 80[", "[60, 80)"), ("<18", "below 18"),
        (">=65", "65 and above"), ("65+", "65 and above"), ("*", "*"),
        ("13*-17*", "13*-17*"), ("-5--1", "[-5, -1]"), ("Writer", "Writer"),
    ],
)  # fmt: skip
def test_intervals_are_read_in_many_notations(label: str, spelled: str) -> None:
    assert spell_interval(label) == spelled


def test_general_values_are_read_as_what_they_cover(tmp_path: Path) -> None:
    """Paper 002, section 6.1: of Table 2 one sixth of a record is 73 years old and has cancer."""
    (tmp_path / "job.csv").write_text("Artist;arts;*\nWriter;arts;*\nNurse;care;*\n", encoding="utf-8")
    table = pl.DataFrame(
        {
            "age": ["41", "41", "50-51", "50-51", "68-69", "68-69", "72-77", "72-77"],
            "job": ["Artist", "Artist", "arts", "arts", "*", "*", "Nurse", "Nurse"],
            "zip": ["13*-17*"] * 8,
            "ill": ["Fever", "Sty", "Cancer", "Pus", "Chill", "HIV", "Cut", "Cancer"],
        }
    )
    tree = {"role": "quasi-identifier", "hierarchy": {"csv": str(tmp_path / "job.csv")}}
    quasi = {"age": "quasi-identifier", "job": tree, "zip": "quasi-identifier", "ill": "sensitive"}
    require = [{"model": "frequency-l-diversity", "on": "ill", "l": 2}]
    release = open_published(table, nr.Policy(attributes=quasi, require=require, method="mondrian"))
    assert release.count({"age": "73", "ill": "Cancer"}).count == pytest.approx(1 / 6)
    assert release.count({"age": "41"}).count == 2
    assert release.count({"job": "Nurse"}).low == 2
    assert release.count({"zip": "13*-17*"}).count == 8
    assert release.manifest.requirements == () == release.manifest.methods


def test_a_table_in_clear_is_counted_exactly() -> None:
    table = pl.DataFrame({"age": ["41", "9", "30"], "note": ["a", "b", "b"]})
    release = open_published(table, nr.Policy(attributes={"age": "quasi-identifier", "note": "plain"}))
    assert release.column("age").domain.values == ("9", "30", "41")
    assert release.count({"note": "b"}).count == 2
