"""What a new release must not do to people whom an earlier one knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noren.errors import RequirementNotMet, SecretError
from noren.secret.publication import Publication

if TYPE_CHECKING:
    from noren.secret.register import Contents

MEMOISED, NEW = 1, 2
"""How a person's set of a column was drawn: as the secret gives it, or anew."""
ALIKE = 0.5
"""Two columns whose domains share this part of their values may be one under two names."""
NEW_SECRET = "a new secret, which means that earlier releases can be intersected with this one"


def demand(known: Contents, new: Publication, secret: str) -> None:
    """Raise where the release could be intersected with an earlier one."""
    _demand_key(known, new, secret)
    _demand_designs(known, new, secret)
    _demand_budget(known, new, secret)
    if new.repeat == "allow":
        return
    _demand_names(known, new)
    _demand_drawn_once(known, new)
    _demand_possible(known, new)


def notes(known: Contents, new: Publication) -> list[str]:
    """What the holder should know of a release that is permitted."""
    again = int((known.places(new.people) >= 0).sum())
    out = [f"register: {again:,} of {len(new.people):,} people were released before"] if known.releases else []
    if new.spent:
        total = known.spent + new.spent
        out.append(f"register: noised margins spend epsilon = {new.spent:g}, {total:g} over all releases")
    if new.repeat == "allow":
        for name in new.domains:
            count = drawn_otherwise(known, new, name) if name in new.drawn else exposed(known, new, name)[0]
            if count:
                out.append(f"register: {count:,} people can be intersected in {name!r}, which the policy allows")
    return out


def _demand_key(known: Contents, new: Publication, secret: str) -> None:
    if known.key is None:
        return
    if known.key.column != new.key.column:
        raise SecretError(
            f"Earlier releases under {secret} know people by {known.key.column!r}, and this policy by "
            f"{new.key.column!r}: the same people would not be recognised.",
            hint=f'Set record_key = "{known.key.column}" under [randomness]; if it is that column under a new name, '
            f'say {new.key.column} = "{known.key.column}" under [randomness.columns]; or use {NEW_SECRET}.',
        )
    if changes := known.key.differences(new.key):
        raise SecretError(
            f"Earlier releases under {secret} evened out keys otherwise, so that the same people would not be "
            f"recognised: {', '.join(changes)}.",
            hint=f"Set key_unicode, key_spaces and key_case as recorded, or use {NEW_SECRET}.",
        )


def _demand_budget(known: Contents, new: Publication, secret: str) -> None:
    """Epsilons of noised margins add up over releases, whoever is in them."""
    total = known.spent + new.spent
    if new.budget is not None and new.spent and total > new.budget * (1 + 1e-9):
        raise RequirementNotMet(
            f"noised margins under {secret} have spent epsilon = {known.spent:g}; {new.spent:g} more would be "
            f"{total:g}, and the budget is {new.budget:g}.",
            hint="Publish fewer margins, or with a smaller epsilon.",
        )


def _demand_designs(known: Contents, new: Publication, secret: str) -> None:
    """A memoised column keeps its domain, set size, coin and design: two different sets could be intersected."""
    problems, recorded = [], []
    for name, entry in new.drawn.items() if new.memoised else ():
        before = known.drawn.get(name)
        changes = [] if before is None or not before.binding else before.entry.differences(entry)
        if before is not None and changes:
            problems.append(f"{name!r}: {', '.join(changes)}")
            if before.entry.design.startswith("semantic"):
                recorded.append(f"the l, d, distance and design of {name!r} as they were")
            else:
                one = before.entry
                recorded.append(f"eta = {one.eta} and p = {one.p} under [method.parameters.{name}]")
    if problems:
        raise SecretError(
            f"An earlier release under {secret} drew these attributes differently, and two different sets of one "
            f"person can be intersected: {'; '.join(problems)}.",
            hint=f"Use the recorded domain and parameters (in the policy: {'; '.join(recorded)}), or {NEW_SECRET}.",
        )


def _demand_names(known: Contents, new: Publication) -> None:
    """A column that is new by name, and has the values of one that is gone, may be that one."""
    gone = {name: values for name, values in known.domains.items() if name not in new.domains}
    again = int((known.places(new.people) >= 0).sum())
    for name, values in new.domains.items():
        if name in known.domains or name in new.named or not again:
            continue
        for other, theirs in gone.items():
            mine, old = {value.strip().casefold() for value in values}, {value.strip().casefold() for value in theirs}
            if len(mine & old) >= ALIKE * len(mine | old):
                raise SecretError(
                    f"{name!r} has {len(mine & old)} of the {len(old)} values of {other!r}, which earlier releases "
                    f"published of {again:,} people of this one: as a new column both could be intersected.",
                    hint=f'Under [randomness.columns], say {name} = "{other}" if it is the same column under a new '
                    f'name, or {name} = "{name}" if it is another one.',
                )


def drawn_otherwise(known: Contents, new: Publication, name: str) -> int:
    """How many people have a set of a drawn column already that is not the one that they would get."""
    marks = known.marks_of(name, new.people)
    clash = (marks & NEW) > 0 if new.memoised else marks > 0
    return int((clash | (known.sets_of(name, new.people).which >= 0)).sum())


def _demand_drawn_once(known: Contents, new: Publication) -> None:
    for name in new.drawn:
        if count := drawn_otherwise(known, new, name):
            how = "drawn anew" if not new.memoised else "drawn by the secret"
            raise SecretError(
                f"{count:,} people of this release have published sets or classes of {name!r} already; if theirs are "
                f"{how} now, the two can be intersected.",
                hint="Publish them as before, leave them out, or accept that they can be intersected: "
                'repeat = "allow" under [randomness].',
            )
    for name in new.classes:
        if count := int((known.marks_of(name, new.people) > 0).sum()):
            raise SecretError(
                f"{count:,} people of this release have published sets of {name!r} already, which can be intersected "
                "with their classes.",
                hint='Draw the column as before, leave them out, or accept it: repeat = "allow" under [randomness].',
            )


def exposed(known: Contents, new: Publication, name: str) -> tuple[int, int]:
    """How many people two releases of classes leave too few values to, and how many of those a single one or none."""
    one = new.classes[name]
    met = known.sets_of(name, new.people).met(one.sets)
    found = met.exposed(one.least)
    return int(found.sum()), int((met.left[found] <= 1).sum())


def _demand_possible(known: Contents, new: Publication) -> None:
    for name, one in new.classes.items():
        count, alone = exposed(known, new, name)
        changed = known.sets_of(name, new.people).met(one.sets).changed
        if one.invariant and changed.any():
            raise RequirementNotMet(
                f"{int(changed.sum()):,} people would be among other values of {name!r} than before ({count:,} would "
                f"keep fewer than {one.least}), so nothing is published.",
                hint='Use [method] name = "m-invariance", which keeps everybody among the same values.',
            )
        if count:
            raise RequirementNotMet(
                f"{count:,} people were published before in other classes: both releases together would leave them "
                f"fewer than {one.least} possible values of {name!r} ({alone:,} of them a single one), so nothing is "
                "published.",
                hint='Require m-invariance with [method] name = "m-invariance", leave these people out, or accept it: '
                'repeat = "allow" under [randomness].',
            )
