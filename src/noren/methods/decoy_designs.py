"""The designs of drawn columns: semantic sets, tuples that differ in their members, and decoys against somebody who
knows public shares."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign
from noren.designs.informed import InformedDesign
from noren.designs.semantic.compatibility import Classes, Compatibility, InfeasibleDesign
from noren.designs.semantic.design import Asked, Kind, SemanticDesign
from noren.errors import NAMED_FROM, NorenError, Problem
from noren.models.base import Model
from noren.models.set_check import TOLERANCE
from noren.schema.column import Column
from noren.schema.tuples import TupleDomain


def decide_semantic(
    column: Column, counts: NDArray[np.int64], models: Sequence[Model], kind: Asked, allow_unidentifiable: bool
) -> tuple[SemanticDesign | Problem, list[str]]:
    """Return a design whose sets meet all requirements on the column, or the reason why none exists."""
    name = column.name
    where = f"require on {name!r}"
    if any(min(model.epsilon_each, model.epsilon_together) < inf for model in models):
        message = (
            "closeness or local privacy cannot be combined with semantic diversity, because with p < 1 a set may lack "
            "the true value."
        )
        return Problem(where, message, "Keep one of them."), []
    size = max(model.least_set_size for model in models)
    try:
        distances, threshold = _scale_distances([model.separation(column) for model in models if model.separates])
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
        message = f"no estimator can recover counts from sets of {size} values that are {threshold:g} apart."
        hint = "Lower l or d, declare more values, or set allow_unidentifiable = true under [method]."
        if not allow_unidentifiable:
            return Problem(where, message, hint), []
        notes.append(f"{name}: {message}")
    elif condition > 1e6:
        notes.append(
            f"{name}: estimates will have large errors (condition number {condition:.1e}); a smaller l or d helps"
        )
    return design, notes


OTHERS: tuple[Kind, ...] = ("uniform-sets", "simple")
"""Designs beside the flat one, which tell more and often leave sharper counts."""
WORTH = 0.95
"""Of the flat one's error: what saves less than a twentieth is not worth any belief."""


def _sharper(flat: SemanticDesign, most: float, distances: NDArray[np.float64]) -> tuple[SemanticDesign, str]:
    """Return the design of smallest expected error under which no belief exceeds `most`, and the gain.

    Errors and beliefs are for values that are all as common, so that the choice discloses nothing of the table. Where
    only 1/l is permitted it is the flat design, without a search. A design whose worst belief is not known is no
    candidate. Where there is no flat design, `most` had to be stated to publish at all, and the least belief is kept
    instead.
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
    gain = (
        f"with {least / before:.2f} times the error of flat sets"
        if before < inf
        else ("which keeps counts that flat sets would lose")
    )
    return best, f"sets are drawn as {best.name}: {gain}, no belief above {best.worst_belief():.4g}."


def _too_much(
    design: SemanticDesign, models: Sequence[Model], where: str, labels: Sequence[str | None]
) -> Problem | None:
    """Describe the value and set whose belief exceeds what the requirements permit."""
    most, worst = min(model.most_belief for model in models), design.worst_belief()
    if worst is None or worst <= most * (1 + TOLERANCE):
        return None
    found = design.worst_set()
    told = f"somebody who thinks all values equally likely would believe a value of some set with {worst:.4g}"
    if found is not None and all(labels[code] is not None for code in found[1]):
        members = ", ".join(str(labels[code]) for code in found[1])
        told = (
            f"somebody who thinks all values equally likely would believe {labels[found[0]]!r} with {worst:.4g} from "
            f"the set {{{members}}}"
        )
    if design.note:
        told = f"{design.note} {told[0].upper()}{told[1:]}"
    stated = ceil(worst / (1 + TOLERANCE) * 1000) / 1000
    hint = f"Lower l or d, declare more values, or accept it: most = {stated:g} in the requirement."
    return Problem(where, f"{told}; at most {most:.4g} is permitted.", hint)


def _showable(column: Column, counts: NDArray[np.int64]) -> list[str | None]:
    """Return the labels that a message may name: declared ones, and those that several records share."""
    domain = column.domain
    common = counts >= NAMED_FROM if domain.source == "data" else np.ones(len(domain), bool)
    return [label if shown else None for label, shown in zip(domain.values, common, strict=True)]


def _scale_distances(parts: Sequence[tuple[NDArray[np.float64], float]]) -> tuple[NDArray[np.float64], float]:
    """Combine all semantic requirements on a column into one distance and one threshold."""
    if len(parts) == 1:
        return parts[0]
    return np.min([matrix / threshold for matrix, threshold in parts], axis=0), 1.0


MOST_PAIRS = 400
"""Tuples up to which sets are looked for pair by pair, where too few groups of tuples have nothing in common."""


def must_differ(column: Column, models: Sequence[Model]) -> bool:
    """Return whether different tuples are not enough, because some share a value of which several must remain
    possible."""
    domain = column.domain
    if not isinstance(domain, TupleDomain) or not domain.differ or not any(model.counts_values for model in models):
        return False
    return len(np.unique(domain.apart)) < len(domain)


def decide_tuples(
    column: Column, models: Sequence[Model], kind: Asked, allow_unidentifiable: bool
) -> tuple[SemanticDesign | Problem, list[str]]:
    """Return a design with tuples that differ in every required member, or the reason why none exists."""
    domain = column.domain
    assert isinstance(domain, TupleDomain)
    name, where = column.name, f"require on {column.name!r}"
    if any("prior" in model.needs for model in models):
        message = "t-closeness of tuples cannot be combined with sets that differ in a member."
        return Problem(where, message, f'Put the requirement on = "{name}" instead of a member.'), []
    size = max(model.least_set_size for model in models)
    listed = ", ".join(map(repr, domain.differ))
    groups = len(np.unique(domain.apart))
    hint = f'Lower l, or require different tuples: on = "{name}".'
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
    message = f"no estimator can recover counts from sets of {size} tuples that differ in {listed}."
    if not known and not allow_unidentifiable:
        return Problem(where, message, f"{hint} Or set allow_unidentifiable = true under [method]."), []
    notes = [f"{name}: {design.note}"] if design.note else []
    return design, notes if known else [*notes, f"{name}: {message}"]


def _compatible(domain: TupleDomain, size: int) -> Compatibility | None:
    """Return which tuples may be in one set: those of unconnected groups, or if these are too few, by pairs."""
    apart = domain.apart
    if len(np.unique(apart)) > size:
        return Compatibility(len(domain), 1.0, Classes(class_of=tuple(apart.tolist())))
    if len(domain) > MOST_PAIRS:
        return None
    return Compatibility.from_distances(_differences(domain.views), 1.0)


def _differences(views: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return 1 if two tuples differ in every member that must differ, otherwise 0."""
    out = np.ones((len(views[0]),) * 2, bool)
    for view in views:
        out &= view[:, None] != view[None, :]
    return out.astype(np.float64)


def alike(column: Column) -> list[str]:
    """Return a remark if sets of different tuples may leave a single value of a member possible."""
    domain = column.domain
    if not isinstance(domain, TupleDomain):
        return []
    few = [n for n in domain.made_of if n not in domain.differ and len(np.unique(domain.codes[n])) < len(domain)]
    if not few or domain.differ:
        return []
    return [
        (
            f"{column.name}: sets hold different tuples, which may agree in {', '.join(few)}; to make them differ, "
            "add a requirement on that column"
        )
    ]


ROUNDING = 1e-9
OWN = 5e-5
"""Shares within so much of the table's, or within half a record, are the table's own, written with a few digits."""


def decide_informed(
    column: Column, counts: NDArray[np.int64], models: Sequence[Model], limit: float
) -> tuple[InformedDesign | DecoyDesign | Problem, str]:
    """Return a design that limits the belief of somebody with the public shares, or the reason why none exists; and a
    remark.

    Where another requirement bounds somebody who thinks all values equally likely, or the epsilon, members of a set
    must be as likely as each other: uniform decoys in sets that are large enough.
    """
    where = f"require on {column.name!r}"
    (model,) = (model for model in models if model.knows_shares)
    others = [other for other in models if other is not model]
    try:
        shares = model.shares_of(column)
    except NorenError as error:
        return Problem(where, error.message, error.hint or ""), ""
    if is_own(shares, counts):
        message = "the prior is the table's own distribution, which the release would disclose."
        hint = (
            "Use shares that are public independently of this table, or an older release with noised margins of the "
            "column."
        )
        return Problem(where, message, hint), ""
    most, top, d = model.required, float(shares.max()), column.d
    if top >= most * (1 - ROUNDING):
        message = (
            f"one value has a public share of {top:.4g}, so with most = {most:g} its count could not be recovered."
        )
        return Problem(where, message, f"Raise most above {top:.4g}."), ""
    least = max([2, *(other.least_set_size for other in others)])
    even = min([1.0, *(other.most_belief for other in others)])
    if limit == inf and even == 1.0:
        design = InformedDesign.within(shares, most, least)
        if design is not None:
            alike = design.worst_belief()
            return (
                design,
                f"{column.name}: somebody who thinks all values equally likely can believe one with {alike:.4g}",
            )
    for eta in range(least, d):
        sets = DecoyDesign(d=d, eta=eta) if limit == inf else DecoyDesign.within(d, exp(limit), eta)
        if sets.worst_under(shares) <= most * (1 + ROUNDING):
            return sets, ""
    asks = ", ".join(f"{other.model} {other.required:g}" for other in models)
    message = f"no sets over {d} values meet {asks} with these shares."
    return Problem(where, message, "Raise most, lower the other requirements, or merge rare values."), ""


def is_own(shares: NDArray[np.float64], counts: NDArray[np.int64]) -> bool:
    """Return whether shares equal those of the counts. Equal shares of all values disclose nothing."""
    n = int(counts.sum())
    if np.ptp(shares) <= ROUNDING:
        return False
    return bool((np.abs(shares * n - counts) <= max(0.5, OWN * n)).all())
