"""Drafts that run: what `anonymize` would refuse is corrected before anybody sees the draft.

The draft is anonymized as its holder would, of a large table first on some records, and corrected until nothing is
refused: secrets that disclose each other are hidden together, else hidden more firmly; columns that disclose a secret
become coarser; what nothing says is a secret is generalised; and only then the column that matters less is dropped.
Every step is written on the column's line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from noren.errors import PolicyError
from noren.policy.policy import Policy
from noren.policy.proposal import (
    CLOSENESS,
    SEVERAL,
    Findings,
    Proposal,
    Study,
    closeness,
    propose,
    secret_sizes,
    study,
    worth,
    written,
)
from noren.policy.toml import key
from noren.release.guesses import MOST_SURE, measure_guesses
from noren.release.published import Published
from noren.schema.roles import Role
from noren.schema.tuples import tuple_name
from noren.sources.source import Source
from noren.workflow.anonymize import measure_losses
from noren.workflow.dependence import KNOWN, Told
from noren.workflow.draft import Draft
from noren.workflow.fix import Fault, attempt, hold_records
from noren.workflow.settling import hold_cells

ROUNDS = 40
"""Corrections of a draft."""
RECORDS = 20_000
"""Records on which a draft is corrected first."""
WHOLE = 1_000_000
"""Records up to which it is then tried on the whole table."""
COARSEST = 3
"""Steps by which a column becomes coarser before it is dropped."""
DRAWS = 3
"""Draws over which is averaged for how many people a secret is nearly certain,"""
SMALL_DRAWS = 9
"""and in tables below this many records, where single draws differ by as much as the limit:"""
SMALL = 5_000
LEAST_DRAWS = 2
"""Draws after which secrets are measured no more that hardly anybody is sure of:"""
QUIET = 0.2 * MOST_SURE
MOST_GUESSED = 40
"""Secrets that are measured in one draw: of more, those that the other columns disclose most."""
MARGIN = 0.8
"""Share of a limit from which a draft is corrected where `anonymize` may look at other records or draw other sets."""


def draft(source: Source, data: Mapping[str, Any] | None = None) -> str:
    """Return the text of a policy for this table, which runs. `data`: the stated options of the input."""
    studied = study(source)
    return written(studied, advise(studied, data), data)


def advise(studied: Study, data: Mapping[str, Any] | None = None) -> Proposal:
    """Draft a policy for a table, with a reason for every role, and correct it until it runs."""
    source, records = studied.source, studied.profile.records
    some = source if records <= RECORDS else hold_records(source, RECORDS, "key" in propose(studied).people)
    made = correct(studied, some, data, Findings(), MARGIN if records > KNOWN or some is not source else 1.0)
    if some is not source and records <= WHOLE and not made.found.stops:
        made = correct(studied, source, data, made.found, MARGIN if records > KNOWN else 1.0)
    return made


def correct(studied: Study, source: Source, data: Mapping[str, Any] | None, found: Findings, margin: float) -> Proposal:
    """Correct a proposal until `anonymize` accepts it; if no correction helps, it states what is refused."""
    made, reason = propose(studied, found), ""
    quiet: set[str] = set()
    for _ in range(ROUNDS):
        try:
            policy = Policy.parse(written(studied, made, data))
            tried = attempt(source, policy, margin=margin)
        except PolicyError as error:  # parts of the draft contradict each other
            return replace(made, found=replace(made.found, stops=str(error.problems[0])))
        if not tried.faults:
            assert tried.draft is not None
            assert tried.published is not None
            found = resolve_guesses(made, find_loud(tried.draft, tried.published, quiet))
            if found == made.found:
                detail = measure_losses(tried.draft, policy).get("granularity_score")
                unasked = max(0, len(secret_sizes(made)) - MOST_GUESSED)
                return replace(made, found=replace(made.found, detail=detail, unasked=unasked))
            reason = f"after {ROUNDS} corrections some secrets are still nearly certain for too many people."
            if found.general != made.found.general:  # a class may show more than the set before
                quiet.clear()
            made = propose(studied, found)
            continue
        pairs, reason = [one for fault in tried.faults for one in fault.told], "columns disclose each other."
        found = resolve_pairs(made, studied, pairs) if pairs else resolve_refusal(made, tried.faults)
        if found == made.found:
            reason = tried.faults[0].message
            break
        made = propose(studied, found)
    return replace(made, found=replace(made.found, stops=reason))


def resolve_pairs(made: Proposal, studied: Study, pairs: Sequence[Told]) -> Findings:
    """Return the findings with one correction for every pair of columns that disclose each other, one column at a
    time."""
    found, changed = made.found, set[str]()
    often = Counter(name for both in {one.both for one in pairs} for name in both)
    for one in pairs:  # the most telling first
        if not changed & one.both:
            found, columns = resolve_pair(made, found, one, often, studied)
            changed |= columns
    return found


def resolve_pair(
    made: Proposal, found: Findings, one: Told, often: Mapping[str, int], studied: Study
) -> tuple[Findings, set[str]]:
    """Return the findings with the next correction for one pair, and the changed columns: hidden together, better
    protected, coarser, generalised, dropped."""
    members = {tuple_name(group.names): group.names for group in made.together}
    own, by = members.get(one.protected, (one.protected,)), members.get(one.by, (one.by,))
    secrets = {*members, *made.names(Role.SENSITIVE)}
    pair = (by[0], own[0])
    if one.both <= secrets - set(studied.amounts) and not found.single and not {pair, pair[::-1]} & set(found.pairs):
        return replace(found, pairs=(*found.pairs, pair)), set(one.both)
    level, sizes = closeness(made), secret_sizes(made)
    for name in (one.protected, one.by):
        step = level.get(name, -1) + 1
        if name in secrets and step < len(CLOSENESS) - (sizes.get(name, SEVERAL) >= SEVERAL):
            return replace(found, closer={**found.closer, name: step}), {name}
    coarser = found.coarser.get(one.by, 0)
    can_be_coarser = one.by not in secrets and coarser < COARSEST and studied.columns[one.by].distinct > FEWEST
    can_be_coarser &= made.guesses[by[0]].role is Role.QUASI_IDENTIFIER
    unknown = [name for name in own if worth(name, made.guesses[name]) == UNKNOWN]
    if one.by not in secrets and unknown == list(own) and (coarser or not can_be_coarser):
        why = f"{key(one.by)}, which others may know, discloses much of it; if it is a secret, drop {key(one.by)}"
        return replace(found, general={**found.general, **dict.fromkeys(own, why)}), {one.protected}
    if can_be_coarser:
        return replace(found, coarser={**found.coarser, one.by: coarser + 1}), {one.by}
    worths = [min(worth(name, made.guesses[name]) for name in names) for names in (own, by)]
    more = often[one.protected] - often[one.by]  # in how many more pairs: the fewest columns are dropped
    lost, kept = (own, by) if more > 1 or (more >= -1 and worths[0] > worths[1]) else (by, own)
    share = f"{key(one.protected)} would be certain for {one.share:.0%} of the people"
    why = f"with {key(kept[0])} published too, {share}; to publish it, drop {key(kept[0])} instead"
    return replace(found, dropped={**found.dropped, **dict.fromkeys(lost, why)}), set(one.both)


def find_loud(draft: Draft, published: Published, quiet: set[str]) -> list[str]:
    """Return the secrets that are nearly certain for too many people, on average over some draws, to whoever knows
    their row. Secrets of which hardly anybody is sure become `quiet` and are not measured again: later corrections
    only hide more."""
    draws = DRAWS if published.records >= SMALL else SMALL_DRAWS
    sure: defaultdict[str, float] = defaultdict(float)
    asked = {one.name for one in published.statements if one.role.needs_requirement} - quiet
    for number in range(draws):
        drawn = published if number == 0 else hold_cells(draft)
        for guess in measure_guesses(drawn, knows_row=True, among=asked, most=MOST_GUESSED):
            sure[guess.column] += guess.sure / draws
        if loud := [name for name, share in sure.items() if share > MARGIN * MOST_SURE]:
            return loud
        if number + 1 >= LEAST_DRAWS:
            asked = {name for name, share in sure.items() if share * draws > QUIET * (number + 1)}
            quiet |= sure.keys() - asked
        if not asked:
            break
    return []


def resolve_guesses(made: Proposal, loud: Sequence[str]) -> Findings:
    """The findings with one step for every secret that is nearly certain for too many people to whoever knows the rest
    of their row: hidden more firmly, generalised if nothing says that it is a secret, dropped."""
    found, level, members = made.found, closeness(made), {tuple_name(one.names): one.names for one in made.together}
    for name in loud:
        step, own = level.get(name, -1) + 1, members.get(name, (name,))
        if step < len(CLOSENESS):
            found = replace(found, closer={**found.closer, name: step})
            continue
        for one in own:
            if worth(one, made.guesses[one]) == UNKNOWN:
                found = replace(found, general={**found.general, one: GUESSED})
            else:
                found = replace(found, dropped={**found.dropped, one: GUESSED})
    return found


GUESSED = "the other columns of a row make it nearly certain for many people, however it is hidden"
UNKNOWN = 3
"""The worth of a column of which nothing is known."""
FEWEST = 2
"""Values that cannot become fewer."""


def resolve_refusal(made: Proposal, faults: Sequence[Fault]) -> Findings:
    """Return the findings with the next correction for a refusal; unchanged if there is none."""
    found = made.found
    if any(group.by_member for group in made.together):
        return replace(found, whole=True)
    shown = [name for name, one in made.guesses.items() if not one.role.is_dropped]
    named = [name for name in shown if any(name in fault.columns for fault in faults)]
    if not named and made.together:
        return replace(found, single=True)
    for name in named:
        if found.coarser.get(name, 0) < COARSEST:
            found = replace(found, coarser={**found.coarser, name: found.coarser.get(name, 0) + 1})
        else:
            found = replace(
                found, dropped={**found.dropped, name: ("without a change, no requirement can be met for it")}
            )
    return found
