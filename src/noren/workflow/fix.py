"""Fixes a policy: finds why it is refused, and the change with the smallest loss.

Every change is tried: the checks of `anonymize` run on some of the records, and what the release would then still say
about people is measured. Of the changes after which a problem is gone the one is kept that leaves most, until nothing
stands in the way; the result is checked on the whole table. No requirement is lowered.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import engine_for
from noren.errors import NorenError, PolicyError, Problem, RequirementNotMet
from noren.policy.guessing import Codes, read_codes
from noren.policy.policy import Policy
from noren.policy.toml import attribute_text, key, policy_text
from noren.progress import Stage, quiet
from noren.release.published import Published
from noren.results import Results, make_frame
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.sources.arrow import FrameSource
from noren.sources.sample import sampled
from noren.sources.source import Source, Writing
from noren.statements import Cells, Statement
from noren.workflow.anonymize import demand_margins, demand_rows
from noren.workflow.dependence import Told, _sampled, describe_group, disclosing_groups, told
from noren.workflow.draft import Draft
from noren.workflow.mechanism import demand_bounded, demand_uncertain, replay_methods
from noren.workflow.prepare import prepare, read_policy
from noren.workflow.remedies import Remedy, for_column, for_dependence, for_method, for_people, for_secrets
from noren.workflow.settling import hold_cells, judge_draft, settle_draft
from noren.workflow.verify import demand

if TYPE_CHECKING:
    import polars as pl

PEOPLE_ROWS = 60_000
"""Records up to which a table in which people have several is tried whole: a sample would tear people apart."""


@dataclass(frozen=True)
class Fault:
    """One reason why a policy is refused."""

    message: str
    columns: tuple[str, ...] = ()
    """The columns that are concerned."""
    told: tuple[Told, ...] = ()
    """What columns that disclose each other say about each other."""
    of_column: bool = False
    """Whether policy and table disagree about a column, before anything is decided."""
    of_method: bool = False
    """Whether a method or a requirement falls short."""


@dataclass(frozen=True)
class Attempt:
    """The result of the checks of `anonymize` on a policy."""

    faults: tuple[Fault, ...]
    stage: int = 0
    """How many of the checks it passed."""
    draft: Draft | None = None
    """What would be published, as far as it could be made."""
    published: Published | None = None
    """Its cells, where every check passed."""

    @property
    def progress(self) -> tuple[int, int]:
        """Return how far the checks came, and how much is missing."""
        return self.stage, -sum(max(1, len(one.told)) for one in self.faults)


def attempt(source: Source, policy: Policy, *, margin: float = 1.0, asked: int | None = None) -> Attempt:
    """Run the checks of `anonymize`, up to the first refusal.

    With a margin below 1 columns must disclose less of each other than the policy permits, because other records may
    show a little more; so many people are `asked` about them.
    """
    limit = policy.dependence.most * margin
    try:
        demand_bounded(policy)
        table = prepare(source, policy)
    except NorenError as error:
        return Attempt(tuple(table_faults(error, policy, source)), 0)
    try:
        draft = settle_draft(table, policy)
    except NorenError as error:
        return Attempt(tuple(_method_faults(error, policy)), 1)
    found = [one for one in told(draft, asked, limit) if one.at_most > limit] if policy.dependence.most < 1 else []
    if found:
        order = list(draft.by_name)
        groups = disclosing_groups(found)
        names = [tuple({n: 1 for one in group for n in (one.protected, one.by)}) for group in groups]
        messages = [describe_group(group, order, policy) for group in groups]
        return Attempt(tuple(Fault(*one) for one in zip(messages, names, map(tuple, groups), strict=True)), 2, draft)
    try:
        demand_rows(draft, policy)
        demand_margins(draft, policy)
        published = hold_cells(draft)
        demand(judge_draft(draft, published, policy))
        demand_uncertain(replay_methods(published, table.records, policy, draft.plan.facts), policy)
    except NorenError as error:
        return Attempt(tuple(_method_faults(error, policy)), 3, draft)
    return Attempt((), 4, draft, published)


def table_faults(error: NorenError, policy: Policy, source: Source) -> Iterator[Fault]:
    """Return the disagreements between policy and table, one fault for every column."""
    if not isinstance(error, PolicyError):
        yield Fault(error.message, policy.protected, of_method=True)
        return
    known = sorted({*policy.attributes, *policy.declared, *source.columns}, key=len, reverse=True)
    by_column: dict[str, list[str]] = {}
    for problem in error.problems:
        section, _, rest = problem.where.partition(".")
        name = next((name for name in known if rest == name or rest.startswith(f"{name}.")), "")
        by_column.setdefault(name if section in ("attributes", "together") else problem.where, []).append(str(problem))
    for name, messages in by_column.items():
        yield Fault(messages[0].split("\n")[0], (name,), of_column=name not in policy.composites)


def _method_faults(error: NorenError, policy: Policy) -> Iterator[Fault]:
    """Return the faults of a method or requirement, with the named columns."""
    problems = error.problems if isinstance(error, PolicyError) else [Problem("", error.message)]
    for one in problems:
        text = f"{one.where}. {one.message}"
        named = tuple(name for name in policy.attributes if f"{name!r}" in text or f"attributes.{name}." in text)
        yield Fault(one.message.removeprefix("not met, so nothing is published: "), named, of_method=True)


def hold_records(source: Source, most: int, several: bool) -> Source:
    """Keep the table, or a random part of a larger one, in memory. People may have `several` records."""
    import pyarrow as pa

    most = max(most, PEOPLE_ROWS) if several else most
    records = source.rows
    if records is None:
        records = sum(batch.num_rows for batch in source.batches(source.columns[:1]))
    if isinstance(source, FrameSource) and records <= most:
        return source
    picked = list(sampled(source, most / records if records > most else None).batches(source.columns))
    held = FrameSource(pa.Table.from_batches(picked))
    held.name = source.name
    return held


# ---------------------------------------------------------------------- the changes


RECORDS = 10_000
"""Records on which changes are tried."""
CHECKED = 1_000_000
"""Records on which the result is checked."""
ASKED = 4_000
"""People whose secrets are asked for in a try."""
MARGIN = 0.8
"""Share of the limit of dependence from which a sample is corrected: the whole table may show a little more."""
ROUNDS = 30
"""Problems that are solved one after another."""


@dataclass(frozen=True)
class Option:
    """A change that would help, and the information that the release would keep."""

    words: str
    kept: float | None
    """Share of the information that is kept; None where the holder had not asked for the column."""
    of: str = "the information"

    @property
    def text(self) -> str:
        """Describe the change with its loss of information."""
        if self.kept is None:
            return self.words
        return f"{self.words} (keeps {self.kept:.0%} of {self.of})"


@dataclass(frozen=True)
class Change:
    """A fault, the change that was made, and alternatives, the cheapest first."""

    problem: str
    chosen: Option
    others: tuple[Option, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "change": vars(self.chosen),
            "alternatives": [vars(one) for one in self.others],
        }


@dataclass(frozen=True, repr=False, eq=False)
class Fix(Results[Change]):
    """The fixed policy, and the changes that led to it."""

    policy: Policy | None = None
    text: str = ""
    """The policy as TOML, with a comment at every change; empty where it cannot be written."""
    note: str = ""
    """The comment that says what was changed and why."""
    kept: float = 1.0
    """Share of the table's information that a release holds."""
    checked: int = 0
    """Records on which the checks of `anonymize` passed."""

    @property
    def frame(self) -> pl.DataFrame:
        columns = {"problem": str, "change": str, "kept": float, "alternatives": int}
        rows = (
            {
                "problem": one.problem,
                "change": one.chosen.words,
                "kept": one.chosen.kept,
                "alternatives": len(one.others),
            }
            for one in self
        )
        return make_frame(columns, rows)

    def to_dict(self) -> dict[str, Any]:
        changes = [change.to_dict() for change in self]
        return {"policy": self.text, "kept": self.kept, "checked": self.checked, "changes": changes}

    def _headline(self) -> str:
        changes = f"{len(self)} change{'' if len(self) == 1 else 's'}" if self else "runs without changes"
        return f"{changes}; keeps {self.kept:.0%} of the information"


def fix(data: Any, policy: Policy | str | Path, *, stage: Stage = quiet) -> Fix:
    """Change a policy so that `anonymize` publishes this table, and return the new policy with its changes.

    Each problem is solved by the change that preserves most information; requirements are not changed.

    >>> import noren as nr
    >>> import polars as pl
    >>> jobs = ["cook", "clerk", "nurse", "miner"] * 20
    >>> people = pl.DataFrame({"town": ["Ulm"] * 40 + ["Bonn"] * 39 + ["Rust"], "job": jobs})
    >>> attributes = {"town": nr.plain(min_count=5), "job": nr.sensitive()}
    >>> policy = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="job", l=2)])
    >>> found = nr.fix(people, policy)
    >>> found[0].chosen.words
    "merge values of 'town' with fewer than 5 records"
    >>> nr.anonymize(people, found.policy)
    <Release of 80 records: town, job; sets: job>
    """
    own = None if isinstance(policy, Policy) else read_text(policy)
    policy = read_policy(policy)
    given, source = policy, _open(data, policy)
    whole = hold_records(source, CHECKED, bool(policy.people.key))
    some = hold_records(whole, RECORDS, bool(policy.people.key))
    with stage("Trying changes", None) as meter:
        worth = Worth(some, given)
        changes: list[Change] = []
        for tried, exact in ((some, False), (whole, True)):
            found, kept = _measured(tried, policy, worth, exact)
            while found.faults:
                if len(changes) == ROUNDS:
                    raise _unsolved(found.faults[0], policy)
                change, policy, found, kept = _solve(tried, policy, found, worth, exact)
                changes.append(change)
                meter(1)
    assert kept is not None
    note = _note(changes) if changes else ""
    try:
        text = fixed_text(given, policy, changes, own)
    except PolicyError:  # a knowledge table that was given as an object has no place in a file
        text = ""
    return Fix(tuple(changes), policy, text, note, kept, whole.rows or 0)


def _measured(source: Source, policy: Policy, worth: Worth, exact: bool) -> tuple[Attempt, float | None]:
    """Return the faults, and the share of information that the release would keep. Unless `exact`, linked columns are
    measured on fewer people, with more room below the limit."""
    found = attempt(source, policy) if exact else attempt(source, policy, margin=MARGIN, asked=ASKED)
    return found, None if found.draft is None else worth.of_draft(found.draft)


def _remedies(policy: Policy, fault: Fault, source: Source) -> Iterator[Iterator[Remedy]]:
    """Yield groups of possible remedies; the next group is tried if the previous one does not help."""
    name = fault.columns[0] if fault.columns else ""
    if fault.told:
        yield for_dependence(policy, fault.told)
    elif fault.of_method:
        yield for_method(policy)
        yield for_secrets(policy, fault.columns)
    else:
        yield for_people(policy) if name == "people.key" else for_column(policy, name, source.columns)


def _solve(
    source: Source, policy: Policy, before: Attempt, worth: Worth, exact: bool
) -> tuple[Change, Policy, Attempt, float | None]:
    """Solve the first fault with the change that keeps most information; return the remaining faults."""
    fault = before.faults[0]
    helps: list[tuple[bool, float, Remedy, Attempt]] = []  # whether it is gone, what is kept, by what, what follows
    for remedies in _remedies(policy, fault, source):
        enough: set[str] = set()
        for remedy in remedies if not helps else ():
            if remedy.family in enough:
                continue
            if fault.of_column:
                if fault.columns in [one.columns for one in _faults_of_table(source, remedy.policy)]:
                    continue
                kept: float | None = worth.of_column(fault.columns[0], remedy.policy)
                cleared, found = True, Attempt(())
            else:
                found, kept = _measured(source, remedy.policy, worth, exact)
                if found.progress <= before.progress:
                    continue
                cleared = not any(set(fault.columns) & set(one.columns) for one in found.faults)
            helps.append((cleared, kept or 0.0, remedy, found))
            enough |= {remedy.family} - {""} if cleared else set()
    if not helps:
        raise _unsolved(fault, policy)
    helps = [one for one in helps if one[0]] or helps
    helps.sort(key=lambda one: -round(one[1], 3))  # of equals the one that stands first in the list
    _, kept, remedy, found = helps[0]
    about = f"the information in {fault.columns[0]!r}" if fault.of_column else "the information"
    strange = fault.of_column and not {fault.columns[0]} <= policy.declared.keys() & {*source.columns}
    options = [Option(one.words, None if strange else share, about) for _, share, one, _ in helps]
    change = Change(fault.message, options[0], tuple(options[1:]))
    if fault.of_column:
        found, kept = _measured(source, remedy.policy, worth, exact)
    return change, remedy.policy, found, kept


def _faults_of_table(source: Source, policy: Policy) -> list[Fault]:
    """Return the disagreements between policy and table."""
    try:
        prepare(source, policy)
    except NorenError as error:
        return list(table_faults(error, policy, source))
    return []


def _unsolved(fault: Fault, policy: Policy) -> NorenError:
    return RequirementNotMet(
        f"{policy.source}: no simple change makes this policy acceptable: {fault.message}",
        hint="Lower the requirements on these columns, or give them other roles.",
    )


# ---------------------------------------------------------------- what is left


class Worth:
    """How much of a table's information a release keeps: for every column the entropy that its cells remove, as a share
    of the table's own entropy; and the mean of these shares."""

    def __init__(self, source: Source, policy: Policy) -> None:
        self._source = source
        terms = {name for name, one in policy.attributes.items() if one.role is Role.QUASI_SENSITIVE}
        listed = [n for n, one in policy.declared.items() if not one.role.is_dropped and n in source.columns]
        self._columns = [*listed, *terms - {*listed}]
        self._codes: Codes = read_codes(source, [name for name in self._columns if name not in terms])

    def _entropy(self, names: Sequence[str]) -> float:
        known = [name for name in names if name in self._codes.columns]
        return _entropy(np.bincount(self._codes.numbers(known))) if known else 0.0

    def of_draft(self, draft: Draft) -> float:
        """Return the share that a draft keeps."""
        truth, cells = _sampled(draft)
        total = 0.0
        for statement in draft.statements:
            members = statement.domain.made_of if not statement.column.is_open else ()
            names = members or (statement.name,)
            if statement.name not in truth:
                share = _share_of_terms(draft, statement.name) if statement.side is not None else 1.0
            else:
                share = _kept(statement, truth[statement.name], cells[statement.name]) / max(
                    1e-12, self._entropy(names)
                )
            total += min(1.0, share) * len(names)
        return total / max(1, len(self._columns)) * draft.records / max(1, draft.table.n)

    def of_column(self, name: str, policy: Policy) -> float:
        """Return the share of one column's information that its published domain can keep."""
        column = policy.declared.get(name)
        if column is None or column.role.is_dropped:
            return 0.0
        options = {"role": Role.PLAIN, "distance": "equal"}
        alone = {other: Column(role=Role.DROP) for other in self._source.columns}
        alone[name] = column.model_copy(update=options)
        try:
            table = prepare(self._source, Policy(attributes=alone, data=policy.data))
        except NorenError:
            return 0.0
        if table.columns[name].is_open:
            return 1.0
        return min(1.0, _entropy(table.counts[name]) / max(1e-12, self._entropy([name])))


def _entropy(counts: NDArray[Any]) -> float:
    shares = counts[counts > 0] / max(1, counts.sum())
    return float(-(shares * np.log(shares)).sum())


def _kept(statement: Statement, truth: NDArray[np.int64], cells: Cells) -> float:
    """Return the entropy of the true values that the cells remove."""
    prior = np.bincount(truth, minlength=statement.d) / max(1, len(truth))
    distinct, number = cells.distinct()
    found = statement.likelihood(distinct)
    if found is None:
        return 0.0
    mass, inner = np.zeros(len(found)), np.zeros(len(found))
    p = prior[found.value]
    logs = np.log(np.maximum(prior, 1e-300))
    joint = found.weight * p
    np.add.at(mass, found.owner, joint)
    np.add.at(inner, found.owner, joint * np.log(np.maximum(joint, 1e-300)))
    if found.floor > 0:  # values that a cell does not list are possible too
        listed, within = np.zeros(len(found)), np.zeros(len(found))
        np.add.at(listed, found.owner, p)
        np.add.at(within, found.owner, p * logs[found.value])
        rest, spread = np.maximum(1 - listed, 0.0), float((prior * logs).sum()) - within
        mass += found.floor * rest
        inner += found.floor * (spread + rest * np.log(found.floor))
    left = np.log(np.maximum(mass, 1e-300)) - inner / np.maximum(mass, 1e-300)
    return max(0.0, _entropy(prior) - float(left[number].mean()))


def _share_of_terms(draft: Draft, name: str) -> float:
    """Return the share of a column's terms that are published."""
    found = [part for part in draft.plan.searches if name in part.columns]
    return 1 - sum(part.removed for part in found) / max(1, sum(part.entries for part in found))


# ---------------------------------------------------------------- the table


def read_text(path: str | Path) -> str:
    """Return the text of a policy file as the holder wrote it."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""


def _open(data: Any, policy: Policy) -> Source:
    """Open the table as the policy describes it."""
    given = policy.data
    writing = Writing(given.separator, given.encoding, tuple(given.missing_values))
    return engine_for(data).opened(data, writing)


# ---------------------------------------------------------------- the changes in the file


HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z_]+)\s*\]\]?\s*(#.*)?")
KEY = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")
MOST_OTHERS = 3
"""Other changes that stand under a change in the file; `to_dict` has all."""
TABLES = ("together", "require", "method", "people")
"""Tables of a policy that a change may write anew."""


def fixed_text(given: Policy, made: Policy, changes: Sequence[Change], text: str | None = None) -> str:
    """Return the policy as TOML with comments on every change: in the holder's own text if possible, otherwise
    rewritten."""
    if not changes:
        return policy_text(made) if text is None else text
    note, wanted = _note(changes), policy_text(made)
    parts, old = _tables(wanted), _tables(policy_text(given))
    anew = [kind for kind in TABLES if parts.get(kind) != old.get(kind)]
    for kinds in () if text is None else ([kind for kind in anew if kind != "require"], anew):
        edited = note + _edited(text or "", given, made, kinds)
        try:  # requirements may name the members of columns that are hidden together
            if policy_text(Policy.parse(edited, base=made.base)) == wanted:
                return edited
        except PolicyError:
            pass  # written over several lines, or under other names
    return note + wanted


def _note(changes: Sequence[Change]) -> str:
    """Return comments on what was changed and why."""
    out = [
        "# Changed by `noren fix`, so that `noren anonymize` accepts it. Requirements are unchanged; "
        '"instead" names alternatives.'
    ]
    for number, change in enumerate(changes, 1):
        out += [f"# {number}. {change.problem}", f"#    changed: {change.chosen.text}"]
        out += [f"#    instead: {one.text}" for one in change.others[:MOST_OTHERS]]
    shown = ("".join(letter if letter.isprintable() else " " for letter in line) for line in out)
    return "\n".join(shown) + "\n\n"


def _edited(text: str, given: Policy, made: Policy, anew: Sequence[str]) -> str:
    """Return the holder's text with changed lines; old lines stay as comments."""
    before, after = given.declared, made.declared
    lines = {name: f"{key(name)} = {attribute_text(column)}" for name, column in after.items()}
    changed = {n for n in before if n not in after or attribute_text(before[n]) != attribute_text(after[n])}
    left = {kind: _tables(policy_text(made)).get(kind, []) for kind in anew}
    new: dict[str | None, list[str]] = {}  # columns that the text did not name, by the one that they stand behind
    place: str | None = None
    for column in after:
        if column in before:
            place = column
        else:
            new.setdefault(place, []).append(lines[column])
    out: list[str] = []
    if any(line.startswith("together") for line in left.get("together", ())):
        out += [*left.pop("together"), ""]
    for section, block in _blocks(text):
        kept = len(block)
        while (kept and not block[kept - 1].strip()) or (kept and block[kept - 1].lstrip().startswith("#")):
            kept -= 1  # what stands before the next table belongs to that
        for line in block[:kept]:
            name = _key(line)
            here = "together" if name == "together" and section in ("", "attributes") else section
            if section == "attributes" and name in changed:
                out += [f"# was: {line.strip()}", *([lines[name]] if name in lines else [])]
            elif here in anew and line.strip() and not line.strip().startswith("#"):
                out.append(f"# was: {line.strip()}")
            else:
                out.append(line)
            if section == "attributes":
                out += new.pop(name, []) if name or HEADER.fullmatch(line) else []
        out += left.pop(section, []) if section in anew else []
        out += block[kept:]
    for rest in left.values():
        out += ["", *rest]
    return "\n".join(out) + "\n"


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    """Return the lines of a policy, table by table; those above all tables under ""."""
    out: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if found := HEADER.fullmatch(line):
            out.append((found[1], []))
        out[-1][1].append(line)
    return out


def _key(line: str) -> str | None:
    """Return the name to which a line of TOML assigns a value."""
    found = KEY.match(line)
    if found is None:
        return None
    try:
        return next(iter(tomllib.loads(f"{found[1]} = 0")))
    except tomllib.TOMLDecodeError:
        return None


def _tables(text: str) -> dict[str, list[str]]:
    """Return the lines of a policy by the name of their table."""
    out: dict[str, list[str]] = {}
    for section, lines in _blocks(text):
        while lines and not lines[-1].strip():
            lines.pop()
        out[section] = [*out[section], "", *lines] if section in out else lines
    heads = [line for line in out[""] if line.startswith("together")]
    return out | ({"together": [*heads, *out.get("together", ())]} if heads else {})
