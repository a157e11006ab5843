"""What a recipient may ask, in which words, and what answers come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.estimates.counts.query import Grouping, allowed_values, grouping, parse_by
from noren.release.manifest import Manifest
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.column import Column, plain
from noren.schema.domain import MISSING, OTHER, Domain, bin_labels
from noren.schema.hierarchy import Hierarchy
from noren.secret import Keystream
from noren.statements import Cells, CodeCells, ExactStatement, OpenCells, OpenStatement, SetStatement, Statement

TREE = Hierarchy.from_tree({"lung": ["flu", "tb"], "bone": ["break"]})
AGES = Domain(("3", "9", "10", "19", "25", MISSING), "integer")
BINS = (0.0, 10.0, 20.0, 40.0)


def column(name: str, domain: Domain, tree: Hierarchy | None = None) -> Column:
    return plain().over(name, domain, hierarchy=tree)


COLUMNS = {
    "ill": column("ill", Domain(("break", "flu", "tb", MISSING)), TREE),
    "age": column("age", AGES),
    "binned": column("binned", Domain((*bin_labels(BINS), MISSING), edges=BINS)),
    "ratio": column("ratio", Domain(("0.1", "0.2", "0.3", "0.6"), "number")),
    "merged": column("merged", Domain(("1", "12", OTHER))),
    "a/b": column("a/b", Domain(("3", "14"), "integer")),
    "me@home": column("me@home", Domain(("yes", "no")), Hierarchy.from_tree(["yes", "no"])),
}


def asked(text: str) -> Grouping:
    found, mark, argument = parse_by(text, COLUMNS)
    return grouping(text, found, mark, argument, found.domain)


@pytest.mark.parametrize(
    ("text", "labels", "groups"),
    [
        ("ill", ("break", "flu", "tb", MISSING), [0, 1, 2, 3]),
        ("ill@0", ("break", "flu", "tb", MISSING), [0, 1, 2, 3]),
        ("ill@1", ("bone", "lung", MISSING), [0, 1, 1, 2]),
        ("ill@2", ("*",), [0, 0, 0, 0]),
        ("age/10", ("[0, 10)", "[10, 20)", "[20, 30)", MISSING), [0, 0, 1, 1, 2, 3]),
        ("age/2.5", ("[2.5, 5)", "[7.5, 10)", "[10, 12.5)", "[17.5, 20)", "[25, 27.5)", MISSING), [0, 1, 2, 3, 4, 5]),
        ("binned/20", ("[0, 20)", "[20, 40)", MISSING), [0, 0, 1, 2]),
        ("binned/40", ("[0, 40)", MISSING), [0, 0, 0, 1]),
        ("ratio/0.1", ("[0.1, 0.2)", "[0.2, 0.3)", "[0.3, 0.4)", "[0.6, 0.7)"), [0, 1, 2, 3]),
        ("ratio/0.3", ("[0, 0.3)", "[0.3, 0.6)", "[0.6, 0.9)"), [0, 0, 1, 2]),
        ("merged/10", ("[0, 10)", "[10, 20)", OTHER), [0, 1, 2]),
        ("a/b", ("3", "14"), [0, 1]),
        ("a/b/10", ("[0, 10)", "[10, 20)"), [0, 1]),
        ("me@home", ("yes", "no"), [0, 1]),
        ("me@home@1", ("*",), [0, 0]),
    ],
)
def test_levels_and_widths(text: str, labels: tuple[str, ...], groups: list[int]) -> None:
    found = asked(text)
    assert found.labels == labels
    assert found.groups.tolist() == groups
    assert found.title == text
    assert found.is_identity is (groups == list(range(len(groups))) and len(labels) == len(groups))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sex", "no column 'sex'"),
        ("sex@1", "no column 'sex'"),
        ("ill@3", r"level '3' is not one of 0\.\.2"),
        ("ill@-1", "level '-1' is not one of"),
        ("ill@", "level '' is not one of"),
        ("ill@²", "level '²' is not one of"),
        ("age@1", "published without a hierarchy"),
        ("age/0", "'0' is not a positive width"),
        ("age/-5", "not a positive width"),
        ("age/ten", "not a positive width"),
        ("age/inf", "not a positive width"),
        ("age/nan", "not a positive width"),
        ("age/", "not a positive width"),
        ("age/10/2", "is not a column, a level or a width"),
        ("ill/10", "'ill' does not hold numbers"),
        ("binned/15", r"the published bin \[10, 20\) does not fit into intervals of width 15"),
        ("binned/5", r"the published bin \[0, 10\) does not fit"),
    ],
)
def test_questions_without_an_answer(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        asked(text)


@pytest.mark.parametrize(
    ("name", "wanted", "allowed"),
    [
        ("ill", "flu", [0, 1, 0, 0]),
        ("ill", ["flu", "break"], [1, 1, 0, 0]),
        ("ill", ("lung",), [0, 1, 1, 0]),
        ("ill", {"lung", "break"}, [1, 1, 1, 0]),
        ("ill", "*", [1, 1, 1, 1]),
        ("ill", None, [0, 0, 0, 1]),
        ("ill", ["tb", None], [0, 0, 1, 1]),
        ("age", 9, [0, 1, 0, 0, 0, 0]),
        ("age", [3, 25.0], [1, 0, 0, 0, 1, 0]),
        ("age", np.int64(10), [0, 0, 1, 0, 0, 0]),
        ("ratio", 0.3, [0, 0, 1, 0]),
        ("binned", "[10, 20)", [0, 1, 0, 0]),
    ],
)
def test_conditions_name_values_or_nodes(name: str, wanted: object, allowed: list[int]) -> None:
    found = COLUMNS[name]
    assert allowed_values(found, wanted, found.domain).tolist() == list(map(bool, allowed))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("gout", "'ill' has no value 'gout'"), ([], "no value meets the condition"), (["flu", 7], "no value '7'")],
)
def test_conditions_that_admit_nothing(wanted: object, message: str) -> None:
    ill = COLUMNS["ill"]
    with pytest.raises(QueryError, match=message):
        allowed_values(ill, wanted, ill.domain)


# ---------------------------------------------------------------- asked of a release

JOBS = ("Clerk", "Cook", "Nurse", "Tutor")
TOWNS = ("01001", "01008", "52701")


def people(n: int = 4_000) -> pa.Table:
    rng = np.random.default_rng(11)
    job = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    return pa.table(
        {
            "job": [JOBS[j] for j in job],
            "ill": [["break", "flu", "tb"][k] for k in (job + rng.choice(3, n, p=[0.6, 0.3, 0.1])) % 3],
            "age": rng.integers(0, 60, n).tolist(),
            "zip": [TOWNS[k] for k in rng.integers(0, 3, n)],
            "count": [["few", "many"][k] for k in rng.integers(0, 2, n)],
        }
    )


PEOPLE = people()
TRUTH = pl.DataFrame(PEOPLE.to_pydict())


def published(statements: dict[str, Statement], codes: dict[str, Any]) -> Release:
    """A release made by hand: true codes drawn by their designs, others as they are."""
    cells: dict[str, Cells] = {}
    for name, statement in statements.items():
        design, given = statement.design, codes[name]
        if design is not None:
            cells[name] = design.draw(given, Keystream(), attribute=name)
        else:
            cells[name] = OpenCells(given) if statement.column.is_open else CodeCells(statement.d, given)
    manifest = Manifest(
        noren="1", records=len(next(iter(cells.values()))), columns=tuple(statements.values()), requirements=(),
        methods=({"name": "decoys"},), randomness="fresh", verdicts=(),
    )  # fmt: skip
    return Release(manifest, MemoryStore(cells))


def drawn(name: str, domain: Domain, tree: Hierarchy | None = None) -> SetStatement:
    return SetStatement(column(name, domain, tree), DecoyDesign(d=len(domain), eta=2))


@pytest.fixture(scope="module")
def release() -> Release:
    ages = tuple(float(edge) for edge in range(0, 70, 10))
    zips = Hierarchy((TOWNS, ("010**", "010**", "527**"), ("0****", "0****", "5****"), ("*",) * 3))
    ills = ("break", "flu", "tb")
    statements: dict[str, Statement] = {
        "job": drawn("job", Domain(JOBS)),
        "ill": drawn("ill", Domain(ills), TREE.restrict_to(ills)),
        "age": drawn("age", Domain(bin_labels(ages), edges=ages)),
        "zip": ExactStatement(column("zip", Domain(TOWNS), zips)),
        "count": ExactStatement(column("count", Domain(("few", "many")))),
    }
    codes: dict[str, Any] = {
        name: np.array([statements[name].domain.index[value] for value in TRUTH[name]])
        for name in ("job", "ill", "zip", "count")
    }
    return published(statements, codes | {"age": TRUTH["age"].to_numpy() // 10})


def test_columns_published_exactly_are_counted_exactly(release: Release) -> None:
    frame = release.estimate("zip").frame
    truth = TRUTH.group_by("zip").len().sort("zip")
    assert frame["zip"].to_list() == list(TOWNS)
    assert frame["count"].to_list() == pytest.approx(truth["len"].to_list())
    assert frame["std_error"].to_list() == pytest.approx([0] * 3)


def test_a_hierarchy_level_of_an_exact_column(release: Release) -> None:
    found = release.estimate("zip@1")
    assert found.frame.columns == ["zip@1", "count", "std_error", "low", "high"]
    assert found.frame["zip@1"].to_list() == ["010**", "527**"]
    north = len(TRUTH.filter(pl.col("zip") != "52701"))
    assert found.frame["count"].to_list() == pytest.approx([north, len(TRUTH) - north])


def spread(frame: pl.DataFrame, truth: list[int]) -> np.ndarray:
    """Distance from the truth in standard errors."""
    return np.abs(frame["count"].to_numpy() - np.array(truth)) / frame["std_error"].to_numpy()


# Beyond 6.6 true standard errors lies 4e-11 of a normal distribution, below 1e-9 for all cells looked at here
# together; a fifth more, because a standard error is itself estimated.
SURE = 8


def test_a_hierarchy_level_of_a_decoy_column(release: Release) -> None:
    frame = release.estimate("ill@1").frame
    assert frame["ill@1"].to_list() == ["bone", "lung"]
    bone = len(TRUTH.filter(pl.col("ill") == "break"))
    assert (spread(frame, [bone, len(TRUTH) - bone]) < SURE).all()
    assert frame["count"].sum() == pytest.approx(len(TRUTH))


def test_intervals_of_a_binned_decoy_column(release: Release) -> None:
    frame = release.estimate("age/20").frame
    assert frame["age/20"].to_list() == ["[0, 20)", "[20, 40)", "[40, 60)"]
    truth = [len(TRUTH.filter(pl.col("age") // 20 == k)) for k in range(3)]
    assert (spread(frame, truth) < SURE).all()


def test_conditions_on_exact_columns_filter_before_anything_is_estimated(release: Release) -> None:
    found = release.estimate(["zip", "job"], where={"zip": "010**"})
    assert found.records == len(TRUTH.filter(pl.col("zip") != "52701"))
    per_town = found.frame.group_by("zip", maintain_order=True).agg(pl.col("count").sum())["count"]
    truth = [len(TRUTH.filter(pl.col("zip") == town)) for town in TOWNS[:2]]
    assert per_town.to_list() == pytest.approx([*truth, 0])


def test_conditions_on_decoy_columns(release: Release) -> None:
    frame = release.estimate("job", where={"ill": ["lung"], "zip": "52701"}).frame
    there = TRUTH.filter((pl.col("zip") == "52701") & (pl.col("ill") != "break"))
    assert (spread(frame, [len(there.filter(pl.col("job") == job)) for job in JOBS]) < SURE).all()


def test_a_condition_on_the_column_asked_for_leaves_the_others_empty(release: Release) -> None:
    frame = release.estimate("job", where={"job": ["Nurse", "Cook"]}).frame
    assert frame["job"].to_list() == list(JOBS)
    counts = dict(zip(frame["job"], frame["count"], strict=True))
    assert counts["Clerk"] == counts["Tutor"] == 0
    everyone = release.estimate("job").frame
    assert counts["Nurse"] == pytest.approx(everyone.filter(pl.col("job") == "Nurse")["count"].item())


def test_counts_of_exact_conditions_are_exact(release: Release) -> None:
    found = release.count({"zip": ["01001", "52701"], "count": "many"})
    truth = len(TRUTH.filter(pl.col("zip").is_in(["01001", "52701"]) & (pl.col("count") == "many")))
    assert (found.count, found.low, found.high, found.std_error) == (truth, truth, truth, 0)
    assert found.estimator == "exact"
    assert found.assumes == "all columns of the question are published exactly"


def test_counts_of_decoy_conditions_have_an_interval(release: Release) -> None:
    found = release.count({"job": "Clerk", "ill": "lung"})
    truth = len(TRUTH.filter((pl.col("job") == "Clerk") & (pl.col("ill") != "break")))
    assert abs(found.count - truth) < SURE * found.std_error
    assert found.low < found.count < found.high
    assert str(found) == f"{found.count:,.1f} (95% interval {found.low:,.1f} to {found.high:,.1f})"


def test_a_column_called_count_keeps_its_own_place_in_the_answer(release: Release) -> None:
    found = release.estimate(["count", "zip@2"])
    assert found.by == ("count_", "zip@2")
    assert found.frame.columns == ["count_", "zip@2", "count", "std_error", "low", "high"]
    assert found.frame["count_"].to_list()[:2] == ["few", "few"]
    assert found.order["count_"] == ("few", "many")
    assert found.frame["count"].sum() == pytest.approx(len(TRUTH))


@pytest.mark.parametrize(
    ("by", "where", "options", "message"),
    [
        ([], None, {}, "at least one column"),
        (["job", "job"], None, {}, "listed twice"),
        (["ill", "ill@1"], None, {}, "listed twice"),
        ("sex", None, {}, "no column 'sex'"),
        ("zip@9", None, {}, "level '9'"),
        ("age/7", None, {}, "does not fit into intervals"),
        ("job", {"sex": "f"}, {}, "no column 'sex'"),
        ("job", {"job": "Pilot"}, {}, "no value 'Pilot'"),
        ("job", {"zip@1": "010**"}, {}, "no column 'zip@1'"),
        ("job", None, {"estimator": "oracle"}, "no estimator 'oracle'"),
        ("job", None, {"level": 1.5}, "level=1.5 is not a probability"),
    ],
)
def test_estimates_that_are_refused(release: Release, by: Any, where: Any, options: dict, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        release.estimate(by, where, **options)


def test_counts_that_are_refused(release: Release) -> None:
    with pytest.raises(QueryError, match="count needs a condition"):
        release.count({})
    with pytest.raises(QueryError, match="no column 'sex'"):
        release.count({"sex": "f"})


def test_a_table_with_too_many_cells_is_refused(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.release.answers.CELL_LIMIT", 11)
    with pytest.raises(QueryError, match="would have 12 cells, more than 11"):
        release.estimate(["job", "ill"])


def test_open_columns_can_be_asked_for() -> None:
    statements: dict[str, Statement] = {
        "a": OpenStatement(plain().over("a", None)),
        "b": ExactStatement(column("b", Domain(("x", "y")))),
    }
    found = published(statements, {"a": pa.array(["10", "9", None, "10", "7"]), "b": np.array([0, 1, 0, 1, 0])})
    assert found.estimate("a").frame.select("a", "count").rows() == [("7", 1), ("9", 1), ("10", 2), (MISSING, 1)]
    assert found.estimate("a/10").frame["a/10"].to_list() == ["[0, 10)", "[10, 20)", MISSING]
    assert found.count({"a": 10, "b": "y"}).count == 1


def test_a_condition_that_no_record_meets_counts_nothing() -> None:
    statements: dict[str, Statement] = {
        "a": drawn("a", Domain(("x", "y", "z"))),
        "b": ExactStatement(column("b", Domain(("p", "q")))),
    }
    made = published(statements, {"a": np.arange(12) % 3, "b": np.zeros(12, int)})
    assert made.count({"b": "q"}).count == 0
    assert made.count({"b": "q", "a": "x"}).count == 0
    assert made.estimate("a", where={"b": "q"}).frame["count"].to_list() == [0, 0, 0]
