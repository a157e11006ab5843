"""Composite columns of a release beside their policy and their original."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from noren.errors import ReleaseError
from noren.release.published import Published
from noren.schema.column import Column
from noren.schema.tuples import TupleDomain
from noren.sources.source import Source, open_source
from noren.sources.tuple_columns import with_tuples


def as_published(original: Any, release: Published) -> Source:
    """An original with the columns that a release publishes as tuples under their common name."""
    made = {s.name: s.domain.made_of for s in release.statements if not s.column.is_open}
    return with_tuples(open_source(original), {name: members for name, members in made.items() if members})


def with_members(declared: Column, published: Column) -> Column:
    """A published column whose tuples must differ in what the policy says, whatever the release claims."""
    found = None if published.is_open else published.domain
    names = () if found is None else found.made_of
    if names != tuple(declared.members):
        raise ReleaseError(
            f"the release says that {published.name!r} is made of {_listed(names)}, the policy of "
            f"{_listed(tuple(declared.members))}.",
            hint="Check it against the policy that it was made with.",
        )
    if not isinstance(found, TupleDomain):
        return published
    return published.met(published.name, replace(found, differ=declared.differ))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names)) or "itself alone"
