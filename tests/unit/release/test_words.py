"""Sentences that a recipient relies on: each where it is true, and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from noren.designs.decoys import DecoyDesign
from noren.release.readme import _meaning
from noren.release.release import is_release
from noren.release.term_answers import HARD, LEFT_OUT, OVERLAP, _assumes
from tests.statements import exact_column, set_column

CAREFUL = "Do not count cells as if they were the truth."


def test_the_readme_warns_where_a_cell_is_not_the_truth() -> None:
    exact, drawn = exact_column("a", 3), set_column("b", 4, DecoyDesign(d=4, eta=2))
    assert _meaning([exact], "data.csv") == "The cells are as the table above says."
    assert _meaning([exact], "data.csv", weight="w").startswith(f"{CAREFUL} In `w` stands how many people")
    assert _meaning([exact, drawn], "data.csv").startswith(f"{CAREFUL} A set (a JSON array) holds values")


@pytest.mark.parametrize(
    ("coarse", "told"),
    [(f"nothing; {HARD}", []), (HARD, []), (f"values spread evenly; {HARD}", ["values spread evenly"])],
)
@pytest.mark.parametrize("several", [False, True])
def test_an_answer_about_terms_says_what_it_rests_on(coarse: str, told: list[str], several: bool) -> None:
    asked = SimpleNamespace(listed=["a", "b"] if several else None)
    wanted = [LEFT_OUT, *([OVERLAP] if several else []), *told, HARD]
    assert _assumes(coarse, asked) == "; ".join(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "release"),
    [
        ("postgresql://host/base", True),
        ("postgresql://host/base?table=people", False),
        (".", True),
        ("people.csv", False),
    ],
)
def test_a_place_is_told_to_be_a_release_by_its_name(place: str, release: bool) -> None:
    assert is_release(place) is release
