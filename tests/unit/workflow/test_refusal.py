"""What a holder reads when many columns disclose each other: few lines, the worst first, a way out for every group."""

from __future__ import annotations

from itertools import pairwise, permutations

import noren as nr
from noren.workflow.dependence import GROUPS, NAMED, Told, cover, disclosing_groups, refused

NAMES = [f"c{i:02}" for i in range(30)]
POLICY = nr.Policy(attributes=dict.fromkeys(NAMES, "sensitive"), require=[nr.models.FrequencyLDiversity(on=NAMES, l=2)])


def pair(by: str, protected: str, share: float) -> Told:
    return Told(protected, by, share - 0.01, 0.01, 10**9, 10**9)


def test_columns_that_disclose_each_other_are_one_group_with_two_ways_out() -> None:
    found = [pair(name, "c07", 0.9 - i / 100) for i, name in enumerate(NAMES) if name != "c07"]
    (problem,) = refused(found, NAMES, NAMES, POLICY).problems
    assert problem.where == "together"
    assert problem.message == (
        "'c00', 'c01', 'c02', 'c03', 'c04', 'c05' and 24 more disclose each other: 'c07' is certain "
        "for 90% of the people if 'c00' is known, and for 1% if it is not."
    )
    assert problem.hint.startswith('Protect them as one column (together = ["c00", "c01", ')
    assert problem.hint.endswith("above [attributes]), or drop 'c07'. [dependence] most = 0.90 accepts it.")
    assert NAMED == 6


def test_of_a_pair_either_may_be_dropped() -> None:
    (problem,) = refused([pair("c00", "c01", 0.2)], NAMES, NAMES, POLICY).problems
    assert problem.hint == (
        "Protect them as one column (together = [\"c00\", \"c01\"] above [attributes]), or drop 'c00' or 'c01'. "
        "[dependence] most = 0.20 accepts it."
    )


def test_a_refusal_has_ten_lines_at_most() -> None:
    found = [pair(a, b, 0.5) for a, b in zip(NAMES[::2], NAMES[1::2], strict=True)]
    error = refused(found, NAMES, NAMES, POLICY)
    assert len(error.problems) == GROUPS + 1
    assert error.problems[-1].message == f"and {15 - GROUPS} more groups of {30 - 2 * GROUPS} columns."
    assert len(str(error).splitlines()) <= 11, "a line for the file, and ten"
    (one,) = refused([pair(a, b, 0.5) for a, b in permutations(NAMES, 2)], NAMES, NAMES, POLICY).problems
    assert len(str(one).splitlines()) == 2


def test_the_worst_stands_first() -> None:
    found = [pair("c00", "c01", 0.2), pair("c02", "c03", 0.8), pair("c04", "c05", 0.5)]
    messages = [problem.message[:14] for problem in refused(found, NAMES, NAMES, POLICY).problems]
    assert messages == ["'c02' and 'c03", "'c04' and 'c05", "'c00' and 'c01"]


def test_groups_are_what_pairs_link() -> None:
    found = [pair("c00", "c01", 0.2), pair("c02", "c03", 0.8), pair("c04", "c05", 0.7), pair("c03", "c04", 0.9)]
    shown = [sorted({name for one in group for name in one.both}) for group in disclosing_groups(found)]
    assert shown == [["c02", "c03", "c04", "c05"], ["c00", "c01"]]
    text = str(refused(found, NAMES, NAMES, POLICY))
    assert 'together = ["c02", "c03", "c04", "c05"]' in text
    assert text.count("accepts all of it") == 1


def test_without_the_columns_that_are_named_no_pair_is_left() -> None:
    found = [pair(a, b, 0.3) for a, b in pairwise(NAMES)]
    named = cover(found, NAMES.index)
    assert all(one.by in named or one.protected in named for one in found)
    assert len(named) <= len(NAMES) // 2


def test_what_is_published_as_it_is_may_be_protected() -> None:
    text = str(refused([pair("c00", "c01", 0.2)], NAMES[1:], NAMES, POLICY))
    assert "or protect 'c00' too. " in text
