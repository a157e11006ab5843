"""Draft a policy for a table, with reasons and a summary of what it protects.

Every open question is decided by the safe choice, and the column's line says so. Columns by which people are found are
generalised, secrets are hidden among decoys, what names people is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from noren.engines import engine_for
from noren.engines.engine import Counting, Profile
from noren.policy.guessing import (
    CLASSIC,
    EVENT,
    FEW,
    HOUSEHOLD,
    KEY,
    NAME,
    PERSON,
    QUASI,
    SECRET,
    SMALL,
    Codes,
    Guess,
    Seen,
    describe,
    found_by,
    guess,
    read_codes,
    said,
    says,
    secret,
    see_columns,
    telling,
)
from noren.policy.options import KEY_LEAST, KEY_SHARE
from noren.policy.toml import key, value
from noren.schema import tuples
from noren.schema.roles import Role
from noren.schema.tuples import link_tuples, tuple_name
from noren.sources.source import Source


@dataclass(frozen=True)
class Findings:
    """Corrections of a draft that trial releases suggested."""

    pairs: tuple[tuple[str, str], ...] = ()
    """Secrets that disclose each other, the worst first."""
    whole: bool = False
    """Whether requirements ask for different tuples, because sets that differ in every member cannot be made."""
    single: bool = False
    """Whether no columns are hidden together."""
    closer: Mapping[str, int] = field(default_factory=dict)
    """Secrets (or composites) that are hidden more firmly, with the place in `CLOSENESS`."""
    coarser: Mapping[str, int] = field(default_factory=dict)
    """Columns that are published in fewer values, step by step."""
    general: Mapping[str, str] = field(default_factory=dict)
    """Columns that nothing says are secrets and that are generalised instead, with the reason."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Columns that are not published, with the reason."""
    stops: str = ""
    """Why the draft does not run, if no correction helped."""
    detail: float | None = None
    """The share of their detail that generalised columns keep."""
    unasked: int = 0
    """Secrets of which it was not measured how sure somebody is who knows the rest of a row."""


NOTHING = Findings()
FOUND = Role.QUASI_IDENTIFIER


MOST_TUPLES = 1_000
"""Tuples beyond which columns are not drafted together."""
FEWEST_TUPLES = 2
LEAST_TUPLES = 4
"""Tuples without a common value from which requirements name the members rather than the tuples."""
MOST_MEMBERS = 4
"""Columns that are put together because drafts showed it; more would leave little of each."""
MOST_RARE = 0.1
"""Share of the records that may have a rare tuple."""


@dataclass(frozen=True)
class Group:
    """Columns that the draft hides together."""

    names: tuple[str, ...]
    tuples: int
    """Tuples that are common enough to be named."""
    apart: int
    """Groups of them that share no value."""
    rare: bool
    whole: bool = False
    """Whether only tuples are asked for, not members."""

    @property
    def size(self) -> int:
        """Return the number of values to hide one among: of every member if enough tuples differ in all members,
        otherwise of the tuples."""
        return self.apart if self.by_member else self.tuples

    @property
    def by_member(self) -> bool:
        return self.apart >= LEAST_TUPLES and not self.whole

    @property
    def asked(self) -> tuple[str, ...]:
        """Return the columns that a requirement names: the members, or the composite."""
        return self.names if self.by_member else (tuple_name(self.names),)


def groups(
    guesses: Mapping[str, Guess], pairs: Mapping[tuple[str, str], bool], codes: Codes, amounts: Sequence[str]
) -> list[Group]:
    """Return groups of secrets that determine each other, if their tuples are few and frequent; amounts form no
    tuples."""
    group: dict[str, set[str]] = {}
    for pair in pairs:
        if all(guesses[name].role is Role.SENSITIVE and name not in amounts for name in pair):
            both = group.get(pair[0], {pair[0]}) | group.get(pair[1], {pair[1]})
            group |= dict.fromkeys(both, both)
    different = {tuple(name for name in guesses if name in names) for names in group.values()}
    found = [_judged(names, codes) for names in sorted(different)]
    return [one for one in found if one is not None]


def joined(
    found: Sequence[Group],
    pairs: Sequence[tuple[str, str]],
    guesses: Mapping[str, Guess],
    codes: Codes,
    amounts: Sequence[str],
) -> list[Group]:
    """Merge further pairs into the groups, if each group stays small and its tuples frequent."""
    out = list(found)
    for pair in pairs:
        if any(guesses[name].role is not Role.SENSITIVE or name in amounts for name in pair):
            continue
        old = [one for one in out if set(one.names) & set(pair)]
        both = set(pair).union(*(one.names for one in old))
        if len(both) > MOST_MEMBERS or any(both <= set(one.names) for one in old):
            continue
        new = _judged(tuple(name for name in guesses if name in both), codes)
        if new is not None:
            out = [one for one in out if one not in old] + [new]
    return sorted(out, key=lambda one: one.names)


def _judged(names: tuple[str, ...], codes: Codes) -> Group | None:
    if len(names) > tuples.MOST_MEMBERS:
        return None
    of = codes.numbers(names)
    first = np.unique(of, return_index=True)[1]
    counts = np.bincount(of)
    common = counts >= (FEW if codes.records >= SMALL else 1)
    rare = float(counts[~common].sum()) / max(1, codes.records)
    if not FEWEST_TUPLES <= int(common.sum()) <= MOST_TUPLES or rare > MOST_RARE:
        return None
    rows = first[common]
    apart = len(np.unique(link_tuples([codes.columns[name][rows] for name in names], len(rows))))
    return Group(names, int(common.sum()) + (rare > 0), apart + (rare > 0), rare > 0)


def group_lines(found: Sequence[Group]) -> tuple[str, str]:
    """Return the lines of a draft about the groups: a line above the columns, or tables if rare tuples are merged."""
    if not found:
        return "", ""
    why = "# These columns disclose each other: their sets together could leave one value. So they are hidden as one.\n"
    if not any(one.rare for one in found):
        lists = [list(one.names) for one in found]
        return why + f"together = {value(lists[0] if len(lists) == 1 else lists)}", ""
    tables = [f'[[together]]\ncolumns = {value(list(one.names))}\nmin_count = {FEW}\nrare = "merge"' for one in found]
    return "", why + "\n\n".join(tables)


K = 5
LS = {5: 10, 3: 4, 2: 3}
"""Values that must stay possible, and from how many values on that is asked."""
CLOSENESS = (0.3, 0.1, 0.05)
"""How close beliefs stay to what is common, for secrets of two values and those that other columns disclose."""
CLOSER_WHY = "# Other columns disclose much about these columns, so they get a smaller t (safer, less precise).\n"
BOUNDED = (
    "Add most_rows = ..., the largest number of rows of one person, if it is known without this table; recipients' "
    "errors then allow for it."
)
LIST = Guess(Role.DROP, "a list of terms: dropped, unless you make it quasi-sensitive with a knowledge table")
TITLE = """\
#:schema ./noren.schema.json
{stops}# Drafted from {name}: {records:,} records, {columns} columns.
{kept}
# Every role is a guess: read each line, correct it, then run `noren anonymize`.
# `noren schema --to noren.schema.json` lets your editor complete and check this file.
#
# Roles: identifier (names a person; dropped), drop (dropped), plain (harmless; published as it is),
#        quasi-identifier (others may know it; generalised until at least {k} people share it),
#        sensitive (a secret; published as a set of values, one of them true, or by chance as another value),
#        sensitive-quasi-identifier (both at once), quasi-sensitive (terms that a knowledge table links to secrets).
"""


@dataclass(frozen=True)
class Study:
    """What a table contains, read once for any number of drafts."""

    source: Source
    profile: Profile
    columns: Mapping[str, Seen]
    lists: Sequence[str]
    codes: Codes

    @property
    def amounts(self) -> list[str]:
        return [name for name in self.codes.columns if self.columns[name].is_amount]

    @cached_property
    def guesses(self) -> dict[str, Guess]:
        """Return the guess for every column by itself."""
        told: Mapping[str, str] = getattr(self.source, "hints", {})
        found = {name: self._guess(column, told.get(name)) for name, column in self.columns.items()}
        for name in [name for name, one in found.items() if "weight" in one.options][1:]:
            options = {key: given for key, given in found[name].options.items() if key != "weight"}
            found[name] = replace(found[name], options=options)
        return found

    def _guess(self, column: Seen, told: str | None) -> Guess:
        if column.name in self.lists:
            return LIST
        records = self.profile.records
        hinted = None if told is None else said(column, records, told)
        return guess(column, records) if hinted is None else hinted

    @cached_property
    def telling(self) -> dict[tuple[str, str], bool]:
        """Return which publishable columns determine which others."""
        roles = (Role.SENSITIVE, Role.QUASI_IDENTIFIER)
        return telling(self.codes, [name for name in self.codes.columns if self.guesses[name].role in roles])


@dataclass(frozen=True)
class Proposal:
    """A drafted policy before it is written as text."""

    guesses: Mapping[str, Guess]
    people: Mapping[str, Any]
    why_people: str
    codes: Codes
    together: Sequence[Group] = ()
    found: Findings = NOTHING

    def names(self, role: Role) -> list[str]:
        return [name for name, one in self.guesses.items() if one.role is role]


def list_columns(source: Source) -> list[str]:
    """Return the columns that hold lists of texts."""
    import pyarrow as pa

    first = next(iter(source.batches(source.columns)), None)
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if first is None:
        return []
    return [name for name in source.columns if any(check(first.column(name).type) for check in checks)]


def study(source: Source) -> Study:
    """Study a table: every column's values, and relations between columns in the first records."""
    lists = list_columns(source)
    profile = engine_for(source).profile(source, Counting(source.columns, terms=lists))
    profile.demand(source.name, lists)
    columns = see_columns({name: profile.columns[name] for name in source.columns})
    flat = [name for name in source.columns if name not in lists]
    codes = read_codes(source, flat, [name for name in flat if columns[name].is_amount])
    return Study(source, profile, columns, lists, codes)


def draft(source: Source, data: Mapping[str, Any] | None = None) -> str:
    """Return the text of a policy for this table. `data`: the stated options of the input."""
    studied = study(source)
    return written(studied, propose(studied), data)


def written(studied: Study, made: Proposal, data: Mapping[str, Any] | None = None) -> str:
    """Return a proposal as the text of a policy."""
    source, profile, columns = studied.source, studied.profile, studied.columns
    above, behind = group_lines(made.together)
    name, kept = source.name.rsplit("/", 1)[-1], _kept(made)
    stops = f"Does not run yet: {made.found.stops}" if made.found.stops else ""
    parts = [
        TITLE.format(
            stops="".join(f"# {line}\n" for line in stops.splitlines()),
            name=name,
            records=profile.records,
            columns=len(source.columns),
            kept=kept,
            k=K,
        ),
        above,
        "\n".join(["[attributes]", *_attribute_lines(made, columns)]),
        behind,
        *_requirements(made),
        _methods(made),
        _section("data", data or {}),
        _section("people", made.people, made.why_people),
        "\n".join(f"# {line}" for line in _closing(made, profile)),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _kept(made: Proposal) -> str:
    """Return how much of the table the draft publishes."""
    dropped, names, all_ = made.names(Role.DROP), made.names(Role.IDENTIFIER), len(made.guesses)
    kept = all_ - len(dropped) - len(names)
    holds = "" if made.found.stops else "; every requirement holds as it stands"
    lines = [f"Publishes {kept} of {all_} columns ({kept / all_:.0%}){holds}."]
    if names:
        lines.append(f"Drops {_listed(names)}: they may name people.")
    if dropped:
        lines.append(f"Drops {_listed(dropped)}: their lines say why.")
    if made.found.detail is not None:
        lines.append(f"The quasi-identifiers keep {made.found.detail:.0%} of their detail (1 - NCP).")
    return "\n".join(f"# {line}" for line in lines)


def propose(studied: Study, findings: Findings = NOTHING) -> Proposal:
    """Guess every column, then correct the guesses by relations between columns and by earlier drafts."""
    codes, amounts, guesses = studied.codes, studied.amounts, dict(studied.guesses)
    records, columns = studied.profile.records, studied.columns
    follows = {b: a for a, b in studied.telling if _is_unknown(b, guesses[b]) and guesses[a].role is FOUND}
    why = "it follows from {0}, which others may know; if it is a secret, drop {0}"
    whys = {name: why.format(key(by)) for name, by in follows.items()}
    for name, why in (whys | dict(findings.general)).items():
        guesses[name] = found_by(columns[name], records, why)
    for name, steps in findings.coarser.items():
        make = found_by if guesses[name].role is FOUND else secret
        guesses[name] = make(columns[name], records, guesses[name].why.split(";")[0], steps)
    for name, why in findings.dropped.items():
        guesses[name] = guesses[name].dropped(why)
    found: list[Group] = []
    if not findings.single:
        found = groups(guesses, studied.telling, codes, amounts)
        found = joined(found, findings.pairs, guesses, codes, amounts)
    found = [replace(group, whole=findings.whole) for group in found]
    for group in found:
        for name in group.names:
            others = ", ".join(key(other) for other in group.names if other != name)
            why_so = f"{guesses[name].why}; hidden together with {others}"
            guesses[name] = replace(guesses[name], why=why_so, size=group.size)
    people, why = _people(guesses, codes)
    return Proposal(guesses, people, why, codes, found, findings)


def _is_unknown(name: str, one: Guess) -> bool:
    """Return whether a column is treated as a secret only because its meaning is unknown."""
    return one.role is Role.SENSITIVE and not says(name, SECRET)


def worth(name: str, one: Guess) -> int:
    """Return the priority of a column if not all can be kept: 0 usual quasi-identifiers, 1 names like a secret, 2 other
    quasi-identifiers, 3 the rest."""
    finds = one.role is Role.QUASI_IDENTIFIER
    order = [finds and says(name, CLASSIC), one.role is Role.SENSITIVE and says(name, SECRET), finds, True]
    return order.index(True)


def _people(guesses: Mapping[str, Guess], codes: Codes) -> tuple[dict[str, Any], str]:
    """Return the key of people if rows repeat a likely one; otherwise every row is a person, which is stated if an
    identifier repeats."""
    distinct = {
        name: len(np.unique(codes.columns[name][codes.columns[name] > 0]))
        for name, one in guesses.items()
        if one.role is Role.IDENTIFIER and name in codes.columns
    }
    filled = {name: int((codes.columns[name] > 0).sum()) for name in distinct}
    least = max(KEY_LEAST, KEY_SHARE * codes.records)
    repeats = [name for name in distinct if least <= distinct[name] < filled[name]]
    if not repeats:
        return {}, ""
    whole = [name for name in repeats if filled[name] == codes.records]
    keys = [name for name in whole if guesses[name].names_people]
    if not keys:
        keys = [n for n in whole if says(n, KEY) and not says(n, (*HOUSEHOLD, *EVENT, *NAME, *QUASI))]
    if keys:
        best = min(keys, key=lambda name: (not says(name, PERSON), distinct[name]))
        rows = f"{distinct[best]:,} different values in {codes.records:,} records"
        return {"key": best}, f"{best} has {rows}: requirements count people, not rows.\n{BOUNDED}"
    why = "because people share a household" if all(says(name, HOUSEHOLD) for name in repeats) else ("and is not a key")
    why = (
        f"{key(repeats[0])} repeats {why}: every row is treated as a different person. If people have several rows, "
        'replace this\nline by key = "...", the column that tells them apart.'
    )
    return {"rows": "independent"}, why


# ---------------------------------------------------------------------- the text


def _attribute_lines(made: Proposal, columns: Mapping[str, Seen]) -> list[str]:
    width = max(len(key(name)) for name in columns)
    lines = []
    for name, column in columns.items():
        one = made.guesses[name]
        options = {"role": one.role.value, **one.options}
        lines.append(f"# {key(name)}: {describe(column)}; {one.why}")
        lines.append(f"{key(name):<{width}} = {value(options)}")
    return lines


def _requirements(made: Proposal) -> list[str]:
    out = []
    if made.names(Role.QUASI_IDENTIFIER):
        out.append(
            f"# At least {K} people share all published quasi-identifiers, so that nobody can be found by "
            f'them.\n[[require]]\nmodel = "k-anonymity"\nk = {K}'
        )
    secrets, level = secret_sizes(made), closeness(made)
    several = [name for name in secrets if name not in level]
    remark = (
        "# At least l values stay possible for each of these columns. Inside a set of l values, an adversary\n"
        "# who knows how common they are can still prefer the common ones: t-closeness bounds that.\n"
    )
    for least, values in LS.items():
        above = min((v for v in LS.values() if v > values), default=10**9)
        asked = [name for name in several if values <= secrets[name] < above]
        if asked:
            out.append(f'{remark}[[require]]\nmodel = "frequency-l-diversity"\non = {value(asked)}\nl = {least}')
            remark = ""
    remark = "# Sets cannot protect a column of two values; closeness changes values at random instead.\n"
    for step, t in enumerate(CLOSENESS):
        asked = [name for name in secrets if level.get(name) == step]
        small = step == 0 and all(secrets[name] < SEVERAL for name in asked)
        if asked:
            why = remark if small else CLOSER_WHY
            out.append(f'{why}[[require]]\nmodel = "t-closeness"\non = {value(asked)}\nt = {t}')
    return out


SEVERAL = 3
"""Values from which a secret is hidden in sets."""


def secret_sizes(made: Proposal) -> dict[str, int]:
    """Return the columns that requirements name, with their numbers of values: secrets, or their composites."""
    out = {name: made.guesses[name].size for name in made.names(Role.SENSITIVE)}
    for group in made.together:
        whole = tuple_name(group.names) in made.found.closer
        if whole or not group.by_member:
            out = {name: size for name, size in out.items() if name not in group.names}
            out |= {tuple_name(group.names): group.tuples} if whole else dict.fromkeys(group.asked, group.size)
    return out


def closeness(made: Proposal) -> dict[str, int]:
    """Return secrets that are protected by closeness instead of diversity, with the position in `CLOSENESS`."""
    small = {name: 0 for name, size in secret_sizes(made).items() if size < SEVERAL}
    return small | {name: min(step, len(CLOSENESS) - 1) for name, step in made.found.closer.items()}


def _methods(made: Proposal) -> str:
    quasi, secrets = made.names(Role.QUASI_IDENTIFIER), made.names(Role.SENSITIVE)
    if quasi and secrets:
        return (
            "# Two methods make one release: quasi-identifiers are generalised, secrets are hidden among decoys.\n"
            f'[[method]]\nname = "mondrian"\non = {value(quasi)}\n\n'
            f'[[method]]\nname = "decoys"\non = {value(secrets)}'
        )
    return '[method]\nname = "mondrian"' if quasi else '[method]\nname = "decoys"'


def _section(name: str, fields: Mapping[str, Any], why: str = "") -> str:
    given = [f"{field} = {value(item)}" for field, item in fields.items() if item is not None]
    told = [f"# {line}" for line in why.splitlines()]
    return "\n".join([*told, f"[{name}]", *given]) if given else ""


def _closing(made: Proposal, profile: Profile) -> list[str]:
    """Return the last lines: what the draft protects and what not, and who is unique now."""
    quasi, secrets = made.names(Role.QUASI_IDENTIFIER), made.names(Role.SENSITIVE)
    out = ["What this draft protects:"]
    if quasi:
        out.append(f"- nobody is unique in the published {_listed(quasi)}: at least {K} people share the same values.")
    if secrets:
        out.append(f"- every cell of {_listed(secrets)} leaves several values possible.")
    if len(out) == 1:
        out.append("- nothing: no column was recognised as a secret or a quasi-identifier.")
    out.append("What it does not protect:")
    plain = made.names(Role.PLAIN)
    if plain:
        out.append(f"- {_listed(plain)}: published exactly; somebody who knows it can use it to find people.")
    out.append("- frequent values: a value that most people have is a good guess for everybody.")
    if made.found.unasked:
        out.append(
            f"- {made.found.unasked} secrets from a guess by the rest of a row: how sure it is was measured for the "
            "others, which other columns disclose most."
        )
    if made.found.stops:
        out.append("- anything yet: `noren anonymize` refuses this draft, see above.")
    if not made.people:
        out.append(
            "- people with several rows, if there are any: set [people] key to the column that identifies a person."
        )
    if quasi:
        out += ["Before anything is published:", *_uniques(made, quasi)]
    return out


def _uniques(made: Proposal, quasi: Sequence[str]) -> list[str]:
    """Say how many people are unique in the quasi-identifiers."""
    codes = made.codes
    person = made.people.get("key")
    people = None if person is None else codes.columns.get(str(person))
    whose = "people" if people is not None or made.people.get("rows") or not made.people else "records"
    scope = "" if codes.whole else f" (in the first {codes.records:,} records)"
    usual = sorted((name for name in quasi if says(name, CLASSIC)), key=quasi.index)
    rest = sorted((n for n in quasi if n not in usual), key=lambda n: -int(codes.columns[n].max(initial=0)))
    three = (usual + rest)[:3]
    out = [f"- {codes.alone(three, people):.0%} of {whose} are unique in their {_listed(three)}{scope}."]
    if len(quasi) > 3:
        out.append(f"- {codes.alone(quasi, people):.0%} are unique in all {len(quasi)} quasi-identifiers.")
    return out


def _listed(names: Sequence[str]) -> str:
    shown = [key(name) for name in names[:8]]
    if len(names) > 8:
        return ", ".join(shown) + f" and {len(names) - 8} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
