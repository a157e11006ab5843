"""What survey weights must be before anything is published: numbers above zero, one for every record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.engines.profile import OPEN_LIMIT, ValueCounts
from noren.errors import NAMED_FROM, Problem
from noren.schema.domain import Domain
from noren.schema.kinds import NUMERIC, as_number

ROUND = "Give every record a number above 0; leave out records that stand for nobody."


def weight_problems(
    where: str, profile: ValueCounts, domain: Domain | None, counts: NDArray[np.int64]
) -> list[Problem]:
    """Why a column cannot serve as weights; it names no cell."""
    place = f"{where}.weight"
    if domain is None:
        message = f"{profile.name!r} has more than {OPEN_LIMIT:,} different weights, which name people."
        return [Problem(place, message, "Round the weights before they are published.")]
    out = []
    if profile.missing:
        out.append(Problem(place, f"{profile.missing:,} records have no weight.", ROUND))
    kind = domain.kind if domain.kind in NUMERIC else domain.text_kind
    if kind not in NUMERIC:
        return [*out, Problem(place, f"{profile.name!r} holds texts that are no numbers.", ROUND)]
    numbers = np.array([as_number(value, "number") for value in domain.plain])
    of = counts[: len(numbers)]
    for wrong, what in ((numbers < 0, "a negative weight"), (numbers == 0, "the weight 0")):
        if wrong.any():
            out.append(Problem(place, f"{int(of[wrong].sum()):,} records have {what}.", ROUND))
    if not np.isfinite(numbers).all():
        out.append(Problem(place, f"{int(of[~np.isfinite(numbers)].sum()):,} records have an infinite weight.", ROUND))
    return out


def weight_remark(name: str, counts: NDArray[np.int64]) -> str:
    """What a holder should know about weights that few people share; empty if there are none."""
    rare = counts[(counts > 0) & (counts < NAMED_FROM)]
    if not len(rare):
        return ""
    return (
        f"{name}: {int(rare.sum()):,} records have a weight that fewer than five share. Weights are published as they "
        "are and follow from what a person told (stratum, age, region): whoever can compute one finds the record. "
        "Round them, or make them equal within strata"
    )
