"""A first policy for a table that reads like advice: what every column is, why, what the draft protects and what not.

Unedited, a draft either runs or stops with what a person must decide. People are made alike in the columns by which
they are found, secrets are hidden among decoys, what names people is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from noren.engines import engine_for
from noren.engines.engine import Counting
from noren.engines.profile import Profile
from noren.policy.guessing import (
    CLASSIC,
    EVENTS,
    FEW,
    HOUSEHOLDS,
    PERSONS,
    SECRET,
    SMALL,
    Codes,
    Guess,
    Seen,
    describe,
    guess,
    read_codes,
    said,
    says,
    seen,
    telling,
)
from noren.policy.toml import key, value
from noren.schema.roles import Role
from noren.schema.tuples import linked, tuple_name
from noren.sources.source import Source


@dataclass(frozen=True)
class Findings:
    """Corrections of a draft."""

    pairs: tuple[tuple[str, str], ...] = ()
    """Secrets that tell each other, the worst first."""
    whole: bool = False
    """Whether requirements ask for different tuples, because sets that differ in every member cannot be made."""
    closer: frozenset[str] = frozenset()
    """Secrets of two values that other columns tell."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that are not published, with the reason."""
    undecided: str = ""
    """What a person must decide."""


NOTHING = Findings()


MOST_TUPLES = 1_000
"""Tuples beyond which columns are not drafted together."""
LEAST_TUPLES = 4
MOST_MEMBERS = 4
"""Columns that are put together because drafts showed it; more would leave little of each."""
MOST_RARE = 0.1
"""Share of the records that may have a rare tuple."""


@dataclass(frozen=True)
class Group:
    """Columns that are drafted together."""

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
        """Values to hide one among: of every member where enough tuples have nothing in common, else of the tuples."""
        return self.apart if self.by_member else self.tuples

    @property
    def by_member(self) -> bool:
        return self.apart >= LEAST_TUPLES and not self.whole

    @property
    def asked(self) -> tuple[str, ...]:
        """What a requirement names: the members, or the composite."""
        return self.names if self.by_member else (tuple_name(self.names),)


def groups(
    guesses: Mapping[str, Guess], pairs: Mapping[tuple[str, str], bool], codes: Codes, amounts: Sequence[str]
) -> list[Group]:
    """Secrets that tell each other, as far as their tuples are few and common; amounts are not tuples."""
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
    """The groups with further pairs put together, as far as each group stays small and its tuples common."""
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
    of = codes.numbers(names)
    first = np.unique(of, return_index=True)[1]
    counts = np.bincount(of)
    common = counts >= (FEW if codes.records >= SMALL else 1)
    rare = float(counts[~common].sum()) / max(1, codes.records)
    if not LEAST_TUPLES <= int(common.sum()) <= MOST_TUPLES or rare > MOST_RARE:
        return None
    rows = first[common]
    apart = len(np.unique(linked([codes.columns[name][rows] for name in names], len(rows))))
    return Group(names, int(common.sum()) + (rare > 0), apart + (rare > 0), rare > 0)


def group_lines(found: Sequence[Group]) -> tuple[str, str]:
    """What a draft says of them: a line above its columns, or tables behind them where rare tuples are merged."""
    if not found:
        return "", ""
    why = (
        "# These columns say the same or nearly so: sets of each would meet in the truth, so tuples are hidden whole.\n"
    )
    if not any(one.rare for one in found):
        lists = [list(one.names) for one in found]
        return why + f"together = {value(lists[0] if len(lists) == 1 else lists)}", ""
    tables = [f'[[together]]\ncolumns = {value(list(one.names))}\nmin_count = {FEW}\nrare = "merge"' for one in found]
    return "", why + "\n\n".join(tables)


K = 5
LS = {5: 10, 3: 4, 2: 3}
"""Values that must stay possible, and from how many values on that is asked."""
T = 0.3
CLOSER = 0.1
CLOSER_WHY = "# Other columns say much about these: they are hidden more firmly.\n"
KEY_SHARE = 0.05
"""A column with fewer different values than this share of the records names no people."""
BOUNDED = (
    "most_rows = ... says how many rows a person has at most, if that is known without this table; recipients' errors "
    "allow for it."
)
LIST = Guess(Role.DROP, "lists: dropped, unless you make it quasi-sensitive with a knowledge table")
TITLE = """\
# Drafted from {name}: {records:,} records, {columns} columns.
# Every role is a guess: read each line, correct it, then run `noren anonymize`.
#
# Roles: identifier (dropped), quasi-identifier (others may know it: made general until nobody stands alone),
#        sensitive (a secret: published hidden among other values), sensitive-quasi-identifier (both at once),
#        quasi-sensitive (terms that outside knowledge links to secrets; needs a knowledge table),
#        plain (harmless, published as it is).
"""


@dataclass(frozen=True)
class Study:
    """What a table shows, read once for any number of drafts."""

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
        """What every column is, taken alone."""
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
        return guess(column, records, self.source.columns) if hinted is None else hinted

    @cached_property
    def telling(self) -> dict[tuple[str, str], bool]:
        """Which columns that may be published tell which."""
        roles = (Role.SENSITIVE, Role.QUASI_IDENTIFIER)
        return telling(self.codes, [name for name in self.codes.columns if self.guesses[name].role in roles])


@dataclass(frozen=True)
class Proposal:
    """Everything that is drafted, before it is written."""

    guesses: Mapping[str, Guess]
    people: Mapping[str, Any]
    why_people: str
    codes: Codes
    together: Sequence[Group] = ()
    found: Findings = NOTHING

    def names(self, role: Role) -> list[str]:
        return [name for name, one in self.guesses.items() if one.role is role]


def list_columns(source: Source) -> list[str]:
    """Columns that hold lists of texts."""
    import pyarrow as pa

    first = next(iter(source.batches(source.columns)), None)
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if first is None:
        return []
    return [name for name in source.columns if any(check(first.column(name).type) for check in checks)]


def study(source: Source) -> Study:
    """The table as a draft sees it: every column's values, and how the columns of the first records go together."""
    lists = list_columns(source)
    profile = engine_for(source).profile(source, Counting(source.columns, terms=lists))
    profile.demand(source.name, lists)
    columns = {name: seen(profile.columns[name]) for name in source.columns}
    flat = [name for name in source.columns if name not in lists]
    codes = read_codes(source, flat, [name for name in flat if columns[name].is_amount])
    return Study(source, profile, columns, lists, codes)


def draft(source: Source, data: Mapping[str, Any] | None = None) -> str:
    """The text of a policy for this table. `data`: how the input is written, as far as it was said."""
    studied = study(source)
    return written(studied, propose(studied), data)


def written(studied: Study, made: Proposal, data: Mapping[str, Any] | None = None) -> str:
    """A proposal as the text of a policy."""
    source, profile, columns = studied.source, studied.profile, studied.columns
    above, behind = group_lines(made.together)
    parts = [
        TITLE.format(name=source.name.rsplit("/", 1)[-1], records=profile.records, columns=len(source.columns)),
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


def propose(studied: Study, findings: Findings = NOTHING) -> Proposal:
    """A guess for every column, corrected by how the columns stand to each other and by what drafts before showed."""
    codes, amounts, guesses = studied.codes, studied.amounts, dict(studied.guesses)
    for name, why in findings.left_out.items():
        guesses[name] = guesses[name].dropped(why)
    pairs = {pair: True for pair in studied.telling if not set(pair) & set(findings.left_out)}
    found = joined(groups(guesses, pairs, codes, amounts), findings.pairs, guesses, codes, amounts)
    inside = {frozenset(pair) for group in found for pair in product(group.names, repeat=2)}
    apart = {pair: True for pair in pairs if frozenset(pair) not in inside}
    for name, kept in _told(guesses, apart).items():
        why_not = (
            f"it and {key(kept)} say the same, and two statements about one thing give it away; {key(kept)} is kept"
        )
        guesses[name] = guesses[name].dropped(why_not)
    found = [
        replace(group, whole=findings.whole)
        for group in found
        if all(guesses[name].role is Role.SENSITIVE for name in group.names)
    ]
    for group in found:
        for name in group.names:
            others = ", ".join(key(other) for other in group.names if other != name)
            why_so = f"{guesses[name].why}; hidden together with {others}"
            guesses[name] = replace(guesses[name], why=why_so, size=group.size)
    people, why = _people(guesses, codes)
    return Proposal(guesses, people, why, codes, found, findings)


def worth(name: str, one: Guess) -> int:
    """Which columns are kept first, where not all can be: 0 those by which people are usually found, 1 what sounds like
    a secret, 2 other columns by which people are found, 3 the rest."""
    finds = one.role is Role.QUASI_IDENTIFIER
    order = [finds and says(name, CLASSIC), one.role is Role.SENSITIVE and says(name, SECRET), finds, True]
    return order.index(True)


def _told(guesses: Mapping[str, Guess], pairs: Mapping[tuple[str, str], bool]) -> dict[str, str]:
    """Columns to leave out, each with the one that is kept and tells it, or is told by it.

    No secret may be told by anything else that is published; columns by which people are found are made general
    together and may tell each other. What people are usually found by is kept first, then what sounds like a secret,
    then other columns by which they are found; of equals the one that tells most.
    """

    def rank(name: str) -> tuple[int, int]:
        return worth(name, guesses[name]), -sum(first == name for first, _ in pairs)

    kept: list[str] = []
    out: dict[str, str] = {}
    for name in sorted({name for pair in pairs for name in pair}, key=rank):
        rivals = [other for other in kept if (other, name) in pairs or (name, other) in pairs]
        rivals = [other for other in rivals if Role.SENSITIVE in (guesses[name].role, guesses[other].role)]
        if rivals:
            out[name] = rivals[0]
        else:
            kept.append(name)
    return out


def _people(guesses: Mapping[str, Guess], codes: Codes) -> tuple[dict[str, Any], str]:
    """The key of people, where rows repeat them; nothing where every row is a person of its own or nobody can say."""
    distinct = {
        name: len(set(codes.columns[name].tolist()) - {0})
        for name, one in guesses.items()
        if one.role is Role.IDENTIFIER and name in codes.columns
    }
    repeats = [name for name, number in distinct.items() if KEY_SHARE * codes.records <= number < codes.records]
    if not repeats:
        return {}, ""
    keys = [name for name in distinct if guesses[name].names_people and distinct[name] >= KEY_SHARE * codes.records]
    if not keys:
        looks = [name for name in repeats if says(name, "id$ nr$ no$ key$ number$") and not says(name, HOUSEHOLDS)]
        keys = [name for name in looks if not says(name, EVENTS)]
    if keys:
        best = min(keys, key=lambda name: (not says(name, PERSONS), distinct[name]))
        rows = f"{distinct[best]:,} different values in {codes.records:,} records"
        return {"key": best}, f"{best} has {rows}: requirements count people, not rows.\n{BOUNDED}"
    if all(says(name, HOUSEHOLDS) for name in repeats):
        why = f"{repeats[0]} repeats because people share a household; every row is a person of its own."
        return {"rows": "independent"}, why
    if not any(guesses[name].why.startswith(("its name says", "nearly every")) for name in repeats):
        why = (
            f"{repeats[0]} repeats, and nothing says that it names people: every row is taken for a person of its own."
        )
        return {"rows": "independent"}, why
    return {}, ""


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
            f"# At least {K} people look alike in all quasi-identifiers together, so that nobody is found by them.\n"
            f'[[require]]\nmodel = "k-anonymity"\nk = {K}'
        )
    secrets = {name: made.guesses[name].size for name in made.names(Role.SENSITIVE)}
    for group in made.together:
        if not group.by_member:
            secrets = {name: size for name, size in secrets.items() if name not in group.names}
            secrets |= dict.fromkeys(group.asked, group.size)
    several = [name for name, size in secrets.items() if size >= 3]
    done: list[str] = []
    if several:
        remark = (
            "# At least l values stay possible for each of these columns. Inside a set of l values, an adversary\n"
            "# who knows how common they are can still prefer the common ones: t-closeness bounds that.\n"
        )
        for least, values in LS.items():
            asked = [name for name in several if secrets[name] >= values and name not in done]
            done += asked
            if asked:
                model = 'model = "frequency-l-diversity"'
                out.append(f"{remark}[[require]]\n{model}\non = {value(asked)}\nl = {least}")
                remark = ""
    small = [name for name in secrets if name not in several]
    if small:
        remark = "# Two values cannot hide behind each other in sets; closeness protects them by chance instead.\n"
        closer = [name for name in small if name in made.found.closer]
        for asked, t, why in ((small, T, remark), (closer, CLOSER, CLOSER_WHY)):
            on = [name for name in asked if t == CLOSER or name not in closer]
            if on:
                out.append(f'{why}[[require]]\nmodel = "t-closeness"\non = {value(on)}\nt = {t}')
    return out


def _methods(made: Proposal) -> str:
    quasi, secrets = made.names(Role.QUASI_IDENTIFIER), made.names(Role.SENSITIVE)
    if quasi and secrets:
        return (
            "# Quasi-identifiers are made general, secrets hidden among decoys: one release, two methods.\n"
            f'[[method]]\nname = "mondrian"\non = {value(quasi)}\n\n'
            f'[[method]]\nname = "decoys"\non = {value(secrets)}'
        )
    return '[method]\nname = "mondrian"' if quasi else '[method]\nname = "decoys"'


def _section(name: str, fields: Mapping[str, Any], why: str = "") -> str:
    given = [f"{field} = {value(item)}" for field, item in fields.items() if item is not None]
    told = [f"# {line}" for line in why.splitlines()]
    return "\n".join([*told, f"[{name}]", *given]) if given else ""


def _closing(made: Proposal, profile: Profile) -> list[str]:
    """What the draft protects, what not, and who stands alone now."""
    quasi, secrets = made.names(Role.QUASI_IDENTIFIER), made.names(Role.SENSITIVE)
    out = ["What this draft protects:"]
    if quasi:
        out.append(f"- nobody is found by {_listed(quasi)}: at least {K} people share what is published of them.")
    if secrets:
        out.append(f"- for {_listed(secrets)} every cell leaves several values possible.")
    dropped = [name for name, one in made.guesses.items() if one.role.is_dropped]
    if dropped:
        out.append(f"- {_listed(dropped)}: not published.")
    if len(out) == 1:
        out.append("- nothing: no column was taken for a secret or for something by which people are found.")
    out.append("What it does not protect:")
    plain = made.names(Role.PLAIN)
    if plain:
        out.append(f"- {_listed(plain)}: published as it is; whoever knows it can use it to find people.")
    out.append("- what is common: a value that most people have is a good guess for anybody.")
    if made.found.undecided:
        out.append(f"- columns that tell each other: {made.found.undecided}. `noren anonymize` stops there: decide.")
    if not made.people:
        out.append("- people with several rows, if there are any: name their column under [people] key.")
    if quasi:
        out += ["Before anything is published:", *_uniques(made, quasi)]
    return out


def _uniques(made: Proposal, quasi: Sequence[str]) -> list[str]:
    """How many people are alone with what others may know."""
    codes = made.codes
    person = made.people.get("key")
    people = None if person is None else codes.columns.get(str(person))
    whose = "people" if people is not None or made.people.get("rows") or not made.people else "records"
    scope = "" if codes.whole else f" (in the first {codes.records:,} records)"
    usual = sorted((name for name in quasi if says(name, CLASSIC)), key=quasi.index)
    rest = sorted((n for n in quasi if n not in usual), key=lambda n: -int(codes.columns[n].max(initial=0)))
    three = (usual + rest)[:3]
    out = [f"- {codes.alone(three, people):.0%} of {whose} are alone with their {_listed(three)}{scope}."]
    if len(quasi) > 3:
        out.append(f"- {codes.alone(quasi, people):.0%} with all {len(quasi)} quasi-identifiers together.")
    return out


def _listed(names: Sequence[str]) -> str:
    shown = [key(name) for name in names[:8]]
    if len(names) > 8:
        return ", ".join(shown) + f" and {len(names) - 8} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
