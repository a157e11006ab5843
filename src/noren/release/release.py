"""A release as the recipient holds it: cells, manifest, and the questions that it answers."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noren.errors import QueryError, ReleaseError
from noren.estimates.counts.estimate import Count, Estimate, notes_of
from noren.files import DESCRIPTOR
from noren.models.verdict import Verdicts
from noren.release.answers import SeveralRows, answer
from noren.release.manifest import Manifest, VerdictEntry
from noren.release.package import (
    FileFormat,
    aside,
    read_package,
    write_cells,
    write_descriptor,
)
from noren.release.published import Published
from noren.release.set_tally import SetTally
from noren.release.signature import read_signature
from noren.release.statistics import Statistics, demand_level
from noren.release.store import KeptStore, MemoryStore, Store, write_sides
from noren.secret.signing import PublicKey, SigningKey, signing_key
from noren.sources.place import STORES, Place, Spot, place_of

if TYPE_CHECKING:
    import polars as pl

    from noren.estimates.imputation import Imputations
    from noren.release.guesses import Guess

SCHEMES = ("postgresql://", "postgres://")
EXPAND_LIMIT = 1_000_000
ANSWER = ("count", "std_error", "low", "high")
"""Columns that an estimate adds to those asked for."""


class Release(Statistics, Published):
    """A release: the published cells and the manifest, without anything of the original."""

    def __init__(self, manifest: Manifest, store: Store, path: Spot | None = None) -> None:
        title = str(path or manifest.title or "release")
        super().__init__(manifest.columns, store, manifest.records, suppressed=manifest.suppressed, title=title)
        self.manifest = manifest
        self.path = path

    def __repr__(self) -> str:
        words: dict[str, list[str]] = {}
        for column in self.statements:
            if not column.is_exact:
                words.setdefault(column.words.removeprefix("published as "), []).append(column.name)
        hidden = [f"{word}: {', '.join(names)}" for word, names in words.items()] or ["all published exactly"]
        return f"<Release of {self.records:,} records: {', '.join(self.columns)}; {'; '.join(hidden)}>"

    # ------------------------------------------------------------------ what is there

    @property
    def verdicts(self) -> Verdicts[VerdictEntry]:
        """Return the verdict on every requirement and column: required, achieved, holds, and its basis."""
        return Verdicts(self.manifest.verdicts)

    @cached_property
    def guesses(self) -> tuple[Guess, ...]:
        """Return the share of right guesses at every secret, for an adversary who reads the release; measured without
        the original."""
        from noren.release.guesses import measure_guesses

        return measure_guesses(self)

    @property
    def margins(self) -> tuple[pl.DataFrame, ...]:
        """Return the noised margins, each as a frame with its columns, count and std_error of the noise.

        `estimate`, `mean` and `regress` use them; they need not be used by hand. Counts may be negative.
        """
        import polars as pl

        from noren.release.noised import noised_tables

        out = []
        for table in noised_tables(self):
            grid = np.indices(table.counts.shape).reshape(len(table.names), -1)
            labels = [np.array(self.column(name).domain.values, object) for name in table.names]
            shown = {
                name: pl.Series(own[codes], dtype=pl.String)
                for name, own, codes in zip(table.names, labels, grid, strict=True)
            }
            error = np.full(table.counts.size, table.variance**0.5)
            out.append(
                pl.DataFrame(shown | {free_name("count", table.names): table.counts.ravel(), "std_error": error})
            )
        return tuple(out)

    @property
    def directory(self) -> Path | None:
        """Return the directory of the release; None if it is in memory, in a database or in object storage."""
        return self.path if isinstance(self.path, Path) else None

    @property
    def signer(self) -> PublicKey | None:
        """Return the signer of the directory, or None. Compare it with the holder's key."""
        return None if self.path is None else read_signature(self.path / DESCRIPTOR)

    def describe(self) -> str:
        """Return about ten lines on what can be asked, what is refused, and how precise answers are.

        >>> import noren as nr
        >>> import polars as pl
        >>> people = pl.DataFrame({"town": ["Ulm"] * 200, "job": ["cook", "clerk", "miner", "nurse"] * 50})
        >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
        >>> print(nr.anonymize(people, nr.Policy(attributes=columns, require=[diverse])).describe())
        200 people; 2 columns.
        Published exactly: town.
        Sets or changed values: job (2 of 4 values).
        Ask: estimate, count, mean, variance, quantile, correlation, difference, ratio, standardize, regress,
        test, impute.
        Approximate half-width of 95% intervals from 200 records, for equally frequent values (none: too wide):
          share of one value: job +-0.085;
          slope per standard deviation: job +-0.240 with an exact column.
        mean, difference and ratio by a hidden column give no number below about (records): job 26.
        """
        from noren.release.describe import describe

        return describe(self)

    def frame(self) -> pl.DataFrame:
        """Return the published table as a frame; decoy sets and sets of terms are lists in domain order."""
        import polars as pl
        import pyarrow as pa

        cells = self.cells(self.columns)
        arrays = {column.name: column.to_arrow(cells[column.name]) for column in self.statements}
        plain = {
            name: array.cast(pa.list_(array.type.value_type.value_type))
            if pa.types.is_list(array.type) and pa.types.is_dictionary(array.type.value_type)
            else array
            for name, array in arrays.items()
        }
        frame = pl.from_arrow(pa.table(plain))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def expand(self, limit: int = EXPAND_LIMIT) -> pl.DataFrame:
        """Return the un-aggregated form: one row per combination of a record's possible values (paper 000, Table III
        (b)).

        `record` numbers the published records, so that rows of one record can be distinguished (`record_` where a
        published column has that name).
        """
        if self.rows_per_record > 1:
            raise QueryError("this release already has one row per possible value.", hint="Use frame().")
        if terms := [column.name for column in self.statements if column.terms is not None]:
            raise QueryError(
                "this release has no sets of possible values to expand; a record has all terms of its set.",
                hint=f"Use frame().explode({terms[0]!r}) for one row per record and term.",
            )
        drawn = {name: design for name, design in self.designs.items() if self.column(name).kinds is None}
        if not drawn and any(column.hides for column in self.statements):
            what = "changed values" if self.designs else "general values"
            raise QueryError(f"this release has {what} and no sets to expand.", hint="Use frame().")
        rows = self.records
        for design in drawn.values():
            rows *= design.eta
        if rows > limit:
            raise QueryError(
                f"the expanded form would have {rows:,} rows, more than {limit:,}.",
                hint="Raise limit, or analyse the release as it is: estimate() never expands it.",
            )
        frame = self.frame().with_row_index(free_name("record", self.columns))
        for name in drawn:
            frame = frame.explode(name)
        return frame

    # ------------------------------------------------------------------ saving

    def save(
        self, path: str | Path, file_format: FileFormat = "parquet", *, sign: SigningKey | str | Path | None = None
    ) -> Path:
        """Write the release to a new directory. If writing fails, nothing is left under its name.

        `sign` is a signing key or its file (`noren key new`); without it the release is not signed.
        """
        target, key = Path(path), None if sign is None else signing_key(sign)
        with aside(target) as work:
            tally = SetTally.of(self.statements, self.batches()) if file_format == "parquet" else None
            data, rows, columns = write_cells(work, self.manifest.columns, self.batches(), file_format, tally)
            if rows != self.rows:
                raise ReleaseError(f"{rows} rows were written instead of {self.rows}.")
            write_sides(work, columns, data.suffix)
            write_descriptor(work, data, self.manifest.model_copy(update={"columns": columns}), key)
        return target

    def publish(self, address: str, *, grant: Sequence[str] = ()) -> str:
        """Write the release into a schema of a PostgreSQL database ("postgresql://host/base?schema=patients_2026").

        The schema must not exist; one transaction, so that whatever stops it leaves nothing. The roles in `grant` may
        read it, and nobody else but its owner. `open_release` takes the same address.

        >>> import noren as nr
        >>> import polars as pl
        >>> policy = nr.Policy(attributes={"town": "plain"})
        >>> nr.anonymize(pl.DataFrame({"town": ["Ulm"] * 20}), policy).publish("postgresql://localhost/base")
        Traceback (most recent call last):
        noren.errors.ReleaseError: postgresql://localhost/base: which schema?
          Hint: For example "postgresql://localhost/base?schema=patients_2026".
        """
        from noren.release.database.publish import publish

        return publish(self, address, grant=grant)

    def impute(
        self,
        m: int = 20,
        *,
        seed: int | None = None,
        classes: int = 40,
        impossible: Sequence[Mapping[str, Any]] = (),
        model: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Imputations:
        """Return imputed complete tables that fit the release, for tools that need one value in each cell.

        They disclose nothing that the release does not. Where all hidden columns were drawn by a design and tell enough
        of every two columns, they follow all associations of two columns (`model="pairs"`), and pooled intervals of
        what one and two columns tell hold (`.holds`). Elsewhere they are drawn from the posterior of a mixture
        (`"mixture"`): good for machine learning, but their intervals are too narrow, so they are not for inference.
        `classes` is the most classes of records the mixture may use, `impossible` lists combinations that nobody has
        (`[{"sex": "male", "births": "2"}]`).

        >>> import noren as nr
        >>> import polars as pl
        >>> jobs = ["cook", "clerk", "miner", "nurse"]
        >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": jobs * 10})
        >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
        >>> tables = nr.anonymize(people, nr.Policy(attributes=columns, require=[diverse])).impute(m=2, seed=1)
        >>> len(tables), tables[0].columns, tables[0].height
        (2, ['town', 'job'], 40)
        """
        from noren.estimates.imputation import impute

        made = impute(self, m, seed=seed, classes=classes, impossible=impossible, model=model, progress=progress)
        return replace(made, rows_are_people=not SeveralRows.of(self.manifest).told)

    # ------------------------------------------------------------------ asking

    def estimate(
        self,
        by: str | Sequence[str],
        where: Mapping[str, Any] | None = None,
        estimator: str | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        progress: Callable[[int, float], None] | None = None,
        weighted: bool | None = None,
    ) -> Estimate:
        """Estimate the counts of a cross tabulation, with standard errors and intervals.

        `by` names columns, hierarchy levels ("zip@2") or intervals ("age/10"); `where` restricts other columns or the
        same ones to some values. The intervals speak of the original table's counts, or with `population=True` of
        the population it was sampled from. A column that is itself called count, std_error, low or high gets a
        trailing underscore in the answer. The estimator is `likelihood` unless another is named (`linear` for a
        release of shuffled records, which does not say which rows belong together).

        On a column of terms a condition asks for at least one of them (`{"signs": ["cough", "fever"]}`) or for all
        (`{"signs": {"all": ["cough", "fever"]}}`). Terms may have been left out of any record, so the count is of the
        records that publish what is asked, low bounds those alone, and high counts every record that the other
        conditions leave. `by="signs"` gives one row per term; a record counts in the row of each of its terms.

        Where the release has survey weights, counts are of the people whom the records stand for, unless
        `weighted=False`; `diagnostics["design_effect"]` says what unequal weights cost.

        >>> import noren as nr
        >>> import polars as pl
        >>> jobs = ["cook", "clerk", "miner", "nurse"]
        >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": jobs * 10})
        >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
        >>> release = nr.anonymize(people, nr.Policy(attributes=columns, require=[diverse]))
        >>> estimate = release.estimate(["town", "job"])
        >>> estimate
        <Estimate of town x job: 8 cells, 40 records, likelihood, 95% intervals>
        >>> estimate.frame.columns
        ['town', 'job', 'count', 'std_error', 'low', 'high']
        """
        import polars as pl

        names = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise QueryError("estimate needs at least one column.", hint='For example estimate(["job", "disease"]).')
        demand_level(level)
        result = answer(self, names, where or {}, estimator, level, population, progress, weighted)
        shown = result.shown
        titles = tuple(free_name(name + "_", {*ANSWER, *names}) if name in ANSWER else name for name in names)
        grid = np.indices(result.counts.shape[: len(shown)]).reshape(len(shown), -1)
        frame = pl.DataFrame(
            {
                title: pl.Series(np.array(group.labels, object)[codes], dtype=pl.String)
                for title, group, codes in zip(titles, shown, grid, strict=True)
            }
            | {
                "count": result.counts.ravel(),
                "std_error": pl.Series(result.std_error.ravel()).fill_nan(None),
                "low": result.low.ravel(),
                "high": result.high.ravel(),
            }
        )
        return Estimate(
            by=titles,
            frame=frame,
            estimator=result.estimator,
            level=result.level,
            population=population,
            records=result.records,
            where=dict(where or {}),
            order={title: group.labels for title, group in zip(titles, shown, strict=True)},
            diagnostics=dict(result.diagnostics),
            assumes=result.assumes,
        )

    def count(
        self,
        where: Mapping[str, Any],
        estimator: str | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        weighted: bool | None = None,
    ) -> Count:
        """Estimate how many records meet all conditions, with an interval.

        Conditions are as in `estimate`: values, hierarchy nodes, terms (`{"signs": {"all": ["cough", "fever"]}}`).

        >>> import noren as nr
        >>> import polars as pl
        >>> jobs = ["cook", "clerk", "miner", "nurse"]
        >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": jobs * 10})
        >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
        >>> release = nr.anonymize(people, nr.Policy(attributes=columns, require=[diverse]))
        >>> release.count({"town": "Ulm"}).count
        20.0
        """
        if not where:
            raise QueryError("count needs a condition.", hint='For example count({"job": ["Lawyer"]}).')
        demand_level(level)
        result = answer(self, (), where, estimator, level, population, None, weighted)
        error = float(result.std_error.ravel()[0])
        return Count(
            count=float(result.counts.ravel()[0]),
            std_error=None if np.isnan(error) else error,
            low=float(result.low.ravel()[0]),
            high=float(result.high.ravel()[0]),
            level=result.level,
            estimator=result.estimator,
            records=result.records,
            assumes=result.assumes,
            design_effect=result.diagnostics.get("design_effect"),
            notes=notes_of(result.diagnostics),
        )


def is_address(place: Any) -> bool:
    """Return whether a place is in a database and not on a disk."""
    return isinstance(place, str) and place.startswith(SCHEMES)


def is_release(place: Any) -> bool:
    """Return whether an object or address is a release: an open one, a directory, or a schema of a database."""
    if is_address(place):
        from noren.sources.postgres import Address

        address = Address.parse(place)
        return address.table is None and address.query is None
    if isinstance(place, str | Path) and str(place).partition(":/")[0] in (*STORES, "file"):
        place = place_of(place)
    return isinstance(place, Release | Place) or (isinstance(place, str | Path) and Path(place).is_dir())


def free_name(name: str, taken: Container[str]) -> str:
    """Return the name, with underscores added until it is unused."""
    while name in taken:
        name += "_"
    return name


def keep_cells(release: Release) -> Release:
    """Return the same release, which reads every column once and keeps it."""
    if isinstance(release.store, KeptStore | MemoryStore):
        return release
    out = copy(release)
    out.store = KeptStore(release.store)
    return out


def open_release(path: str | Path | Place | Release) -> Release:
    """Open a release: a directory, an address in object storage ("s3://bucket/patients"), or a schema of a PostgreSQL
    database ("postgresql://host/base?schema=patients").

    Checksums are compared, and a damaged or incomplete one is refused.

    A release that is already open is returned unchanged, so every verb takes either.

    >>> import noren as nr
    >>> nr.open_release("nowhere")
    Traceback (most recent call last):
    noren.errors.ReleaseError: nowhere: this is not a release (datapackage.json is missing).
      Hint: Give the directory of a release.
    """
    if isinstance(path, Release):
        return path
    if is_address(path):
        from noren.release.database.store import read_database

        manifest, kept, name = read_database(str(path))
        release = Release(manifest, kept)
        release.title = name
        return release
    spot = place_of(path)
    manifest, store = read_package(spot)
    return Release(manifest, store, spot)
