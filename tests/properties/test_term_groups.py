"""Term searches over many groups: equal groups are searched once, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from noren.methods.suppress import search as term_search
from noren.methods.suppress.beliefs import TermRequirement, measure_groups
from noren.methods.suppress.search import search_groups
from noren.ragged import chosen, offsets_of
from noren.schema.knowledge import Knowledge

DIVERSE = TermRequirement("cl", c=1.0, l=8)


def world(seed: int, records: int) -> tuple[Knowledge, NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    sets = [rng.choice(30, 10, replace=False).tolist() for _ in range(120)]
    knowledge = Knowledge.from_sets(sets, terms=[f"term {i}" for i in range(30)])
    rows = [sorted(rng.choice(sets[rng.integers(120)], 5, replace=False).tolist()) for _ in range(records)]
    return knowledge, offsets_of([len(row) for row in rows]), np.concatenate(rows)


def test_groups_with_the_same_term_sets_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge, bounds, codes = world(3, 24)
    rng = np.random.default_rng(1)
    people = rng.permutation(24)
    mates = people.reshape(6, 4)
    copies = np.concatenate([rng.permutation(mate) for mate in mates for _ in range(5)])
    own, entries = chosen(bounds, copies)  # every record five times, under numbers of its own
    terms = codes[entries]
    order, groups = np.arange(120), np.arange(0, 121, 4)
    calls = []
    whole = term_search._search
    monkeypatch.setattr(term_search, "_search", lambda *given: calls.append(1) or whole(*given))
    found = search_groups(order, groups, own, terms, knowledge, DIVERSE, seconds=None, nodes=3000, threads=1)
    single = search_groups(people, np.arange(0, 25, 4), bounds, codes, knowledge, DIVERSE, seconds=None, nodes=3000)
    assert len(calls) == 2 * int(single.searched.sum())
    assert found.cost.reshape(6, 5) == pytest.approx(np.repeat(single.cost, 5).reshape(6, 5))
    left = ~found.removed
    rest = np.concatenate(([0], np.cumsum(left)))[own]
    assert DIVERSE.holds(measure_groups(order, groups, rest, terms[left], knowledge, l=8)).all()
    for group in range(30):
        kept = sorted(
            terms[own[r] : own[r + 1]][left[own[r] : own[r + 1]]].tolist() for r in range(4 * group, 4 * group + 4)
        )
        first = 4 * (group - group % 5)
        assert kept == sorted(
            terms[own[r] : own[r + 1]][left[own[r] : own[r + 1]]].tolist() for r in range(first, first + 4)
        )


def test_shares_of_threads_do_not_change_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge, bounds, codes = world(8, 200)
    given = np.arange(200), np.arange(0, 201, 4), bounds, codes, knowledge, DIVERSE
    found = search_groups(*given, seconds=None, nodes=3000)
    assert found.searched.sum() > 20
    monkeypatch.setattr(term_search, "AT_ONCE", 1)
    slow = search_groups(*given, seconds=None, nodes=3000, threads=1)
    for name in ("removed", "cost", "lower_bound", "optimal", "feasible"):
        assert np.array_equal(getattr(slow, name), getattr(found, name))
    assert slow.nodes == found.nodes
