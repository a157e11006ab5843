"""A table as a policy describes it: how it is written, and which columns are sets of terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noren.io.markers import with_markers
from noren.io.source import Source, open_source
from noren.io.term_columns import TermSpec, with_terms
from noren.policy.policy import Policy
from noren.schema.roles import Role


def open_table(data: Any, policy: Policy) -> Source:
    """The source of a table under a policy. Columns that make up a set stand under the name of the set."""
    source = open_source(data, **policy.data.model_dump(exclude={"decimal"}))
    specs = {
        name: TermSpec(attribute.separator, attribute.columns or (), policy.data.missing_values)
        for name, attribute in policy.attributes.items()
        if attribute.role is Role.QUASI_SENSITIVE
    }
    marks = {name: column.missing_values for name, column in policy.attributes.items() if column.missing_values}
    return with_terms(with_markers(source, marks), specs)


def dropping(policy: Policy, columns: Sequence[str]) -> list[str]:
    """Published columns whose missing cells cost the record its place."""
    return [
        name
        for name, attribute in policy.attributes.items()
        if attribute.missing == "drop" and attribute.role is not Role.IDENTIFIER and name in columns
    ]
