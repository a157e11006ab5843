"""Counts with conditions on terms: the original lies within the bounds, and estimates are what plain Python counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import noren as nr
from noren.errors import RequirementNotMet

LABELS = {
    "flu": ("cough", "fever", "ache"),
    "cold": ("cough", "sneeze"),
    "mumps": ("fever", "swelling"),
    "gout": ("ache", "swelling"),
    "hives": ("itch", "swelling", "fever"),
}
TERMS = sorted({term for held in LABELS.values() for term in held})
KNOWLEDGE = nr.Knowledge.from_pairs([(label, term) for label, held in LABELS.items() for term in held])
TOWNS = ("Bonn", "Köln", "Ulm")


@dataclass(frozen=True)
class Case:
    rows: Sequence[Mapping[str, Any]]
    release: nr.Release


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """People whose signs come from one label and whose past signs are any."""
    out = []
    for _ in range(draw(st.integers(4, 16))):
        held = LABELS[draw(st.sampled_from(sorted(LABELS)))]
        signs = draw(st.lists(st.sampled_from(held), unique=True, max_size=3))
        past = draw(st.lists(st.sampled_from(TERMS), unique=True, max_size=2))
        out.append(
            {
                "age": draw(st.integers(20, 26)),
                "town": draw(st.sampled_from(TOWNS)),
                "shift": draw(st.sampled_from(("day", "night"))),
                "signs": ";".join(signs),
                "past": ";".join(past),
            }
        )
    return out


@st.composite
def policies(draw: st.DrawFn) -> nr.Policy:
    on = draw(st.sampled_from([["signs"], ["signs", "past"]]))
    terms: nr.models.Model = nr.models.QSCloseness(on=on, t=draw(st.sampled_from([0.3, 0.6, 0.9])))
    if draw(st.booleans()):
        terms = nr.models.QSDiversity(on=on, c=draw(st.sampled_from([0.7, 1.0, 2.0])), l=draw(st.integers(2, 3)))
    past = {"role": "quasi-sensitive", "separator": ";", "knowledge": KNOWLEDGE}
    options = {"infeasible": draw(st.sampled_from(["merge", "drop"])), "suppression": draw(st.sampled_from([0, 0.5]))}
    return nr.Policy(
        attributes={
            "age": "quasi-identifier",
            "town": "quasi-identifier",
            "shift": "plain",
            "signs": {"role": "quasi-sensitive", "separator": ";", "knowledge": KNOWLEDGE},
            "past": past if "past" in on else "identifier",
        },
        people={"rows": "independent"},
        require=[terms],
        method=nr.methods.Suppress(k=draw(st.integers(1, 4)), nodes=60, **options),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    made, policy = draw(rows()), draw(policies())
    import polars as pl

    try:
        release = nr.anonymize(pl.DataFrame(made), policy)
    except RequirementNotMet:
        release = None
    assume(release is not None)
    assert release is not None
    return Case(made, release)


@st.composite
def conditions(draw: st.DrawFn, release: nr.Release) -> dict[str, Any]:
    """A condition on terms, and perhaps on other columns."""
    out: dict[str, Any] = {}
    several = st.lists(st.sampled_from(TERMS), min_size=1, max_size=3, unique=True)
    sets = [name for name in ("signs", "past") if name in release.columns]
    for name in draw(st.lists(st.sampled_from(sets), min_size=1, unique=True)):
        modes = draw(st.sampled_from([("any",), ("all",), ("any", "all")]))
        out[name] = {mode: draw(several) for mode in modes}
    for name in draw(st.lists(st.sampled_from(["age", "town", "shift"]), unique=True)):
        values = release.column(name).domain.values
        out[name] = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True))
    return out


# ------------------------------------------------------------------ plain Python


def meets_terms(held: Sequence[str], wanted: Mapping[str, Sequence[str]]) -> bool:
    some, every = wanted.get("any"), wanted.get("all", ())
    return (some is None or any(term in held for term in some)) and all(term in held for term in every)


def true_count(case: Case, where: Mapping[str, Any]) -> int:
    def meets(row: Mapping[str, Any], name: str) -> bool:
        if name in ("signs", "past"):
            return meets_terms(row[name].split(";"), where[name])
        return str(row[name]) in where[name]

    return sum(all(meets(row, name) for name in where) for row in case.rows)


def spread(release: nr.Release, where: Mapping[str, Any]) -> tuple[float, float, float]:
    """Estimate, least and most by going through the published table line by line."""
    meant: dict[str, dict[str, list[str]]] = {}
    for name in where:
        statement = release.column(name)
        values = statement.domain.values
        if statement.nodes is not None:
            runs = zip(statement.nodes.labels, statement.nodes.runs, strict=True)
            meant[name] = {label: [values[v] for a, b in pairs for v in range(a, b)] for label, pairs in runs}
        else:
            meant[name] = {value: [value] for value in values}
    count, least, most = 0.0, 0, release.manifest.suppressed
    for row in release.frame().to_dicts():
        sure, share = True, 1.0
        for name, wanted in where.items():
            if isinstance(wanted, Mapping):
                sure &= meets_terms(row[name], wanted)
                continue
            may = meant[name][str(row[name])]
            share *= sum(value in wanted for value in may) / len(may)
        count += share * sure
        least += share == 1 and sure
        most += share > 0
    return count, least, most


@settings(max_examples=60)
@given(cases(), st.data())
def test_bounds_hold_the_truth_and_estimates_the_published_table(case: Case, data: st.DataObject) -> None:
    where = data.draw(conditions(case.release))
    found = case.release.count(where, "spread")
    assert found.low <= true_count(case, where) <= found.high
    assert (found.count, found.low, found.high) == pytest.approx(spread(case.release, where))
    likely = case.release.count(where)
    assert (likely.low, likely.high) == (found.low, found.high)
    assert likely.low <= likely.count <= likely.high


@settings(max_examples=40)
@given(cases(), st.data())
def test_rows_by_term_hold_the_truth(case: Case, data: st.DataObject) -> None:
    where = data.draw(conditions(case.release))
    where.pop("signs", None)
    frame = case.release.estimate("signs", where, "spread").frame
    assert frame["signs"].to_list() == list(KNOWLEDGE.terms)
    for term, count, _, low, high in frame.rows():
        asked = {**where, "signs": {"all": [term]}}
        assert low <= true_count(case, asked) <= high
        assert (count, low, high) == pytest.approx(spread(case.release, asked))


@settings(max_examples=40)
@given(cases(), st.data())
def test_cross_tabulations_under_conditions_on_terms(case: Case, data: st.DataObject) -> None:
    where = data.draw(conditions(case.release))
    where.pop("town", None)
    where.pop("shift", None)
    frame = case.release.estimate(["town", "shift"], where, "spread").frame
    for town, shift, count, _, low, high in frame.rows():
        asked = {**where, "town": [town], "shift": [shift]}
        assert low <= true_count(case, asked) <= high
        assert (count, low, high) == pytest.approx(spread(case.release, asked))
