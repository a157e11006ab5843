"""What closeness is judged against: the distribution of the original, or what a release lets anybody estimate of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups
from noren.designs.pram import PramDesign
from noren.models.base import Model, Overall
from noren.release.published import Published

if TYPE_CHECKING:
    from noren.workflow.truth import Truth


def overall_distributions(
    published: Published, requirements: Sequence[Model], truth: Truth | None = None
) -> dict[str, Overall]:
    """What closeness is judged against: the original's shares and beliefs, or an estimate from the release."""
    drawn = {name: design for name, design in published.designs.items() if isinstance(design, DecoyDesign | PramDesign)}
    names = list(dict.fromkeys(n for m in requirements if "prior" in m.needs for n in m.on if n in drawn))
    if truth is not None:
        counts = truth.counts(names) if names else {}
        return {name: Overall(c / c.sum(), "the original") for name, c in counts.items()} | truth.priors()
    if not names:
        return {}
    inclusions = tallied(published, names)
    return {name: _estimated(drawn[name], inclusions[name], published.records) for name in names}


def tallied(published: Published, names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """What all cells of some columns add up to, as their statements count; what a person's rows repeat counts once."""
    out: dict[str, Any] = {}
    for batch in published.batches(names):
        for name in names:
            out[name] = out.get(name, 0) + published.column(name).tally(batch[name])
    return {name: found // published.repeats(name) for name, found in out.items()}


def _estimated(design: DecoyDesign | PramDesign, inclusions: NDArray[np.int64], records: int) -> Overall:
    """The overall distribution by linear inversion, with its standard errors."""
    if isinstance(design, PramDesign):
        found = np.maximum(design.inversion.invert(inclusions / records, 0), 0)
        found = found / found.sum()
        scoring = design.inversion.scoring(Groups(np.arange(design.d), design.d, is_identity=True))
        noise = np.maximum(scoring.second_moments(found, 0) - found, 0)
        return Overall(found, "an estimate from the release", np.sqrt(noise / records))
    if design.p_gap == 0:
        return Overall(np.full(design.d, 1 / design.d), "an estimate from the release")
    p_true, p_other, gap = design.p_true, design.p_other, design.p_gap
    shares = np.maximum((inclusions / records - p_other) / gap, 0)
    shares = shares / shares.sum()
    inside = (p_true * (1 - p_other) ** 2 + (1 - p_true) * p_other**2) / gap**2
    outside = p_other * (1 - p_other) / gap**2
    variance = outside + (inside - outside) * shares - shares
    return Overall(shares, "an estimate from the release", np.sqrt(np.maximum(variance, 0) / records))
