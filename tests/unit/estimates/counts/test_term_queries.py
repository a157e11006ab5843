"""Questions about terms: a release worked out by hand, what conditions mean, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from noren.cli.render import parse_where
from noren.errors import QueryError
from noren.estimates.counts.plots import chart
from noren.estimates.counts.query import TermCondition, allowed_values, wanted_terms
from noren.release.manifest import Manifest
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.release.term_answers import LEFT_OUT, OVERLAP
from noren.schema.column import plain, quasi_identifier, quasi_sensitive, sensitive
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.statements import (
    CodeCells,
    ExactStatement,
    GroupStatement,
    GroupTable,
    NodeStatement,
    TermCells,
    TermsStatement,
)

SIGNS = ("cough", "fever", "rash", "itch")
DRUGS = ("aspirin", "zinc")
# age: a node over [20, 21] or all of [20, 23]; sex is exact; ill stands in one group of six
AGE = ["young", "young", "any", "any", "old", "old"]
SEX = ["F", "M", "F", "M", "F", "F"]
PUBLISHED = [["cough"], ["cough", "fever"], [], ["fever"], ["cough", "fever", "rash"], ["rash"]]
TAKEN = [["zinc"], [], ["zinc", "aspirin"], ["zinc"], ["aspirin"], []]


def terms(values: tuple[str, ...], sets: list[list[str]]) -> TermCells:
    pairs = [(i, values.index(term)) for i, held in enumerate(sets) for term in held]
    record, code = np.array(pairs).T
    return TermCells.from_entries(len(values), len(sets), record, code)


def release(suppressed: int = 0, name: str = "signs") -> Release:
    nodes = Nodes.from_runs(4, ["young", "old", "any"], [[(0, 2)], [(2, 4)], [(0, 4)]])
    ages = tuple(str(age) for age in range(20, 24))
    groups = GroupTable(1, 2, np.array([0, 0]), np.array([0, 1]), np.array([5, 1]))
    signs = Knowledge.from_pairs([("measles", s) for s in SIGNS])
    drugs = Knowledge.from_pairs([("pain", d) for d in DRUGS])
    columns = [
        NodeStatement(quasi_identifier().over("age", Domain(ages, "integer")), nodes),
        ExactStatement(plain().over("sex", Domain(("F", "M")))),
        GroupStatement(sensitive().over("ill", Domain(("flu", "gout"))), 1, held=groups),
        TermsStatement(quasi_sensitive(knowledge=signs).over(name, Domain(SIGNS)), 1),
        TermsStatement(quasi_sensitive(knowledge=drugs).over("drugs", Domain(DRUGS)), 2),
    ]
    manifest = Manifest(
        noren="1", records=6, suppressed=suppressed, columns=tuple(columns), requirements=(),
        methods=({"name": "suppress"},), randomness="fresh", verdicts=(),
    )  # fmt: skip
    cells: dict[str, Any] = {
        "age": CodeCells(3, np.array([["young", "old", "any"].index(node) for node in AGE])),
        "sex": CodeCells(2, np.array([["F", "M"].index(value) for value in SEX])),
        "ill": CodeCells(1, np.zeros(6, int)),
        name: terms(SIGNS, PUBLISHED),
        "drugs": terms(DRUGS, TAKEN),
    }
    return Release(manifest, MemoryStore(cells))


def bounds(found: Any) -> tuple[float, float, float]:
    return found.count, found.low, found.high


# ------------------------------------------------------------------ counts


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"signs": "cough"}, (3, 3, 6)),
        ({"signs": ["cough", "rash"]}, (4, 4, 6)),
        ({"signs": ("cough", "rash")}, (4, 4, 6)),
        ({"signs": {"cough", "rash"}}, (4, 4, 6)),
        ({"signs": {"any": ["cough", "rash"]}}, (4, 4, 6)),
        ({"signs": {"any": "cough"}}, (3, 3, 6)),
        ({"signs": {"all": ["cough", "fever"]}}, (2, 2, 6)),
        ({"signs": {"all": ["cough", "fever", "cough"]}}, (2, 2, 6)),
        ({"signs": {"all": "cough"}}, (3, 3, 6)),
        ({"signs": {"any": ["rash", "itch"], "all": ["cough"]}}, (1, 1, 6)),
        ({"signs": "itch"}, (0, 0, 6)),
        ({"signs": "cough", "drugs": "zinc"}, (1, 1, 6)),
        ({"signs": "cough", "sex": "F"}, (2, 2, 4)),
        ({"signs": "cough", "sex": ["F", "M"]}, (3, 3, 6)),
    ],
)
def test_counts_are_of_records_that_publish_what_is_asked(where, expected):
    found = release().count(where)
    assert bounds(found) == expected
    assert found.std_error is None
    assert found.estimator == "published terms"
    assert LEFT_OUT in found.assumes
    assert OVERLAP not in found.assumes


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"signs": "fever", "age": [20, 21]}, (1.5, 1, 4)),
        ({"signs": "fever", "age": [22]}, (0.75, 0, 4)),
        ({"signs": "rash", "age": [22, 23]}, (2, 2, 4)),
        ({"signs": "rash", "age": [22, 23], "sex": "F"}, (2, 2, 3)),
    ],
)
def test_general_values_and_terms_together(where, expected):
    """`fever` is published by one record each of young (20, 21), any (20 to 23) and old (22, 23)."""
    found = release().count(where, "spread")
    assert bounds(found) == pytest.approx(expected)
    assert found.estimator == "spread"
    assert found.assumes.startswith(LEFT_OUT)
    assert "spread evenly" in found.assumes
    assert found.assumes.count("hard bounds") == 1


def test_the_histogram_of_a_group_bounds_the_records_that_publish_a_term():
    """Five of six have flu: of the three that publish cough two or three do, and five may have cough and flu."""
    assert bounds(release().count({"signs": "cough", "ill": "flu"}, "spread")) == pytest.approx((2.5, 2, 5))
    assert bounds(release().count({"signs": "cough", "ill": "gout"}, "spread")) == pytest.approx((0.5, 0, 1))


@pytest.mark.parametrize("where", [{"signs": "cough"}, {"signs": "cough", "age": [20]}])
def test_suppressed_records_may_have_any_term(where):
    few, many = release().count(where), release(suppressed=4).count(where)
    assert (many.count, many.low, many.high) == (few.count, few.low, few.high + 4)


def test_the_likelihood_is_fitted_to_the_records_that_publish_the_terms():
    """Of those with rash all are old: the likelihood knows, although `any` occurs elsewhere."""
    assert bounds(release().count({"signs": "rash", "age": [22, 23]})) == (2, 2, 4)
    found = release().count({"signs": "fever", "age": [20, 21]})
    assert found.low <= found.count <= found.high
    assert found.estimator == "likelihood"
    assert "coarsening at random" in found.assumes


# ------------------------------------------------------------------ cross tabulations


def test_a_cross_tabulation_under_a_condition_on_terms():
    frame = release().estimate("sex", {"signs": "cough"}).frame
    assert frame["sex"].to_list() == ["F", "M"]
    assert frame.select("count", "low", "high").rows() == [(2, 2, 4), (1, 1, 2)]
    crossed = release().estimate(["age/2", "sex"], {"signs": "cough"}, "spread").frame
    assert crossed.select("count", "low", "high").rows() == [(1, 1, 2), (1, 1, 2), (1, 1, 3), (0, 0, 1)]


def test_one_row_per_term():
    found = release(suppressed=2).estimate("signs")
    assert found.frame["signs"].to_list() == list(SIGNS)
    assert found.frame["count"].to_list() == found.frame["low"].to_list() == [3, 3, 2, 0]
    assert found.frame["high"].to_list() == [8] * 4
    assert found.frame["std_error"].null_count() == 4
    assert (found.by, found.records, found.error_bars) == (("signs",), 6, "hard bounds")
    assert OVERLAP in found.assumes


@pytest.mark.parametrize(
    "where",
    [
        {"sex": "F"},
        {"age": [20]},
        {"age": [20, 22], "sex": "F"},
        {"ill": "flu"},
        {"ill": "flu", "age": [20, 21, 22]},
        {"drugs": "zinc"},
        {"signs": {"all": ["cough"]}},
        {"signs": ["fever"], "drugs": "zinc", "age": [21, 22]},
        {"signs": "itch", "age": [21]},
    ],
)
@pytest.mark.parametrize("estimator", [None, "spread"])
def test_a_row_is_what_a_condition_on_its_term_gives(where, estimator):
    frame = release(suppressed=1).estimate("signs", where, estimator).frame
    given = where.get("signs", {})
    modes = given if isinstance(given, dict) else {"any": given}
    for term, count, _, low, high in frame.rows():
        asked = {**modes, "all": [*modes.get("all", ()), term]}
        assert bounds(release(suppressed=1).count({**where, "signs": asked}, estimator)) == pytest.approx(
            (count, low, high)
        )


def test_a_column_of_terms_called_like_a_figure():
    found = release(name="count").estimate("count")
    assert found.frame.columns == ["count_", "count", "std_error", "low", "high"]


def test_an_estimate_by_terms_is_plain_data():
    found = release().estimate("signs", {"drugs": {"any": {"zinc", "aspirin"}}})
    assert found.to_dict()["where"] == {"drugs": {"any": ["aspirin", "zinc"]}}
    assert found.to_dict()["diagnostics"]["overlap"] is True
    assert release().estimate("sex", {"signs": {"rash"}}).to_dict()["where"] == {"signs": ["rash"]}


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("by", "where", "message", "hint"),
    [
        ("sex", {"signs": "coughs"}, "'signs' has no value 'coughs'", "Did you mean 'cough'"),
        ("sex", {"signs": {"all": ["cough", "gout"]}}, "no value 'gout'", "It has cough, fever, rash, itch."),
        ("sex", {"signs": None}, "no value", "It has cough"),
        ("sex", {"signs": []}, "no value meets the condition", "at least one"),
        ("sex", {"signs": {"all": []}}, "no value meets the condition", "at least one"),
        ("sex", {"signs": {}}, "must be a list, 'any' or 'all'", "'signs': {\"all\": ['cough', 'fever']}"),
        ("sex", {"signs": {"none": ["cough"]}}, "must be a list, 'any' or 'all'", "'cough'"),
        ("sex", {"age": {"all": [20]}}, "'age' has one value per record", "columns of terms"),
        ("signs@1", {}, "neither levels nor intervals", "'signs'"),
        ("signs/2", {}, "neither levels nor intervals", "'signs'"),
        (["signs", "sex"], {}, "'signs' cannot be tabulated with other columns", "Ask for 'sex' with a condition"),
        (["sex", "signs"], {}, "'signs' cannot be tabulated with other columns", "where={'signs': [...]}"),
        (["signs", "drugs"], {}, "'signs' cannot be tabulated with other columns", "Ask for 'drugs'"),
        (["signs", "signs"], {}, "listed twice", "once"),
    ],
)
def test_questions_without_an_answer(by, where, message, hint):
    with pytest.raises(QueryError) as caught:
        release().estimate(by, where)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_terms_have_no_interval_for_a_population():
    for ask in (lambda r: r.count({"signs": "cough"}, population=True), lambda r: r.estimate("signs", population=True)):
        with pytest.raises(QueryError, match="no interval for the population"):
            ask(release())


def test_an_estimator_for_decoys_does_not_answer_for_general_values():
    with pytest.raises(QueryError, match="no estimator 'bayes'"):
        release().count({"signs": "cough", "age": [20]}, "bayes")


def test_sets_of_terms_are_not_expanded():
    with pytest.raises(QueryError, match="no sets of possible values") as caught:
        release().expand()
    assert "explode('signs')" in (caught.value.hint or "")
    assert release().frame().explode("signs")["signs"].drop_nulls().len() == 8


def test_a_hint_is_not_looked_for_among_very_many_values(monkeypatch):
    monkeypatch.setattr("noren.estimates.counts.query.COMPARED", 3)
    with pytest.raises(QueryError) as caught:
        release().count({"signs": "coughs"})
    assert "It has cough" in (caught.value.hint or "")


def test_near_values_are_named_for_every_column():
    job = plain().over("job", Domain(("Lawyer", "Artist")))
    with pytest.raises(QueryError) as caught:
        allowed_values(job, "Layer", job.domain)
    assert caught.value.hint == "Did you mean 'Lawyer'?"


# ------------------------------------------------------------------ conditions by themselves


def test_a_condition_asks_nothing_of_what_it_does_not_name():
    cells = terms(SIGNS, PUBLISHED)
    assert TermCondition(None, None).met(cells).all()
    found = wanted_terms(plain().over("signs", Domain(SIGNS)), {"all": ["rash"]}, Domain(SIGNS))
    assert found.some is None
    assert found.met(cells).tolist() == [False] * 4 + [True] * 2


def test_terms_that_look_like_numbers_are_terms():
    domain = Domain(("10", "2.5"))
    assert wanted_terms(plain().over("codes", domain), [10], domain).some.tolist() == [True, False]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("words", "columns", "parsed"),
    [
        (["signs=a,b"], ["signs"], {"signs": ["a", "b"]}),
        (["signs@all=a,b"], ["signs"], {"signs": {"all": ["a", "b"]}}),
        (["signs@any=a,b"], ["signs"], {"signs": {"any": ["a", "b"]}}),
        (["signs=a", "signs=b"], ["signs"], {"signs": ["a", "b"]}),
        (["signs@all=a", "signs@all=b"], ["signs"], {"signs": {"all": ["a", "b"]}}),
        (["signs=a", "signs@all=b", "signs@any=c"], ["signs"], {"signs": {"any": ["a", "c"], "all": ["b"]}}),
        (["signs@all=a"], ["signs", "signs@all"], {"signs@all": ["a"]}),
        (["signs@all@all=a"], ["signs", "signs@all"], {"signs@all": {"all": ["a"]}}),
        (["signs@all=a"], ["other"], {"signs@all": ["a"]}),
        (["signs@most=a"], ["signs"], {"signs@most": ["a"]}),
        ([" signs@all = a , b,,c"], ["signs"], {"signs": {"all": ["a", "b,c"]}}),
        (["job=a", "signs@all=b"], ["job", "signs"], {"job": ["a"], "signs": {"all": ["b"]}}),
    ],
)
def test_conditions_on_the_command_line(words, columns, parsed):
    assert parse_where(words, columns) == parsed


# ------------------------------------------------------------------ charts


def marks(picture: Any) -> list[dict[str, Any]]:
    return [layer["mark"] for layer in picture.to_dict()["layer"]]


def test_a_bound_that_all_bars_share_is_drawn_once():
    picture = release(suppressed=3).estimate("signs").plot()
    texts = [mark["text"] for mark in marks(picture) if mark["type"] == "text"]
    assert texts == ["at most 9"]
    assert "counts for each of its terms" in picture.to_dict()["title"]["subtitle"][0]
    assert sum(mark["type"] == "tick" for mark in marks(picture)) == 1


def test_bars_with_bounds_of_their_own_keep_their_whiskers():
    frame = pl.DataFrame({"x": ["a", "b", "c"], "count": [1.0] * 3, "std_error": [None] * 3, "low": [0.0] * 3})
    own = chart(frame.with_columns(high=pl.Series([2.0, 3.0, 2.0])), ["x"])
    assert sum(mark["type"] == "tick" for mark in marks(own)) == 2
    unknown = chart(frame.with_columns(high=pl.lit(None)), ["x"])
    assert sum(mark["type"] == "tick" for mark in marks(unknown)) == 2
    assert sum(mark["type"] == "tick" for mark in marks(release().estimate("sex", {"signs": "cough"}).plot())) == 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
def test_an_estimate_by_terms_is_drawn(suffix, tmp_path):
    target = tmp_path / f"terms{suffix}"
    release().estimate("signs", {"age": [20, 21]}).save_plot(target)
    assert target.stat().st_size > 500
