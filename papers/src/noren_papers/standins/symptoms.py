"""A stand-in for the table of diseases and symptoms of Columbia: as many of both, as many pairs, nothing true in it."""

from __future__ import annotations

import numpy as np
import polars as pl

DISEASES, SYMPTOMS, PER_DISEASE = 133, 397, 14


def make(name: str, rows: int) -> pl.DataFrame:
    """Pairs of a disease and one of its symptoms; common symptoms belong to many diseases, rare ones to one or two."""
    rng = np.random.default_rng(1997)
    weight = 1.0 / (np.arange(SYMPTOMS) + 8)
    out: list[dict[str, str]] = []
    for disease in range(DISEASES):
        left = DISEASES - disease
        size = max(PER_DISEASE - 1, -(-(rows - len(out)) // left))
        ranks = np.argsort(-(np.log(weight) + rng.gumbel(size=SYMPTOMS)))[:size]
        out += [
            {
                "disease_cui": f"D{disease + 1:04}", "disease": f"disease {disease + 1}",
                "occurrences": str(3_400 // (disease + 1) + 20),
                "symptom_cui": f"S{symptom + 1:04}", "symptom": f"symptom {symptom + 1}",
            }
            for symptom in ranks
        ]  # fmt: skip
    return pl.DataFrame(out[:rows])
