"""What generalisation cost, in all the metrics that apply to a table."""

from __future__ import annotations

from contextlib import suppress

from noren.errors import QueryError
from noren.metrics.general import GeneralTable
from noren.metrics.losses import GENERAL_METRICS


def losses_of(view: GeneralTable) -> dict[str, float]:
    """Every metric that the table has columns for, and its classes."""
    out: dict[str, float] = {}
    for name, metric in GENERAL_METRICS.items():
        with suppress(QueryError):
            out[name] = metric(view)
    out["classes"] = float(len(view.sizes))
    out["smallest_class"] = float(view.sizes.min(initial=view.n))
    return out
