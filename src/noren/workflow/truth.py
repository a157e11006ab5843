"""Compares a release with its original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups
from noren.designs.pram import PramDesign
from noren.engines import Engine, Reading, Records, Table, TermRecords, engine_for
from noren.engines.engine import Counting
from noren.engines.left_out import Members
from noren.engines.records import priors
from noren.errors import DataError, ReleaseError
from noren.estimates.counts import rows
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bounds import ReportedAxis, ReportedRows
from noren.models.base import Model, Overall
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.policy.resolve import dropping, open_table
from noren.release.answers import classes_of
from noren.release.published import Published
from noren.release.release import Release
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.kinds import reader, sniff
from noren.schema.roles import Role
from noren.schema.tuples import TupleDomain
from noren.sources.derived import with_tuples
from noren.sources.source import Source, open_source
from noren.statements import MeanStatement, Statement
from noren.workflow.prepare import prepare


def overall_distributions(
    published: Published, requirements: Sequence[Model], truth: Truth | None = None
) -> dict[str, Overall]:
    """Return the reference distributions for closeness: the original's shares and beliefs, or an estimate from the
    release."""
    drawn = {name: design for name, design in published.designs.items() if isinstance(design, DecoyDesign | PramDesign)}
    names = list(dict.fromkeys(n for m in requirements if "prior" in m.needs for n in m.on if n in drawn))
    if truth is not None:
        counts = truth.counts(names) if names else {}
        return {name: Overall(c / c.sum(), "the original") for name, c in counts.items()} | truth.priors()
    if not names:
        return {}
    inclusions = tally_cells(published, names)
    return {name: _estimate_shares(drawn[name], inclusions[name], published.records) for name in names}


def tally_cells(published: Published, names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Return the tallies of all cells of some columns; repeated rows of a person count once."""
    out: dict[str, Any] = {}
    for batch in published.batches(names):
        for name in names:
            out[name] = out.get(name, 0) + published.column(name).tally(batch[name])
    return {name: found // published.repeats(name) for name, found in out.items()}


def _estimate_shares(design: DecoyDesign | PramDesign, inclusions: NDArray[np.int64], records: int) -> Overall:
    """Return the overall distribution by linear inversion, with its standard errors."""
    if isinstance(design, PramDesign):
        found = np.maximum(design.inversion.invert(inclusions / records, 0), 0)
        found = found / found.sum()
        scoring = design.inversion.scoring(Groups(np.arange(design.d), design.d, is_identity=True))
        noise = np.maximum(scoring.second_moments(found, 0) - found, 0)
        return Overall(found, "an estimate from the release", np.sqrt(noise / records))
    if design.p_gap == 0:
        return Overall(np.full(design.d, 1 / design.d), "an estimate from the release")
    p_true, p_other, gap = design.p_true, design.p_other, design.p_gap
    shares = np.maximum((inclusions / records - p_other) / gap, 0)
    shares = shares / shares.sum()
    inside = (p_true * (1 - p_other) ** 2 + (1 - p_true) * p_other**2) / gap**2
    outside = p_other * (1 - p_other) / gap**2
    variance = outside + (inside - outside) * shares - shares
    return Overall(shares, "an estimate from the release", np.sqrt(np.maximum(variance, 0) / records))


class Truth:
    """The original beside a release, in the codes of the release. For the holder only."""

    def __init__(
        self, release: Release, policy: Policy | None, original: Any, engine: str | Engine | None = None
    ) -> None:
        self.release = release
        self.policy = policy
        self.given = original
        self.engine = engine_for(original, engine)
        source = as_published(original, release) if policy is None else open_table(original, policy, self.engine)
        self.source = self.engine.held(source, original)
        self.drop = [] if policy is None else dropping(policy, self.source.columns)
        self._terms: dict[str, TermRecords] | None = None
        self._counts: dict[tuple[bool, str], NDArray[np.int64]] = {}
        self._table: Table | None = None
        self._meeting = Lock()

    def counts(self, names: Sequence[str], strangers: bool = False) -> dict[str, NDArray[np.int64]]:
        """Count each value of the published domains in the original.

        With `strangers`, one entry more counts cells outside a domain taken from the data: only records have them that
        were left out.
        """
        fresh = [name for name in names if (strangers, name) not in self._counts]
        if fresh:
            self._counts |= {(strangers, name): found for name, found in self._count(fresh, strangers).items()}
        return {name: self._counts[strangers, name].copy() for name in names}

    def _count(self, names: Sequence[str], strangers: bool) -> dict[str, NDArray[np.int64]]:
        domains = {name: self.release.column(name).domain for name in names}
        self._demand(names)
        coarse = {name: domain for name, domain in domains.items() if not domain.names_all}
        domains = {name: domain for name, domain in domains.items() if domain.names_all}
        found = {name: self._in(domain, name, strangers) for name, domain in coarse.items()}
        if strangers:
            domains = {name: _with_rest(domain) for name, domain in domains.items()}
        try:
            return found | (self._count_cells(domains) if domains else {})
        except DataError:
            if self.policy is None:
                raise
            written = {name: self._as_written(domain, name, strangers) for name, domain in domains.items()}
            return found | self._count_cells(written)

    def _in(self, domain: Domain, name: str, strangers: bool) -> NDArray[np.int64]:
        """Return the counts over a domain that does not list all values."""
        if self.policy is not None and name in self.table.columns and not self.table.columns[name].is_open:
            column, counts = self.table.columns[name], self.table.counts[name]
            values, tree = column.domain.values, column.tree
        else:
            profile = self.engine.profile(self.source, Counting([name], drop=self.drop))
            profile.demand(self.source.name)
            texts, lost = profile.columns[name].counts, profile.columns[name].missing
            written = sniff(texts)
            read = reader(written.kind, written.format)
            values, tree = (*(read(text) or text for text in texts), MISSING), None
            counts = np.array([*texts.values(), lost], np.int64)
        place = np.array(domain.find(values, tree), np.int64)
        strange = int(counts[place < 0].sum())
        if strange and not strangers:
            raise DataError(
                f"{self.source.name}: {strange} cells of {name!r} are covered by no published value.",
                hint="Give the table that the release was made from, and its policy.",
            )
        out = np.bincount(place[place >= 0], counts[place >= 0], minlength=len(domain)).astype(np.int64)
        return np.append(out, strange) if strangers else out

    def _count_cells(self, domains: Mapping[str, Domain]) -> dict[str, NDArray[np.int64]]:
        counts = {name: np.zeros(len(domain), np.int64) for name, domain in domains.items()}
        source = self.source if self._table is None else self._table.source  # which is not parsed again
        for batch in self.engine.encoded(source, Reading(domains, drop=self.drop)):
            for name, codes in batch.codes.items():
                counts[name] += np.bincount(codes, minlength=len(domains[name]))
        return counts

    def _as_written(self, domain: Domain, name: str, strangers: bool) -> Domain:
        """Return the published domain in the spelling of the original; a declared value without published records may
        need the word for other values."""
        column = self.table.columns.get(name)
        if column is None or column.is_open:
            return domain
        written = domain.written_as(column.domain)
        declared = strangers and OTHER in column.domain.index and OTHER not in written.index
        return replace(written, values=(*written.values, OTHER), kind="string") if declared else written

    @property
    def table(self) -> Table:
        """Return the original after it was combined with its policy, which determines how numbers and dates are
        written."""
        assert self.policy is not None
        with self._meeting:  # of two threads that want it, one reads it
            if self._table is None:
                self._table = prepare(self.given, self.policy, self.engine, sample=False)
        return self._table

    @property
    def records(self) -> Records:
        """Return all people's codes, for the replay of the method."""
        return self.table.records

    def _demand(self, names: Sequence[str]) -> None:
        absent = [name for name in names if name not in self.source.columns]
        if absent:
            raise DataError(
                f"{self.source.name}: no column {', '.join(map(repr, absent))}, which the release has.",
                hint="Give the table that the release was made from.",
            )

    def terms(self) -> dict[str, TermRecords]:
        """Return the linked terms of the original, over the policy's knowledge table and the terms of the release.

        Unknown terms count only where they were to be published, as when the release was made.
        """
        if self._terms is None:
            self._terms = self._read_terms([s for s in self.release.statements if s.role is Role.QUASI_SENSITIVE])
        return self._terms

    def _read_terms(self, statements: Sequence[Statement]) -> dict[str, TermRecords]:
        if not statements:
            return {}
        policy, names = self.policy, [statement.name for statement in statements]
        if policy is None or any(name not in policy.knowledge for name in names):
            raise DataError(
                "sets of terms in the original cannot be read without a policy.",
                hint="Give the policy that the release was made with.",
            )
        self._demand(names)
        loose = [name for name in self.drop if name not in names]
        profile = self.engine.profile(self.source, Counting([*names, *loose], terms=names, drop=self.drop))
        profile.demand(self.source.name, names)
        columns = {}
        for statement in statements:
            name = statement.name
            known = dict.fromkeys([*policy.knowledge[name].terms, *statement.domain.values])
            keeps = policy.attributes[name].unknown == "keep"
            domain = Domain(tuple(known | dict.fromkeys(profile.columns[name].counts if keeps else ())))
            columns[name] = statement.column.over(name, domain, knowledge=policy.knowledge[name])
        parts: dict[str, list[Any]] = {name: [] for name in columns}
        reading = Reading(terms={name: column.domain for name, column in columns.items()}, drop=self.drop)
        for batch in self.engine.encoded(self.source, reading):
            for name, cells in batch.terms.items():
                parts[name].append(cells)
        return {n: TermRecords(column, type(parts[n][0]).concat(parts[n])) for n, column in columns.items()}

    def priors(self) -> dict[str, Overall]:
        """Return the prior beliefs in labels."""
        return priors(Records(0, {}, {}, self.terms()))

    # ------------------------------------------------------------------ what must be true

    def verdicts(self) -> list[Verdict]:
        """Return verdicts: every true value is possible often enough, and no term is published that is not true."""
        found = [self._no_term_more(column) for column in self.terms().values()]
        if self.release.manifest.sample is not None:
            return [*self._judge_sample(), *found]
        return [*self._possible(), *self._tight(), *self._means(), *found]

    def left_out(self, requirements: Sequence[Model]) -> list[Verdict]:
        """Return the records of the original that do not appear in the release, as far as the counts show them."""
        release = self.release
        if not release.suppressed or release.manifest.sample is not None or not release.manifest.rows_are_people:
            return []
        names = [one.name for one in release.statements if one.role.needs_requirement and one.lists_values]
        names = [name for name in names if release.column(name).terms is None]
        counts = self.counts(names, strangers=True) if names else {}
        columns: dict[str, Column] = {}
        places: dict[str, NDArray[np.int64]] = {}
        for name in names:
            statement = release.column(name)
            if not counts[name][statement.d :].any():
                columns[name], counts[name] = statement.column, counts[name][: statement.d]
            elif (place := self._places_of(statement)) is not None:  # some of the missing alone have their value
                columns[name], counts[name], places[name] = self.table.columns[name], self.table.counts[name], place
        return [missing_verdict(release, requirements, columns, counts, places)]

    def _places_of(self, statement: Statement) -> NDArray[np.int64] | None:
        """Return the positions of the published values among the original's; None if unknown."""
        own = None if self.policy is None else self.table.columns.get(statement.name)
        if own is None or own.is_open:
            return None
        found = [own.domain.index.get(value, -1) for value in statement.domain.values]
        return np.array(found, np.int64) if min(found, default=0) >= 0 else None

    def _means(self) -> list[Verdict]:
        """Check that means of classes have the mean of the original, if no number is missing and nobody was
        suppressed."""
        release, out = self.release, []
        averaged = [s for s in release.statements if isinstance(s, MeanStatement)]
        if not averaged or self.policy is None or release.suppressed:
            return []
        for statement in averaged:
            column = self.table.columns[statement.name]
            amounts = None if column.is_open else column.domain.amounts
            if amounts is None or column.domain.has_missing:
                continue
            truth = float(amounts @ self.table.counts[statement.name]) / max(1, self.table.n)
            total = sum(
                float(statement.numbers[statement.check_cells(batch[statement.name])].sum())
                for batch in release.batches([statement.name])
            )
            found = total / max(1, release.records)
            slack = 0.5 * 10.0**-statement.decimals + 1e-9 * float(np.abs(amounts).max(initial=0.0))
            holds = abs(found - truth) <= slack and release.records == self.table.n
            text = f"the means of the classes {'agree' if holds else 'do not agree'} with the mean of all records"
            n, short = release.records, 0 if holds else release.records
            out.append(Verdict("means-are-true", statement.name, truth, found, holds, "the original", n, short, text))
        return out

    def _judge_sample(self) -> list[Verdict]:
        """Check that a sample has about as many people as its share implies, within eight standard deviations."""
        release, share = self.release, self.release.manifest.sample
        listed = [s.name for s in release.statements if s.lists_values and s.terms is None]
        if not listed or share is None:
            return []
        whole = int(self.counts(listed[:1], strangers=True)[listed[0]].sum())
        people = release.records + release.suppressed
        near = abs(people - share * whole) <= 8 * np.sqrt(whole * share * (1 - share)) + 1
        found = people / max(1, whole)
        text = f"the release covers {people} of {whole} records"
        short = 0 if near else people
        return [Verdict("sample-size", "all columns", share, found, bool(near), "the original", people, short, text)]

    def _possible(self) -> list[Verdict]:
        """Check that every true value is possible at least as often as it is true, less the suppressed records."""
        release = self.release
        hidden = [s for s in release.statements if s.hides and s.lists_values]
        names = [s.name for s in hidden if s.design is None or s.design.p == 1.0]
        if not names:
            return []
        missing = release.suppressed
        truth, seen = self.counts(names, strangers=missing > 0), tally_cells(release, names)
        out = []
        for name in names:
            statement = release.column(name)
            possible = statement.possible_counts(seen.get(name, np.zeros(statement.d, np.int64)))
            strange = int(truth[name][statement.d :].sum())
            short = np.append(np.maximum(truth[name][: statement.d] - possible, 0), strange)
            records = int(truth[name].sum())
            holds = int(short.sum()) <= missing and records == release.records + missing
            text = "every value is possible at least as often as it is true"
            if missing:
                text += f", apart from the {missing} suppressed records"
            if not holds:
                text = "some true values are not possible"
            if records != release.records + missing:
                text = (
                    f"the original has {records} records, but the release has {release.records} and reports {missing} "
                    "suppressed"
                )
            breaches = max(0, int(short.sum()) - missing)
            share = float(1 - breaches / max(1, records))
            out.append(Verdict("truth-in-set", name, 1.0, share, holds, "the original", records, breaches, text))
        return out

    def _tight(self) -> list[Verdict]:
        """Check statements about every class as far as counts can show them."""
        names = tight_columns(self.release)
        if not names:
            return []
        return tight_verdicts(self.release, self.counts(names, strangers=self.release.suppressed > 0))

    def _no_term_more(self, column: TermRecords) -> Verdict:
        """Check that no term is published more often than it is true."""
        release, statement = self.release, self.release.column(column.name)
        shown = np.zeros(statement.d, np.int64)
        for batch in release.batches([statement.name]):
            shown += statement.check_cells(batch[statement.name]).counts()
        place = [column.domain.index[value] for value in statement.domain.values]
        over = np.maximum(shown - column.cells.counts()[place], 0)
        records, people = len(column.cells), release.records + release.suppressed
        text = "no term is published more often than it is true"
        if over.any():
            text = "some terms are published more often than they are true"
        whole = release.manifest.sample is None
        if whole and records != people:
            text = f"the original has {records} records, but the release covers {people}"
        share = float(1 - over.sum() / max(1, int(shown.sum())))
        holds = not over.any() and (records == people or not whole)
        return Verdict(
            "terms-are-true", statement.name, 1.0, share, holds, "the original", records, int(over.sum()), text
        )


def _with_rest(domain: Domain) -> Domain:
    """Return a domain with codes for missing values, and for other values if it was taken from the data."""
    rest = (OTHER, MISSING) if domain.source == "data" else (MISSING,)
    added = tuple(label for label in rest if label not in domain.index)
    return replace(domain, values=(*domain.values, *added), kind="string") if added else domain


# ---------------------------------------------------------------------- who is missing


def is_countable(statement: Statement) -> bool:
    """Return whether a release shows how often every value of a column occurs, because it is exact or in groups."""
    return statement.lists_values and (statement.is_exact or statement.table is not None)


def published_counts(published: Published, statement: Statement) -> NDArray[np.int64]:
    """Return how often every value of such a column is published."""
    if (table := statement.table) is not None:
        return np.bincount(table.value, table.count, minlength=statement.d).astype(np.int64)
    return tally_cells(published, [statement.name]).get(statement.name, np.zeros(statement.d, np.int64))


def missing_verdict(
    published: Published,
    requirements: Sequence[Model],
    columns: Mapping[str, Column],
    counts: Mapping[str, NDArray[np.int64]],
    places: Mapping[str, NDArray[np.int64]],
) -> Verdict:
    """Return the verdict about the people who are missing from a release.

    Only what is published exactly or in groups can be subtracted; a requirement on anything else stays undecided.
    `places` are those of the published values among those that are counted, where these are more.
    """
    people = published.suppressed
    known: dict[str, NDArray[np.int64]] = {}
    for name in columns:
        if is_countable(statement := published.column(name)):
            shown = published_counts(published, statement)
            if name in places:
                shown = np.bincount(places[name], shown, minlength=len(counts[name])).astype(np.int64)
            lost = counts[name] - shown
            if (lost >= 0).all() and int(lost.sum()) == people:
                known[name] = lost
    codes = {name: np.repeat(np.arange(len(found)), found) for name, found in known.items()}
    rest = {name: np.repeat(np.arange(len(c)), c - known[name]) for name, c in counts.items() if name in known}
    asked = [model for model in requirements if model.judges_left_out]
    settled = [model for model in asked if model.about == "classes" or all(name in known for name in model.on)]
    whole = people + max([0, *map(len, rest.values())])
    records = Records(whole, columns, {name: np.concatenate([codes[name], rest[name]]) for name in known})
    found = Members(records, settled).verdict(np.arange(whole) < people)
    if found.holds and len(settled) < len(asked):
        open_ones = ", ".join(dict.fromkeys(model.model for model in asked if model not in settled))
        text = f"{found.statement}, as far as the release shows their values; undecided: {open_ones}"
        return replace(found, holds=None, statement=text)
    return found


# ---------------------------------------------------------------------- tight classes


def tight_columns(release: Release) -> list[str]:
    """Return columns of which the release says that certain values occur in every class."""
    return [one.name for one in release.statements if one.tightness in ("ends", "members")]


def tight_verdicts(release: Release, truth: Mapping[str, NDArray[np.int64]]) -> list[Verdict]:
    """Return one verdict for every such column; `truth` counts its values in the original.

    Rows cannot be matched with records any more, but counts can: every class whose interval ends at a value, or whose
    set names it, holds somebody who has it. So the original has a value at least as often as there are such classes.
    """
    out = []
    columns = {one.name: one for one in release.statements if one.tightness is not None}
    cells = release.cells(list(columns)) if columns else {}
    classes = classes_of(release, columns, cells)  # the same for every column
    for name in tight_columns(release):
        statement = columns[name]
        axis = Axis(name, statement, cells[name], classes=classes)
        low, high = ReportedRows.of([ReportedAxis.of(rows.Reading.of(axis), alone=True)]).bounds()
        there = truth[name][: statement.d]
        short = np.maximum(low - there, 0) + np.maximum(there - high - release.suppressed, 0)
        holds = not short.any()
        text = "every value occurs as often as its classes state"
        if not holds:
            text = "some values occur in classes more often than in the original"
        breaches = int(short.sum())
        share = float(1 - breaches / max(1, release.records))
        out.append(Verdict("tight-classes", name, 1.0, share, holds, "the original", release.records, breaches, text))
    return out


def as_published(original: Any, release: Published) -> Source:
    """Return an original with composites in place of columns that a release publishes as tuples."""
    made = {s.name: s.domain.made_of for s in release.statements if not s.column.is_open}
    return with_tuples(open_source(original), {name: members for name, members in made.items() if members})


def with_members(declared: Column, published: Column) -> Column:
    """Return a published composite whose tuples must differ as the policy requires, whatever the release claims."""
    found = None if published.is_open else published.domain
    names = () if found is None else found.made_of
    if names != tuple(declared.members):
        raise ReleaseError(
            f"{published.name!r} consists of {_list_names(names)} in the release, but of "
            f"{_list_names(tuple(declared.members))} in the policy.",
            hint="Check it against the policy that it was made with.",
        )
    if not isinstance(found, TupleDomain):
        return published
    return published.over(published.name, replace(found, differ=declared.differ))


def _list_names(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names)) or "itself alone"
