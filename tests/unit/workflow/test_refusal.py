"""What a holder reads when many columns tell each other: few lines, the worst first, every column in the remedy."""

from __future__ import annotations

from itertools import pairwise, permutations

import noren as nr
from noren.workflow.refusal import LINES, NAMED, Told, cover, refused

NAMES = [f"c{i:02}" for i in range(30)]
POLICY = nr.Policy(attributes=dict.fromkeys(NAMES, "sensitive"), require=[nr.models.FrequencyLDiversity(on=NAMES, l=2)])


def pair(by: str, protected: str, share: float) -> Told:
    return Told(protected, by, share - 0.01, 0.01, 10**9, 10**9)


def test_a_column_that_all_others_tell_is_one_line() -> None:
    found = [pair(name, "c07", 0.9 - i / 100) for i, name in enumerate(NAMES) if name != "c07"]
    (problem,) = refused(found, NAMES, NAMES, POLICY).problems
    assert problem.where == "attributes.c07"
    assert problem.message == (
        "'c00' tells 'c07': 90% of the people are certain from both, 1% from 'c07' alone. "
        "'c07' is told by 'c01', 'c02', 'c03', 'c04', 'c05', 'c06' and 22 more too."
    )
    assert problem.hint.startswith("Leave 'c07' out (role 'drop'); or hide them together")
    assert "[dependence] most = 0.90 accepts it." in problem.hint


def test_many_pairs_are_counted_and_the_remedies_stand_once() -> None:
    found = [pair(a, b, 0.5) for a, b in permutations(NAMES, 2)]
    error = refused(found, NAMES, NAMES, POLICY)
    assert len(error.problems) == LINES + 1
    last = error.problems[-1]
    left = len(NAMES) - LINES
    assert last.message == f"and {left * (left - 1)} more pairs, among {left} columns."
    assert str(error).count("Hint:") == 1
    assert len(str(error).splitlines()) <= LINES + 3


def test_the_worst_stands_first() -> None:
    found = [pair("c00", "c01", 0.2), pair("c02", "c03", 0.8), pair("c04", "c05", 0.5)]
    messages = [problem.message[:16] for problem in refused(found, NAMES, NAMES, POLICY).problems]
    assert messages == ["'c02' tells 'c03", "'c04' tells 'c05", "'c00' tells 'c01"]


def test_every_pair_of_columns_is_hidden_in_its_own_group() -> None:
    found = [pair("c00", "c01", 0.2), pair("c02", "c03", 0.8), pair("c03", "c04", 0.8)]
    text = str(refused(found, NAMES, NAMES, POLICY))
    assert 'together = [["c00", "c01"], ["c02", "c03", "c04"]] above' in text


def test_without_the_columns_that_are_named_no_pair_is_left() -> None:
    found = [pair(a, b, 0.3) for a, b in pairwise(NAMES)]
    named = cover(found, NAMES.index)
    assert all(one.by in named or one.protected in named for one in found)
    assert len(named) <= len(NAMES) // 2


def test_what_is_published_as_it_is_may_be_protected() -> None:
    text = str(refused([pair("c00", "c01", 0.2)], NAMES[1:], NAMES, POLICY))
    assert "protect 'c00' too; " in text


def test_a_column_that_tells_and_is_told_says_both() -> None:
    found = [pair("c00", "c07", 0.9), pair("c07", "c01", 0.8), pair("c02", "c07", 0.7), pair("c07", "c03", 0.6)]
    (problem,) = refused(found, NAMES, NAMES, POLICY).problems
    assert problem.message.endswith("alone. 'c07' is told by 'c02' too. 'c07' tells 'c01' and 'c03' too.")
    assert (LINES, NAMED) == (9, 6)


def test_groups_stand_in_the_order_of_their_first_columns() -> None:
    found = [pair("c00", "c09", 0.2), pair("c01", "c02", 0.8)]
    assert 'together = [["c00", "c09"], ["c01", "c02"]] above' in str(refused(found, NAMES, NAMES, POLICY))
