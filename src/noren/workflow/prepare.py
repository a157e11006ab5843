"""Where policy and data meet, once. Every verb that sees an original starts from the Table that comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from noren.engines import Engine, Table, engine_for
from noren.engines.engine import Counting
from noren.engines.profile import Profile
from noren.errors import NAMED_FROM, PolicyError, Problem
from noren.policy.policy import Policy
from noren.policy.resolve import column_problems, decimal_of, dropping, open_table, resolve
from noren.policy.values import weight_remark
from noren.progress import Stage, quiet
from noren.schema.domain import OTHER
from noren.schema.kinds import Format
from noren.schema.roles import Role
from noren.sources.sample import Reservoir, sampled

KEY_SHARE = 0.05
"""An identifier with fewer different values than this share of the records names no people: it is only dropped."""
KEY_LEAST = 10
"""So does one with fewer different values than this."""


def read_policy(policy: Policy | str | Path) -> Policy:
    """A policy, or the one in a file."""
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def prepare(
    data: Any,
    policy: Policy | str | Path,
    engine: str | Engine | None = None,
    *,
    stage: Stage = quiet,
    on_keys: Callable[[Any], None] | None = None,
    sample: bool = True,
    known: int = 0,
) -> Table:
    """The original as an engine holds it. Raises PolicyError with everything in which policy and table disagree.

    `on_keys` sees the record keys, where the policy names a column of them. Without `sample` all records are read,
    also where the policy asks for a sample. So many records are `known`, by chance, without another pass.
    """
    policy = read_policy(policy)
    engine = engine_for(data, engine)
    source = sampled(open_table(data, policy, engine), policy.sample.share if sample else None)
    source = engine.held(source, data)
    published = [name for name in source.columns if name in policy.published]
    if not published:
        raise PolicyError(column_problems(policy, source.name, source.columns), source=policy.source)
    drop = dropping(policy, source.columns)
    key = policy.randomness.record_key
    counting = Counting(
        published,
        bins={name: edges for name in published if (edges := policy.attributes[name].edges) is not None},
        formats={name: Format(decimal=mark) for name in published if (mark := decimal_of(policy, name)) is not None},
        terms=[name for name in published if policy.attributes[name].role is Role.QUASI_SENSITIVE],
        drop=drop,
        key=key if key in source.columns else None,
        identifiers=_watched(policy, source.columns),
    )
    taken = Reservoir(
        known, list(dict.fromkeys([*published, *drop, *([counting.key] if counting.key is not None else [])]))
    )
    with stage("Reading", source.rows) as meter:
        seen = taken.add if known else None
        profile = engine.profile(source, counting, on_keys=on_keys, on_records=seen, meter=meter)
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
        known=taken if taken.seen == profile.records else None,
    )


def _watched(policy: Policy, columns: Sequence[str]) -> list[str]:
    """Identifiers that may turn out to name people who have several rows."""
    if policy.people.key or policy.people.rows == "independent":
        return []
    named = [name for name in columns if name in policy.attributes and name != policy.people.household]
    return [name for name in named if policy.attributes[name].role is Role.IDENTIFIER]


def _demand_people(policy: Policy, profile: Profile) -> None:
    """An identifier that repeats names people with several rows: then requirements must count people."""
    problems = []
    for name in profile.identifiers:
        distinct, cells = profile.distinct(name), profile.cells(name)
        if max(KEY_LEAST, KEY_SHARE * profile.records) <= distinct < cells:
            message = f"{cells:,} records have {distinct:,} different values of the identifier {name!r}."
            hint = (
                f'If it names people, add [people] with key = "{name}", so that people are counted; if every row is a '
                'person of its own, add [people] with rows = "independent".'
            )
            problems.append(Problem("people.key", message, hint))
    if problems:
        raise PolicyError(problems, source=policy.source)


def remarks(table: Table, policy: Policy) -> list[str]:
    """What a holder should know about the domains that will be published."""
    out: list[str] = []
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
                    f"{name}: {lost} terms that the knowledge table does not name are not published (counted once a "
                    "record)"
                )
            if rare:
                out.append(f"{name}: {rare} unknown terms that fewer than five records share are published as they are")
        rare = int(((counts > 0) & (counts < NAMED_FROM)).sum())
        if domain.source != "data":
            continue
        rest = domain.index.get(OTHER)
        if domain.merged and rest is not None and counts[rest] < column.min_count:
            out.append(f"{name}: {OTHER} itself stands for fewer than min_count records")
        general = policy.forms_classes and column.role is Role.QUASI_IDENTIFIER
        terms = column.role is Role.QUASI_SENSITIVE
        if (name in policy.protected or (general and not domain.is_range)) and rare and not terms:
            out.append(
                f"{name}: the published domain names {rare} values that fewer than five records share "
                "(min_count and rare can merge or refuse them)"
            )
    return out
