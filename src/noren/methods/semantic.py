"""Decoys that are far apart in meaning: the design for a column with semantic-diversity or le-diversity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import InfeasibleDesign
from noren.designs.semantic.design import Kind, SemanticDesign
from noren.errors import NAMED_FROM, NorenError, Problem
from noren.methods.base import ColumnFacts
from noren.models import LEDiversity, SemanticDiversity
from noren.models.base import Model
from noren.models.t_closeness import TCloseness


def is_semantic(model: Model) -> bool:
    return isinstance(model, SemanticDiversity | LEDiversity)


def decide_semantic(
    facts: ColumnFacts, models: Sequence[Model], kind: Kind, allow_unidentifiable: bool
) -> tuple[SemanticDesign | Problem, list[str]]:
    """A design whose sets meet all requirements on the column, or what stands in the way."""
    where = f"require on {facts.name!r}"
    if any(isinstance(model, TCloseness) for model in models):
        message = "t-closeness and semantic diversity exclude each other: p < 1 may leave the truth out of its set."
        return Problem(where, message, "Keep one of them."), []
    size = max(model.least_set_size for model in models)
    try:
        distances, threshold = _scaled(facts, [model for model in models if is_semantic(model)])
        design = SemanticDesign.make(kind, distances, size, threshold)
    except InfeasibleDesign as error:
        return error.problem(where, _showable(facts)), []
    except NorenError as error:
        return Problem(where, error.message, error.hint or ""), []
    notes = [f"{facts.name}: {text}" for text in (design.note, design.warning) if text]
    known, condition = design.identifiability()
    if not known:
        message = f"sets of {size} values {threshold:g} apart lose the counts: no estimator can recover them."
        hint = "Lower l or d, declare more values, or set allow_unidentifiable = true under [method]."
        if not allow_unidentifiable:
            return Problem(where, message, hint), []
        notes.append(f"{facts.name}: {message}")
    elif condition > 1e6:
        notes.append(f"{facts.name}: estimates will be poor (condition number {condition:.1e}); a smaller l or d helps")
    return design, notes


def _showable(facts: ColumnFacts) -> list[str | None]:
    """The labels that a message may name: declared ones, and those that several records share."""
    common = facts.counts >= NAMED_FROM if facts.domain.source == "data" else np.ones(len(facts.domain), bool)
    return [label if shown else None for label, shown in zip(facts.domain.values, common, strict=True)]


def _scaled(facts: ColumnFacts, models: Sequence[Model]) -> tuple[NDArray[np.float64], float]:
    """One distance and one threshold for all semantic requirements on a column."""
    parts: list[tuple[NDArray[np.float64], float]] = []
    for model in models:
        if isinstance(model, SemanticDiversity):
            assert facts.distances is not None
            parts.append((facts.distances, model.d))
        else:
            assert isinstance(model, LEDiversity)
            parts.append((_subtrees(facts, model.e), 1.0))
    if len(parts) == 1:
        return parts[0]
    return np.min([matrix / threshold for matrix, threshold in parts], axis=0), 1.0


def _subtrees(facts: ColumnFacts, depth: int) -> NDArray[np.float64]:
    hierarchy = facts.hierarchy
    if hierarchy is None or depth > hierarchy.height:
        levels = 0 if hierarchy is None else hierarchy.height
        raise NorenError(
            f"le-diversity with e = {depth} needs a hierarchy of {depth} levels below its root; there are {levels}.",
            hint="Give the column a deeper hierarchy, or choose a smaller e.",
        )
    _, groups = hierarchy.groups(hierarchy.height - depth)
    return np.asarray((groups[:, None] != groups[None, :]).astype(float))
