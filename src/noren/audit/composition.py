"""General values and groups of several releases, intersected person by person.

In every release a person's record is one of those whose published quasi-identifiers cover the person's own. The values
that these records may have are possible; what is possible in all releases is left. Groups beside exact columns need no
original: whoever finds the same exact row in two releases intersects its groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import AttackResult, Case, Scenario
from noren.audit.bounds import LEVEL, wilson
from noren.audit.people import People, known_people, same_rows
from noren.audit.told import find_people, searchable, secret_statements
from noren.engines.finding import Finder
from noren.errors import QueryError
from noren.policy.policy import Policy
from noren.policy.resolve import open_table
from noren.ragged import chosen, owners
from noren.release.release import Release
from noren.secret import KeyRule
from noren.statements import Statement

if TYPE_CHECKING:
    import polars as pl

    from noren.audit.intersection import Intersection


def compose(attack: Intersection, case: Case, others: Sequence[Release]) -> list[AttackResult]:
    """One result for every sensitive column that all releases have: people are looked up where the original is known,
    else rows are recognised by what both publish exactly."""
    secrets = secret_statements(case.release)
    if large := [one.name for one in secrets if one.column.is_open]:
        raise QueryError(f"column {large[0]!r} has too many values to intersect.", hint="Give it bins.")
    shared = [one for one in secrets if all(one.name in release.columns for release in others)]
    if not shared:
        raise QueryError("no sensitive column is in all releases.", hint="Name releases of this table.")
    releases = [case.release, *others]
    if case.original is None:
        return _recognised(attack, releases, shared)
    names = [searchable(release) for release in releases]
    people = known_people(case)
    there = in_all(case, people, attack.later)
    finders = [find_people(release, people, keys) for release, keys in zip(releases, names, strict=True)]
    out = []
    with case.stage("Looking people up", len(shared)) as progress:
        for secret in shared:
            truth = people.published(secret)[there]
            sets = [
                _possible(release, secret, found, people.n)[there]
                for release, found in zip(releases, finders, strict=True)
            ]
            occurring = np.bincount(truth[truth >= 0], minlength=secret.d) > 0
            facts = {"people": len(truth), "in_all_by_key": bool(attack.later)}
            out.append(_result(attack, releases, secret, sets, occurring, people.rows[there], truth, facts))
            progress(1)
    return out


def in_all(case: Case, people: People, later: Sequence[str]) -> NDArray[np.bool_]:
    """Who of the original is in the originals of all later releases, by the key of people; everybody if none is given.

    A person who is gone is covered by other people's rows: intersecting those would be about somebody else.
    """

    out = np.ones(people.n, bool)
    if not later:
        return out
    assert case.policy is not None
    options = case.policy.randomness
    keys = case.policy.people.key if options.record_key is None else (options.record_key,)
    if len(keys) != 1:
        raise QueryError(
            "nobody can say who is in both originals: the policy names no key of people.",
            hint="Name the column under [randomness] record_key or [people] key.",
        )
    rule = KeyRule(keys[0], options.key_unicode, options.key_spaces, options.key_case)
    mine = _keys(case.original, case.policy, rule).gather(people.rows - 1)
    for data in later:
        out &= mine.is_in(_keys(data, case.policy, rule).implode()).to_numpy()
    if not out.any():
        raise QueryError("nobody of the original is in all later ones.", hint="Give the tables that were released.")
    return np.asarray(out)


def _keys(data: Any, policy: Policy, rule: KeyRule) -> pl.Series:
    """The keys of all records of a table, evened out."""
    import polars as pl
    import pyarrow as pa

    source = open_table(data, policy)
    parts = [batch.column(rule.column).cast(pa.large_string()) for batch in source.batches([rule.column])]
    return pl.Series(rule.evened(pa.chunked_array(parts, pa.large_string())))


def _recognised(attack: Intersection, releases: Sequence[Release], secrets: Sequence[Statement]) -> list[AttackResult]:
    """Rows that both releases publish exactly but for their groups: whoever recognises one intersects its groups."""
    grouped = [one for one in secrets if all(release.column(one.name).is_class for release in releases)]
    rows, places = same_rows(releases[0], releases[1:]) if grouped else (np.zeros(0, np.int64), [])
    if not len(rows):
        raise QueryError(
            "rows of general values belong to nobody in particular, so an outsider has nobody to look up.",
            hint="Give the original: its people are looked up in every release.",
        )
    out = []
    for secret in grouped:
        at = [rows, *places]
        sets = [_of_rows(release, secret, where) for release, where in zip(releases, at, strict=True)]
        facts = {"matched": len(rows), "records": releases[0].records}
        out.append(_result(attack, releases, secret, sets, np.ones(secret.d, bool), rows + 1, None, facts))
    return out


def _of_rows(release: Release, first: Statement, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(rows, values of the first release): what the groups of some rows hold."""
    here = release.column(first.name)
    place = np.array([first.domain.index.get(label, first.d) for label in here.domain.values], np.int64)
    cells, kind = release.cells([here.name])[here.name].take(rows).distinct()
    told = here.possible(cells)
    assert told is not None
    out = np.zeros((len(cells), first.d + 1), bool)
    out[owners(told[0]), place[told[1]]] = True
    return np.asarray(out[kind, :-1])


def _result(
    attack: Intersection,
    releases: Sequence[Release],
    secret: Statement,
    sets: Sequence[NDArray[np.bool_]],
    occurring: NDArray[np.bool_],
    rows: NDArray[np.int64],
    truth: NDArray[np.int64] | None,
    facts: Mapping[str, Any],
) -> AttackResult:
    """What is left after every release, for the people or rows that were followed."""
    m = attack.m or max(least_of(release, secret.name) for release in releases)
    n, by = len(rows), "row" if truth is None else "person"
    baseline, _ = _left(np.broadcast_to(occurring, (n, secret.d)), truth, rows, m)
    possible, scenarios, exposed = np.ones((n, secret.d), bool), [], 0
    alone = np.full(n, secret.d)
    for number, here in enumerate(sets, 1):
        possible = possible & here
        alone = np.minimum(alone, here.sum(axis=1))
        left = possible.sum(axis=1)
        exposed = int(((left < m) & (left < alone)).sum())
        figures, frame = _left(possible, truth, rows, m)
        bounds = {name: wilson(figures[name], n) for name in ("alone", "below")}
        name, title = f"releases-{number}", f"{number} releases" if number > 1 else "this release alone"
        scenarios.append(Scenario(name, title, by, figures, frame, truth is not None, bounds))  # type: ignore[arg-type]
    who = "people" if truth is not None else "rows"
    titles = {"alone": "one value left", "below": f"fewer than {m} left", "mean_left": "values left"}
    return AttackResult(
        attack=attack.name,
        target=(secret.name,),
        adversary=attack.adversary,
        success=attack.success,
        baseline=baseline,
        scenarios=tuple(scenarios),
        titles=titles | ({"right": "right guess"} if truth is not None else {}),
        measure="belief",
        shares=("alone", "below", "mean_belief", *(("right",) if truth is not None else ())),
        facts={"values": secret.d, "releases": len(releases), "m": m, "exposed": exposed} | dict(facts),
        notes=(
            f"{exposed:,} of {n:,} {who} are left fewer than {m} values by all releases together and by none alone",
            "a belief is 1 over the values that are left: how often each occurs is not used",
            f"bounds are Wilson's, {LEVEL:.0%}, as if these {who} were a sample",
        ),
    )


def least_of(release: Release, column: str) -> int:
    """How many values a release promises to leave possible of a column; 2 where it promises no number."""
    found = [2]
    for asked in release.manifest.requirements:
        if column in asked.get("on", ()):
            numbers = [asked.get(name) for name in ("m", "l")]
            found += [ceil(number) for number in numbers if isinstance(number, int | float)]
    return max(found)


def _possible(
    release: Release, first: Statement, found: tuple[Finder, list[NDArray]], people: int
) -> NDArray[np.bool_]:
    """(people, values of the first release): what somebody who is in this release may have."""
    here, d = release.column(first.name), first.d
    place = np.array([first.domain.index.get(label, d) for label in here.domain.values], np.int64)
    cells, kind = release.cells([here.name])[here.name].distinct()
    told = here.possible(cells)
    assert told is not None
    bounds, values = told
    # one column more for values that the first release does not know, and for people whom nobody covers: all of them
    out = np.zeros((people, d + 1), bool)
    seen = np.zeros(people, bool)
    finder, codes = found
    for part in finder.candidates(codes, people):
        inside = np.zeros((len(part.bounds) - 1, d + 1), bool)
        left, entries = chosen(bounds, kind[part.order])
        inside[np.repeat(owners(part.bounds), np.diff(left)), place[values[entries]]] = True
        out[part.people] = inside[part.of]
        seen[part.people] = True
    out[~seen] = True
    return out[:, :-1]


def _left(
    possible: NDArray[np.bool_], truth: NDArray[np.int64] | None, rows: NDArray[np.int64], m: int
) -> tuple[dict[str, float], Any]:
    import polars as pl

    left = possible.sum(axis=1)
    belief = 1 / np.maximum(1, left)
    figures = {
        "alone": float((left == 1).mean()),
        "below": float((left < m).mean()),
        "mean_left": float(left.mean()),
        "mean_belief": float(belief.mean()),
    }
    frame = {"record": rows, "left": left, "belief": belief}
    if truth is not None:
        inside = possible[np.arange(len(truth)), np.maximum(truth, 0)] & (truth >= 0)
        right = np.where(inside, belief, 0.0)
        figures |= {"right": float(right.mean()), "truth_lost": float((~inside).mean())}
        frame["right"] = right
    return figures, pl.DataFrame({name: pl.Series(part) for name, part in frame.items()})
