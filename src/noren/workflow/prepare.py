"""Combines policy and data into a Table, from which every function with an original starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noren.engines import Engine, Table, engine_for
from noren.engines.engine import Counting, Profile
from noren.errors import NAMED_FROM, PolicyError, Problem
from noren.policy.options import KEY_LEAST, KEY_SHARE
from noren.policy.policy import Policy
from noren.policy.resolve import column_problems, decimal_of, dropping, open_table, resolve
from noren.policy.values import MOST_OTHER, weight_remark
from noren.progress import Stage, quiet
from noren.schema.domain import OTHER
from noren.schema.kinds import Format
from noren.schema.roles import Role
from noren.sources.sample import sampled


def read_policy(policy: Policy | str | Path) -> Policy:
    """Return a policy, or read it from a file."""
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def prepare(
    data: Any,
    policy: Policy | str | Path,
    engine: str | Engine | None = None,
    *,
    stage: Stage = quiet,
    sample: bool = True,
) -> Table:
    """Return the original as an engine holds it; raise PolicyError with all disagreements of policy and table.

    Without `sample` all records are read, also where the policy asks for a sample.
    """
    policy = read_policy(policy)
    engine = engine_for(data, engine)
    source = sampled(open_table(data, policy, engine), policy.sample.share if sample else None)
    source = engine.held(source, data)
    shown = policy.published
    published = [name for name in source.columns if name in shown]
    if not published:
        raise PolicyError(column_problems(policy, source.name, source.columns), source=policy.source)
    drop = dropping(policy, source.columns)
    counting = Counting(
        published,
        bins={name: edges for name in published if (edges := policy.attributes[name].edges) is not None},
        formats={name: Format(decimal=mark) for name in published if (mark := decimal_of(policy, name)) is not None},
        terms=[name for name in published if policy.attributes[name].role is Role.QUASI_SENSITIVE],
        drop=drop,
        identifiers=_watched_identifiers(policy, source.columns),
    )
    with stage("Reading", source.rows) as meter:
        profile = engine.profile(source, counting, meter=meter)
    profile.demand(source.name, counting.terms)
    met = resolve(policy, source.name, source.columns, profile)
    _demand_people(policy, profile)
    deciding = [
        name
        for name, column in policy.attributes.items()
        if name in met and (column.role is Role.QUASI_IDENTIFIER or column.role.needs_requirement)
    ]
    return Table(
        engine=engine,
        source=source,
        columns={name: one.column for name, one in met.items()},
        counts={name: one.counts for name, one in met.items()},
        profile=profile,
        requirements=policy.require,
        deciding=tuple(deciding),
        people_key=policy.people.key,
        drop=drop,
        stage=stage,
    )


def _watched_identifiers(policy: Policy, columns: Sequence[str]) -> list[str]:
    """Return identifiers that may name people with several rows."""
    if policy.people.key or policy.people.rows == "independent":
        return []
    named = [name for name in columns if name in policy.attributes and name != policy.people.household]
    return [name for name in named if policy.attributes[name].role is Role.IDENTIFIER]


def _demand_people(policy: Policy, profile: Profile) -> None:
    """Refuse a table with a repeated identifier if requirements do not count people by it."""
    problems = []
    for name in profile.identifiers:
        distinct, cells = profile.distinct(name), profile.cells(name)
        if max(KEY_LEAST, KEY_SHARE * profile.records) <= distinct < cells:
            message = f"{cells:,} records have {distinct:,} different values of the identifier {name!r}."
            hint = (
                f'If it identifies people, add [people] with key = "{name}"; if every row is a different person, '
                'add [people] with rows = "independent".'
            )
            problems.append(Problem("people.key", message, hint))
    if problems:
        raise PolicyError(problems, source=policy.source)


def remarks(table: Table, policy: Policy) -> list[str]:
    """Return remarks about the domains that will be published."""
    out: list[str] = []
    forms_classes, protected = policy.forms_classes, policy.protected
    for name, column in table.columns.items():
        if column.is_open:
            continue
        domain, counts = column.domain, table.counts[name]
        if column.weight and (said := weight_remark(name, counts)):
            out.append(said)
        if column.role is Role.QUASI_SENSITIVE:
            known = len(column.known.terms)
            listed = set(domain.values)
            lost = sum(count for term, count in table.profile.columns[name].counts.items() if term not in listed)
            rare = int(((counts[known:] > 0) & (counts[known:] < NAMED_FROM)).sum())
            if lost:
                out.append(
                    f"{name}: {lost} terms that the knowledge table lacks are not published (counted once per record)"
                )
            if rare:
                out.append(f"{name}: {rare} unknown terms with fewer than five records are published")
        rare = int(((counts > 0) & (counts < NAMED_FROM)).sum())
        if domain.source != "data":
            continue
        rest = domain.index.get(OTHER)
        if domain.merged and rest is not None:
            if counts[rest] < column.min_count:
                out.append(f"{name}: even {OTHER} has fewer than min_count records")
            if (share := counts[rest] / max(1, counts.sum())) > MOST_OTHER:
                out.append(
                    f"{name}: {share:.0%} of the records have a value with fewer than {column.min_count} records "
                    f"and show {OTHER} (bins, a hierarchy or a lower min_count keep more detail)"
                )
        general = forms_classes and column.role is Role.QUASI_IDENTIFIER
        terms = column.role is Role.QUASI_SENSITIVE
        if (name in protected or (general and not domain.is_range)) and rare and not terms:
            out.append(
                f"{name}: the published domain lists {rare} values with fewer than five records (min_count and rare "
                "can merge or refuse them)"
            )
    return out
