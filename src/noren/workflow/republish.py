"""What a register is told of a draft: who is in it, how columns are drawn, which values every class leaves possible.

The values are read from the published cells, as a reader reads them, and from nothing that a method computed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import Reading, Table
from noren.errors import DataError, PolicyError, Problem, SecretError
from noren.models.base import QUASI
from noren.models.classes import key_columns
from noren.policy.options import RandomnessOptions
from noren.policy.policy import Policy
from noren.ragged import chosen, offsets_of, owners
from noren.schema.column import Column
from noren.secret import ClassSets, DrawnColumn, KeyRule, Publication, PublishedClasses, RecordStream, Register, Secret
from noren.statements import Design, Statement
from noren.workflow.draft import Draft

RANGE_RECORDS = 1 << 24
UNREGISTERED = (
    "no register: what people are among is not kept, so a later release cannot keep it (name a secret and a record key "
    "under [randomness])"
)
UNCOUNTED = (
    "noised margins spend epsilon = {:g} of everybody's budget; without a register (a secret and a record key under "
    "[randomness]) nobody adds up what several releases spend"
)


class UniqueKeys:
    """Collects record keys and refuses a repeated one: two people under one key would share their decoys.

    Only keyed digests are kept, eight bytes a record, in a temporary file that is checked range by range, so that
    memory does not grow with the table.
    """

    def __init__(self, stream: RecordStream) -> None:
        self._stream = stream
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._records = 0
        self._known = 0

    @property
    def stream(self) -> RecordStream:
        """What makes digests of keys, for an engine that counts repeated ones where they are."""
        return self._stream

    def found(self, repeated: int) -> None:
        """So many records repeat another one's key, says an engine that looked itself."""
        self._known += repeated

    def __call__(self, keys: Any) -> None:
        digests = np.ascontiguousarray(self._stream.digests(keys)[:, 0])
        self._file.write(digests.tobytes())
        self._records += len(digests)

    def demand_unique(self, column: str) -> None:
        repeated = self._known + self._repeated()
        if repeated:
            raise DataError(
                f"the record key {column!r} is not unique: {repeated} records repeat another one's key.",
                hint="Choose a column that names every person once, or remove repeated records. Keys that differ in "
                "spaces or case alone are the same, unless key_spaces or key_case say keep under [randomness].",
            )

    def close(self) -> None:
        self._file.close()

    def _repeated(self) -> int:
        if self._records == 0:
            return 0
        self._file.flush()
        digests = np.memmap(self._file, np.uint64, "r", shape=(self._records,))
        ranges = -(-self._records // RANGE_RECORDS)
        repeated = 0
        for number in range(ranges):
            if ranges == 1:
                part = np.array(digests)
            else:
                low = (number << 64) // ranges
                high = ((number + 1) << 64) // ranges - 1
                chunks = []
                for start in range(0, self._records, RANGE_RECORDS):
                    chunk = digests[start : start + RANGE_RECORDS]
                    chunks.append(chunk[(chunk >= np.uint64(low)) & (chunk <= np.uint64(high))])
                part = np.concatenate(chunks)
            repeated += len(part) - len(np.unique(part))
        return repeated


def secret_file(policy: Policy, given: str | Path | None) -> Path | None:
    """The secret file that a policy or a caller names; None for fresh randomness."""
    options = policy.randomness
    if given is not None:
        if options.record_key is None:
            where, hint = "randomness.record_key", "Name the column that identifies a person, unique in the table."
            raise PolicyError([Problem(where, "a secret needs a record key.", hint)], source=policy.source)
        return Path(given)
    if options.secret is None and (options.record_key is not None or options.fingerprint is not None):
        raise SecretError(
            "the policy asks for memoised decoys, and no secret is given.",
            hint="Make one with `noren secret FILE` and give it with --secret FILE or randomness.secret.",
        )
    return None if options.secret is None else policy.base / options.secret


def memoised_stream(policy: Policy, path: Path | None) -> RecordStream | None:
    """The randomness of a secret file, if it is the secret that the policy demands.

    Keys are evened out as the policy says, and renamed columns are drawn as they were.
    """
    if path is None:
        return None
    secret = Secret.load(path)
    wanted = policy.randomness.fingerprint
    if wanted is not None and wanted != secret.fingerprint:
        raise SecretError(
            f"{path} has the fingerprint {secret.fingerprint}, the policy demands {wanted}.",
            hint="Use the secret of the earlier releases: under another one, releases can be intersected.",
        )
    return RecordStream(secret, policy.randomness.rule, policy.randomness.columns)


def person_digests(table: Table, key: str, stream: RecordStream) -> NDArray[np.uint64]:
    """What a register knows the person of every record by."""
    reading = Reading(drop=table.drop, key=key)
    parts = [stream.people(batch.keys) for batch in table.engine.encoded(table.source, reading)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


@dataclass
class Registration:
    """One register, what it knows people by, and what a release adds to it."""

    register: Register
    stream: RecordStream
    key: str
    rule: KeyRule
    memoised: bool
    digests: NDArray[np.uint64] | None = None
    """What it knows the person of every record of the table by."""
    new: Publication | None = None

    def read(self, table: Table) -> None:
        self.digests = person_digests(table, self.key, self.stream)

    def recalled(self, table: Table, policy: Policy) -> Table:
        """The table with what earlier releases leave possible, of columns that must stay among the same values."""
        assert self.digests is not None, "read first"
        names = [name for model in policy.require if model.invariant for name in model.on]
        known, columns = self.register.contents, policy.randomness.columns
        found = {name: known.sets_of(columns.get(name, name), self.digests) for name in names}
        return replace(table, earlier=found) if found else table

    def check(self, draft: Draft, policy: Policy) -> list[str]:
        """Raise where an earlier release could be intersected with this one; else what the holder should know."""
        assert self.digests is not None, "read first"
        self.new = publication(draft, policy, self.digests, self.rule, self.memoised)
        return self.register.check(self.new)

    def recording(self, published: Callable[[], bool]) -> AbstractContextManager[None]:
        """The register holds the release while it is published, and afterwards if it was."""
        assert self.new is not None, "checked first"
        return self.register.recording(self.new, published)


class Registers:
    """Everything that remembers whom earlier releases were about: the register of the secret; where none is used, those
    that lie beside the policy."""

    def __init__(self, policy: Policy, secret: str | Path | None) -> None:
        options, path = policy.randomness, secret_file(policy, secret)
        self.key = options.record_key
        self.keyed = memoised_stream(policy, path)
        """What the register of the secret knows people by."""
        memoised = options.mode == "memoised"
        self.stream = self.keyed if memoised else None
        """What draws, where draws must be the same in every release."""
        if path is None or self.keyed is None:
            self.all = _beside(policy)
        else:
            self.all = [Registration(Register.open(path), self.keyed, str(self.key), options.rule, memoised)]

    @contextmanager
    def unique_keys(self, policy: Policy) -> Iterator[UniqueKeys | None]:
        """What sees the record keys while the table is read, and refuses repeated ones at the end; None without."""
        wanted = self.keyed is not None and self.key is not None and not policy.people.key
        keys = UniqueKeys(self.keyed) if wanted and self.keyed is not None else None
        with nullcontext() if keys is None else closing(keys):
            yield keys
            if keys is not None:
                keys.demand_unique(str(self.key))

    def recall(self, table: Table, policy: Policy) -> Table:
        """The table with what earlier releases leave possible of every person."""
        for one in self.all:
            one.read(table)
            table = one.recalled(table, policy)
        return table

    def check(self, draft: Draft, policy: Policy) -> list[str]:
        """Raise where an earlier release could be intersected with this one; else what the holder should know."""
        notes = [note for one in self.all for note in one.check(draft, policy)]
        if not self.all and any(model.invariant for model in policy.require):
            notes.append(UNREGISTERED)
        if not self.all and policy.margins:
            notes.append(UNCOUNTED.format(policy.spent))
        return notes

    @contextmanager
    def recording(self, published: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """All registers hold the release while it is published."""
        with ExitStack() as stack:
            for one in self.all:
                stack.enter_context(one.recording(published))
            yield


def _beside(policy: Policy) -> list[Registration]:
    """The registers in the folder of the policy that know people by one of its columns."""
    out, columns = [], policy.randomness.columns
    for register in Register.beside(policy.base):
        rule = register.contents.key
        names = [name for name in policy.attributes if rule and columns.get(name, name) == rule.column]
        if rule is not None and names:
            out.append(Registration(register, register.stream(), names[0], rule, memoised=False))
    return out


def publication(
    draft: Draft, policy: Policy, digests: NDArray[np.uint64], rule: KeyRule, memoised: bool
) -> Publication:
    """What a register must know of a draft. `digests` are those of all records."""
    options = policy.randomness
    people, place = np.unique(digests[draft.keep], return_inverse=True)
    columns = {name: draft.by_name[name].column for name in draft.designs}
    classes: dict[str, PublishedClasses] = {}
    for statement in draft.statements:
        if not statement.role.needs_requirement or statement.name in draft.designs or statement.name not in draft.cells:
            continue
        found = class_sets(draft, statement)
        if found is not None:
            asked = [model for model in policy.require if statement.name in model.on]
            classes[options.columns.get(statement.name, statement.name)] = PublishedClasses(
                _of_people(found, place.ravel(), len(people)),
                max([2, *(model.least_set_size for model in asked)]),
                any(model.invariant for model in asked),
            )
    return Publication(
        key=rule,
        drawn=drawn_columns(columns, draft.designs, options),
        memoised=memoised,
        people=people,
        classes=classes,
        named=frozenset(options.columns.get(name, name) for name in options.columns),
        repeat=options.repeat,
        spent=policy.spent,
        budget=options.budget,
    )


def drawn_columns(
    columns: Mapping[str, Column], designs: Mapping[str, Design], options: RandomnessOptions
) -> dict[str, DrawnColumn]:
    """How every drawn column is drawn, under the name that the register knows."""
    return {
        options.columns.get(name, name): DrawnColumn(columns[name].domain.values, design.title, design.eta, design.p)
        for name, design in designs.items()
    }


def class_sets(draft: Draft, statement: Statement) -> ClassSets | None:
    """The values that the class of every published record leaves possible; None where cells say nothing of values."""
    import polars as pl

    rows = np.flatnonzero(draft.keep)
    cells = draft.cells[statement.name].take(rows)
    kinds, kind = cells.distinct()
    told = statement.possible(kinds)
    if told is None:
        return None
    if statement.is_class:
        number = kind
    else:
        keys = [one for one in draft.statements if one.role in QUASI and one.is_key and one.name in draft.cells]
        batch = {one.name: draft.cells[one.name].take(rows) for one in keys}
        frame = pl.DataFrame({f"k{i}": key for i, key in enumerate(key_columns(keys, batch))})
        number = frame.select(pl.struct(pl.all()).rank("dense"))[:, 0].to_numpy().astype(np.int64) - 1
    pairs = np.unique(np.stack([number, kind], axis=1), axis=0)
    bounds, entries = chosen(told[0], pairs[:, 1])
    width = max(1, statement.d)
    found = np.unique(pairs[owners(bounds), 0] * width + told[1][entries])
    sizes = np.bincount(found // width, minlength=int(number.max(initial=-1)) + 1)
    return ClassSets(statement.domain.values, number, offsets_of(sizes), found % width).distinct()


def _of_people(sets: ClassSets, person: NDArray[np.int64], people: int) -> ClassSets:
    """The sets of people who may have several records: all that any of these leaves possible."""
    if len(person) == people:
        which = np.empty(people, np.int64)
        which[person] = sets.which
        return ClassSets(sets.values, which, sets.bounds, sets.codes)
    bounds, entries = chosen(sets.bounds, sets.which)
    width = max(1, len(sets.values))
    found = np.unique(person[owners(bounds)] * width + sets.codes[entries])
    sizes = np.bincount(found // width, minlength=people)
    return ClassSets(sets.values, np.arange(people), offsets_of(sizes), found % width).distinct()
