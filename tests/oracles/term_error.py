"""The error of random queries with a condition on terms."""

from __future__ import annotations

from typing import Any

from noren.metrics.queries import WorkloadError, workload_error
from noren.metrics.term_losses import estimated_term_counts, term_workload, true_term_counts


def term_query_error(
    table: Any,
    had: Any,
    published: Any,
    dimensions: int = 1,
    queries: int = 1000,
    selectivity: float = 0.5,
    seed: int = 0,
) -> WorkloadError:
    """The error of random queries, all in one: what they are, what is true, what the release says."""
    workload = term_workload(table, had, dimensions, queries, selectivity, seed)
    actual = true_term_counts(table, had, workload)
    return workload_error(actual, estimated_term_counts(table, published, workload))
