"""The engine interface on a Spark cluster."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import Apply, CodeBatch, Counting, Portable, Profile, Reading, Written
from noren.engines.local import LocalEngine, code_batch
from noren.engines.spark.cluster import (
    TUPLE_COPIES,
    by_part,
    demand_room,
    demand_sealed,
    gathered,
    guarded,
    received,
    room,
    settings,
    started,
    told,
)
from noren.engines.spark.source import Chain, FilesSource, SparkSource, base_of, carries_keys, opened, send_table
from noren.engines.spark.tasks import (
    Codes,
    Count,
    CountedStore,
    Draw,
    Encode,
    Hash,
    Held,
    Make,
    Rewrite,
    Tuples,
    Write,
    judged,
    like_of,
    together,
)
from noren.engines.spark.wire import Wire
from noren.errors import ReleaseError
from noren.models.base import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.release.release import Release, open_release
from noren.release.set_tally import SetTally
from noren.release.store import ParquetStore
from noren.secret import Keystream, Secret
from noren.secret.streams import ORDER, CarriedKeys
from noren.sources.place import Place, Spot
from noren.sources.source import Source, Writing, open_source
from noren.statements import CellBatch, Statement
from noren.statements.batch import batch_length

ROWS_PER_FILE = 1 << 20
ROWS_PER_TASK = 1 << 16
"""Fewer rows than this are not worth a file of their own."""


class SparkEngine:
    """An engine that keeps the records on a cluster. `session` is the one to use; by default the running one or a new
    one."""

    def __init__(
        self, session: Any = None, *, master: str | None = None, conf: Mapping[str, str] | None = None
    ) -> None:
        self._session = session
        self._start = (master, conf)
        self._starts: dict[tuple[int, tuple[str, ...]], tuple[Source, tuple[int, ...]]] = {}

    @property
    def session(self) -> Any:
        if self._session is None:
            self._session = started(*self._start)
        return self._session

    # ------------------------------------------------------------------ reading

    def opened(self, data: Any, writing: Writing) -> Source:
        if type(data).__module__.startswith("pyspark."):
            self._session = data.sparkSession
            return SparkSource(data, missing_values=writing.missing_values)
        if isinstance(data, str | Path):
            source = opened(self.session, data, writing)
        else:
            source = open_source(data, missing_values=writing.missing_values)
        return source if isinstance(source, SparkSource | FilesSource) else send_table(self.session, source)

    def held(self, source: Source, data: Any) -> Source:
        return source

    def demand_room(self, needed: int, what: str) -> None:
        demand_room(self.session, needed, what)

    def profile(
        self,
        source: Source,
        counting: Counting,
        *,
        meter: Meter = silent,
    ) -> Profile:
        here = LocalEngine()
        base = base_of(source)
        if not isinstance(base, SparkSource | FilesSource):
            return here.profile(source, counting, meter=meter)
        columns = list(dict.fromkeys([*counting.columns, *counting.drop])) or list(source.columns[:1])
        chain = self._chain(source, columns)
        counted = replace(counting, identifiers=())
        with settings(self.session), told():
            answers = base.tasks(chain.read).mapInArrow(guarded(Count(chain, counted)), "payload binary")
            found = gathered(answers, base.partitions, together)
        records, profile = ({}, None) if found is None else found
        whole = here.profile(Chain(chain.top, chain.read).source(0, ()), counted)
        whole.told = {name: self._distinct(source, name, counting.drop) for name in counting.identifiers}
        if profile is not None:
            whole.merge(profile)
        counts = [records.get(number, 0) for number in range(base.partitions)]
        self._remember(source, counting.drop, counts)
        meter(whole.records + whole.dropped)
        return whole

    def _distinct(self, source: Source, name: str, drop: Sequence[str]) -> tuple[int, int]:
        """Count the distinct cells of a column and all its cells, by hashes, so that no text is shuffled."""
        from pyspark.sql import functions

        base: Any = base_of(source)
        chain = self._chain(source, [name, *drop])
        with settings(self.session), told():
            hashes = base.tasks(chain.read).mapInArrow(guarded(Hash(chain, name, tuple(drop))), "hash long")
            times = hashes.groupBy("hash").count()
            found = times.agg(functions.count("hash"), functions.sum("count")).collect()[0]
        return int(found[0]), int(found[1] or 0)

    def encoded(self, source: Source, reading: Reading, *, meter: Meter = silent) -> Iterator[CodeBatch]:
        base = base_of(source)
        if not isinstance(base, SparkSource | FilesSource):
            yield from LocalEngine().encoded(source, reading, meter=meter)
            return
        by_number = getattr(source, "by_number", None)
        starts = () if by_number is None else self._placed(by_number, reading.drop)
        chain = self._chain(source, [*reading.columns, *reading.drop], starts)
        task = Codes(Encode(chain, reading), chain)
        start = 0
        for batch in self._streamed(base, chain, task):
            yield CodeBatch(batch.codes, batch.open, batch.terms, batch.keys, batch.records, start)
            start += batch.records
            meter(batch.records)

    def histogram(
        self, source: Source, reading: Reading, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        from pyspark.sql import functions

        base = base_of(source)
        if not isinstance(base, SparkSource | FilesSource):
            return LocalEngine().histogram(source, reading, names)
        chain = self._chain(source, [*reading.columns, *reading.drop])
        titles = [f"k{i}" for i in range(len(names))]
        task = Tuples(Encode(chain, reading), tuple(names))
        with settings(self.session), told():
            parts = base.tasks(chain.read).mapInArrow(
                guarded(task), ", ".join([*(f"{title} int" for title in titles), "n long"])
            )
            most = room(self.session) // (TUPLE_COPIES * 8 * (len(names) + 1))
            found = parts.groupBy(*titles).agg(functions.sum("n").alias("n")).limit(most + 1).toArrow()
        if found.num_rows > most:
            what = f"forming classes of more than {most:,} different tuples of {len(names)} columns"
            demand_room(self.session, found.num_rows * TUPLE_COPIES * 8 * (len(names) + 1), what)
        codes = np.stack([found.column(title).to_numpy().astype(np.int64) for title in titles], axis=1)
        order = np.lexsort(codes.T[::-1])
        return codes[order], found.column("n").to_numpy().astype(np.int64)[order]

    # ------------------------------------------------------------------ publishing

    def apply(self, source: Source, reading: Reading, apply: Apply, *, meter: Meter = silent) -> Iterator[CellBatch]:
        base = base_of(source)
        if not isinstance(base, SparkSource | FilesSource) or not hasattr(apply, "part"):
            for batch in self.encoded(source, reading, meter=meter):
                yield apply(batch)
            return
        making: Any = apply
        make, chain, drawn = self._make(source, reading, making)
        try:
            for cells in self._streamed(base, chain, make):
                yield cells
                meter(batch_length(cells))
        finally:
            make.forget()
        _take_in(making, drawn)

    def written(
        self, source: Source, reading: Reading, making: Portable, rows: int, columns: Sequence[Statement], folder: Spot
    ) -> Written | None:
        base = base_of(source)
        like = self._like(source, reading, making)
        if not isinstance(base, SparkSource | FilesSource) or set(like) != {column.name for column in columns}:
            return None  # whose row each is must be known in the order in which rows are written
        tally = SetTally.expecting(columns, rows)
        titles = tally.columns()
        make, chain, drawn = self._make(source, reading, making)
        keys = CarriedKeys.of(Secret.fresh(), [(ORDER, "")])
        wire = Wire(like_of(like, tally, columns))
        aside = folder
        if isinstance(folder, Path):  # beside it: an attempt that is late must not leave anything in a release
            aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}-attempts-", dir=folder.parent))
        try:
            write = Write(wire, titles, folder, aside)
            with settings(self.session), told():
                rows_to_draw = self._rows(base, chain, make.encode)
                drawn_rows = rows_to_draw.mapInArrow(guarded(Draw(make, wire, keys, tally)), wire.schema)
                ordered = drawn_rows.repartition(self._files(rows), "hi").sortWithinPartitions("hi", "lo")
                told_rows = ordered.mapInArrow(guarded(write), "payload binary").collect()
            done = sorted((received(row.payload) for row in told_rows), key=lambda one: one.number)
            done, titles = self._renumbered(done, tally, titles, folder, aside)
        finally:
            make.forget()
            if isinstance(aside, Path):
                shutil.rmtree(aside, ignore_errors=True)
        _take_in(making, drawn)
        files = tuple(folder / one.made for one in done)
        return Written(files, tuple(one.part for one in done), sum(one.rows for one in done), titles)

    def _renumbered(
        self, done: list[Any], tally: SetTally, titles: tuple[Statement, ...], folder: Spot, aside: Spot
    ) -> tuple[list[Any], tuple[Statement, ...]]:
        """Rewrite the files so that only sets that occur are listed."""
        seen = {name: np.any([one.seen[name] for one in done], axis=0) for name in (done[0].seen if done else ())}
        if all(found.all() for found in seen.values()):
            return done, titles
        fewer = tally.narrow_to(seen)
        after = fewer.columns()
        task = Rewrite(tuple(one.made for one in done), titles, after, fewer, folder, aside)
        with told():
            context = self.session.sparkContext
            made = context.parallelize(range(len(done)), len(done)).mapPartitions(guarded(task)).collect()
        parts = [received(content) for content in made]
        return sorted(parts, key=lambda one: one.number), after

    def scatter(
        self, batches: Iterable[CellBatch], rows: int, stream: Keystream, folder: Path | None
    ) -> Iterator[CellBatch]:
        return LocalEngine().scatter(batches, rows, stream, folder)

    def judge(self, published: Published, make: Callable[[], Judgement], *, meter: Meter = silent) -> list[Verdict]:
        if not isinstance(published.store, ParquetStore):
            return LocalEngine().judge(published, make, meter=meter)
        return judged(self.session, published, published.store, make, meter)

    def open_release(self, path: str | Path | Place | Release) -> Release:
        """Open a release whose cells the cluster counts. Only the counted combinations of the requested columns reach
        the driver."""
        release = open_release(path)
        if isinstance(release.store, CountedStore):
            return release
        if not isinstance(release.store, ParquetStore):
            raise ReleaseError(
                f"{release.title}: its data are not Parquet files, which a cluster needs.",
                hint="Open it without a cluster.",
            )
        return Release(release.manifest, CountedStore(self.session, *release.store.paths), release.path)

    # ------------------------------------------------------------------ jobs

    def _chain(self, source: Source, columns: Sequence[str], starts: Sequence[int] = ()) -> Chain:
        if carries_keys(source):
            demand_sealed(self.session)
        return Chain.of(source, list(dict.fromkeys(columns)), starts)

    def _streamed(self, base: SparkSource | FilesSource, chain: Chain, task: Any) -> Iterator[Any]:
        """Yield the answers of a task in the order of partitions."""
        encode = getattr(task, "encode", None)
        with settings(self.session), told():
            sent = self._rows(base, chain, encode).mapInArrow(guarded(task), "payload binary")
            for row in sent.toLocalIterator(prefetchPartitions=True):
                yield received(row.payload)

    def _rows(self, base: SparkSource | FilesSource, chain: Chain, encode: Any) -> Any:
        """Return the input of tasks: the columns to read, or one row for each partition if none is read."""
        if isinstance(encode, Held):
            parts = len(encode.starts) - 1
            return self.session.range(0, parts, 1, parts)
        return base.tasks(chain.read)

    def _remember(self, source: Source, drop: Sequence[str], counts: Sequence[int]) -> tuple[int, ...]:
        starts = tuple(np.concatenate(([0], np.cumsum(counts))).astype(int).tolist())
        self._starts[id(source), tuple(drop)] = (source, starts)
        return starts

    def _placed(self, source: Source, drop: Sequence[str]) -> tuple[int, ...]:
        """Return the number of records before every partition."""
        known = self._starts.get((id(source), tuple(drop)))
        if known is None:
            self.profile(source, Counting([], drop=drop))
            known = self._starts[id(source), tuple(drop)]
        return known[1]

    def _files(self, rows: int) -> int:
        parallel = self.session.sparkContext.defaultParallelism
        return int(max(1, -(-rows // ROWS_PER_FILE), min(parallel, rows // ROWS_PER_TASK)))

    def _make(self, source: Source, reading: Reading, making: Portable) -> tuple[Make, Chain, Any]:
        """Return what makes published cells on the cluster, with each partition's part of the decisions."""
        demand_sealed(self.session)
        starts = self._placed(source, reading.drop)
        encode: Encode | Held
        if reading.columns:
            chain = self._chain(source, [*reading.columns, *reading.drop], starts)
            encode = Encode(chain, reading)
        else:
            parts = self._files(starts[-1])
            starts = tuple(starts[-1] * number // parts for number in range(parts + 1))
            chain, encode = Chain(source, (), starts), Held(starts)
        context = self.session.sparkContext
        drawn = context.accumulator({}, by_part())
        shared = making.shared_maker
        own = [] if shared is not None else [context.broadcast(making.part(a, b)) for a, b in pairwise(starts)]
        return Make(encode, shared, own, making.stream, drawn), chain, drawn

    def _like(self, source: Source, reading: Reading, making: Portable) -> dict[str, Any]:
        """Return an empty batch of published cells, which shows their types."""
        return dict(making.part(0, 0).under(making.stream)(self._nothing(source, reading)))

    def _nothing(self, source: Source, reading: Reading) -> CodeBatch:
        """Return empty codes."""
        base = base_of(source)
        if not isinstance(base, SparkSource | FilesSource) or not reading.columns:
            return CodeBatch({}, {}, {}, None, 0, 0)
        wanted = list(dict.fromkeys([*reading.columns, *reading.drop]))
        chain = self._chain(source, wanted)
        bare = Chain(chain.top, chain.read)
        read = next(iter(bare.source(0, [base.nothing(chain.read)]).batches(wanted)))
        return code_batch(read, reading, base.name, 0)


def _take_in(making: Any, drawn: Any) -> None:
    for one in drawn.value.values():
        making.take_in(one)
