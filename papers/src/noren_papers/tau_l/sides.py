"""One method beside others, data set by data set, and zeros on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from noren_papers.tau_l.judging import against, joined

if TYPE_CHECKING:
    from noren_papers.base import Answer


def beside(
    frame: pl.DataFrame, first: str, others: Sequence[str], value: str, holds: Callable[[float, float], bool]
) -> Answer:
    """Is the first method's value better than every other's, wherever both publish? Means are not mixed over data."""
    parts = []
    for (title,), part in frame.group_by("data", maintain_order=True):
        for other in others:
            outcomes, text = against(part, first, other, value, holds)
            parts.append((outcomes, f"{title}: {text}"))
    return joined(parts)


FLOOR = 1e-4
FLOOR_NOTE = "Errors below 0.0001, and so all that are exactly 0, are drawn at 0.0001."


def floored(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    """The values of a sheet for a logarithmic scale, which has no zero."""
    return frame.with_columns(pl.col(value).clip(lower_bound=FLOOR))
