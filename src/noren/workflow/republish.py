"""Prepares the register's entry of a draft: its people, its designs, and the possible values of every class.

The values are read from the published cells, as a reader reads them, and from nothing that a method computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

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

UNREGISTERED = (
    "no register: a later release cannot keep people among the same values (set a secret and a record key under "
    "[randomness])"
)
UNCOUNTED = (
    "noised margins spend epsilon = {:g} of everybody's privacy budget; without a register (a secret and a record "
    "key under [randomness]) the budget of several releases is not added up"
)


def demand_unique(digests: NDArray[np.uint64], column: str) -> None:
    """Refuse repeated record keys, because two people with one key would share their decoys."""
    if repeated := len(digests) - len(np.unique(digests)):
        raise DataError(
            f"the record key {column!r} is not unique: {repeated} records repeat another one's key.",
            hint=(
                "Choose a column that is unique for every person, or remove repeated records. Keys that differ "
                'only in spaces or case are equal, unless key_spaces or key_case is "keep" under [randomness].'
            ),
        )


def secret_file(policy: Policy, given: str | Path | None) -> Path | None:
    """Return the secret file of a policy or a caller; None for fresh randomness."""
    options = policy.randomness
    if given is not None:
        if options.record_key is None:
            where, hint = "randomness.record_key", "Set the column that identifies a person, unique in the table."
            raise PolicyError([Problem(where, "a secret needs a record key.", hint)], source=policy.source)
        return Path(given)
    if options.secret is None and (options.record_key is not None or options.fingerprint is not None):
        raise SecretError(
            "the policy asks for memoised decoys, and no secret is given.",
            hint="Make one with `noren secret FILE` and give it with --secret FILE or randomness.secret.",
        )
    return None if options.secret is None else policy.base / options.secret


def memoised_stream(policy: Policy, path: Path | None) -> RecordStream | None:
    """Return the randomness of a secret file, if it has the required fingerprint.

    Keys are evened out as the policy says, and renamed columns are drawn as they were.
    """
    if path is None:
        return None
    secret = Secret.load(path)
    wanted = policy.randomness.fingerprint
    if wanted is not None and wanted != secret.fingerprint:
        raise SecretError(
            f"{path} has the fingerprint {secret.fingerprint}, but the policy requires {wanted}.",
            hint="Use the secret of the earlier releases; under another secret, releases can be intersected.",
        )
    return RecordStream(secret, policy.randomness.rule, policy.randomness.columns)


def person_digests(table: Table, key: str, stream: RecordStream) -> NDArray[np.uint64]:
    """Return the register's identity of the person of every record."""
    reading = Reading(drop=table.drop, key=key)
    parts = [stream.people(batch.keys) for batch in table.engine.encoded(table.source, reading)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


@dataclass
class Registration:
    """One register, its identification of people, and the entry of a release."""

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

    def recall_sets(self, table: Table, policy: Policy) -> Table:
        """Return the table with what earlier releases leave possible, for columns that must keep the same values."""
        assert self.digests is not None, "read first"
        names = [name for model in policy.require if model.invariant for name in model.on]
        known, columns = self.register.contents, policy.randomness.columns
        found = {name: known.sets_of(columns.get(name, name), self.digests) for name in names}
        return replace(table, earlier=found) if found else table

    def check(self, draft: Draft, policy: Policy) -> list[str]:
        """Raise if an earlier release could be intersected with this one; otherwise return remarks."""
        assert self.digests is not None, "read first"
        self.new = publication(draft, policy, self.digests, self.rule, self.memoised)
        return self.register.check(self.new)

    def recording(self, published: Callable[[], bool]) -> AbstractContextManager[None]:
        """Record the release while it is published; keep the record if it was."""
        assert self.new is not None, "checked first"
        return self.register.recording(self.new, published)


class Registers:
    """All registers of earlier releases: that of the secret, otherwise those beside the policy."""

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

    def recall(self, table: Table, policy: Policy) -> Table:
        """Return the table with what earlier releases leave possible for every person; refuse repeated record keys."""
        for one in self.all:
            one.read(table)
            if one.stream is self.keyed and one.digests is not None and not policy.people.key:
                demand_unique(one.digests, one.key)
            table = one.recall_sets(table, policy)
        return table

    def check(self, draft: Draft, policy: Policy) -> list[str]:
        """Raise if an earlier release could be intersected with this one; otherwise return remarks."""
        notes = [note for one in self.all for note in one.check(draft, policy)]
        if not self.all and any(model.invariant for model in policy.require):
            notes.append(UNREGISTERED)
        if not self.all and policy.margins:
            notes.append(UNCOUNTED.format(policy.spent))
        return notes

    @contextmanager
    def recording(self, published: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Record the release in all registers while it is published."""
        with ExitStack() as stack:
            for one in self.all:
                stack.enter_context(one.recording(published))
            yield


def _beside(policy: Policy) -> list[Registration]:
    """Return the registers in the folder of the policy that identify people by one of its columns."""
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
    """Return the register's entry of a draft. `digests` are those of all records."""
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
    """Return the design of every drawn column, under its name in the register."""
    return {
        options.columns.get(name, name): DrawnColumn(columns[name].domain.values, design.title, design.eta, design.p)
        for name, design in designs.items()
    }


def class_sets(draft: Draft, statement: Statement) -> ClassSets | None:
    """Return the possible values in the class of every published record; None if cells are not about values."""
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
    """Return the sets of people who may have several records: all values that any of these leaves possible."""
    if len(person) == people:
        which = np.empty(people, np.int64)
        which[person] = sets.which
        return ClassSets(sets.values, which, sets.bounds, sets.codes)
    bounds, entries = chosen(sets.bounds, sets.which)
    width = max(1, len(sets.values))
    found = np.unique(person[owners(bounds)] * width + sets.codes[entries])
    sizes = np.bincount(found // width, minlength=people)
    return ClassSets(sets.values, np.arange(people), offsets_of(sizes), found % width).distinct()
