"""Quasi-sensitive columns as the methods see them: what is linked together, by which knowledge, under which rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.methods.suppress.beliefs import TermRequirement, Unlinked, estimated_prior
from noren.models import QSCloseness, QSDiversity
from noren.models.base import Model
from noren.models.term_check import TermModel
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells


@dataclass(frozen=True)
class Linkage:
    """Columns that one knowledge table links to labels, their terms together, and what is asked of every group."""

    names: tuple[str, ...]
    knowledge: Knowledge
    cells: TermCells
    """All terms of a record; codes outside the knowledge are unknown terms."""
    alpha: NDArray[np.float64]
    """What is believed about a person before the release."""
    rules: tuple[tuple[TermRequirement, Unlinked], ...]

    def split(self, kept: NDArray[np.bool_], columns: Mapping[str, TermCells]) -> dict[str, TermCells]:
        """What remains of every column if only these entries of the joint sets are published."""
        width = np.int64(self.cells.d)
        left = (self.cells.owner * width + self.cells.data)[kept]
        out = {}
        for name in self.names:
            cells = columns[name]
            key = cells.owner * width + cells.data
            place = np.searchsorted(left, key)
            inside = np.zeros(len(key), bool)
            within = place < len(left)
            inside[within] = left[place[within]] == key[within]
            out[name] = cells.keep(inside)
        return out


def linkages(table: Records, requirements: Sequence[Model]) -> list[Linkage]:
    """One per knowledge table, in the order of the columns."""
    together: dict[int, list[str]] = {}
    for name, column in table.terms.items():
        together.setdefault(id(column.knowledge), []).append(name)
    out = []
    for names in together.values():
        knowledge = table.terms[names[0]].knowledge
        cells = _joined([table.terms[name].cells for name in names])
        prior = table.terms[names[0]].prior if knowledge.priors is None else knowledge.priors
        if prior is None:
            prior = estimated_prior(cells.offsets, cells.data, knowledge)
        asked = [m for m in requirements if isinstance(m, TermModel) and set(m.on) & set(names)]
        rules = tuple(dict.fromkeys((requirement_of(model), model.unlinked) for model in asked))
        out.append(Linkage(tuple(names), knowledge, cells, np.asarray(prior, np.float64), rules))
    return out


def requirement_of(model: Model) -> TermRequirement:
    """A requirement on terms in the form of the searches."""
    if isinstance(model, QSDiversity):
        return TermRequirement("cl", c=model.c, l=model.l)
    assert isinstance(model, QSCloseness)
    return TermRequirement("t", t=model.t, metric=model.distance)


def _joined(parts: Sequence[TermCells]) -> TermCells:
    if len(parts) == 1:
        return parts[0]
    d = max(part.d for part in parts)
    record, code = (np.concatenate(found) for found in zip(*((p.owner, p.data) for p in parts), strict=True))
    return TermCells.from_entries(d, len(parts[0]), record, code)
