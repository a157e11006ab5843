"""Kinds of columns: what is written one way or another is one value, and what differs stays apart."""

from __future__ import annotations

import calendar
import re
from collections import Counter
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from noren.engines.engine import ValueCounts
from noren.policy.values import domain_of
from noren.schema.column import Column
from noren.schema.domain import MISSING, Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import DATES, DAY_FIRST, Format, as_number, number_text, parse, reader, sniff
from noren.schema.roles import Role

cents = st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=20)
WRITTEN = {
    "plain": (lambda x: f"{x:.2f}"),
    "a decimal comma": (lambda x: f"{x:.2f}".replace(".", ",")),
    "English thousands": (lambda x: f"{x:,.2f}"),
    "German thousands": (lambda x: f"{x:,.2f}".translate(str.maketrans(",.", ".,"))),
    "French thousands": (lambda x: f"{x:,.2f}".translate(str.maketrans(",.", " ,"))),
}


@pytest.mark.parametrize("way", WRITTEN)
@given(cents)
@example([123450, 999900])
@example([50])
@example([123456])
def test_amounts_are_read_however_they_are_written(way: str, amounts: list[int]) -> None:
    numbers = [Decimal(amount) / 100 for amount in amounts]
    labels = [WRITTEN[way](number) for number in numbers]
    found = sniff(labels)
    assert found.kind in ("integer", "number")
    read = reader(found.kind, found.format)
    assert [read(label) for label in labels] == [number_text(float(number)) for number in numbers]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_canonical_numbers_stay_themselves(numbers: list[float]) -> None:
    labels = [number_text(number) for number in numbers]
    found = sniff(labels)
    if found.kind == "string":
        assert any(label.isdecimal() or label.lstrip("-").isdecimal() for label in labels)
        return
    assert [reader(found.kind, found.format)(label) for label in labels] == labels
    assert [parse(label, found.kind) for label in labels] == [float(label) for label in labels]


def value_of(label: str, written: Format) -> Decimal:
    """The number that a text writes down, exactly."""
    text = label.strip().replace(written.thousands, "") if written.thousands else label.strip()
    return Decimal(text.replace(written.decimal, "."))


texts = st.text("0123456789.,-+e ", min_size=1, max_size=8)


@given(st.lists(texts, min_size=2, max_size=8), st.sampled_from([None, ",", "."]))
@example(["12.5", "125", "1,5"], None)
@example(["1,5", "15"], ".")
@example(["0,123", "0,456"], None)
@example(["90071992547409930", "90071992547409931"], None)
def test_two_different_numbers_never_become_one(labels: list[str], decimal: str | None) -> None:
    found = sniff(labels, decimal)
    assume(found.kind in ("integer", "number"))
    read = reader(found.kind, found.format)
    canonical = [read(label) for label in labels]
    assert None not in canonical
    for label, one in zip(labels, canonical, strict=True):
        try:
            exact = value_of(label, found.format)
        except InvalidOperation:
            pytest.fail(f"{label!r} is no number")
        assert float(exact) == float(str(one))


@given(st.integers(2, 9).flatmap(lambda n: st.lists(st.text("0123456789", min_size=n, max_size=n), min_size=1)))
def test_codes_with_leading_zeros_stay(codes: list[str]) -> None:
    assume(any(code.startswith("0") for code in codes))
    assert sniff(codes).kind == "string"
    domain, _, problems = domain_of("", Column(role=Role.PLAIN), counted(codes), None, None)
    assert not problems
    assert domain.values == tuple(sorted(set(codes)))
    assert domain.is_ordered


@given(st.lists(st.from_regex(r"0[0-9]{1,6}", fullmatch=True), min_size=1), st.lists(st.integers(0, 10**6)))
def test_a_leading_zero_among_numbers_keeps_them_texts(codes: list[str], numbers: list[int]) -> None:
    assert sniff([*codes, *map(str, numbers)]).kind == "string"


@pytest.mark.parametrize("pattern", DATES)
@given(st.lists(st.dates(), min_size=1, max_size=20))
@example([date(1, 1, 1)])
def test_dates_are_read_however_they_are_written(pattern: str, days: list[date]) -> None:
    """Years of two digits stand for those from 1930 to 2029."""
    if "%y" in pattern:
        days = [date(1930 + (d.year - 1930) % 100, d.month, min(d.day, 28)) for d in days]
    parts = {"%Y": "{0.year:04}", "%y": "{1:02}", "%m": "{0.month:02}", "%d": "{0.day:02}", "%b": "{2}"}
    form = re.sub("%[a-zA-Z]", lambda found: parts[found[0]], pattern)
    labels = [form.format(day, day.year % 100, calendar.month_abbr[day.month]) for day in days]
    found = sniff(labels)
    slashes = pattern in DAY_FIRST or pattern in DAY_FIRST.values()
    if slashes and all(d.day <= 12 for d in days):
        assert found.kind == "string"
        assert "declare format" in found.why
        found = found.__class__("date", Format(pattern=pattern), "declared")
    assert found.kind == "date"
    read = reader("date", found.format)
    assert [read(label) for label in labels] == [day.isoformat() for day in days]
    assert [parse(str(read(label)), "date") for label in labels] == days
    assert [as_number(d.isoformat(), "date") for d in days] == [d.toordinal() for d in days]


@given(st.lists(st.datetimes(), min_size=1, max_size=20))
def test_moments_round_trip(moments: list[datetime]) -> None:
    moments = [moment.replace(microsecond=0) for moment in moments]
    for apart in (" ", "T"):
        labels = [moment.isoformat(apart) for moment in moments]
        found = sniff(labels)
        assert found.kind == "datetime"
        assert [parse(str(reader("datetime", found.format)(label)), "datetime") for label in labels] == moments


# ---------------------------------------------------------------- bins by rule


def counted(values: list[str], missing: int = 0) -> ValueCounts:
    found = ValueCounts("x")
    found.add(Counter(values))
    found.missing = missing
    return found


numbers = st.lists(st.integers(-(10**6), 10**6).map(lambda x: number_text(x / 100)), min_size=1, max_size=60)


@given(numbers, st.sampled_from(["2.5", "5", "7", "10", "100", "5000"]), st.integers(0, 2))
def test_bins_of_a_width_start_at_its_multiples_and_hold_all(values: list[str], width: str, missing: int) -> None:
    column = Column(role=Role.QUASI_IDENTIFIER, bins=f"width:{width}")
    domain, counts, problems = domain_of("", column, counted(values, missing), None, None)
    assert not problems
    assert domain.edges is not None
    edges = [edge for edge in domain.edges if np.isfinite(edge)]
    assert all(edge / float(width) == pytest.approx(round(edge / float(width)), abs=1e-6) for edge in edges)
    assert all(b - a == pytest.approx(float(width)) for a, b in pairwise(edges))
    assert counts.sum() == len(values) + missing
    assert domain.has_missing == bool(missing)
    for value in values:
        assert domain.edges[0] <= float(value) <= domain.edges[-1]


def test_a_width_that_would_make_a_million_bins_is_refused() -> None:
    column = Column(role=Role.QUASI_IDENTIFIER, bins="width:0.001")
    _, _, (problem,) = domain_of("attributes.x", column, counted(["0", "10000"]), None, None)
    assert problem.where == "attributes.x.bins"
    assert "10,000,001 intervals" in problem.message


@given(numbers, st.integers(2, 9))
def test_quantiles_rise_and_hold_all(values: list[str], parts: int) -> None:
    assume(len(set(values)) > 1)
    column = Column(role=Role.QUASI_IDENTIFIER, bins=f"quantiles:{parts}")
    domain, counts, problems = domain_of("", column, counted(values), None, None)
    assert not problems
    assert domain.edges is not None
    assert all(a < b for a, b in pairwise(domain.edges))
    assert counts.sum() == len(values)


@given(st.integers(0, 10**6), st.integers(2, 9))
def test_an_edge_is_no_record_of_its_own(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    values = [repr(float(x)) for x in rng.lognormal(10, 1, 300)]
    column = Column(role=Role.QUASI_IDENTIFIER, bins=f"quantiles:{parts}")
    domain, _, _ = domain_of("", column, counted(values), None, None)
    assert domain.edges is not None
    assert {edge for edge in domain.edges if np.isfinite(edge)}.isdisjoint(map(float, values))


@given(numbers, st.floats(-100, 100).map(lambda x: round(x, 1)))
def test_an_open_top_holds_all_above(values: list[str], top: float) -> None:
    column = Column(role=Role.QUASI_IDENTIFIER, bins="width:10", top=top)
    domain, counts, problems = domain_of("", column, counted(values), None, None)
    assert not problems
    assert domain.values[-1] == f"{number_text(top)} and above"
    assert counts[-1] == sum(float(value) >= top for value in values)
    assert counts.sum() == len(values)


# ---------------------------------------------------------------- calendars

SPANS = ("month", "quarter", "year", "decade")


@given(st.lists(st.dates(), min_size=1, max_size=30, unique=True), st.booleans())
def test_spans_of_the_calendar(days: list[date], missing: bool) -> None:
    labels = [day.isoformat() for day in sorted(days)] + [MISSING] * missing
    tree = Hierarchy.from_calendar(labels, SPANS)
    assert tree.leaves == tuple(labels)
    months, quarters, years, decades = ([level[i] for i in range(len(days))] for level in tree.levels[1:5])
    for i, a in enumerate(sorted(days)):
        for j, b in enumerate(sorted(days)):
            assert (months[i] == months[j]) == ((a.year, a.month) == (b.year, b.month))
            assert (quarters[i] == quarters[j]) == ((a.year, (a.month - 1) // 3) == (b.year, (b.month - 1) // 3))
            assert (years[i] == years[j]) == (a.year == b.year)
            assert (decades[i] == decades[j]) == (a.year // 10 == b.year // 10)
    if missing:
        assert [level[-1] for level in tree.levels] == [MISSING] * (len(tree.levels) - 1) + ["*"]


@given(st.lists(st.dates(), min_size=1, max_size=30))
def test_texts_of_one_day_are_one_value(days: list[date]) -> None:
    short = [f"{d.day}.{d.month}.{d.year:04}" for d in days]
    long = [f"{d.day:02}.{d.month:02}.{d.year:04}" for d in days]
    domain, counts, problems = domain_of("", Column(role=Role.PLAIN), counted([*short, *long]), None, None)
    assert not problems
    assert domain.kind == "date"
    assert domain.values == tuple(sorted({d.isoformat() for d in days}))
    assert counts.sum() == 2 * len(days)
    assert domain.canonical(long) == [d.isoformat() for d in days]
    assert Domain(domain.values, "date").is_ranked
