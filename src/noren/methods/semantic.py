"""Decoys that are far apart in meaning: the design for a column whose published values must lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import InfeasibleDesign
from noren.designs.semantic.design import Asked, Kind, SemanticDesign
from noren.errors import NAMED_FROM, NorenError, Problem
from noren.models.base import Model
from noren.models.separation import TOLERANCE
from noren.schema.column import Column


def decide_semantic(
    column: Column, counts: NDArray[np.int64], models: Sequence[Model], kind: Asked, allow_unidentifiable: bool
) -> tuple[SemanticDesign | Problem, list[str]]:
    """A design whose sets meet all requirements on the column, or what stands in the way."""
    name = column.name
    where = f"require on {name!r}"
    if any(min(model.epsilon_each, model.epsilon_together) < inf for model in models):
        message = "closeness or local privacy and semantic diversity exclude each other: p < 1 may leave the truth out."
        return Problem(where, message, "Keep one of them."), []
    size = max(model.least_set_size for model in models)
    try:
        distances, threshold = _scaled([model.separation(column) for model in models if model.separates])
        made: Kind = "flat" if kind == "best" else kind
        design = SemanticDesign.make(made, distances, size, threshold)
    except InfeasibleDesign as error:
        return error.problem(where, _showable(column, counts)), []
    except NorenError as error:
        return Problem(where, error.message, error.hint or ""), []
    if (told := _too_much(design, models, where, _showable(column, counts))) is not None:
        return told, []
    known, condition = design.identifiability()
    if not known and design.types is not None and size == min(model.least_set_size for model in models):
        most = min(model.most_belief for model in models)
        design = SemanticDesign.make(made, distances, size, threshold, most)
        known, condition = design.identifiability()
    remark = ""
    if kind == "best" and design.name == "semantic-flat":
        design, remark = _sharper(design, min(model.most_belief for model in models), distances)
        known, condition = design.identifiability()
    notes = [f"{name}: {text}" for text in (design.note, design.warning, remark) if text]
    if not known:
        message = f"sets of {size} values {threshold:g} apart lose the counts: no estimator can recover them."
        hint = "Lower l or d, declare more values, or set allow_unidentifiable = true under [method]."
        if not allow_unidentifiable:
            return Problem(where, message, hint), []
        notes.append(f"{name}: {message}")
    elif condition > 1e6:
        notes.append(f"{name}: estimates will be poor (condition number {condition:.1e}); a smaller l or d helps")
    return design, notes


OTHERS: tuple[Kind, ...] = ("uniform-sets", "simple")
"""Designs beside the flat one, which tell more and often leave sharper counts."""
WORTH = 0.95
"""Of the flat one's error: what saves less than a twentieth is not worth any belief."""


def _sharper(flat: SemanticDesign, most: float, distances: NDArray[np.float64]) -> tuple[SemanticDesign, str]:
    """The design of least expected error among those in which no value is believed above `most`, and what was gained.

    Errors and beliefs are for values that are all as common, so that the choice tells nothing of the table. Where only
    1/l is permitted it is the flat design, without a search. A design whose worst belief is not known is no candidate.
    Where there is no flat design, `most` had to be stated to publish at all, and the least belief is kept instead.
    """
    if most <= (1 + TOLERANCE) / flat.eta:
        return flat, ""
    best, least = flat, WORTH * flat.expected_l2(1)
    for kind in OTHERS:
        try:
            other = SemanticDesign.make(kind, distances, flat.eta, flat.threshold)
        except NorenError:  # not drawn for this distance or this l
            continue
        worst = other.worst_belief()
        if worst is None or worst > most * (1 + TOLERANCE):
            continue
        if (error := other.expected_l2(1)) < least * (1 - TOLERANCE):  # equal designs differ by rounding
            best, least = other, error
    if best is flat:
        return flat, ""
    before = flat.expected_l2(1)
    gain = f"{least / before:.2f} times the error of flat sets" if before < inf else "counts that flat sets would lose"
    return best, f"sets are drawn as {best.name}: {gain}, no belief above {best.worst_belief():.4g}."


def _too_much(
    design: SemanticDesign, models: Sequence[Model], where: str, labels: Sequence[str | None]
) -> Problem | None:
    """What is wrong where one value of a set would be believed above what the requirements permit; names both."""
    most, worst = min(model.most_belief for model in models), design.worst_belief()
    if worst is None or worst <= most * (1 + TOLERANCE):
        return None
    found = design.worst_set()
    told = f"a value of some set would be believed with {worst:.4g}, all values believed alike before"
    if found is not None and all(labels[code] is not None for code in found[1]):
        members = ", ".join(str(labels[code]) for code in found[1])
        told = f"{{{members}}} would mean {labels[found[0]]!r} with {worst:.4g}, all values believed alike before"
    if design.note:
        told = f"{design.note} {told[0].upper()}{told[1:]}"
    stated = ceil(worst / (1 + TOLERANCE) * 1000) / 1000
    hint = f"Lower l or d, declare more values, or accept it: most = {stated:g} in the requirement."
    return Problem(where, f"{told}; at most {most:.4g} is asked.", hint)


def _showable(column: Column, counts: NDArray[np.int64]) -> list[str | None]:
    """The labels that a message may name: declared ones, and those that several records share."""
    domain = column.domain
    common = counts >= NAMED_FROM if domain.source == "data" else np.ones(len(domain), bool)
    return [label if shown else None for label, shown in zip(domain.values, common, strict=True)]


def _scaled(parts: Sequence[tuple[NDArray[np.float64], float]]) -> tuple[NDArray[np.float64], float]:
    """One distance and one threshold for all semantic requirements on a column."""
    if len(parts) == 1:
        return parts[0]
    return np.min([matrix / threshold for matrix, threshold in parts], axis=0), 1.0
