"""Decoys of whole tuples: sets in which the members that a requirement names differ as well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import Classes, Compatibility, InfeasibleDesign
from noren.designs.semantic.design import Asked, Kind, SemanticDesign
from noren.errors import NorenError, Problem
from noren.models.base import Model
from noren.schema.column import Column
from noren.schema.tuples import TupleDomain

MOST_PAIRS = 400
"""Tuples up to which sets are looked for pair by pair, where too few groups of tuples have nothing in common."""


def must_differ(column: Column, models: Sequence[Model]) -> bool:
    """Whether different tuples are not enough: some of them share a value of which several must stay possible."""
    domain = column.domain
    if not isinstance(domain, TupleDomain) or not domain.differ or not any(model.counts_values for model in models):
        return False
    return len(np.unique(domain.apart)) < len(domain)


def decide_tuples(
    column: Column, models: Sequence[Model], kind: Asked, allow_unidentifiable: bool
) -> tuple[SemanticDesign | Problem, list[str]]:
    """A design whose sets hold tuples that differ in every member that must, or what stands in the way."""
    domain = column.domain
    assert isinstance(domain, TupleDomain)
    name, where = column.name, f"require on {column.name!r}"
    if any("prior" in model.needs for model in models):
        message = "t-closeness of tuples, and different values of a member in every set, exclude each other."
        return Problem(where, message, f'Ask for different values on = "{name}" instead of a member.'), []
    size = max(model.least_set_size for model in models)
    listed = ", ".join(map(repr, domain.differ))
    groups = len(np.unique(domain.apart))
    hint = f'Lower l, or ask for different tuples: on = "{name}".'
    try:
        compatible = _compatible(domain, size)
        if compatible is None:
            message = (
                f"the {len(domain)} tuples fall into {groups} groups that share no value of {listed}; l is {size}."
            )
            return Problem(where, message, hint), []
        made: dict[Asked, Kind] = {"simple": "simple", "uniform-sets": "uniform-sets", "balanced": "balanced"}
        design = SemanticDesign.make(made.get(kind, "flat"), compatible, size)
    except InfeasibleDesign:
        message = f"some tuples have no {size - 1} others that differ from them and each other in {listed}."
        return Problem(where, message, hint), []
    except NorenError as error:
        return Problem(where, error.message, hint), []
    known, _ = design.identifiability()
    message = f"sets of {size} tuples that differ in {listed} lose the counts: no estimator can recover them."
    if not known and not allow_unidentifiable:
        return Problem(where, message, f"{hint} Or set allow_unidentifiable = true under [method]."), []
    notes = [f"{name}: {design.note}"] if design.note else []
    return design, notes if known else [*notes, f"{name}: {message}"]


def _compatible(domain: TupleDomain, size: int) -> Compatibility | None:
    """Which tuples may stand together: those of groups that share nothing, or where these are too few, by pairs."""
    apart = domain.apart
    if len(np.unique(apart)) > size:
        return Compatibility(len(domain), 1.0, Classes(class_of=tuple(apart.tolist())))
    if len(domain) > MOST_PAIRS:
        return None
    return Compatibility.from_distances(_differences(domain.views), 1.0)


def _differences(views: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """1 where two tuples differ in every member that must, else 0."""
    out = np.ones((len(views[0]),) * 2, bool)
    for view in views:
        out &= view[:, None] != view[None, :]
    return out.astype(np.float64)


def alike(column: Column) -> list[str]:
    """A remark where sets of different tuples may leave one value of a member alone."""
    domain = column.domain
    if not isinstance(domain, TupleDomain):
        return []
    few = [n for n in domain.made_of if n not in domain.differ and len(np.unique(domain.codes[n])) < len(domain)]
    if not few or domain.differ:
        return []
    return [
        f"{column.name}: sets hold different tuples, which may agree in {', '.join(few)}; a requirement on that column "
        "makes them differ in it"
    ]
