"""Collection: each record is anonymised at its source, before anybody has a table.

A client knows the policy and nothing else. It draws the sets of one record and sends them; what was collected is then
shuffled, verified and analysed like any other release. The truth never leaves the client, so the collector needs no
trust as far as the sets go. **Sender anonymity is assumed, not provided**: whoever sees which device sent a report
knows whose sets they are, and the columns published as they are may identify a person separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.designs import draw_columns
from noren.engines import engine_for
from noren.engines.engine import OPEN_LIMIT, ValueCounts
from noren.errors import DataError, NorenError, PolicyError, Problem, ReleaseError, SecretError
from noren.methods.decoys import Decoys
from noren.models.base import Judgement, select_searchable
from noren.policy.policy import Policy
from noren.policy.resolve import Met, resolve_column
from noren.release.published import Published
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.domain import MISSING
from noren.schema.hierarchy import value_text
from noren.schema.tuples import tuple_text
from noren.secret import Keystream, Publication, RecordStream, Register
from noren.statements import (
    Cells,
    CodeCells,
    Design,
    ExactStatement,
    OpenCells,
    OpenStatement,
    SetCells,
    SetStatement,
    Statement,
    concat,
)
from noren.statements.texts import arrow_type, encode_bins, encode_labels, label_counts
from noren.workflow.anonymize import make_manifest
from noren.workflow.prepare import read_policy
from noren.workflow.republish import drawn_columns, memoised_stream
from noren.workflow.verify import check, demand

CHUNK = 10_000


class Collector:
    """Anonymise one record at a time, and make a release from the collected reports.

    With a secret file and a record key in the policy, a person who reports the same value again sends the same set.

    >>> import noren as nr
    >>> jobs = ["cook", "clerk", "miner", "nurse"]
    >>> asked = [nr.models.FrequencyLDiversity(on="job", l=2)]
    >>> policy = nr.Policy(attributes={"job": nr.sensitive(values=jobs)}, require=asked)
    >>> client = nr.Collector(policy)
    >>> sent = client.report({"job": "cook"})
    >>> len(sent["job"]), "cook" in sent["job"]
    (2, True)
    >>> nr.Collector(policy).release([client.report({"job": job}) for job in jobs * 10])
    <Release of 40 records: job; sets: job>
    """

    def __init__(self, policy: Policy | str | Path, *, secret: str | Path | None = None) -> None:
        self.policy = read_policy(policy)
        problems = self._problems()
        if problems:
            raise PolicyError(problems, source=self.policy.source)
        met = self._resolve(self.policy.protected)
        self.columns: dict[str, Column] = {name: one.column for name, one in met.items()}
        declared = [n for n in self._plain() if (a := self.policy.attributes[n]).bins or a.values]
        self._declared = {name: one.column for name, one in self._resolve(declared).items()}
        method = self.policy.methods[0]
        assert isinstance(method, Decoys)
        try:
            counts = {name: one.counts for name, one in met.items()}
            self.designs: dict[str, Design] = method.decide(
                self.columns, counts, select_searchable(self.policy.require)
            )[0]
        except PolicyError as error:
            raise PolicyError(error.problems, source=self.policy.source) from None
        self.left_out = 0
        """Reports that the last release left out, because no client of this policy made them."""
        drawn = {name: SetStatement(column, self.designs[name]) for name, column in self.columns.items()}
        Judgement.of(drawn, self.policy.require)  # refuse now what reports could not be judged by
        self._key = self.policy.randomness.record_key
        self._secret = secret
        self._register: Register | None = None
        if secret is not None and self._key is None:
            hint = "Set the column that identifies a person."
            raise PolicyError([Problem("randomness.record_key", "a secret needs a record key.", hint)])
        if secret is not None:
            _ = self._stream

    def _problems(self) -> list[Problem]:
        """Return what a client that does not know the table cannot do."""
        out = []
        for name in self.policy.protected:
            attribute = self.policy.attributes[name]
            if attribute.values is None and attribute.bins is None:
                message = "a client does not know which values occur in the data."
                way = "[[together]] values = [[...], [...]]" if attribute.members else "values = [...] or bins = [...]"
                out.append(Problem(f"attributes.{name}", message, f"Declare them: {way}."))
        if self.policy.margins:
            message = "noised margins are not possible if people report one by one."
            out.append(Problem("margins", message, "Remove [[margins]] from the policy of a Collector."))
        alone = self.policy.methods[0] if len(self.policy.methods) == 1 else None
        if not isinstance(alone, Decoys) or alone.form != "sets":
            out.append(Problem("method.form", "collected reports are sets.", 'Use form = "sets".'))
        elif alone.prior == "data":
            message = "a client does not know the overall distribution."
            out.append(
                Problem("method.prior", message, 'Use prior = "any", with which t-closeness holds for every prior.')
            )
        return out

    def _resolve(self, names: Iterable[str]) -> dict[str, Met]:
        out, problems = {}, []
        for name in names:
            column, found = resolve_column(self.policy, name, ValueCounts(name))
            problems += found
            if column is not None:
                out[name] = column
        if problems:
            raise PolicyError(problems, source=self.policy.source)
        return out

    @cached_property
    def _stream(self) -> RecordStream | None:
        """Return the stream of draws, which only the client needs."""
        options = self.policy.randomness
        path = self._secret
        if path is None and options.secret is not None:
            path = self.policy.base / options.secret
        if path is None and options.record_key is None:
            return None
        if path is None:
            raise SecretError(
                "the policy asks for memoised decoys, and no secret is given.",
                hint="Make one with `noren secret FILE` and give it: Collector(policy, secret=FILE).",
            )
        stream = memoised_stream(self.policy, Path(path))
        self._register = Register.open(path)
        self._register.check(self._publication(np.zeros(0, np.uint64)))
        return stream

    def _publication(self, people: NDArray[np.uint64]) -> Publication:
        options = self.policy.randomness
        drawn = drawn_columns(self.columns, self.designs, options)
        named = frozenset(options.columns.values())
        return Publication(options.rule, drawn, people=people, named=named, repeat=options.repeat)

    # ------------------------------------------------------------------ on the client

    def report(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return one record as it may be sent: sets for protected columns, bins where declared, no identifiers."""
        import pyarrow as pa

        absent = [name for name in self.policy.declared if name not in record]
        strange = [name for name in record if name not in self.policy.declared]
        if absent or strange:
            lacks, more = (", ".join(map(repr, names)) or "no column" for names in (absent, strange))
            raise DataError(
                f"the record lacks {lacks} and has {more} in addition.",
                hint="Give exactly the columns of the policy.",
            )
        record = {**record, **self._tuples(record)}
        codes = {name: self._code(column, record[name]) for name, column in self.columns.items()}
        digests, person = None, None
        randomness = Keystream() if self._stream is None else self._stream
        if self._stream is not None:
            key = self._text(record[str(self._key)])
            if key is None:
                raise DataError(f"the record key {self._key!r} is missing.", hint="Give every person a key.")
            keys = pa.array([key], pa.string())
            digests, person = self._stream.digests(keys), self._stream.people(keys)
        sets = draw_columns(self.designs, codes, randomness, digests=digests)
        out: dict[str, Any] = {}
        for name in self.policy.published:
            if name in sets:
                values, cells = self.columns[name].domain.typed_values(), sets[name]
                assert isinstance(cells, SetCells)  # decoys alone are collected
                out[name] = [values[code] for code in cells.codes(self.designs[name].eta)[0]]
            elif self._text(record[name]) is None:
                if self.policy.attributes[name].missing != "category":
                    raise DataError(f"the value of {name!r} is missing.")
                out[name] = None
            elif name in self._declared:
                column = self._declared[name]
                out[name] = column.domain.typed_values()[int(self._code(column, record[name])[0])]
            else:
                out[name] = record[name]
        if person is not None:
            assert self._register is not None, "opened with the stream"
            if (self._register.contents.places(person) < 0).any():  # a report drawn otherwise could be intersected
                self._register.record(self._publication(person))
        return out

    def _tuples(self, record: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the tuples of a record for columns that are hidden together."""
        out = {}
        for name, members in self.policy.composites.items():
            texts = [self._text(record[member]) for member in members]
            lost = all(text is None for text in texts)
            out[name] = None if lost else tuple_text([MISSING if text is None else text for text in texts])
        return out

    def _text(self, cell: Any) -> str | None:
        """Return the cell as tables are read: None, NaN, an empty text and the policy's marks are missing."""
        nothing = cell is None or (isinstance(cell, float | np.floating) and np.isnan(cell))
        text = None if nothing else value_text(cell)
        return None if text in ("", *self.policy.data.missing_values) else text

    def _code(self, column: Column, cell: Any) -> np.ndarray:
        import pyarrow as pa

        text = pa.array([self._text(cell)], pa.string())
        if column.domain.edges is not None:
            code, missing, outside = encode_bins(text, column.name, column.domain)
            bad = missing + outside
        else:
            code, bad = encode_labels(text, column.name, column.domain)
        if bad:
            raise DataError(f"the value of {column.name!r} is missing or outside its declared domain.")
        return code

    # ------------------------------------------------------------------ where reports arrive

    def release(self, reports: Iterable[Mapping[str, Any]]) -> Release:
        """Return a verified release of the collected reports, in random order.

        A report that the policy's clients cannot have made is left out, and `left_out` counts them: one broken sender
        must not stop the others.
        """
        drawn: dict[str, Statement] = {n: SetStatement(self.columns[n], self.designs[n]) for n in self.columns}
        kept: list[dict[str, Cells]] = []
        exact: dict[str, list[Any]] = {name: [] for name in self._plain()}
        wanted = {*self.policy.published}
        self.left_out = 0
        for chunk in _chunks(reports):
            shaped = [r for r in chunk if isinstance(r, Mapping) and r.keys() == wanted]
            good = self._sound(shaped, drawn)
            self.left_out += len(chunk) - len(good)
            if good:
                kept.append({name: self._sets(one, good) for name, one in drawn.items()})
                for name, told in exact.items():
                    told += [report[name] for report in good]
        if not kept:
            hint = "Check that the reports were made by report()." if self.left_out else "Collect at least one."
            raise DataError(f"no reports{', only malformed ones' if self.left_out else ''}.", hint=hint)
        passed = {name: self._exact(name, told) for name, told in exact.items()}
        said = drawn | {name: statement for name, (statement, _) in passed.items()}
        statements = [said[name] for name in self.policy.published]
        whole = (concat(kept) if drawn else {}) | {name: one for name, (_, one) in passed.items()}
        cells = {name: whole[name] for name in self.policy.published}
        records = len(next(iter(cells.values())))
        (shuffled,) = engine_for().scatter([cells], records, Keystream(), None)
        published = Published(statements, MemoryStore(shuffled), records)
        verdicts = check(published, self.policy.require)
        demand(verdicts)
        manifest = make_manifest(self.policy, published, verdicts, self._key is not None)
        return Release(manifest, published.store)

    def _sound(self, reports: list[Mapping[str, Any]], drawn: Mapping[str, Statement]) -> list[Mapping[str, Any]]:
        """Return the reports without malformed ones. A batch with a bad report is halved until it is isolated."""
        if not reports or self._acceptable(reports, drawn):
            return reports
        half = len(reports) // 2
        return self._sound(reports[:half], drawn) + self._sound(reports[half:], drawn) if half else []

    def _acceptable(self, reports: list[Mapping[str, Any]], drawn: Mapping[str, Statement]) -> bool:
        """Return whether all sets come from their designs and meet the requirements, and all other values are as
        declared."""
        try:
            cells = {name: self._sets(one, reports) for name, one in drawn.items()}
            for name in self._plain():
                self._declared_only(name, [report[name] for report in reports])
            demand(check(Published([*drawn.values()], MemoryStore(cells), len(reports)), self.policy.require))
        except NorenError:
            return False
        return True

    def _sets(self, statement: Statement, reports: list[Mapping[str, Any]]) -> Cells:
        """Return the reported sets of a column; refuse a set that its design does not draw."""
        import pyarrow as pa

        name = statement.name
        try:
            lists = pa.array([report[name] for report in reports], pa.list_(arrow_type(statement.domain.kind)))
            cells = statement.from_arrow(lists)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise ReleaseError(f"{name!r} of a report is not a set of values.") from None
        design = self.designs[name]
        weights = design.member_weights(cells.distinct()[0].codes(design.eta).astype(np.int64))  # type: ignore[attr-defined]
        if design.floor == 0 and (weights.sum(axis=1) <= 0).any():
            raise ReleaseError(f"the set of {name!r} in a report cannot come from the design.")
        return cells

    def _declared_only(self, name: str, values: list[Any]) -> None:
        """Refuse undeclared values in a column that is reported exactly."""
        texts = self._texts(name, values)
        if texts.null_count and self.policy.attributes[name].missing != "category":
            raise ReleaseError(f"a report's {name!r} is missing.")
        if name in self._declared and encode_labels(texts.drop_null(), name, self._declared[name].domain)[1]:
            raise ReleaseError(f"{name!r} of a report is outside its declared domain.")

    def _texts(self, name: str, values: list[Any]) -> Any:
        import pyarrow as pa

        if not all(value is None or isinstance(value, str | int | float | date) for value in values):
            raise ReleaseError(f"{name!r} of a report is not a single value.")
        try:
            return pa.array([None if value is None else value_text(value) for value in values], pa.string())
        except (pa.ArrowException, ValueError):  # a lone surrogate is no text
            raise ReleaseError(f"{name!r} of a report is not a text.") from None

    def _plain(self) -> list[str]:
        return [name for name in self.policy.published if name not in self.policy.protected]

    def _exact(self, name: str, values: list[Any]) -> tuple[Statement, Cells]:
        """Return a column that is reported exactly: unless declared, its domain is taken from the reports."""
        texts = self._texts(name, values)
        labels, counts, missing = label_counts(texts, name)
        known = dict(zip(labels, counts.tolist(), strict=True))
        met, problems = resolve_column(
            self.policy, name, ValueCounts(name, known, missing, is_open=len(labels) > OPEN_LIMIT)
        )
        if problems or met is None:
            raise PolicyError(problems, source=self.policy.source)
        if met.column.is_open:
            return OpenStatement(met.column), OpenCells(texts)
        return ExactStatement(met.column), CodeCells(met.column.d, encode_labels(texts, name, met.column.domain)[0])


def _chunks(reports: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    source = iter(reports)
    while chunk := list(islice(source, CHUNK)):
        yield chunk
