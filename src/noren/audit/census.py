"""The population as the adversary has it: a table of everybody, quasi-identifiers as they stand in the original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.told import finder_for
from noren.engines.finding import Matches
from noren.errors import QueryError
from noren.release.published import Published
from noren.schema.domain import MISSING, OTHER, Domain


@dataclass(frozen=True)
class Census:
    """How many people the population has, and how many of them every published class covers."""

    people: int
    matches: NDArray[np.int64]


def read_census(table: Any, release: Published, names: list[str], own: Matches) -> Census:
    """Count the population's people who match each class of the release."""
    from noren.sources.source import open_source
    from noren.statements.encode import as_dictionary

    source = open_source(table)
    absent = [name for name in names if name not in source.columns]
    if absent:
        raise QueryError(
            f"{source.name}: the population has no column {absent[0]!r}.",
            hint="It needs every quasi-identifier that the release publishes.",
        )
    parts: dict[str, list[NDArray[np.int64]]] = {name: [] for name in names}
    for batch in source.batches(names):
        for name in names:
            column = release.column(name).column
            if column.is_open:
                raise QueryError(f"column {name!r} has too many values to find people by.", hint="Give it bins.")
            texts, positions = as_dictionary(batch.column(name), name)
            parts[name].append(published_codes(column.domain, texts.to_pylist())[positions])
    codes = {name: np.concatenate(found) for name, found in parts.items() if found}
    people = len(codes[names[0]]) if codes else 0
    if not people:
        raise QueryError(f"{source.name}: the population has no records.")
    finder, asked = finder_for(release, names, codes)
    counts = np.zeros(release.rows, np.int64)
    for part in finder.candidates(asked, people):
        times = np.bincount(part.of, minlength=len(part.bounds) - 1)
        np.add.at(counts, part.order, np.repeat(times, np.diff(part.bounds)))
    return Census(people, counts[own.order[own.bounds[:-1]]])


def published_codes(domain: Domain, texts: list[Any]) -> NDArray[np.int64]:
    """Texts as codes of a published domain, -1 for those it lacks; the last entry is the code of a missing cell."""
    index = domain.index
    missing, other = index.get(MISSING, -1), index.get(OTHER, -1)
    if domain.edges is None and (domain.hidden or domain.has_ends):
        return np.array([*(other if code < 0 else code for code in domain.find([*map(str, texts)])), missing], np.int64)
    if domain.measure is not None:
        return np.array([*domain.find([*map(str, texts)]), missing], np.int64)
    if domain.edges is None:
        return np.array([*(index.get(str(text), other) for text in texts), missing], np.int64)
    edges = np.asarray(domain.edges)
    numbers = np.array([_number(text) for text in texts], float)
    slots = np.searchsorted(edges, numbers, side="right") - 1
    slots[numbers == edges[-1]] = len(edges) - 2
    inside = np.isfinite(numbers) & (slots >= 0) & (slots < len(edges) - 1)
    return np.append(np.where(inside, slots, other), missing).astype(np.int64)


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return float("nan")
