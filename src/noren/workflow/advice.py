"""Drafts that were tried: what `anonymize` would refuse because columns tell each other is decided in the draft.

The draft is made into cells as a release would be, and measured as `anonymize` measures. Secrets that tell each other
are hidden together; a secret of two values that others tell is hidden more firmly; else of two columns the one that
matters less is left out, with the reason. What is left after that is for a person to decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from noren.errors import NorenError
from noren.policy.policy import Policy
from noren.policy.proposal import Findings, Proposal, Study, propose, study, worth, written
from noren.policy.toml import key
from noren.schema.roles import Role
from noren.schema.tuples import tuple_name
from noren.sources.arrow import FrameSource
from noren.sources.sample import sampled
from noren.sources.source import Source
from noren.workflow.dependence import told
from noren.workflow.prepare import prepare
from noren.workflow.refusal import Told
from noren.workflow.settling import settle_draft

ROUNDS = 6
"""Tries of a draft."""
RECORDS = 20_000
"""Records on which a draft is tried."""
ASKED = 4_000
"""People whose secrets are asked for in a try."""
WIDEST = 60
"""Published columns beyond which a draft is not tried: pairs are too many for a first look."""
MARGIN = 0.8
"""Share of the limit from which the draft is corrected: `anonymize` looks at other records."""
MOST_LEFT_OUT = 1 / 3
"""Share of the columns beyond which leaving out is no advice."""
LEAST = 3
"""Values from which a secret is drafted with sets."""
PLAIN_SECRET = 1
"""Worth up to which a column is what the table is made for: a person decides between two such."""


def draft(source: Source, data: Mapping[str, Any] | None = None) -> str:
    """The text of a policy for this table, tried on its records. `data`: how the input is written, if it was said."""
    studied = study(source)
    return written(studied, advise(studied, data), data)


def advise(studied: Study, data: Mapping[str, Any] | None = None) -> Proposal:
    """What a draft for a table proposes, tried on its records: every column's role with the reason."""
    some = _some(studied.source, studied.profile.records)
    made, runs = _improved(studied, some, data, join=True)
    if not runs and made.found.pairs:
        made, _ = _improved(studied, some, data, join=False)
    return made


def _some(source: Source, records: int) -> Source:
    """The table, or of a large one some records by chance, in memory: a draft is tried several times."""
    import pyarrow as pa

    if records <= RECORDS:
        return source
    picked = list(sampled(source, RECORDS / records).batches(source.columns))
    some = FrameSource(pa.Table.from_batches(picked))
    some.name = source.name
    return some


def _improved(studied: Study, some: Source, data: Mapping[str, Any] | None, *, join: bool) -> tuple[Proposal, bool]:
    """A proposal, tried until it runs or a person must decide, and whether it runs; `join` puts secrets together."""
    made = propose(studied)
    for _ in range(ROUNDS):
        try:
            found = _tried(some, written(studied, made, data))
        except NorenError:  # `anonymize` will say it, unless the draft's own groups are at fault
            if made.found.whole or not any(group.by_member for group in made.together):
                return made, False
            made = propose(studied, replace(made.found, whole=True))
            continue
        if not found:
            return made, True
        made = propose(studied, _corrected(made, studied, found, join=join))
        if made.found.undecided:
            break
    return made, False


def _tried(some: Source, text: str) -> list[Told]:
    """What columns of this draft tell each other, in some of the records."""
    policy = Policy.parse(text)
    if len(policy.published) > WIDEST:
        return []
    found = told(settle_draft(prepare(some, policy), policy), ASKED)
    return [one for one in found if one.at_most > MARGIN * policy.dependence.most]


def _corrected(made: Proposal, studied: Study, found: Sequence[Told], *, join: bool) -> Findings:
    """The findings with what follows from another try."""
    before = made.found
    members = {tuple_name(group.names): group.names for group in made.together}
    small = {name for name in made.names(Role.SENSITIVE) if made.guesses[name].size < LEAST}
    closer = before.closer | {one.protected for one in found if one.protected in small}
    if closer != before.closer:
        return replace(before, closer=closer)
    tuples = {*members, *made.names(Role.SENSITIVE)} - set(studied.amounts)
    pairs = [_first(one, members) for one in found if one.both <= tuples]
    new = [pair for pair in dict.fromkeys(pairs) if not {pair, pair[::-1]} & set(before.pairs)]
    if new and join:
        return replace(before, pairs=(*before.pairs, *new))
    return _without(made, found, members)


def _first(one: Told, members: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """A pair by columns of the table: a group is named by its first."""
    return members.get(one.by, (one.by,))[0], members.get(one.protected, (one.protected,))[0]


def _without(made: Proposal, found: Sequence[Told], members: Mapping[str, Sequence[str]]) -> Findings:
    """The findings with columns left out so that no pair of these remains, if it is plain which."""
    rivals: dict[str, dict[str, Told]] = {}
    for one in found:  # the most telling first
        rivals.setdefault(one.by, {}).setdefault(one.protected, one)
        rivals.setdefault(one.protected, {}).setdefault(one.by, one)
    of = {name: min(worth(part, made.guesses[part]) for part in members.get(name, (name,))) for name in rivals}
    order = list(made.guesses)
    kept: list[str] = []
    out: dict[str, str] = dict(made.found.left_out)

    def rank(name: str) -> tuple[int, bool, int, int]:
        return of[name], name not in members, len(rivals[name]), order.index(members.get(name, (name,))[0])

    for name in sorted(rivals, key=rank):
        other = next((other for other in rivals[name] if other in kept), None)
        if other is None:
            kept.append(name)
        elif max(of[name], of[other]) <= PLAIN_SECRET:
            return _undecided(made, found)
        else:
            why = f"with {key(other)} published too, {_share(rivals[name][other])}; {key(other)} is kept"
            out |= dict.fromkeys(members.get(name, (name,)), why)
    shown = [name for name, one in made.guesses.items() if not one.role.is_dropped or name in out]
    if len(out) > MOST_LEFT_OUT * len(shown):
        return _undecided(made, found)
    return replace(made.found, left_out=out)


def _share(one: Told) -> str:
    return f"the {key(one.protected)} of {one.share:.0%} of the people would be certain"


def _undecided(made: Proposal, found: Sequence[Told]) -> Findings:
    pairs = len({one.both for one in found})
    more = f" and {pairs - 1} more pairs" if pairs > 1 else ""
    return replace(made.found, undecided=f"{key(found[0].by)} and {key(found[0].protected)}{more}")
