"""Rubin's rules: one answer from the answers of several plausible tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.results import Shown, plain

if TYPE_CHECKING:
    import polars as pl

NOT_FOR_INFERENCE = (
    "intervals pooled from plausible tables cover the truth less often than they say; for inference use "
    "release.mean, release.regress and release.test"
)
OF_PAIRS = (
    "intervals are meant for what one and two columns tell and for models without interactions; what three columns "
    "tell only together is missing from the tables"
)


@dataclass(frozen=True, repr=False, eq=False)
class Pooled(Shown):
    """Pooled estimates with standard errors, intervals and the share of information that is missing."""

    names: tuple[str, ...]
    estimate: NDArray[np.float64]
    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    degrees: NDArray[np.float64]
    missing: NDArray[np.float64]
    """Share of the variance that comes from not knowing the hidden values."""
    level: float
    tables: int
    holds: bool = False
    """Whether the tables were drawn so that intervals of one and two columns hold."""

    @property
    def frame(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(
            {
                "term": list(self.names), "estimate": self.estimate, "std_error": self.std_error, "low": self.low,
                "high": self.high, "missing_information": self.missing,
            }
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        return plain({"level": self.level, "tables": self.tables, "terms": self.frame.to_dicts()})

    def _headline(self) -> str:
        told = f"{len(self.names)} estimates from {self.tables} tables, {self.level:.0%} intervals"
        return told if self.holds else f"{told}, not for inference"

    def _notes(self) -> Sequence[str]:
        return (OF_PAIRS if self.holds else NOT_FOR_INFERENCE,)


def pool(
    answers: Iterable[Any], *, level: float = 0.95, names: Sequence[str] | None = None, complete: float | None = None
) -> Pooled:
    """Pool the answers of several tables by Rubin's rules.

    An answer is a pair (estimates, variances), numbers or arrays, or a fitted model with `params` and `bse` as
    statsmodels has them. `complete` are the degrees of freedom that a complete table would have, for small samples
    (Barnard and Rubin).

    >>> from noren.estimates import pool
    >>> pooled = pool([(1.0, 0.04), (1.2, 0.04), (1.1, 0.04)])
    >>> round(float(pooled.estimate[0]), 3), round(float(pooled.std_error[0]), 3)
    (1.1, 0.231)
    """
    pairs = [_pair(answer) for answer in answers]
    if len(pairs) < 2:
        raise QueryError("pooling needs the answers of two tables or more.", hint="Ask for more: impute(m=20).")
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")
    if len({len(estimate) for estimate, _, _ in pairs}) != 1:
        raise QueryError("the answers do not have the same terms.", hint="Fit one model to all tables.")
    from scipy import stats

    m = len(pairs)
    every, within = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs]).mean(axis=0)
    between = every.var(axis=0, ddof=1)
    total = within + (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, (1 + 1 / m) * between / total, 0.0)
        degrees = (m - 1) / np.maximum(share, 1e-12) ** 2
        if complete is not None:
            observed = (complete + 1) / (complete + 3) * complete * (1 - share)
            degrees = 1 / (1 / degrees + 1 / np.maximum(observed, 1e-12))
    reach = stats.t.ppf(0.5 + level / 2, degrees) * np.sqrt(total)
    centre = every.mean(axis=0)
    told = tuple(names or pairs[0][2] or (f"term {i + 1}" for i in range(len(centre))))
    return Pooled(told, centre, np.sqrt(total), centre - reach, centre + reach, degrees, share, level, m)


def _pair(answer: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], Sequence[str]]:
    """Estimates, variances and names of one answer."""
    if hasattr(answer, "params") and hasattr(answer, "bse"):
        names = [str(one) for one in getattr(answer.params, "index", ())]
        return np.ravel(np.asarray(answer.params, float)), np.ravel(np.asarray(answer.bse, float)) ** 2, names
    try:
        estimate, variance = answer
        found = np.ravel(np.asarray(estimate, float)), np.ravel(np.asarray(variance, float))
    except (TypeError, ValueError):
        hint = "Give pairs (estimates, variances), or fitted models with params and bse."
        raise QueryError("an answer is not a pair.", hint=hint) from None
    if len(found[0]) != len(found[1]) or (found[1] < 0).any():
        raise QueryError("estimates and variances do not fit.", hint="Variances are squares of standard errors.")
    return *found, ()


Question = Callable[["pl.DataFrame"], Any]
"""What is asked of every table: gives a pair or a fitted model."""
