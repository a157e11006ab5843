"""Margins that are refused: columns without listed values, too many cells, people with more rows, left-out people."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noren.errors import PolicyError
from noren.policy.options import Margin
from noren.release.manifest import MOST_MARGIN_CELLS
from noren.workflow.anonymize import demand_margins, noised_margins


def column(d: int = 2, *, is_open: bool = False, exact: bool = False, design: object = None) -> Any:
    return SimpleNamespace(column=SimpleNamespace(is_open=is_open), is_exact=exact, design=design, d=d, words="general")


COLUMNS = {
    "plain": column(exact=True),
    "drawn": column(design="decoys"),
    "general": column(),
    "texts": column(is_open=True, exact=True),
    "many": column(MOST_MARGIN_CELLS // 2, exact=True),
    "one more": column(MOST_MARGIN_CELLS // 2 + 1, exact=True),
}


def problems(*margins: tuple[str, ...], suppressed: int = 0, people: list[int] | None = None, rows: int = 1) -> Any:
    """Where the policy is said to be wrong."""
    whose = None if people is None else np.array(people)
    draft: Any = SimpleNamespace(by_name=COLUMNS, table=SimpleNamespace(people=whose), suppressed=suppressed)
    asked = tuple(Margin(of=names, epsilon=1.0, rows=rows) for names in margins)
    policy: Any = SimpleNamespace(margins=asked, source="policy")
    try:
        demand_margins(draft, policy)
    except PolicyError as error:
        return [problem.where for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("plain",), []),
        (("drawn",), []),
        (("plain", "drawn"), []),
        (("general",), ["margins[1].of"]),
        (("texts",), ["margins[1].of"]),
        (("general", "texts", "plain"), ["margins[1].of", "margins[1].of"]),
        (("plain", "many"), []),
        (("plain", "one more"), ["margins[1].of"]),
    ],
)
def test_columns_are_listed_and_not_too_many(names: tuple[str, ...], found: list[str]) -> None:
    assert problems(names) == found


def test_a_margin_is_named_by_its_number() -> None:
    assert problems(("plain",), ("general",)) == ["margins[2].of"]


@pytest.mark.parametrize(("rows", "found"), [(1, ["margins[1].rows"]), (2, []), (3, [])])
def test_nobody_has_more_rows_than_the_noise_is_for(rows: int, found: list[str]) -> None:
    assert problems(("plain",), people=[0, 1, 1], rows=rows) == found


def test_nobody_is_left_out_where_margins_are_published() -> None:
    assert problems(("plain",), suppressed=1) == ["margins"]
    assert problems(suppressed=1) == problems() == []
    without: Any = SimpleNamespace(margins=(), source="policy")
    assert noised_margins(SimpleNamespace(), without) == ()  # type: ignore[arg-type]
