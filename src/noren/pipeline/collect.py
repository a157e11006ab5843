"""Collection: each person's record is anonymised at its source, before anybody holds a table.

A client knows the policy and nothing else. It draws the sets of one record and sends them; what was collected is then
shuffled, verified and analysed like any other release. The truth never leaves the client, so the collector needs no
trust as far as the sets go. **Sender anonymity is assumed, not provided**: whoever sees which device sent a report
knows whose sets they are, and the columns published as they are may identify a person on their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import (
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
from noren.cells.encode import encode_bins, encode_labels, label_counts
from noren.cells.texts import arrow_type
from noren.designs import draw_columns
from noren.engines import engine_for
from noren.errors import DataError, PolicyError, Problem, ReleaseError, SecretError
from noren.methods.decoys import Decoys
from noren.pipeline.draft import make_manifest
from noren.pipeline.keys import memoised_stream
from noren.pipeline.prepare import read_policy
from noren.pipeline.republish import drawn_columns
from noren.pipeline.verify import check, demand
from noren.policy.policy import Policy
from noren.policy.resolve import Met, resolve_column
from noren.release.published import Published
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.hierarchy import value_text
from noren.secret import Keystream, Publication, RecordStream, Register
from noren.table.profile import OPEN_LIMIT, ValueCounts

CHUNK = 10_000


class Collector:
    """Anonymises one record at a time, and makes a release of what was collected.

    With a secret file and a record key in the policy, a person who reports the same value again sends the same set.
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
            self.designs: dict[str, Design] = method.decide(self.columns, counts, self.policy.require)[0]
        except PolicyError as error:
            raise PolicyError(error.problems, source=self.policy.source) from None
        self._key = self.policy.randomness.record_key
        self._secret = secret
        self._register: Register | None = None
        if secret is not None and self._key is None:
            hint = "Name the column that identifies a person."
            raise PolicyError([Problem("randomness.record_key", "a secret needs a record key.", hint)])
        if secret is not None:
            _ = self._stream

    def _problems(self) -> list[Problem]:
        """What a client that does not know the table cannot do."""
        out = []
        for number, model in enumerate(self.policy.require, 1):
            if "prior" in model.needs:
                message = "t-closeness needs the overall distribution, which a client does not have."
                out.append(Problem(f"require[{number}]", message, "Use diversity, or release a collected table."))
        for name in self.policy.protected:
            attribute = self.policy.attributes[name]
            if attribute.values is None and attribute.bins is None:
                message = "a client does not know which values occur."
                out.append(Problem(f"attributes.{name}", message, "Declare them: values = [...] or bins = [...]."))
        alone = self.policy.methods[0] if len(self.policy.methods) == 1 else None
        if not isinstance(alone, Decoys) or alone.form != "sets":
            out.append(Problem("method.form", "collected reports are sets.", 'Use form = "sets".'))
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
        """Needed on the client alone: where reports arrive, nobody has the secret."""
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
        """One record as it may be sent: sets for protected columns, bins where declared, no identifiers."""
        import pyarrow as pa

        absent = [name for name in self.policy.attributes if name not in record]
        strange = [name for name in record if name not in self.policy.attributes]
        if absent or strange:
            raise DataError(
                f"the record lacks {', '.join(map(repr, absent)) or 'nothing'} and has "
                f"{', '.join(map(repr, strange)) or 'nothing'} besides.",
                hint="A record has exactly the columns of the policy.",
            )
        codes = {name: self._code(column, record[name]) for name, column in self.columns.items()}
        digests, randomness = None, Keystream() if self._stream is None else self._stream
        if self._stream is not None:
            key = self._text(record[str(self._key)])
            if key is None:
                raise DataError(f"the record key {self._key!r} is missing.", hint="Every person needs one.")
            keys = pa.array([key], pa.string())
            digests, person = self._stream.digests(keys), self._stream.people(keys)
            assert self._register is not None, "opened with the stream"
            if (self._register.contents.places(person) < 0).any():  # a report drawn otherwise could be intersected
                self._register.record(self._publication(person))
        sets = draw_columns(self.designs, codes, randomness, digests=digests)
        out: dict[str, Any] = {}
        for name in self.policy.published:
            if name in sets:
                values, cells = self.columns[name].domain.typed(), sets[name]
                assert isinstance(cells, SetCells)  # decoys alone are collected
                out[name] = [values[code] for code in cells.codes(self.designs[name].eta)[0]]
            elif self._text(record[name]) is None:
                if self.policy.attributes[name].missing != "category":
                    raise DataError(f"the value of {name!r} is missing.")
                out[name] = None
            elif name in self._declared:
                column = self._declared[name]
                out[name] = column.domain.typed()[int(self._code(column, record[name])[0])]
            else:
                out[name] = record[name]
        return out

    def _text(self, cell: Any) -> str | None:
        """The cell as tables are read: nothing, NaN, an empty text and the policy's markers are missing."""
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
        """A verified release of collected reports, in a random order. A report that breaks the design is refused."""
        import pyarrow as pa

        chunks: list[dict[str, list[Any]]] = [{name: [] for name in self.policy.published}]
        for report in reports:
            if report.keys() != chunks[-1].keys():
                raise ReleaseError("a report does not have the columns of the policy.", hint="Was it made by report()?")
            if len(next(iter(chunks[-1].values()))) == CHUNK:
                chunks.append({name: [] for name in self.policy.published})
            for name, cell in report.items():
                chunks[-1][name].append(cell)
        if not next(iter(chunks[0].values())):
            raise DataError("no reports.", hint="Collect at least one.")
        parts: list[dict[str, Cells]] = []
        exact = {name: self._exact(name, [c for chunk in chunks for c in chunk[name]]) for name in self._plain()}
        statements: list[Statement] = [
            exact[name][0] if name in exact else SetStatement(self.columns[name], self.designs[name])
            for name in self.policy.published
        ]
        start = 0
        for chunk in chunks:
            size = len(next(iter(chunk.values())))
            cells: dict[str, Cells] = {}
            for statement in statements:
                name = statement.name
                if name in exact:
                    cells[name] = exact[name][1].take(slice(start, start + size))
                    continue
                try:
                    kind = pa.list_(arrow_type(statement.domain.kind))
                    cells[name] = statement.from_arrow(pa.array(chunk[name], kind))
                except (pa.ArrowException, TypeError):
                    raise ReleaseError(f"a report's {name!r} is not a set of values.") from None
            parts.append(cells)
            start += size
        whole = concat(parts)
        (shuffled,) = engine_for().scatter([whole], start, Keystream(), None)
        published = Published(statements, MemoryStore(shuffled), start)
        verdicts = check(published, self.policy.require)
        demand(verdicts)
        self._demand_likely(published)
        manifest = make_manifest(self.policy, published, verdicts, self._key is not None)
        return Release(manifest, published.store)

    def _plain(self) -> list[str]:
        return [name for name in self.policy.published if name not in self.policy.protected]

    def _exact(self, name: str, values: list[Any]) -> tuple[Statement, Cells]:
        """A column reported as it is: unless declared, its domain comes from the reports, rare values and all."""
        import pyarrow as pa

        texts = pa.array([None if v is None else value_text(v) for v in values], pa.string())
        labels, counts, missing = label_counts(texts, name)
        if missing and self.policy.attributes[name].missing != "category":
            raise ReleaseError(f"a report's {name!r} is missing.", hint="Was it made by report()?")
        known = dict(zip(labels, counts.tolist(), strict=True))
        met, problems = resolve_column(
            self.policy, name, ValueCounts(name, known, missing, is_open=len(labels) > OPEN_LIMIT)
        )
        if problems or met is None:
            raise PolicyError(problems, source=self.policy.source)
        if met.column.is_open:
            return OpenStatement(met.column), OpenCells(texts)
        codes, bad = encode_labels(texts, name, met.column.domain)
        if bad:
            raise ReleaseError(f"a report's {name!r} is outside its declared domain.")
        return ExactStatement(met.column), CodeCells(met.column.d, codes)

    def _demand_likely(self, published: Published) -> None:
        """A set that no true value could have produced was not drawn by the design."""
        for name, design in self.designs.items():
            sets = published.cells([name])[name].distinct()[0]
            weights = design.member_weights(sets.codes(design.eta).astype(np.int64))  # type: ignore[attr-defined]
            if design.floor == 0 and (weights.sum(axis=1) <= 0).any():
                raise ReleaseError(f"a report's set of {name!r} cannot come from the design.")
