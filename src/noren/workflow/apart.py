"""The draft of a table that is decided part by part, where an engine has other machines and this one is too small.

The statements of all columns, and the proof that every published value covers its truth, come from the different pairs
of a true code and a published value that parts report: the same code makes them as for records on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import CodeBatch, Plan, Recode, Records, Table
from noren.engines.apart import Cuts, Decided, joined_pairs, of_parts
from noren.engines.local import kept_batches
from noren.errors import OutOfReach
from noren.methods.apart import SAMPLE, DecidePart, cuts_of, demand_sound, obstacles, rules_of, sound
from noren.methods.base import ClassMethod
from noren.methods.parts import Part
from noren.policy.policy import Policy
from noren.progress import Meter, silent
from noren.secret import RecordStream
from noren.sources.source import RowRange, Source
from noren.statements import CellBatch, Cells, CodeCells
from noren.workflow.draft import Draft
from noren.workflow.making import Making
from noren.workflow.mechanism import guarded_rules

MARGIN = 1.25
"""How many times as many records as it should a part may have, for cuts are found in a sample."""


class PartedDraft(Draft):
    """What is published of a table that is decided in parts. `decided` are the parts, which the engine holds."""

    def __init__(
        self,
        table: Table,
        decided: Decided,
        columns: Mapping[str, Any],
        plan: Plan,
        *,
        stream: RecordStream | None = None,
    ) -> None:
        """`plan` says what is drawn. A table of the different pairs stands for that of records: one line a pair."""
        self.decided = decided
        self.places: list[dict[str, NDArray[np.int64]]] = [{} for _ in decided.found]
        """For every part and column the line of each of its pairs."""
        codes: dict[str, NDArray] = {}
        recoded: dict[str, Recode] = {}
        for name, column in columns.items():
            found, codes[name], places = joined_pairs([one.pairs[name] for one in decided.found], column)
            if found is not None:
                recoded[name] = found
            for part, mine in zip(self.places, places, strict=True):
                part[name] = mine
        lines = max(len(one) for one in codes.values())
        spread = {name: np.resize(np.arange(len(one)), lines) for name, one in codes.items()}
        records = Records(lines, columns, {name: one[spread[name]] for name, one in codes.items()})
        own = {name: replace(one, data=one.data[spread[name]]) for name, one in recoded.items()}
        mould = replace(table, profile=replace(table.profile, records=lines))
        super().__init__(mould, replace(plan, treatments={**plan.treatments, **own}, records=records), stream=stream)
        self.table, self.records = table, table.n
        self.keep = np.broadcast_to(np.True_, table.n)
        self.notes = [*plan.notes, *_notes(decided)]
        self.figures = _figures(decided)

    def apply(self, batch: CodeBatch) -> CellBatch:
        raise self._elsewhere()

    __call__ = apply

    def part(self, start: int, stop: int) -> Making:
        raise self._elsewhere()

    def held(self, meter: Meter = silent) -> Iterator[CellBatch]:
        raise self._elsewhere()

    def _elsewhere(self) -> OutOfReach:
        message = f"{self.table.n:,} records were decided in parts on the cluster, and only the cluster can write them."
        return OutOfReach(message, hint='Give a directory (to=...) and the format "parquet".')

    @property
    def others(self) -> Making:
        """What makes the cells of columns that were not decided in parts, without keys."""
        return replace(self._making.part(0, 0), cells={})

    @property
    def apart(self) -> Decided:
        """The parts, for the engine that holds them."""
        return self.decided

    def tables(self) -> list[dict[str, NDArray]]:
        """For every part and column that was decided, the published code of each of its pairs."""
        made = {name: cells.data for name, cells in self._cells.items()}  # type: ignore[attr-defined]
        return [{name: made[name][lines] for name, lines in part.items()} for part in self.places]

    def sampled(self, most: int) -> tuple[dict[str, NDArray], dict[str, Cells]]:
        codes, part, number = self.decided.sampled(most)
        tables = self.tables()
        back = {name: np.flatnonzero(self.table.counts[name] > 0) for name in self.table.seen[1]}
        truth: dict[str, NDArray] = {}
        cells: dict[str, Cells] = {}
        for name, one in codes.items():
            if name not in self._cells:
                truth[name] = one.astype(np.int64)
                continue
            line = of_parts([places[name] for places in self.places], part, one)
            mine = self.records_seen.codes[name][line].astype(np.int64)
            truth[name] = back[name][mine] if name in back else mine
            cells[name] = CodeCells(self.by_name[name].kinds or 0, of_parts([t[name] for t in tables], part, one))
        names = [name for name in truth if name not in cells]
        batch = CodeBatch({name: truth[name] for name in names}, {}, {}, None, len(number), 0)
        drawn = self.others.under(self.stream).of_records(batch, names, np.arange(len(number)), number)
        return truth, {**cells, **drawn}


def _notes(decided: Decided) -> list[str]:
    """What all parts say, and how many they are."""
    sizes = [part.records for part in decided.found]
    said = [note for note in decided.found[0].notes if all(note in part.notes for part in decided.found)]
    return [*said, f"decided in {len(sizes):,} parts of {min(sizes):,} to {max(sizes):,} records"]


def _figures(decided: Decided) -> dict[str, float]:
    """Means over all records of what is a mean over the records of a part."""
    weights = [part.records for part in decided.found]
    names = decided.found[0].figures
    return {name: float(np.average([part.figures[name] for part in decided.found], weights=weights)) for name in names}


def parted(table: Table, policy: Policy, *, stream: RecordStream | None = None, key: str | None = None) -> Draft | None:
    """The draft of a table that does not fit this machine; None where it does, or no other machine is there.

    Refused by name and number where the policy asks for what only all records together can tell.
    """
    elsewhere = table.engine.elsewhere
    if elsewhere is None or not policy.forms_classes or elsewhere.fits(table.room):
        return None
    own = [part for part in policy.parts if part.method.forms_classes]
    method = own[0].method
    assert isinstance(method, ClassMethod)
    mine = (
        table.asking(own[0].requirements) if len(policy.parts) == 1 else table.part(own[0].columns, own[0].requirements)
    )
    found = obstacles(method, policy.require, table) + ([] if key is None else ["a record key ties rows to people"])
    if policy.mechanism == "judged" and guarded_rules(policy, {}):
        found.append('what the method gives away is judged over all records (unless mechanism = "ignored")')
    if found:
        raise OutOfReach(
            f"deciding about {table.n:,} records needs {table.room:,} bytes in one place, and the driver may take "
            f"{elsewhere.room:,}; part by part it cannot be decided, because {'; '.join(found)}.",
            hint="Give the driver more memory, or choose a method that decides part by part (mondrian, sweep).",
        )
    problems(mine, own[0])
    decide = DecidePart.of(mine, method.for_parts(mine))
    cuts = _cut(mine, decide, elsewhere)
    decided = elsewhere.decided(mine.source, table.reading(), cuts, decide)
    drawn = drawn_plan(table, policy)
    return PartedDraft(table, decided, mine.seen[0], drawn, stream=stream)


def problems(table: Table, part: Part) -> None:
    """Refuse what the method cannot do, before any data is read."""
    from noren.errors import PolicyError

    roles = {name: column.role for name, column in table.columns.items() if name in part.columns}
    if found := part.method.problems(roles, part.requirements):
        raise PolicyError(found)


def drawn_plan(table: Table, policy: Policy) -> Plan:
    """What the methods decide that draw beside the one of classes."""
    plans = [
        part.method.plan(table.part(part.columns, part.requirements))
        for part in policy.parts
        if not part.method.forms_classes
    ]
    return Plan.merged(plans)


def _cut(table: Table, decide: DecidePart, elsewhere: Any) -> Cuts:
    """Cuts after which every part meets the requirements as one class: a cut that leaves one short is taken back."""
    largest = elsewhere.rows_apart / table.n
    quasi = [name for name in decide.columns if not decide.columns[name].role.needs_requirement]
    sample = _sample(table, quasi)
    parts = int(np.ceil(MARGIN / largest))
    cuts = cuts_of(Records(len(sample[quasi[0]]), {n: decide.columns[n] for n in quasi}, sample), parts, largest)
    rules = rules_of(decide)
    names = list(rules.sensitive)
    sizes, held = elsewhere.part_counts(table.source, table.reading([*quasi, *names]), cuts, names)
    held = {name: _as_seen(one, decide, name) for name, one in held.items()}
    demand_sound(table, rules, held)
    while (short := sound(cuts, sizes, held, rules)) is not None:
        cuts, sizes, held = _joined(cuts, short, sizes, held)
    most = int(sizes.max())
    if not elsewhere.fits_part(most * table.room // table.n):
        raise OutOfReach(
            f"a part of {most:,} records that look alike, or that no cut leaves diverse enough, does not fit a worker.",
            hint="Give workers more memory (spark.noren.part.rows), or more quasi-identifiers to cut by.",
        )
    return cuts


def _as_seen(counts: NDArray[np.int64], decide: DecidePart, name: str) -> NDArray[np.int64]:
    if name not in decide.codes:
        return counts
    out = np.zeros((decide.columns[name].d, len(counts)), np.int64)
    np.add.at(out, decide.codes[name].astype(np.int64), counts.T)
    return out.T


def _joined(
    cuts: Cuts, part: int, sizes: NDArray[np.int64], held: Mapping[str, NDArray[np.int64]]
) -> tuple[Cuts, NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    fewer, number = cuts.joined(part)
    added = np.zeros(fewer.parts, np.int64)
    np.add.at(added, number, sizes)
    more = {}
    for name, counts in held.items():
        more[name] = np.zeros((fewer.parts, counts.shape[1]), np.int64)
        np.add.at(more[name], number, counts)
    return fewer, added, more


def _sample(table: Table, names: Sequence[str]) -> dict[str, NDArray]:
    """The codes of some records, drawn from all of the table: which are looked at is no release."""
    rng = np.random.default_rng()
    chosen = picked(np.broadcast_to(np.True_, table.n), min(1.0, SAMPLE / table.n), rng)
    source = PickedSource(table.source, table.drop, chosen)
    parts = list(table.engine.encoded(source, table.reading(names)))
    return {name: np.concatenate([batch.codes[name] for batch in parts]) for name in names}


AT_ONCE = 1 << 20


def picked(keep: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The numbers of published records, each taken with probability `share`, ascending."""
    found = []
    for start in range(0, len(keep), AT_ONCE):
        kept = np.flatnonzero(keep[start : start + AT_ONCE])
        found.append(start + (kept if share >= 1 else kept[rng.random(len(kept)) < share]))
    return np.concatenate(found) if found else np.zeros(0, np.int64)


class PickedSource:
    """A source of the records that have these numbers, ascending, among those that lack nothing in `drop`."""

    def __init__(self, source: Source, drop: Sequence[str], chosen: NDArray[np.int64]) -> None:
        self.inner = source
        self._drop = drop
        self._chosen = chosen
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def by_number(self) -> Source:
        """The source whose records the numbers count."""
        return self.inner

    @property
    def rows(self) -> int | None:
        return len(self._chosen)

    def over(self, part: Source, place: RowRange) -> Source:
        first, stop = np.searchsorted(self._chosen, [place.start, place.stop])
        return PickedSource(part, self._drop, self._chosen[first:stop] - place.start)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        start = 0
        for batch, _ in kept_batches(self.inner, columns, self._drop):
            low, high = np.searchsorted(self._chosen, [start, start + batch.num_rows])
            rows = self._chosen[low:high] - start
            start += batch.num_rows
            if len(rows):
                yield batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))

    def numbers(self, start: int, records: int) -> NDArray[np.int64]:
        """The numbers, in the table, of a run of the records that were taken."""
        return self._chosen[start : start + records]
