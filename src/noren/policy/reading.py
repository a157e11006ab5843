"""A table as a policy describes it: how it is written, and which columns are sets of terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noren.engines import Engine, engine_for
from noren.policy.policy import Policy
from noren.schema.domain import Domain, bin_labels
from noren.schema.kinds import Format
from noren.schema.roles import Role
from noren.schema.tuples import Member
from noren.sources.markers import with_markers
from noren.sources.source import Source, Writing
from noren.sources.term_columns import TermSpec, with_terms
from noren.sources.tuple_columns import with_tuples


def open_table(data: Any, policy: Policy, engine: Engine | None = None) -> Source:
    """The source of a table under a policy. Columns that make up a set stand under the name of the set."""
    given = policy.data
    writing = Writing(given.separator, given.encoding, tuple(given.missing_values))
    source = (engine or engine_for(data)).opened(data, writing)
    specs = {
        name: TermSpec(attribute.separator, attribute.columns or (), policy.data.missing_values)
        for name, attribute in policy.attributes.items()
        if attribute.role is Role.QUASI_SENSITIVE
    }
    declared = policy.declared
    marks = {name: column.missing_values for name, column in declared.items() if column.missing_values}
    named = with_terms(with_markers(source, marks), specs)
    return with_tuples(named, policy.composites, _bins(policy))


def _bins(policy: Policy) -> dict[str, Member]:
    """Members of composites whose bins are known without the data."""
    out = {}
    for name, column in ((n, c) for one in policy.attributes.values() for n, c in one.members.items()):
        if column.edges is not None:
            written = Format(decimal=column.decimal or policy.data.decimal or ".")
            out[name] = Member(name, Domain(bin_labels(column.edges), edges=column.edges, format=written))
    return out


def dropping(policy: Policy, columns: Sequence[str]) -> list[str]:
    """Published columns whose missing cells cost the record its place."""
    owner = {member: name for name, members in policy.composites.items() for member in members}
    return [
        name
        for name, attribute in policy.declared.items()
        if attribute.missing == "drop" and not attribute.role.is_dropped and owner.get(name, name) in columns
    ]
