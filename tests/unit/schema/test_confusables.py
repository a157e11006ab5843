"""Labels that look the same have one skeleton; labels that differ to a reader have two."""

from __future__ import annotations

from collections import Counter

import pytest

from noren.schema.confusables import LOOKALIKES, count_lookalikes, skeleton

ALIKE = [
    ("HIV", "HIV\u200b"),
    ("HIV", "\u041d\u0406V"),
    ("HIV", "HlV"),
    ("HIV", "H1V"),
    ("F30", "F3\u041e"),
    ("x y", "x\u00a0y"),
    ("x y", "x \t y "),
    ("\u00e9t\u00e9", "e\u0301te\u0301"),
    ("\u00e9", "e\u200b\u0301"),
    ("co-op", "co\u2011op"),
    ("coop", "co\u00adop"),
    ("fire", "\ufb01re"),
    ("it's", "it\u2019s"),
    ("", "\u3164"),
    ("flu", "flu\U000e0041"),
]
APART = [
    ("\u00c9", "E"),
    ("\u00e9", "e"),
    ("flu", "Flu"),
    ("co-op", "coop"),
    ("Y93.1", "Y93.I"),  # both are codes of ICD-10-CM
    ("10", "100"),
    ("Stra\u00dfe", "Strasse"),
    ("\u043c\u0438\u0440", "\u043c\u0438\u0440\u044b"),
    ("\u0438", "\u0439"),
    ("\u0435", "\u0451"),
    ("burn", "bum"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_looks_the_same_is_one(one: str, other: str) -> None:
    assert skeleton(one) == skeleton(other)
    assert count_lookalikes([one, other, "something else"]) == (2 if not skeleton(one) else 1)


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_looks_different_stays_two(one: str, other: str) -> None:
    assert count_lookalikes([one, other]) == 0


def test_a_column_in_one_script_stays_as_it_is() -> None:
    """No two letters of Greek, Cyrillic, Armenian or Latin become one, but for I, l and O."""
    every = Counter("".join(LOOKALIKES.values()))
    assert max(every.values()) == 1
    for start, stop in ((0x0391, 0x03CA), (0x0410, 0x0450), (0x0531, 0x0588)):
        letters = [chr(code) for code in range(start, stop) if chr(code).isalpha() and chr(code) not in "\u03c2"]
        assert count_lookalikes(letters) == 0, letters
    assert count_lookalikes([chr(code) for code in range(ord("a"), ord("z") + 1)]) == 0
