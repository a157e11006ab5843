"""Every figure of `measure` against plain definitions, on small tables with everything that makes tables difficult."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from math import isinf
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.models.recursive_cl_diversity import MOST_L
from noren.workflow.measure import Measures, measure
from tests.oracles import measure as oracle

KEYS = ["*", "20-29", "[20, 30[", "漢字", "(missing)", None, " x"]
WORDS = ["flu", "Flu", "é", "(other)", None, "0"]
NUMBERS = ["-3", "0", "2", "10", "100"]
TREE = (
    ("flu", "cold", "cough", "ulcer", "reflux"),
    ("lungs", "lungs", "lungs", "gut", "gut"),
    ("*",) * 5,
)
PLAIN = {
    ("alpha-k-anonymity", ()),
    ("distinct-l-diversity", ()),
    ("frequency-l-diversity", ()),
    ("entropy-l-diversity", ()),
    ("p-sensitive-k-anonymity", ()),
    ("t-closeness", (("distance", "equal"),)),
    ("beta-likeness", (("form", "basic"),)),
    ("beta-likeness", (("form", "enhanced"),)),
    ("delta-disclosure", ()),
}
"""What is said about every sensitive column beside a quasi-identifier, whatever it holds."""
IN_ORDER = ("t-closeness", (("distance", "ordered"),))
BY_TREE = {("t-closeness", (("distance", "tree"),)), ("le-diversity", (("e", 1),)), ("le-diversity", (("e", 2),))}


@st.composite
def tables(draw: st.DrawFn, secrets: Mapping[str, Sequence[str | None]]) -> list[dict[str, str | None]]:
    """One record or a few: two quasi-identifiers and the secrets, from few values so that classes form."""
    n = draw(st.integers(1, 14))
    columns = {"age": KEYS, "place": KEYS, **secrets}
    few = {name: draw(st.lists(st.sampled_from(v), min_size=1, max_size=5)) for name, v in columns.items()}
    return [{name: draw(st.sampled_from(values)) for name, values in few.items()} for _ in range(n)]


def frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String), orient="row")


def in_order(rows: Sequence[Mapping[str, str | None]], name: str, order: Sequence[str | None]) -> tuple[Any, ...]:
    """The values that occur, in their order."""
    found = {row[name] for row in rows}
    return tuple(value for value in order if value in found)


def check(found: Measures, rows: Sequence[Any], quasi: Sequence[str], name: str, levels: Any, more: set) -> None:
    """All figures about one column, and that nothing is left out."""
    told = {(one.model, tuple(sorted(one.given.items()))): one for one in found.found if one.column == name}
    wanted = PLAIN | more
    for model in ("recursive-cl-diversity", "tau-l-diversity"):
        sizes = oracle.largest_l(rows, quasi, name, model, MOST_L, levels)
        wanted = wanted | {(model, (("l", size),)) for size in sizes}
    assert told.keys() == wanted
    for (model, others), one in told.items():
        truth = oracle.achieved(rows, quasi, name, model, dict(others), levels)
        same = isinf(truth) and isinf(one.achieved)
        assert same or one.achieved == pytest.approx(truth, abs=1e-7), (model, others)
        assert one.higher_is_safer == (model not in oracle.LARGEST_IS_WORST)
        assert one.basis == "the release alone"


@settings(max_examples=40)
@given(tables({"illness": WORDS, "pay": NUMBERS}), st.sampled_from(["*", None, "20-29"]))
def test_two_secrets_with_missing_cells(rows: list[dict[str, Any]], mark: str | None) -> None:
    quasi = ["age", "place"]
    left = oracle.kept(rows, quasi, mark)
    if not left:
        with pytest.raises(nr.errors.DataError, match="all records are suppressed"):
            measure(frame(rows), quasi=quasi, sensitive=["illness", "pay"], suppressed=mark)
        return
    found = measure(frame(rows), quasi=quasi, sensitive=["illness", "pay"], suppressed=mark)
    assert (found.records, found.suppressed) == (len(left), len(rows) - len(left))
    assert (found.quasi, found.sensitive) == (("age", "place"), ("illness", "pay"))
    assert found.value("k-anonymity") == oracle.smallest_class(left, quasi)
    words = in_order(left, "illness", WORDS)
    numbers = words if set(words) == {"0"} else ()  # words that are all numbers have an order
    check(found, left, quasi, "illness", [words], {IN_ORDER} if numbers else set())
    check(found, left, quasi, "pay", [in_order(left, "pay", NUMBERS)], {IN_ORDER})


@settings(max_examples=40)
@given(tables({"illness": WORDS, "pay": NUMBERS}))
def test_secrets_that_may_be_known_of_each_other(rows: list[dict[str, Any]]) -> None:
    """Each is judged in classes of all the other columns, and k counts records that agree in all."""
    both = ["illness", "pay"]
    found = measure(frame(rows), quasi=["age", *both], sensitive=both, suppressed=None)
    assert found.value("k-anonymity") == oracle.smallest_class(rows, ["age", *both])
    check(found, rows, ["age", *both], "pay", [in_order(rows, "pay", NUMBERS)], {IN_ORDER})


def policy(**options: Any) -> nr.Policy:
    rules = [nr.models.DistinctLDiversity(on="illness", l=2)]
    roles = {"age": nr.quasi_identifier(), "place": nr.quasi_identifier(), "illness": nr.sensitive(**options)}
    return nr.Policy(attributes=roles, require=rules, method=nr.methods.Mondrian())


@settings(max_examples=40)
@given(tables({"illness": [*TREE[0], None]}))
def test_values_of_a_hierarchy(rows: list[dict[str, Any]]) -> None:
    """The tree over the values that occur. A missing one hangs under the root by itself."""
    found = measure(frame(rows), policy(hierarchy={"tree": nested()}), suppressed=None)
    values = in_order(rows, "illness", [*sorted(TREE[0]), None])
    levels = [[level[TREE[0].index(v)] if v else "*" if level is TREE[-1] else None for v in values] for level in TREE]
    check(found, rows, ["age", "place"], "illness", levels, BY_TREE)


@settings(max_examples=40)
@given(tables({"illness": [*TREE[0], "lungs", "gut", "*"]}))
def test_nodes_of_a_hierarchy(rows: list[dict[str, Any]]) -> None:
    """One general cell, and every cell is a node over all values of the hierarchy, each as likely as the other."""
    rows = [*rows, {"age": "1", "place": "1", "illness": "gut"}]
    found = measure(frame(rows), policy(hierarchy={"tree": nested()}), suppressed=None)
    check(found, rows, ["age", "place"], "illness", TREE, BY_TREE)


@settings(max_examples=40)
@given(tables({"illness": ["mild", "bad", "worst"]}))
def test_a_declared_order_with_values_that_do_not_occur(rows: list[dict[str, Any]]) -> None:
    order = ("none", "mild", "bad", "worst")
    found = measure(frame(rows), policy(values=order), suppressed=None)
    check(found, rows, ["age", "place"], "illness", [order], {IN_ORDER})


def nested() -> dict[str, Any]:
    return {"lungs": ["flu", "cold", "cough"], "gut": ["ulcer", "reflux"]}


@settings(max_examples=40)
@given(tables({"illness": WORDS}), st.permutations(["csv", "parquet", "arrow", "frame"]), st.randoms())
def test_neither_format_nor_order_of_rows_matters(rows: list[dict[str, Any]], kinds: list[str], chance: Any) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)
    with tempfile.TemporaryDirectory() as folder:
        found = [
            measure(stored(data, Path(folder), kind), quasi=["age", "place"], sensitive=["illness"], suppressed=None)
            for (kind, data) in zip(kinds[:2], (rows, mixed), strict=True)
        ]
    assert [(m.model, m.given, m.column) for m in found[0].found] == [
        (m.model, m.given, m.column) for m in found[1].found
    ]
    for one, other in zip(found[0].found, found[1].found, strict=True):
        assert one.achieved == pytest.approx(other.achieved)


def stored(rows: Sequence[Mapping[str, Any]], folder: Path, kind: str) -> Any:
    table, path = frame(rows), folder / f"table.{kind}"
    if kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, list(rows[0]), delimiter=";", quoting=csv.QUOTE_ALL)
            out.writeheader()
            out.writerows(rows)
    elif kind == "parquet":
        table.write_parquet(path)
    elif kind == "arrow":
        table.cast(pl.Categorical).write_ipc(path)
    else:
        return table
    return path


def test_the_oracle_tells_tables_apart() -> None:
    """A sanity check of the oracle itself, on two rows."""
    rows = [{"q": a, "x": b} for a, b in product("12", "ab")]
    assert oracle.achieved(rows, ["q"], "x", "distinct-l-diversity", {}, [("a", "b")]) == 2
    assert oracle.achieved(rows[:3], ["q"], "x", "alpha-k-anonymity", {}, [("a", "b")]) == 1
    assert oracle.under("lungs", TREE) == (0, 1, 2)
