"""Texts of step 4, the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COMPARE = "Compare candidates"
COMPARE_WHY = "Every method that can meet the requirements is tried and verified on this table. Nothing is published."
GRID = "Parameters to sweep (optional)"
SUPPRESSION = "Largest share of suppressed people (optional)"
COMPARE_GO = "Compare"
MAP = "Risk and loss"
MAP_WHY = "Best at the bottom left: fewer right guesses and smaller errors of counts. Click two to compare them."
MAP_KEY = (
    "Numbers are those of the table below. The square is the method of the draft, the diamond the adopted "
    "one, the ring "
    "the suggested one, the triangle the raw table."
)
RAW = "raw table"
DRAFT = "draft"
RISK_AXIS = "people whose secret is guessed right"
LOSS_AXIS = "error of count queries"
CANDIDATES = "Candidates that hold"
CANDIDATES_WHY = "Tick two to compare them. Adopt writes a method into the policy."
CANDIDATE_HEADS = (
    ("", ""), ("No.", "n"), ("Method", ""), ("Right guesses", "n"), ("Query error", "n"), ("NCP", "n"),
    ("Smallest class", "n"), ("Left out", "n"), ("Seconds", "n"), ("", ""),
)  # fmt: skip
BEST = "suggested"
FRONT = "not beaten"
ADOPT = "Adopt"
ADOPTED = "adopted"
METHOD = "method"
NEXT_RELEASE = "Next: make the release"
PAIR = "Side by side"
PAIR_WHY = "Compare the original with the ticked candidates: which values change, and for how many people."
PAIR_TICK = "Tick one or two candidates in the table, or click them on the map."
DISTRIBUTIONS = "Distributions: the original, and what a recipient estimates"
ORIGINAL = "Original"
EXCERPT = "An excerpt of rows (a release is shuffled, so rows do not match those of the original)"
SIZE_HEADS = ("People who look alike", ("People", "n"))
NO_ESTIMATE = "no estimate"
LATTICE = "Levels of general values"
LATTICE_WHY = (
    "Incognito publishes every column at one level. Lower points have lower levels; larger points have a smaller loss."
)
LEVELS_HEADS = (("Levels", ""), ("Loss", "n"), ("Classes", "n"), ("Left out", "n"), ("", ""))
LATTICE_GO = "Find the best levels"
LATTICE_NONE = "No levels meet the requirements: permit suppression, or lower the requirements."


def compared_some(records: int) -> str:
    return f"Compared on about {records:,} randomly selected records; the release uses every row."


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _figure(number: float | None, digits: int = 3) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def candidate_figures(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        _percent(one["risk"]),
        _percent(one["error"]),
        _percent(one["ncp"]),
        f"{one['smallest']:g}",
        f"{one['suppressed']:,}" if one["suppressed"] else "-",
        _figure(one["seconds"], 1),
    )


def tip(one: Mapping[str, Any]) -> str:
    return (
        f"{one['called']}\nright guesses {_percent(one['risk'])}\nquery error {_percent(one['error'])}\n"
        f"NCP {_percent(one['ncp'])}\nsmallest class {one['smallest']:g}\nleft out {one['suppressed']:,}"
    )


def side_by_side_with(called: str) -> str:
    return f"Show {called} side by side"


def chosen_says(called: str) -> str:
    return f"{called} is written into the policy."


def failed(count: int) -> str:
    return f"{count} candidates that do not meet the policy, with reasons"


def pair_go(names: list[str]) -> str:
    return f"Look at {' and '.join(names)}"


def classes_of(name: str) -> str:
    return f"Classes: {name}"


def values_shown(count: int) -> str:
    return "1 value" if count == 1 else f"{count:,} values"


def vector(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())


def lattice_order(names: Sequence[str]) -> str:
    return f"The numbers beside a point are the levels of {', '.join(names)}; 0 is the value itself."


def short_vector(levels: Mapping[str, int]) -> str:
    return " ".join(str(level) for level in levels.values())


def levels_figures(one: Mapping[str, Any]) -> tuple[str, ...]:
    return f"{one['loss']:.4g}", f"{one['classes']:,}", f"{one['dropped']:,}" if one["dropped"] else "-"


def vector_tip(one: Mapping[str, Any]) -> str:
    named = "\n".join(f"{name}: level {level} of {one['heights'][name]}" for name, level in one["levels"].items())
    return f"{named}\nloss {one['loss']:.4g}\nclasses {one['classes']:,}\nleft out {one['dropped']:,}"
