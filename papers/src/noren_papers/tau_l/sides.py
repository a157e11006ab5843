"""One method beside others, data set by data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from noren_papers.tau_l.judging import against, joined

if TYPE_CHECKING:
    from noren_papers.claims import Answer


def beside(frame: pl.DataFrame, first: str, others: Sequence[str], value: str, *, lower: bool) -> Answer:
    """Is the first method's value better than every other's, wherever both publish? Means are not mixed over data."""
    parts = []
    for (title,), part in frame.group_by("data", maintain_order=True):
        for other in others:
            compared, text = against(part, first, other, value, lower=lower)
            parts.append((compared, f"{title}: {text}"))
    return joined(parts)


ZERO_NOTE = "An error of exactly 0 has no place on this scale and no point."
