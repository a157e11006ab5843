"""The linking attack against plain Python in fractions, from the formulas, one person and one label at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.audit import attack
from noren.audit.base import make_lines
from noren.audit.linking import Adversary
from noren.audit.targets import alike
from noren.engines.finding import Finder
from noren.engines.kernels import WORDS
from noren.schema.nodes import Nodes
from noren.statements import TermCells

TERMS = ("a", "b", "c", "d", "e")


# ---------------------------------------------------------------------- the slow twin


def belief_in(
    records: Sequence[Sequence[str]],
    table: Sequence[tuple[dict[str, Fraction], Fraction]],
    alpha: Sequence[Fraction],
    unlinked: str,
) -> tuple[list[Fraction], int]:
    """Mean over the records of P(L | t), label by label, and how many records are linked."""
    total = [Fraction(0)] * len(table)
    linked = 0
    for terms in records:
        mine = [i for i, (held, _) in enumerate(table) if set(terms) <= set(held)]
        linked += bool(mine)
        score = {i: table[i][1] * prod(table[i][0][term] for term in set(terms)) for i in mine}
        for i in range(len(table)):
            if i in mine:
                total[i] += score[i] / sum(score.values())
            elif not mine and unlinked == "prior":
                total[i] += alpha[i]
    return [one / len(records) for one in total], linked


def told(
    records: Sequence[Sequence[str]],
    table: Sequence[tuple[dict[str, Fraction], Fraction]],
    alpha: Sequence[Fraction],
    unlinked: str,
    truth: int | None,
) -> dict[str, Any]:
    """A line of the attack. Without records the prior is all there is."""
    beta, linked = belief_in(records, table, alpha, unlinked) if records else (list(alpha), 0)
    best = [i for i, b in enumerate(beta) if b == max(beta) and b > 0]
    line: dict[str, Any] = {
        "candidates": len(records),
        "linked_records": linked,
        "labels": sum(b > 0 for b in beta),
        "belief": float(max(beta)),
        "ties": len(best),
        "top": best[0] if best else -1,
        "rise": float(max(b - a for b, a in zip(beta, alpha, strict=True))),
    }
    alone = [r for r in records if belief_in([r], table, alpha, "ignore")[1]]
    if records:
        line["belief_linked"] = float(max(belief_in(alone, table, alpha, "ignore")[0])) if alone else 0.0
    if truth is not None:
        before = [i for i, a in enumerate(alpha) if a == max(alpha) and a > 0]
        guess = best or before
        line |= {"truth_belief": float(beta[truth]), "truth_prior": float(alpha[truth])}
        line["right"] = 1 / len(guess) if truth in guess else 0.0
    return line


def agrees(frame: pl.DataFrame, place: int, wanted: dict[str, Any], labels: Sequence[str]) -> None:
    found = frame.row(place, named=True)
    top = wanted.pop("top")
    assert found["label"] == (labels[top] if top >= 0 else None)
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


# ---------------------------------------------------------------------- beliefs


@st.composite
def tables(draw: st.DrawFn) -> tuple[nr.Knowledge, list[tuple[dict[str, Fraction], Fraction]]]:
    sets = draw(st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=5).filter(any))
    weights = draw(st.none() | st.lists(st.sampled_from([1, 2, 5]), min_size=len(sets), max_size=len(sets)))
    many = sum(map(len, sets))
    paired = draw(st.none() | st.lists(st.sampled_from([0.125, 1.0, 3.0]), min_size=many, max_size=many))
    found = nr.Knowledge.from_sets(
        sets,
        terms=TERMS,
        weights=None if weights is None else np.array(weights, float),
        pair_weights=None if paired is None else np.array(paired),
    )
    own = iter([1.0] * many if paired is None else paired)
    held = [{TERMS[t]: Fraction(next(own)) for t in sorted(terms)} for terms in sets]
    return found, [(terms, Fraction(w)) for terms, w in zip(held, weights or [1] * len(sets), strict=True)]


RECORDS = st.lists(st.lists(st.sampled_from([*TERMS, "?"]), max_size=4), min_size=1, max_size=8)
"""Terms may repeat, be missing altogether, or be unknown."""


@given(known=tables(), records=RECORDS, unlinked=st.sampled_from(["ignore", "prior"]), data=st.data())
def test_what_groups_tell(known, records, unlinked, data) -> None:
    knowledge, plain = known
    n, labels = len(records), len(plain)
    parts = data.draw(st.lists(st.integers(0, 5), min_size=labels, max_size=labels).filter(any))
    alpha = [Fraction(part, sum(parts)) for part in parts]
    group = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    truth = data.draw(st.lists(st.integers(0, labels - 1), min_size=n, max_size=n))
    code = {term: i for i, term in enumerate(TERMS)} | {"?": -1}
    owner = np.array([i for i, terms in enumerate(records) for _ in terms], np.int64)
    codes = np.array([code[term] + 1 for terms in records for term in terms], np.int64)
    cells = TermCells.from_entries(len(TERMS) + 1, n, owner, codes)
    cells = TermCells(cells.d, cells.offsets, cells.data - np.int32(1))
    adversary = Adversary(knowledge, np.array([float(a) for a in alpha]), unlinked == "prior")
    found = adversary.figures(cells, [alike([np.array(group)], n)], n, np.array(truth))
    frame = make_lines(found, {"label": knowledge.labels})
    for i in range(n):
        mine = [records[j] for j in range(n) if group[j] == group[i]]
        agrees(frame, i, told(mine, plain, alpha, unlinked, truth[i]), knowledge.labels)


# ---------------------------------------------------------------------- who could be where


@given(data=st.data(), columns=st.integers(1, 3), rows=st.integers(1, 10), people=st.integers(1, 10))
def test_the_groups_that_cover_a_person(data, columns, rows, people) -> None:
    catalogues, published, own = [], [], []
    for _ in range(columns):
        d = data.draw(st.integers(1, 6))
        members = data.draw(st.lists(st.sets(st.integers(0, d - 1), min_size=1), min_size=1, max_size=4))
        catalogues.append(Nodes.from_members(d, [str(i) for i in range(len(members))], [sorted(m) for m in members]))
        published.append(data.draw(st.lists(st.integers(0, len(members) - 1), min_size=rows, max_size=rows)))
        own.append(data.draw(st.lists(st.integers(-1, d - 1), min_size=people, max_size=people)))
    finder = Finder(catalogues, [np.array(part) for part in published], rows)
    found: dict[int, tuple[list[int], int]] = {}
    for part in finder.candidates([np.array(part) for part in own], people):
        for person, of in zip(part.people.tolist(), part.of.tolist(), strict=True):
            assert person not in found
            rows_of = part.order[part.bounds[of] : part.bounds[of + 1]].tolist()
            found[person] = (sorted(rows_of), int(part.groups[of]))
    wanted = {}
    for person in range(people):
        fits = [
            row
            for row in range(rows)
            if all(own[c][person] in catalogues[c].members(published[c][row]) for c in range(columns))
        ]
        if fits:
            wanted[person] = (fits, len({tuple(published[c][row] for c in range(columns)) for row in fits}))
    assert found == wanted


@pytest.mark.parametrize("wide", [1, 400])
def test_many_groups_fill_more_than_one_word_and_of_many_values_more_than_one_block(wide: int) -> None:
    rng = np.random.default_rng(3)
    n = 9000
    d, starts = 100 * wide, np.arange(100) * wide
    nodes = Nodes(d, tuple(map(str, starts)), np.arange(101), starts, np.minimum(starts + 2 * wide, d))
    assert (64 * max(64, WORDS // (2 * d)) < 5000) == (wide > 1)
    left, right = rng.integers(0, 100, n), rng.integers(0, 100, n)
    finder = Finder([nodes, nodes], [left, right], n)
    assert len(finder.nodes) > 5000
    own = [rng.integers(0, 100, 50), rng.integers(0, 100, 50)]
    seen = 0
    for part in finder.candidates([code * wide + wide // 2 for code in own], 50):
        for person, of in zip(part.people.tolist(), part.of.tolist(), strict=True):
            a, b = own[0][person], own[1][person]
            wanted = np.flatnonzero(((left == a) | (left == a - 1)) & ((right == b) | (right == b - 1)))
            assert sorted(part.order[part.bounds[of] : part.bounds[of + 1]].tolist()) == wanted.tolist()
            seen += 1
    assert seen >= 40


# ---------------------------------------------------------------------- from a table to the attack


KNOWN = nr.Knowledge.from_pairs(
    [("x", t) for t in "abc"] + [("y", t) for t in "bcd"] + [("z", t) for t in "ade"] + [("w", "e"), ("w", "b")],
    pair_weights={("x", "b"): 0.5, ("y", "b"): 2.0, ("w", "e"): 0.75},
)
PLAIN = [
    ({TERMS[KNOWN.codes[at]]: Fraction(KNOWN.pair_weights[at]) for at in range(a, b)}, Fraction(1))
    for a, b in zip(KNOWN.bounds, KNOWN.bounds[1:], strict=False)
]
CELLS = st.tuples(
    st.integers(20, 29), st.sampled_from("mf"), st.lists(st.sampled_from(TERMS), max_size=3, unique=True),
    st.sampled_from(KNOWN.labels),
)  # fmt: skip


@settings(max_examples=25)
@given(lines=st.lists(CELLS, min_size=4, max_size=14), k=st.integers(2, 3), refined=st.booleans())
def test_a_release_is_attacked_as_the_formulas_say(lines, k, refined) -> None:
    people = pl.DataFrame(
        {
            "age": [line[0] for line in lines],
            "sex": [line[1] for line in lines],
            "signs": pl.Series([line[2] for line in lines], dtype=pl.List(pl.String)),
            "label": [line[3] for line in lines],
        }
    )
    policy = nr.Policy(
        attributes={
            "age": nr.quasi_identifier(),
            "sex": nr.quasi_identifier(),
            "signs": nr.quasi_sensitive(knowledge=KNOWN),
            "label": nr.identifier(),
        },
        require=[nr.models.KAnonymity(k=k), nr.models.QSDiversity(on="signs", c=1.5, l=2)],
        method=nr.methods.Suppress(generalise={"name": "mondrian", "refinement": 2 if refined else 0}, nodes=2000),
    )
    release = nr.anonymize(people, policy)
    (found,) = attack(release, "linking", original=people, policy=policy, truth="label", k=k, l=2)
    alpha = belief_in([line[2] for line in lines], PLAIN, [], "ignore")[0]
    truth = [KNOWN.labels.index(line[3]) for line in lines]

    raw = found.scenario("raw").frame
    for i, line in enumerate(lines):
        same = [other[2] for other in lines if other[:2] == line[:2]]
        agrees(raw, i, told(same, PLAIN, alpha, "ignore", truth[i]), KNOWN.labels)

    shown = release.frame()
    covers = []
    for name in ("age", "sex"):
        one = release.column(name)
        inside = {value: {value} for value in one.domain.values}
        if one.nodes is not None:
            pairs = zip(one.nodes.labels, one.nodes.runs, strict=True)
            inside = {label: {one.domain.values[c] for a, b in runs for c in range(a, b)} for label, runs in pairs}
        covers.append([inside[str(cell)] for cell in shown[name].to_list()])
    signs = shown["signs"].to_list()
    mine = found.scenario("release").frame
    for i, line in enumerate(lines):
        could = [signs[j] for j in range(len(signs)) if str(line[0]) in covers[0][j] and line[1] in covers[1][j]]
        assert could, "nobody was suppressed"
        agrees(mine, i, told(could, PLAIN, alpha, "ignore", truth[i]), KNOWN.labels)

    rows = found.scenario("release-rows").frame
    keys = shown.select("age", "sex").rows()
    for j, key in enumerate(keys):
        same = [signs[i] for i in range(len(keys)) if keys[i] == key]
        agrees(rows, j, told(same, PLAIN, alpha, "ignore", None), KNOWN.labels)

    # several covering groups together cannot tell more than the worst of them
    assert mine["belief"].max() <= rows["belief"].max() + 1e-9 <= 1.5 / 2.5 + 2e-9
    for scenario in found.scenarios:
        frame, summary = scenario.frame, scenario.summary
        assert summary["mean_belief"] == pytest.approx(sum(frame["belief"]) / len(frame))
        assert summary["certain"] == pytest.approx(sum(b >= 0.999 for b in frame["belief"]) / len(frame))
        assert summary["above_half"] == pytest.approx(sum(b > 0.5 + 1e-9 for b in frame["belief"]) / len(frame))
        assert summary["mean_rise"] == pytest.approx(sum(frame["rise"]) / len(frame))
        if scenario.by == "person":
            assert summary["right"] == pytest.approx(sum(frame["right"]) / len(frame))
            assert summary["mean_truth_belief"] == pytest.approx(sum(frame["truth_belief"]) / len(frame))
    for name in ("k-anonymous", "l-diverse"):
        for scenario in found.scenarios:
            if scenario.name == name:
                assert scenario.frame["candidates"].min() >= k
