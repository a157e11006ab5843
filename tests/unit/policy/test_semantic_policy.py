"""Policies that ask for values far apart: what is refused and with which remedy, and what ends in a release."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs.semantic.design import SemanticDesign
from noren.methods.decoy_designs import decide_semantic
from noren.models import SemanticDiversity
from noren.release.manifest import read_column, write_column
from noren.schema.column import sensitive
from noren.schema.domain import Domain
from noren.workflow.anonymize import run

GRADES = [f"g{i:02d}" for i in range(14)]
ILLS = {"virus": ["flu", "cold"], "bone": ["leg", "arm"], "mind": ["panic", "stress"], "skin": ["burn", "rash"]}
ALL_ILLS = [ill for group in ILLS.values() for ill in group]
N = 420


def table(n: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "who": [f"p{i}" for i in range(n)],
            "town": rng.choice(["x", "y"], n),
            "grade": [GRADES[i % 14] for i in range(n)],
            "ill": [ALL_ILLS[i % 8] for i in range(n)],
            "pay": rng.integers(0, 12, n),
            "job": rng.choice(["a", "b", "c", "d", "e"], n),
            "sport": rng.choice(["q", "r", "s", "t", "u", "v"], n, p=[0.3, 0.25, 0.15, 0.1, 0.1, 0.1]),
        }
    )


GRADE = {"role": "sensitive", "values": GRADES, "distance": "ordinal"}
ILL = {"role": "sensitive", "hierarchy": {"tree": ILLS}, "distance": "tree"}
APART = {"model": "semantic-diversity", "on": "grade", "l": 3, "d": 2}


def policy(attributes: dict[str, Any] | None = None, require: Any = (APART,), **more: Any) -> nr.Policy:
    rest = dict.fromkeys(table(1).columns, "identifier")
    independent = {"people": {"rows": "independent"}, "dependence": {"most": 1.0}}
    columns = {**rest, **(attributes or {"grade": GRADE})}
    return nr.Policy(attributes=columns, require=list(require), **(independent | more))


def refused(*args: Any, data: pl.DataFrame | None = None, **kwargs: Any) -> list[Any]:
    """The problems of a policy, found without the data or with them."""
    with pytest.raises(nr.errors.PolicyError) as caught:
        run(table() if data is None else data, policy(*args, **kwargs))
    return list(caught.value.problems)


# ---------------------------------------------------------------- found without the data


def test_values_that_are_all_equally_far_apart() -> None:
    (problem,) = refused({"grade": {**GRADE, "distance": "equal"}})
    assert problem.where == "require[1].on"
    assert "needs a distance between the values of 'grade'" in problem.message
    assert all(word in problem.hint for word in ("ordinal", "numeric", "tree", "matrix", "semilattice"))


def test_subtrees_without_a_hierarchy() -> None:
    (problem,) = refused(require=[{"model": "le-diversity", "on": "grade", "l": 2, "e": 1}])
    assert (problem.where, problem.message) == ("require[1].on", "le-diversity needs a hierarchy of 'grade'.")
    assert problem.hint == 'Add hierarchy = "file.csv".'


@pytest.mark.parametrize(
    ("method", "where", "said"),
    [
        ({"designs": {"town": "simple"}}, "method.designs.town", "has no semantic requirement"),
        ({"designs": {"nowhere": "flat"}}, "method.designs.nowhere", "has no semantic requirement"),
        ({"parameters": {"grade": {"eta": 4}}}, "method.parameters.grade", "fixed by semantic diversity"),
        ({"design": "clever"}, "method.design", "clever"),
        ({"designs": {"grade": "clever"}}, "method.designs.grade", "clever"),
    ],
)
def test_options_of_the_method_that_do_not_fit(method: dict[str, Any], where: str, said: str) -> None:
    (problem,) = refused(method={"name": "decoys", **method})
    assert problem.where == where
    assert said in problem.message
    assert problem.hint


def test_options_for_a_column_whose_requirement_is_broken_are_not_blamed() -> None:
    problems = refused(require=[{**APART, "l": 1}], method={"name": "decoys", "designs": {"grade": "simple"}})
    assert [problem.where for problem in problems] == ["require[1].l"]
    problems = refused(require=[{**APART, "l": 1}], method={"name": "decoys", "form": "records"})
    assert [problem.where for problem in problems] == ["require[1].l"]


TWO = [APART, {"model": "semantic-diversity", "on": "ill", "l": 3, "d": 2}]
BESIDE = [APART, {"model": "frequency-l-diversity", "on": "job", "l": 2}]
SAME = [APART, {"model": "frequency-l-diversity", "on": "grade", "l": 2}]
PLAIN = [{"model": "frequency-l-diversity", "on": "grade", "l": 2}]


@pytest.mark.parametrize("require", [BESIDE, SAME, PLAIN], ids=["beside", "same column", "plain"])
def test_shuffled_records_serve_semantic_diversity_alone(require: list[dict[str, Any]]) -> None:
    columns = {"grade": GRADE, "ill": ILL, "job": {"role": "sensitive"}}
    named = {name: columns[name] for name in {r["on"] for r in require}}
    (problem,) = refused(named, require, method={"name": "decoys", "form": "records"})
    assert (problem.where, problem.hint) == ("method.form", 'Use form = "sets".')


def test_shuffled_records_of_several_columns_end_where_combinations_are_too_many(monkeypatch: Any) -> None:
    columns = {"grade": GRADE, "ill": ILL}
    assert run(table(), policy(columns, TWO, method={"name": "decoys", "form": "records"})).release.rows == 9 * N
    monkeypatch.setattr("noren.methods.decoys.MOST_ROWS_EACH", 8)
    (problem,) = refused(columns, TWO, method={"name": "decoys", "form": "records"})
    assert (problem.where, "every person 9 rows" in problem.message) == ("method.form", True)


def test_more_values_than_are_declared() -> None:
    (problem,) = refused({"grade": {**GRADE, "values": GRADES[:3], "missing": "reject"}}, [{**APART, "l": 4}])
    assert "semantic-diversity 4 exceeds the 3 values declared" in problem.message


# ---------------------------------------------------------------- found with the data


def test_a_distance_that_is_too_large_names_the_values_and_what_works() -> None:
    """Ranks, F = 14, l = 3: the middle of the order has two partners up to d = 4 (paper 003, theorem 5.1 corrected)."""
    (problem,) = refused(require=[{**APART, "d": 5}])
    assert problem.where == "require on 'grade'"
    assert problem.message.startswith("2 of 14 values cannot be in a set of 3 values that are all 5 or more apart")
    assert problem.message.endswith(": 'g04', 'g09'.")
    assert problem.hint == "l = 2 works at d = 5; d = 4 works at l = 3."


def test_too_few_subtrees() -> None:
    (problem,) = refused({"ill": ILL}, [{"model": "le-diversity", "on": "ill", "l": 5, "e": 1}])
    assert problem.message.startswith("8 of 8 values cannot be in a set of 5")
    assert "l = 4 works" in problem.hint


def test_a_tree_that_is_not_deep_enough() -> None:
    (problem,) = refused({"ill": ILL}, [{"model": "le-diversity", "on": "ill", "l": 2, "e": 3}])
    assert "e = 3 needs a hierarchy with 3 levels below its root; this one has 2" in problem.message


EDGE = {"grade": {**GRADE, "values": GRADES[:6]}}
FEW = table().filter(pl.col("grade").is_in(GRADES[:6]))


def test_sets_that_lose_the_counts_are_refused_unless_the_holder_insists() -> None:
    """F = l d: block totals are lost under every design and estimator."""
    (problem,) = refused(EDGE, data=FEW)
    assert "no estimator can recover counts" in problem.message
    assert "allow_unidentifiable = true" in problem.hint
    insisted = run(FEW, policy(EDGE, method={"name": "decoys", "allow_unidentifiable": True}))
    assert [verdict.holds for verdict in insisted.facts.verdicts] == [True]
    assert any("no estimator can recover counts" in note for note in insisted.facts.notes)


def test_one_more_value_recovers_the_counts() -> None:
    seven = table().filter(pl.col("grade").is_in(GRADES[:7]))
    outcome = run(seven, policy({"grade": {**GRADE, "values": GRADES[:7]}}))
    assert outcome.facts.notes == ()


def test_closeness_and_far_apart_values_exclude_each_other() -> None:
    (problem,) = refused(require=[APART, {"model": "t-closeness", "on": "grade", "t": 0.3}])
    assert problem.where == "require on 'grade'"
    assert "cannot be combined with" in problem.message


@pytest.mark.parametrize("distance", ["ordinal", "numeric"])
def test_missing_cells_stand_beside_the_values_of_a_line(distance: str) -> None:
    data = table().with_columns(pl.when(pl.int_range(N) % 20 == 3).then(None).otherwise("pay").alias("pay"))
    pay = {"role": "sensitive", "distance": distance}
    require = [{**APART, "on": "pay"}]
    kept = run(data, policy({"pay": pay}, require))
    column = kept.facts.columns["pay"]
    assert (kept.facts.dropped, kept.release.records) == (0, N)
    assert column.domain.values[-1] == "(missing)"
    assert column.distances[-1, :-1].min() == column.distances.max()
    assert [verdict.holds for verdict in nr.verify(kept.release)] == [True]
    outcome = run(data, policy({"pay": {**pay, "missing": "drop"}}, require))
    assert (outcome.facts.dropped, outcome.release.records) == (N // 20, N - N // 20)


def test_missing_cells_are_a_branch_of_their_own_in_a_tree() -> None:
    data = table().with_columns(pl.when(pl.int_range(N) % 20 == 3).then(None).otherwise("ill").alias("ill"))
    release = nr.anonymize(data, policy({"ill": ILL}, [{**APART, "on": "ill"}]))
    assert release.column("ill").domain.values[-1] == "(missing)"
    assert [verdict.holds for verdict in nr.verify(release)] == [True]


# ---------------------------------------------------------------- what the holder is told


def test_duplicate_processing_comes_with_its_warning() -> None:
    asked = [{**APART, "most": 0.5}]
    noted = run(table(), policy(require=asked, method={"name": "decoys", "design": "duplicate-processing"})).facts.notes
    assert len(noted) == 1
    assert noted[0].startswith("grade: ")
    assert run(table(), policy()).facts.notes == ()


def test_a_flat_design_that_does_not_exist_is_replaced_and_said() -> None:
    """One class with more than F / l of the values: no design gives 1/l, and what is accepted must be stated."""
    crowded = {"role": "sensitive", "distance": "tree"}
    crowded["hierarchy"] = {"tree": {"big": ALL_ILLS[:5], "a": [ALL_ILLS[5]], "b": [ALL_ILLS[6]], "c": [ALL_ILLS[7]]}}
    (problem,) = refused({"ill": crowded}, [{**APART, "on": "ill", "l": 2}])
    assert "would believe" in problem.message
    assert "most = 0.625" in problem.hint
    outcome = run(table(), policy({"ill": crowded}, [{**APART, "on": "ill", "l": 2, "most": 0.7}]))
    assert outcome.facts.designs["ill"].name == "semantic-balanced"
    assert any(note.startswith("ill: The flat design does not exist here") for note in outcome.facts.notes)


def test_the_default_is_flat_and_columns_may_differ() -> None:
    columns = {"grade": GRADE, "ill": ILL}
    method = {"name": "decoys", "designs": {"ill": "simple"}}
    designs = run(table(), policy(columns, TWO, method=method)).facts.designs
    assert {name: design.name for name, design in designs.items()} == {
        "grade": "semantic-flat",
        "ill": "semantic-simple",
    }


# ---------------------------------------------------------------- many columns, one policy

MIXED = {
    "who": {"role": "identifier"},
    "town": {"role": "plain"},
    "grade": GRADE,
    "ill": ILL,
    "pay": {"role": "sensitive", "distance": "numeric"},
    "job": {"role": "sensitive-quasi-identifier"},
    "sport": {"role": "sensitive"},
}
ASKED = [
    {"model": "semantic-diversity", "on": "grade", "l": 3, "d": 3, "most": 0.42},
    {"model": "semantic-diversity", "on": "pay", "l": 2, "d": 2.5, "most": 0.7},
    {"model": "le-diversity", "on": "ill", "l": 3, "e": 1},
    {"model": "frequency-l-diversity", "on": "ill", "l": 2},
    {"model": "frequency-l-diversity", "on": "job", "l": 2},
    {"model": "t-closeness", "on": "sport", "t": 0.25},
]
METHOD = {"name": "decoys", "design": "uniform-sets", "designs": {"grade": "simple", "ill": "flat"}}


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_all_kinds_of_protection_in_one_release(file_format: Any, tmp_path: Path) -> None:
    rules = nr.Policy(attributes=MIXED, require=ASKED, method=METHOD, dependence={"most": 1.0})
    nr.anonymize(table(), rules, to=tmp_path / "release", file_format=file_format)
    opened = nr.open_release(tmp_path / "release")
    assert {name: design.name for name, design in opened.designs.items()} == {
        "grade": "semantic-simple",
        "ill": "semantic-flat",
        "pay": "semantic-uniform-sets",
        "job": "uniform-decoys",
        "sport": "uniform-decoys",
    }
    assert [(v.model, v.column, v.holds) for v in opened.verdicts] == [(r["model"], r["on"], True) for r in ASKED]
    assert all(verdict.holds for verdict in nr.verify(opened, original=table()))
    frame = opened.frame()
    ranks = frame["grade"].list.eval(pl.element().str.slice(1).cast(int)).to_list()
    assert all(b - a >= 3 for cell in ranks for a, b in pairwise(cell))
    assert all(b - a >= 2.5 for a, b in frame["pay"].to_list())
    group = {ill: name for name, ills in ILLS.items() for ill in ills}
    assert all(len({group[ill] for ill in cell}) == 3 for cell in frame["ill"].to_list())


@pytest.mark.parametrize(("d", "e"), [(1, 1), (2, 2), (2, 1)])
def test_two_semantic_requirements_on_one_column_hold_together(d: float, e: int) -> None:
    """Whichever is stricter about the pairs; sets take the larger l."""
    both = [{**APART, "on": "ill", "l": 2, "d": d}, {"model": "le-diversity", "on": "ill", "l": 3, "e": e}]
    outcome = run(table(), policy({"ill": ILL}, both))
    assert outcome.facts.designs["ill"].eta == 3
    assert [(v.required, v.achieved, v.holds) for v in outcome.facts.verdicts] == [(2, 2, True), (3, 3, True)]


def test_both_requirements_on_one_column_of_shuffled_records(tmp_path: Path) -> None:
    both = [{**APART, "on": "ill", "l": 2, "d": 2}, {"model": "le-diversity", "on": "ill", "l": 3, "e": 1}]
    rules = policy({"ill": ILL, "town": "plain"}, both, method={"name": "decoys", "form": "records"})
    release = nr.anonymize(table(), rules, to=tmp_path / "release")
    assert release.rows == 3 * N
    assert [(v.records, v.holds) for v in nr.verify(release)] == [(N, True)] * 2


def test_a_table_of_distances_is_published_only_where_a_requirement_needs_it(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e"]
    rows = [",".join(["", *names])]
    rows += [",".join([one, *("0" if one == other else "2" for other in names)]) for one in names]
    (tmp_path / "jobs.csv").write_text("\n".join(rows))
    job = {"role": "sensitive", "distance": {"matrix": "jobs.csv"}}
    found = []
    for model in ({"model": "frequency-l-diversity"}, {"model": "semantic-diversity", "d": 2}):
        release = nr.anonymize(table(), policy({"job": job}, [{**model, "on": "job", "l": 2}], base=tmp_path))
        release.save(tmp_path / model["model"])
        package = json.loads((tmp_path / model["model"] / "datapackage.json").read_text(encoding="utf-8"))
        found.append(package["noren"]["columns"][0].get("distance"))
        assert (release.column("job").column.distances is None) == (found[-1] is None)
    assert found[0] is None
    assert found[1] == [[0.0 if i == j else 2.0 for j in range(5)] for i in range(5)]


def test_distances_that_do_not_fit_the_values_are_not_believed() -> None:
    entry = write_column(nr.anonymize(table(), policy()).column("grade"))
    assert read_column(entry).d == 14
    for wrong in ([[0.0, 1.0], [1.0, 0.0]], [[0.0] * 14] * 13, [[0.0] * 13] * 14):
        with pytest.raises(ValueError, match="not a square table"):
            read_column(entry | {"distance": wrong})


def test_all_options_survive_toml(tmp_path: Path) -> None:
    lattice = {"role": "sensitive", "distance": {"semilattice": "some where.csv"}}
    matrix = {"role": "sensitive", "distance": {"matrix": "far.csv"}}
    rules = nr.Policy(
        attributes={**MIXED, "town": lattice, "job": matrix},
        require=[*ASKED[:4], {**APART, "on": ["town", "job"], "d": 0.5}, ASKED[-1]],
        method={**METHOD, "allow_unidentifiable": True},
    )
    back = nr.Policy.parse(rules.to_toml())
    assert (back.attributes, back.require, back.methods) == (rules.attributes, rules.require, rules.methods)
    assert back.methods[0].designs == {"grade": "simple", "ill": "flat"}
    records = policy(method={"name": "decoys", "form": "records", "design": "simple"})
    again = nr.Policy.parse(records.to_toml())
    assert again.methods == records.methods


def test_an_auditors_policy_decides_the_distance_not_the_release():
    """Checked with the values in another order, sets that were far apart are neighbours."""
    text = '[attributes]\nx = {{ role = "sensitive", distance = "ordinal", values = {} }}\n'
    text += '[[require]]\nmodel = "semantic-diversity"\non = "x"\nl = 2\nd = 3\n'
    made = nr.Policy.parse(text.format(list("abcdefgh")))
    release = nr.anonymize(pl.DataFrame({"x": list("abcdefgh") * 50}), made)
    assert [v.holds for v in nr.verify(release, made)] == [True]
    assert nr.verify(release, nr.Policy.parse(text.format(list("adgbehcf"))))[0].holds is False
    with pytest.raises(nr.errors.PolicyError, match="1 values that the policy does not declare"):
        nr.verify(release, nr.Policy.parse(text.format(list("abcdefg"))))


def test_an_auditors_policy_decides_a_hierarchy_that_is_made_from_the_values() -> None:
    values = ["A1", "A2", "A3", "B1", "B2", "C1", "C2"]
    require = [{"model": "le-diversity", "on": "x", "l": 2, "e": 1}]

    def rules(hierarchy: dict[str, Any]) -> nr.Policy:
        return nr.Policy(attributes={"x": {"role": "sensitive", "hierarchy": hierarchy}}, require=require)

    by_number = {"tree": {"one": ["A1", "B1", "C1"], "two": ["A2", "B2", "C2"], "three": ["A3"]}}
    release = nr.anonymize(pl.DataFrame({"x": values * 20}), rules(by_number))
    assert [v.holds for v in nr.verify(release, rules(by_number))] == [True]
    assert nr.verify(release, rules({"prefix": [1]}))[0].holds is False
    with pytest.raises(nr.errors.PolicyError, match="2 values that are not in the policy's hierarchy"):
        nr.verify(release, rules({"tree": {"A": values[:3], "B": values[3:5]}}))


def test_an_auditors_bins_must_be_those_of_the_release() -> None:
    def rules(bins: list[int]) -> nr.Policy:
        return nr.Policy(
            attributes={"pay": {"role": "sensitive", "distance": "numeric", "bins": bins}},
            require=[{**APART, "on": "pay"}],
        )

    release = nr.anonymize(table().select("pay"), rules([0, 1, 2, 3, 4, 5, 6, 7, 8, 12]))
    assert [v.holds for v in nr.verify(release, rules([0, 1, 2, 3, 4, 5, 6, 7, 8, 12]))] == [True]
    with pytest.raises(nr.errors.PolicyError, match="1 values that the policy does not declare"):
        nr.verify(release, rules([0, 1, 2, 3, 4, 5, 6, 7, 8, 13]))


def apart(l: int, d: int, most: float | None) -> SemanticDiversity:  # noqa: E741
    return SemanticDiversity(on="x", l=l, d=d, most=most)


def decided(F: int, model: SemanticDiversity) -> tuple[SemanticDesign, list[str]]:
    column = sensitive(distance="ordinal").over("x", Domain(tuple(f"{i:03}" for i in range(F))))
    found, notes = decide_semantic(column, np.ones(F, np.int64), [model], "best", False)
    assert isinstance(found, SemanticDesign)
    return found, notes


@pytest.mark.parametrize(("F", "l", "d"), [(14, 2, 6), (14, 2, 3), (14, 3, 3), (9, 2, 3), (11, 3, 2)])
def test_the_best_design_keeps_what_is_permitted_and_is_flat_where_nothing_is(F: int, l: int, d: int) -> None:  # noqa: E741
    """Beliefs are counted over all sets by the oracle; without `most` nothing above 1/l may be believed."""
    flat, notes = decided(F, apart(l, d, None))
    assert flat.name == "semantic-flat"
    assert not notes
    for most in (1 / l + 0.02, 0.6, 0.75, 0.9):
        design, notes = decided(F, apart(l, d, most))
        worst = max(
            max(row) / sum(row)
            for sets in combinations(range(F), l)
            if sum(row := design.set_weights(np.array([sets]))[0]) > 0
        )
        assert worst <= most + 1e-9
        assert design.expected_l2(1) <= flat.expected_l2(1)
        assert bool(notes) == (design.name != "semantic-flat")


def test_a_permission_buys_sharper_counts() -> None:
    design, (note,) = decided(14, apart(2, 6, 0.75))
    assert design.name == "semantic-uniform-sets"
    assert "0.86 times the error" in note
    assert "0.7273" in note


def test_the_expected_error_is_that_of_linear_inversion() -> None:
    """Enumerated: every set of every value with its chance, scored by the inverted inclusion probabilities."""
    F, l, d = 9, 2, 3  # noqa: E741
    design = SemanticDesign.make("simple", np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))), l, d)
    sets = np.array(list(combinations(range(F), l)))
    chance = np.zeros((F, len(sets)))
    for row, one in enumerate(sets):
        chance[one, row] = design.set_weights(one[None, :])[0]
    inside = np.zeros((len(sets), F))
    np.put_along_axis(inside, sets, 1.0, axis=1)
    scores = inside @ np.linalg.inv(chance @ inside)
    variance = (chance.mean(axis=0) @ scores**2) - (1 / F) ** 2
    assert design.expected_l2(100) == pytest.approx(np.sqrt(variance.sum() / 100))
