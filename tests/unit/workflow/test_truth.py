"""What the original says beside a release: counts over published values, people left out, means, samples."""

from __future__ import annotations

from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import DataError
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain, whole_domain
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement, MeanStatement
from noren.workflow import truth as room
from noren.workflow.truth import Truth, _with_rest


def exact(name: str, domain: Domain | None, role: Role = Role.SENSITIVE) -> ExactStatement:
    return ExactStatement(Column(role=role).over(name, domain))


def beside(*statements: Any, **told: Any) -> Any:
    """As much of a release as is asked here."""
    manifest = SimpleNamespace(sample=told.pop("sample", None), rows_are_people=told.pop("people", True))
    by_name = {one.name: one for one in statements}
    release = {"statements": statements, "column": by_name.__getitem__, "manifest": manifest}
    return SimpleNamespace(**release | {"suppressed": 0, "records": 0} | told)


def truth(release: Any, **parts: Any) -> Truth:
    """The original, with what reading it would have found."""
    out = object.__new__(Truth)
    found = {"_table": parts.pop("table")} if "table" in parts else {}
    vars(out).update({"release": release, "policy": None, "_meeting": Lock()} | found | parts)
    return out


# ---------------------------------------------------------------- counts

TREES = pl.DataFrame({"tree": ["ash", "ash", "elm", None, "yew"], "age": [1, 2, 2, 5, None]})


def test_values_outside_what_is_published_are_strangers_or_a_fault() -> None:
    release = beside(exact("tree", Domain(("ash", "elm"))))
    found = Truth(release, None, TREES)
    with pytest.raises(DataError):
        found.counts(["tree"])
    assert found.counts(["tree"], strangers=True)["tree"].tolist() == [2, 1, 1, 1]
    full = Truth(beside(exact("tree", Domain(("ash", "elm", "yew", MISSING)))), None, TREES)
    assert full.counts(["tree"])["tree"].tolist() == [2, 1, 1, 1]
    assert full.counts([]) == {}
    both = Truth(beside(*full.release.statements, exact("age", whole_domain(1, 6, False, False, True))), None, TREES)
    assert {name: len(found) for name, found in both.counts(["tree", "age"]).items()} == {"tree": 4, "age": 6}


def test_numbers_between_published_edges_are_counted_as_the_original_writes_them() -> None:
    release = beside(exact("age", whole_domain(1, 3, False, False, False)))
    found = Truth(release, None, TREES.with_columns(age=pl.Series([" 1", "2.0", "2", "5", None])))
    with pytest.raises(DataError, match="2 cells of 'age' are covered by no published value"):
        found.counts(["age"])
    assert found.counts(["age"], strangers=True)["age"].tolist() == [1, 2, 2]
    whole = Truth(beside(exact("age", whole_domain(1, 6, False, False, True))), None, TREES)
    assert whole.counts(["age"])["age"].tolist() == [1, 2, 0, 0, 1, 1]
    with pytest.raises(DataError, match="no column 'shoe', which the release has"):
        Truth(beside(exact("shoe", Domain(("a",)))), None, TREES).counts(["shoe"])


def test_a_policy_says_how_values_are_written() -> None:
    """Without it a decimal comma is no number."""
    table = pl.DataFrame({"n": ["1,5", "2,5", "2,5"], "job": ["cook", "clerk", "cook"]})
    attributes = {
        "n": {"role": "plain", "decimal": ","},
        "job": {"role": "sensitive", "values": ["cook", "clerk", "smith"]},
    }
    policy = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="job", l=2)])
    release = beside(exact("n", Domain(("1.5", "2.5"), "number"), Role.PLAIN))
    assert Truth(release, policy, table).counts(["n"])["n"].tolist() == [1, 2]
    with pytest.raises(DataError):
        Truth(release, None, table).counts(["n"])
    unknown = Truth(release, policy, table)._as_written(Domain(("1.5",), "number"), "nobody", False)
    assert unknown == Domain(("1.5",), "number")


def test_the_word_for_others_may_be_a_value_that_only_people_left_out_have() -> None:
    """A policy may declare it; then it is no fault of the original, and without people left out it still is."""
    table = pl.DataFrame({"job": ["cook", "clerk", "(other)", "cook"]})
    attributes: dict[str, Any] = {"job": {"role": "sensitive", "values": ["cook", "clerk", "(other)"]}}
    policy = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="job", l=2)])
    found = Truth(beside(exact("job", Domain(("cook", "clerk"), source="policy"))), policy, table)
    assert found.counts(["job"], strangers=True)["job"].tolist()[:2] == [2, 1]
    assert found.counts(["job"], strangers=True)["job"].sum() == 4
    with pytest.raises(DataError, match="1 cells outside its domain"):
        found.counts(["job"])
    strange = Truth(
        found.release, policy.model_copy(), table.with_columns(job=pl.Series(["cook", "smith", "cook", "cook"]))
    )
    with pytest.raises(nr.NorenError):
        strange.counts(["job"], strangers=True)


def test_the_original_is_read_whole_though_a_sample_is_published() -> None:
    table = pl.DataFrame({"job": ["cook", "clerk"] * 30})
    attributes: dict[str, Any] = {"job": {"role": "sensitive", "values": ["cook", "clerk", "smith"]}}
    asked = [nr.models.FrequencyLDiversity(on="job", l=2)]
    policy = nr.Policy(attributes=attributes, require=asked, sample={"share": 0.5})
    assert Truth(beside(JOB), policy, table).table.n == 60


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Domain(("a",)), ("a", OTHER, MISSING)),
        (Domain(("a", OTHER)), ("a", OTHER, MISSING)),
        (Domain(("a",), source="policy"), ("a", MISSING)),
        (Domain(("a", MISSING), source="policy"), ("a", MISSING)),
    ],
)
def test_what_is_not_listed_has_a_place_where_people_are_missing(domain: Domain, values: tuple[str, ...]) -> None:
    assert _with_rest(domain).values == values


# ---------------------------------------------------------------- those who were left out


def left_out(monkeypatch: pytest.MonkeyPatch, found: Truth) -> Any:
    asked: list[Any] = []
    monkeypatch.setattr(room, "missing_verdict", lambda *given: asked.append(given) or "judged")
    verdicts = found.left_out([])
    return (verdicts, asked)


JOB, TOWN = exact("job", Domain(("cook", "clerk"))), exact("town", Domain(("Ulm",)), Role.PLAIN)


@pytest.mark.parametrize(
    ("told", "judged"),
    [
        ({"suppressed": 1}, True),
        ({}, False),
        ({"suppressed": 1, "sample": 0.5}, False),
        ({"suppressed": 1, "people": False}, False),
    ],
)
def test_those_who_are_missing_are_judged_where_rows_are_people(
    told: dict[str, Any], judged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts(names: list[str], strangers: bool) -> dict[str, np.ndarray]:
        assert strangers
        return {"job": np.array([3, 2, 0])}

    found = truth(beside(JOB, TOWN, **told), counts=counts)
    verdicts, asked = left_out(monkeypatch, found)
    assert verdicts == (["judged"] if judged else [])
    if judged:
        _, _, columns, counts, places = asked[0]
        assert (list(columns), counts["job"].tolist(), places) == (["job"], [3, 2], {})


@pytest.mark.parametrize(
    ("policy", "own", "place"),
    [
        ("given", Domain(("cook", "smith", "clerk")), [0, 2]),
        ("given", Domain(("smith", "cook", "clerk")), [1, 2]),
        ("given", Domain(("smith", "cook")), None),
        ("given", None, None),
        (None, Domain(("cook", "smith", "clerk")), None),
    ],
)
def test_values_that_the_missing_alone_have_are_looked_up_in_the_original(
    policy: Any, own: Domain | None, place: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"job": Column(role=Role.SENSITIVE).over("job", own)}
    table = SimpleNamespace(columns=columns, counts={"job": np.array([3, 1, 2])})
    found = truth(beside(JOB, suppressed=1), policy=policy, table=table)
    vars(found)["counts"] = lambda names, strangers: {"job": np.array([3, 2, 1])}
    at = found._places_of(JOB)
    assert (None if at is None else at.tolist()) == place
    (_, _, known, counts, places) = left_out(monkeypatch, found)[1][0]
    if place is None:
        assert (known, places) == ({}, {})
        return
    assert (known["job"], counts["job"].tolist(), places["job"].tolist()) == (columns["job"], [3, 1, 2], place)
    empty = exact("job", Domain(()))
    assert found._places_of(empty) is not None
    table.columns = {}
    assert found._places_of(JOB) is None


def test_columns_of_terms_and_open_ones_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    needs, plain = SimpleNamespace(needs_requirement=True), SimpleNamespace(needs_requirement=False)
    terms = SimpleNamespace(name="signs", role=needs, lists_values=True, terms=object())
    open_one = SimpleNamespace(name="note", role=needs, lists_values=False, terms=None)
    free = SimpleNamespace(name="town", role=plain, lists_values=True, terms=None)
    found = truth(beside(terms, open_one, free, suppressed=1))  # nothing left to count, so nothing is
    assert left_out(monkeypatch, found)[1][0][2:] == ({}, {}, {})


# ---------------------------------------------------------------- means


def averaged(
    means: tuple[float | None, ...], codes: list[int], domain: Domain | None, counts: list[int], **told: Any
) -> Any:
    """The verdicts on a column of means, whose classes have these codes, beside an original with these counts."""
    statement = MeanStatement(Column(role=Role.QUASI_IDENTIFIER).over("pay", None), means, told.pop("decimals", 0))
    table = SimpleNamespace(
        columns={"pay": Column(role=Role.QUASI_IDENTIFIER).over("pay", domain)},
        counts={"pay": np.array(counts)},
        n=told.pop("n", sum(counts)),
    )
    policy = told.pop("policy", "given")
    cells = {"pay": CodeCells(len(means), np.array(codes))}
    release = beside(statement, records=len(codes), batches=lambda names: [cells], **told)
    return truth(release, policy=policy, table=table)._means()


PAY = Domain(("1", "2", "6"), "integer")


@pytest.mark.parametrize(
    ("means", "codes", "counts", "more", "holds", "achieved"),
    [
        ((1.0, 4.0), [0, 1, 1], [1, 1, 1], {}, True, 3.0),
        ((1.0, 3.25), [0, 1, 1], [1, 1, 1], {}, True, 2.5),
        ((1.0, 3.0), [0, 1, 1], [1, 1, 1], {}, False, 7 / 3),
        ((1.0, 3.25), [0, 1, 1], [1, 1, 1], {"decimals": 1}, False, 2.5),
        ((1.0, 4.0), [0, 1, 1], [1, 1, 1], {"n": 4}, False, 3.0),
        ((2.0,), [0], [0, 1, 0], {}, True, 2.0),
    ],
)
def test_means_of_classes_have_the_mean_of_all(
    means: Any, codes: list[int], counts: list[int], more: dict[str, Any], holds: bool, achieved: float
) -> None:
    (found,) = averaged(means, codes, PAY, counts, **more)
    assert (found.holds, found.achieved, found.column) == (holds, pytest.approx(achieved), "pay")
    assert (found.records, found.breaches) == (len(codes), 0 if holds else len(codes))
    assert ("do not agree" in found.statement) is not holds
    n = more.get("n", sum(counts))
    assert found.required == pytest.approx(np.dot([1, 2, 6], counts) / n)


@pytest.mark.parametrize(
    ("domain", "more"),
    [
        (PAY, {"policy": None}),
        (PAY, {"suppressed": 1}),
        (None, {}),
        (Domain(("a", "b", "c")), {}),
        (Domain(("1", "2", MISSING), "integer"), {}),
    ],
)
def test_means_are_not_compared_where_the_original_has_none(domain: Domain | None, more: dict[str, Any]) -> None:
    assert averaged((1.0,), [0], domain, [1, 0, 0], **more) == []
    assert truth(beside(JOB), policy="given")._means() == []


# ---------------------------------------------------------------- samples and classes


def test_a_sample_is_counted_over_its_first_listed_column() -> None:
    """Half of 16: a deviation is 2, so that 8 * 2 + 1 people more or less are near enough."""
    asked: list[Any] = []

    def counts(names: list[str], strangers: bool) -> dict[str, np.ndarray]:
        asked.append((names, strangers))
        return {"job": np.array([10, 5, 1])}

    for people, near in ((8, True), (25, True), (26, False)):
        (found,) = truth(beside(JOB, TOWN, sample=0.5, records=people), counts=counts)._judge_sample()
        assert (found.holds, found.achieved) == (near, people / 16)
    assert asked[0] == (["job"], True)
    nobody = truth(beside(JOB, sample=0.5), counts=lambda names, strangers: {"job": np.array([0, 0])})._judge_sample()
    assert nobody[0].achieved == 0
    one = truth(
        beside(JOB, sample=0.5, records=1), counts=lambda names, strangers: {"job": np.array([1, 0])}
    )._judge_sample()
    assert one[0].achieved == 1


@pytest.mark.parametrize(("suppressed", "strangers"), [(0, False), (1, True)])
def test_strangers_are_counted_where_somebody_was_left_out(
    suppressed: int, strangers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def counts(names: list[str], strangers: bool) -> dict[str, np.ndarray]:
        asked.append(strangers)
        return {"job": np.array([1, 1, 0])}

    monkeypatch.setattr(room, "tight_columns", lambda release: ["job"])
    monkeypatch.setattr(room, "tight_verdicts", lambda release, found: list(found))
    monkeypatch.setattr(room, "tally_cells", lambda release, names: {"job": np.array([1, 1])})
    hidden = SimpleNamespace(name="job", hides=True, lists_values=True, design=None, d=2, possible_counts=lambda n: n)
    found = truth(beside(hidden, suppressed=suppressed, records=2 - suppressed), counts=counts)
    assert found._tight() == ["job"]
    (verdict,) = found._possible()
    assert asked == [strangers, strangers]
    assert (verdict.holds, verdict.breaches, verdict.achieved, verdict.records) == (True, 0, 1.0, 2)
    assert ("suppressed" in verdict.statement) is strangers


@pytest.mark.parametrize(
    ("true", "suppressed", "records", "holds", "breaches", "achieved", "said"),
    [
        ([3, 0, 0], 0, 3, False, 2, 1 / 3, "some true values are not possible"),
        ([0, 0, 1], 0, 1, False, 1, 0.0, "some true values are not possible"),
        ([3, 0, 0], 1, 2, False, 1, 2 / 3, "some true values are not possible"),
        ([1, 1, 1], 1, 2, True, 0, 1.0, "every value is possible at least as often as it is true, apart from the 1"),
        ([1, 1, 0], 0, 3, False, 0, 1.0, "the original has 2 records, but the release has 3 and reports 0 suppressed"),
    ],
)
def test_true_values_are_possible(true, suppressed, records, holds, breaches, achieved, said, monkeypatch) -> None:
    monkeypatch.setattr(room, "tally_cells", lambda release, names: {"job": np.array([1, 1])})
    hidden = SimpleNamespace(name="job", hides=True, lists_values=True, design=None, d=2, possible_counts=lambda n: n)
    release = beside(hidden, suppressed=suppressed, records=records)
    (found,) = truth(release, counts=lambda names, strangers: {"job": np.array(true)})._possible()
    assert (found.holds, found.breaches, found.achieved) == (holds, breaches, pytest.approx(achieved))
    assert found.statement.startswith(said)
