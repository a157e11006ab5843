"""Tables shaped like six UCI sets: their columns, domain sizes and skew. No row is copied.

Nursery and Car were made by rules from every combination of their attributes, so here too: the product, with a rule of
the same kind for the class. The others are drawn at random; their columns depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.standins.draws import Column, Numbers, as_text, draw, gamma, stream

NURSERY = {
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
}
CAR = {
    "buying": ("vhigh", "high", "med", "low"),
    "maint": ("vhigh", "high", "med", "low"),
    "doors": ("2", "3", "4", "5more"),
    "persons": ("2", "4", "more"),
    "lug_boot": ("small", "med", "big"),
    "safety": ("low", "med", "high"),
}
MUSHROOM = {
    "cap-shape": ("xfkbsc", (45, 39, 10, 5, 0.4, 0.1), 0.3),
    "cap-surface": ("ysfg", (40, 31, 29, 0.1), 0.4),
    "cap-color": ("ngeywbpcur", (28, 23, 18, 13, 13, 2, 2, 0.5, 0.2, 0.2), 0.3),
    "bruises": ("ft", (58, 42), -1.1),
    "odor": ("nfysalpcm", (43, 27, 7, 7, 5, 5, 3, 2.5, 0.5), 2.2),
    "gill-attachment": ("fa", (97, 3), -0.4),
    "gill-spacing": ("cw", (84, 16), -0.9),
    "gill-size": ("bn", (69, 31), 1.2),
    "gill-color": ("bpwnghukeyor", (21, 18, 15, 13, 9, 9, 6, 5, 1.2, 1, 0.8, 0.3), -0.8),
    "stalk-shape": ("te", (57, 43), 0.2),
    "stalk-root": ("b?ecr", (46, 31, 14, 7, 2), -0.5),
    "stalk-surface-above-ring": ("skfy", (64, 29, 7, 0.3), 1.0),
    "stalk-surface-below-ring": ("skfy", (61, 28, 7, 4), 0.9),
    "stalk-color-above-ring": ("wpgnboecy", (55, 23, 7, 5.5, 5, 2.5, 1.2, 0.4, 0.1), 0.4),
    "stalk-color-below-ring": ("wpgnboecy", (54, 23, 7, 6.3, 5, 2.5, 1.2, 0.4, 0.3), 0.4),
    "veil-type": ("p", (1,), 0.0),
    "veil-color": ("wnoy", (97.5, 1.2, 1.2, 0.1), -0.3),
    "ring-number": ("otn", (92, 7.4, 0.4), -0.5),
    "ring-type": ("pelfn", (49, 34, 16, 0.6, 0.4), 0.9),
    "spore-print-color": ("wnkhruoyb", (29, 24, 23, 20, 0.9, 0.6, 0.6, 0.6, 0.6), -1.3),
    "population": ("vysnac", (50, 21, 15, 5, 4.7, 4.2), -0.8),
    "habitat": ("dgplumw", (39, 26, 14, 10, 4.5, 3.6, 2.4), 0.3),
}
"""Letters, shares of a hundred, and how strongly a later place in the list speaks for poison."""
CHESS_ORDER = ("wk_file", "wk_rank", "wr_file", "wr_rank", "bk_file", "bk_rank", "depth_of_win")
DEPTHS = (
    "draw", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip
DEPTH_SHARES = (10, 0.1, 0.3, 0.9, 0.3, 0.7, 1.7, 2.1, 2.4, 5.1, 6.1, 7.1, 10.2, 12.8, 14.9, 16.2, 7.7, 1.4)


CHESS = {
    **{f"{man}_file": Column("abcdefgh", [1] * 8, (lean,)) for man, lean in (("wr", 0), ("bk", 0.5))},
    **{f"{man}_rank": Column(range(1, 9), [1] * 8, (lean,)) for man, lean in (("wr", 0), ("bk", 0.3))},
    "depth_of_win": Column(DEPTHS, DEPTH_SHARES, (0.6,)),
}
"""Rook and black king; the other king stands in the triangle of the first four files."""
CMC = {
    "wife_age": Column(gamma(4.0, 4.2, 16, 49), leans=(1,)),
    "wife_education": Column(range(1, 5), (10, 23, 28, 39), (0, 0.9)),
    "husband_education": Column(range(1, 5), (3, 12, 24, 61), (0, 0.7)),
    "n_children": Column(range(17), (7, 19, 19, 18, 13, 9, 6, 3, 3, 1, 0.8, 0.7, 0.6, 0.3, 0.1, 0.1, 0.1), (0.6, -0.2)),
    "wife_religion": Column(range(2), (15, 85), (0, -0.2)),
    "wife_working": Column(range(2), (25, 75)),
    "husband_occupation": Column(range(1, 5), (30, 29, 39, 2), (0, -0.4)),
    "standard_of_living": Column(range(1, 5), (9, 16, 29, 46), (0.1, 0.4)),
    "media_exposure": Column(range(2), (93, 7), (0, -0.3)),
    "contraceptive_method": Column(range(1, 4), (42.7, 22.6, 34.7), (0.1, 0.4)),
}
RINGS = (
    0.3, 0.3, 4, 14, 28, 62, 94, 136, 164, 152, 117, 64, 49, 30, 25, 16, 14, 10, 8, 6, 3.5, 1.5, 2, 0.5, 0.3, 0.3, 0.5,
    0.3,
)  # fmt: skip


def _measure(high: float, step: float, places: Numbers) -> NDArray[Any]:
    """Lengths and weights up to a highest one, in steps, as a file writes them."""
    values = np.maximum(np.round(high * places**0.5 / step), 1) * step
    return np.array([f"{value:.4f}".rstrip("0").rstrip(".") for value in values])


ABALONE = {
    "sex": Column("IFM", (32, 31, 37), (0.7,)),
    **{
        name: Column(partial(_measure, high, step), leans=(0.95,))
        for name, high, step in (
            ("length", 0.815, 0.005), ("diameter", 0.65, 0.005), ("height", 0.25, 0.005), ("whole_weight", 2.8, 0.0005),
            ("shucked_weight", 1.4, 0.0005), ("viscera_weight", 0.7, 0.0005), ("shell_weight", 1.0, 0.0005),
        )
    },
    "rings": Column([*range(1, 28), 29], RINGS, (0.6,)),
}  # fmt: skip


def make(name: str, rows: int) -> pl.DataFrame:
    """The table, all columns as text, in the order of the file. The same rows every time."""
    if name in ("nursery", "car"):
        return as_text(nursery() if name == "nursery" else car()).head(rows)
    if name == "chess":
        file = np.array([(i, j) for i in range(4) for j in range(i + 1)])[stream(name).integers(0, 10, rows)]
        king = {"wk_file": np.array(list("abcd"))[file[:, 0]], "wk_rank": 1 + file[:, 1]}
        return as_text(king | draw(name, CHESS, rows)).select(CHESS_ORDER)
    poison = {"class": Column("ep", (51.8, 48.2), (1,))}
    leans = {n: Column(letters, shares, (lean / 2.5,)) for n, (letters, shares, lean) in MUSHROOM.items()}
    return as_text(draw(name, {"cmc": CMC, "abalone": ABALONE, "mushroom": poison | leans}[name], rows))


def nursery() -> dict[str, NDArray[Any]]:
    """Every combination of the eight attributes. Poor health decides alone; the rest adds up to a priority."""
    columns = _product(NURSERY)
    place = {name: _places(columns[name], values) for name, values in NURSERY.items()}
    need = 2.0 * place["has_nurs"] + 1.6 * place["parents"] + 0.8 * place["form"] + 0.7 * place["children"]
    need += 1.2 * place["housing"] + 0.8 * place["finance"] + np.where(place["social"] == 2, 1.6, 0)
    need += 2.6 * (place["health"] == 1)
    judged = np.where(need > np.quantile(need[place["health"] < 2], 0.5315), "spec_prior", "priority")
    easy = (place["health"] == 0) & (need < 4.9)
    best = sum(place[name] for name in NURSERY if name != "finance") == 0
    judged = np.where(easy, "very_recom", judged)
    columns["class"] = np.where(place["health"] == 2, "not_recom", np.where(best, "recommend", judged))
    return columns


def car() -> dict[str, NDArray[Any]]:
    """Every combination of the six attributes. Two seats or low safety are not acceptable; price and comfort follow."""
    columns = _product(CAR)
    place = {name: _places(columns[name], values) for name, values in CAR.items()}
    price = place["buying"] + place["maint"]
    comfort = place["lug_boot"] + np.minimum(place["doors"], 1) + (place["persons"] > 1)
    safe = place["safety"]
    fit = (place["persons"] > 0) & (safe > 0) & (price + safe + 0.5 * comfort >= 5)
    good = fit & (price >= 5) & (comfort >= 2) & (safe == 1)
    best = fit & (price >= 4) & (comfort >= 3) & (safe == 2) & (place["buying"] >= 2)
    columns["class"] = np.where(best, "vgood", np.where(good, "good", np.where(fit, "acc", "unacc")))
    return columns


def _product(values: Mapping[str, Sequence[str]]) -> dict[str, NDArray[Any]]:
    rows = np.array(list(product(*values.values())))
    return {name: rows[:, i] for i, name in enumerate(values)}


def _places(column: NDArray[Any], values: Sequence[str]) -> NDArray[np.int64]:
    return np.asarray((column[:, None] == np.array(values)[None, :]).argmax(axis=1), np.int64)
