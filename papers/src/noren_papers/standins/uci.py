"""Tables shaped like six UCI sets: their columns, domain sizes and skew. No row is copied.

Nursery and Car were made by rules from every combination of their attributes, so here too: the product, with a rule of
the same kind for the class. The others are drawn at random with relations of the same kind between columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.standins.draws import as_text, chosen

Numbers = NDArray[np.float64]

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
"""Letters, shares of a hundred, and how strongly an even or odd place in the list speaks for poison."""
DEPTHS = (
    "draw", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip
DEPTH_SHARES = (10, 0.1, 0.3, 0.9, 0.3, 0.7, 1.7, 2.1, 2.4, 5.1, 6.1, 7.1, 10.2, 12.8, 14.9, 16.2, 7.7, 1.4)


def make(name: str, rows: int) -> pl.DataFrame:
    """The table, all columns as text, in the order of the file. The same rows every time."""
    makers: dict[str, Callable[[int], Mapping[str, Sequence[Any] | NDArray[Any]]]] = {
        "nursery": lambda n: nursery(),
        "car": lambda n: car(),
        "cmc": cmc,
        "abalone": abalone,
        "mushroom": mushroom,
        "chess": chess,
    }
    return as_text(makers[name](rows)).head(rows)


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


def cmc(rows: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(30)
    age = np.clip(16 + rng.gamma(4.0, 4.2, rows), 16, 49).astype(int)
    wife = 1 + rng.choice(4, rows, p=(0.10, 0.23, 0.28, 0.39))
    husband = np.clip(wife + rng.choice((-1, 0, 1), rows, p=(0.1, 0.4, 0.5)), 1, 4)
    children = np.minimum(rng.poisson(np.clip((age - 17) / 6.0, 0.3, None)), 16)
    living = np.clip(husband + rng.choice((-1, 0, 1), rows, p=(0.35, 0.4, 0.25)), 1, 4)
    # lasting methods come with schooling and children, none with few of either
    odds = np.column_stack(
        [
            np.exp(0.15 - 0.35 * (wife - 3) - 0.25 * np.minimum(children - 3, 2) + 0.03 * (age - 33)),
            np.exp(-0.35 + 0.45 * (wife - 3) + 0.10 * np.minimum(children - 3, 2) + 0.03 * (age - 33)),
            np.exp(0.15 + 0.05 * (wife - 3) + 0.15 * np.minimum(children - 3, 2) - 0.05 * (age - 33)),
        ]
    )
    return {
        "wife_age": age,
        "wife_education": wife,
        "husband_education": husband,
        "n_children": children,
        "wife_religion": (rng.random(rows) < 0.85).astype(int),
        "wife_working": (rng.random(rows) < 0.75).astype(int),
        "husband_occupation": 1 + rng.choice(4, rows, p=(0.30, 0.29, 0.39, 0.02)),
        "standard_of_living": living,
        "media_exposure": (rng.random(rows) < 0.07).astype(int),
        "contraceptive_method": 1 + chosen(rng, odds),
    }


def abalone(rows: int) -> dict[str, NDArray[Any]]:
    """Shells grow with the rings until about eleven, weights with the cube of the length."""
    rng = np.random.default_rng(1)
    rings = np.clip(
        np.round(rng.gamma(18.0, 0.49, rows) + rng.exponential(4.5, rows) * (rng.random(rows) < 0.22)), 1, 29
    ).astype(int)
    rings[rings == 28] = 27
    grown = 1 - np.exp(-rings / 4.6)
    length = np.clip(0.62 * grown + rng.normal(0, 0.06, rows), 0.075, 0.815)
    whole = 4.6 * length**3 * np.exp(rng.normal(0, 0.12, rows)) + 0.002
    infant = rng.random(rows) < 1 / (1 + np.exp(12 * (length - 0.46)))
    return {
        "sex": np.where(infant, "I", np.where(rng.random(rows) < 0.54, "M", "F")),
        "length": _rounded(length, 0.005),
        "diameter": _rounded(np.clip(0.79 * length + rng.normal(0, 0.01, rows), 0.055, 0.65), 0.005),
        "height": _rounded(np.clip(0.27 * length + rng.normal(0, 0.012, rows), 0.01, 0.25), 0.005),
        "whole_weight": _rounded(whole, 0.0005),
        "shucked_weight": _rounded(whole * rng.normal(0.43, 0.03, rows), 0.0005),
        "viscera_weight": _rounded(whole * rng.normal(0.22, 0.02, rows), 0.0005),
        "shell_weight": _rounded(whole * rng.normal(0.29, 0.03, rows), 0.0005),
        "rings": rings,
    }


def mushroom(rows: int) -> dict[str, NDArray[Any]]:
    """A slight majority is edible; each column leans one way for the poisonous, odour most."""
    rng = np.random.default_rng(73)
    poison = rng.random(rows) < 0.482
    columns: dict[str, NDArray[Any]] = {"class": np.where(poison, "p", "e")}
    for name, (letters, shares, lean) in MUSHROOM.items():
        sign = np.where(np.arange(len(letters)) % 2 == 0, -0.5, 0.5) * lean
        weights = np.outer(np.ones(rows), shares) * np.exp(np.outer(np.where(poison, 1.0, -1.0), sign))
        columns[name] = np.array(list(letters))[chosen(rng, weights)]
    return columns


def chess(rows: int) -> dict[str, NDArray[Any]]:
    """White's king in the triangle of the first four files; far kings take longer to be mated."""
    rng = np.random.default_rng(23)
    file = np.array([(i, j) for i in range(4) for j in range(i + 1)])[rng.integers(0, 10, rows)]
    rook, other = rng.integers(0, 8, (rows, 2)), rng.integers(0, 8, (rows, 2))
    apart = np.abs(file - other).max(axis=1) + 0.5 * np.minimum(other, 7 - other).sum(axis=1)
    drawn = rng.random(rows) < DEPTH_SHARES[0] / 100
    won = np.array(DEPTH_SHARES[1:]).cumsum() / sum(DEPTH_SHARES[1:])
    rank = np.empty(rows)
    rank[np.argsort(apart + rng.normal(0, 1.2, rows), kind="stable")] = (np.arange(rows) + 0.5) / rows
    depth = np.where(drawn, 0, 1 + np.minimum(np.searchsorted(won, rank), len(won) - 1))
    letters = np.array(list("abcdefgh"))
    return {
        "wk_file": letters[file[:, 0]],
        "wk_rank": 1 + file[:, 1],
        "wr_file": letters[rook[:, 0]],
        "wr_rank": 1 + rook[:, 1],
        "bk_file": letters[other[:, 0]],
        "bk_rank": 1 + other[:, 1],
        "depth_of_win": np.array(DEPTHS)[depth],
    }


def _product(values: Mapping[str, Sequence[str]]) -> dict[str, NDArray[Any]]:
    rows = np.array(list(product(*values.values())))
    return {name: rows[:, i] for i, name in enumerate(values)}


def _places(column: NDArray[Any], values: Sequence[str]) -> NDArray[np.int64]:
    return np.asarray((column[:, None] == np.array(values)[None, :]).argmax(axis=1), np.int64)


def _rounded(values: Numbers, step: float) -> NDArray[Any]:
    return np.array([f"{value:.4f}".rstrip("0").rstrip(".") for value in np.round(values / step) * step])
