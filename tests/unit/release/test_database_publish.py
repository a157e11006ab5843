"""Publishing into a base and reading back, without a server: tables that are held here stand for those of the base."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.errors import ReleaseError
from noren.release.database import publish as publishing
from noren.release.database import store as reading
from noren.sources.postgres import Address, Refused

PLACE = "postgresql://host/base?schema=s"
MANIFEST = re.compile(r"INSERT INTO .* VALUES \(\d+, E'(.*)'::json\)", re.DOTALL)
COMPARED = re.compile(r'SELECT 1 FROM \(SELECT "(\w+)" AS first, "(\w+)" AS second.* JOIN "s"\.(\w+)')
COUNTED = re.compile(r"counts_\d+_\d+")


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Base:
    """Keeps tables and statements, and answers what a reader asks of them; a statement can be refused."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self.said: list[str] = []
        self.refused: dict[str, str] = {}
        self.given: list[tuple[str, str]] = []

    def __enter__(self) -> Base:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def run(self, statement: str) -> None:
        for start, state in self.refused.items():
            if statement.startswith(start):
                raise Refused(Address.parse(PLACE), state)
        self.said.append(statement)

    def ingest(self, table: str, batches: Any, schema: str) -> int:
        assert schema == "s"
        found = batches if isinstance(batches, pa.Table) else batches.read_all()
        self.tables[table] = found
        return found.num_rows

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        if query.startswith("SELECT manifest"):
            found = [made[1] for one in self.said if (made := MANIFEST.fullmatch(one))]
            if not found:
                raise Refused(Address.parse(PLACE), "42P01")
            return [(one.replace("''", "'").replace("\\\\", "\\"),) for one in found]
        if query.startswith("SELECT relname"):
            return [(name,) for name in self.tables if COUNTED.fullmatch(name)]
        if "relrowsecurity" in query:
            return []
        if query.startswith("SELECT c.relname"):
            return [(name, column) for name, table in self.tables.items() for column in table.column_names]
        if query.startswith("SELECT DISTINCT coalesce"):
            return [("public",)] if self.given else []
        if query.startswith("SELECT relkind"):
            return [(True,)]
        return self.given

    def batches(self, query: str) -> Iterator[Any]:
        """The table that a query names first; of a comparison of counts with rows a line where they differ."""
        if compared := COMPARED.match(query):
            one, two, table = compared.groups()
            rows = pl.from_arrow(self.tables["cells"].select([one, two]))
            assert isinstance(rows, pl.DataFrame)
            same = sorted(rows.group_by(one, two).len().rows()) == sorted(_rows(self.tables[table]))
            yield from pa.table({"line": [] if same else [1]}).to_batches()
            return
        named = [(found.start(), name) for name in self.tables if (found := re.search(rf'\."?{name}\b', query))]
        yield from self.tables[min(named)[1]].to_batches()


class Source:
    """The cells of the base."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.columns = base.tables["cells"].column_names

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        yield from self.base.tables["cells"].select(list(names)).to_batches()

    def read(self, query: str, settings: Sequence[str] = ()) -> Iterator[Any]:
        return self.base.batches(query)

    @contextmanager
    def reader(self, settings: Sequence[str]) -> Iterator[Base]:
        yield self.base


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Base:
    made = Base()
    for room in (publishing, reading):
        monkeypatch.setattr(room, "Connection", lambda address: made)
    monkeypatch.setattr(reading, "PostgresSource", lambda address: Source(made))
    return made


def people(n: int = 240) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "town": rng.choice(["Ulm", "Bonn"], n),
            "age": rng.integers(20, 60, n),
            "ill": rng.choice(["flu", "burn", "gout", "co'ld"], n),
            "job": rng.choice(["cook", "clerk", "smith"], n),
        }
    )


def released(method: str) -> nr.Release:
    two: list[dict[str, Any]] = [{"model": "frequency-l-diversity", "on": "ill", "l": 2}]
    roles: dict[str, Any] = {"town": "plain", "age": "plain", "ill": "sensitive", "job": "plain"}
    if method == "decoys":
        roles["job"] = "sensitive"
        two.append({"model": "frequency-l-diversity", "on": "job", "l": 2})
    if method == "mondrian":
        roles |= {"age": "quasi-identifier", "town": "quasi-identifier"}
        roles["ill"] = "plain"
        two = [{"model": "k-anonymity", "k": 4}]
    policy = nr.Policy(attributes=roles, require=two, method=method, dependence={"most": 1.0})
    return nr.anonymize(people(), policy)


@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy"])
def test_what_was_published_is_read_again(method: str, base: Base) -> None:
    release = released(method)
    release.publish(PLACE)
    opened = nr.open_release(PLACE)
    assert opened.title == "postgresql://host/base (s)"
    assert opened.frame().equals(release.frame())
    assert opened.manifest == release.manifest


def test_tables_hold_numbers_and_what_they_mean(base: Base) -> None:
    release = released("decoys")
    release.publish(PLACE)
    cells, sets = base.tables["cells"], base.tables["sets_3"]
    assert sets.column("id").to_pylist() == [*range(sets.num_rows)]
    shown = [sets.column("value")[number].as_py() for number in cells.column("ill").to_pylist()]
    assert shown == release.frame()["ill"].to_list()
    pairs = pl.DataFrame({"first": cells.column("ill").to_pylist(), "second": cells.column("job").to_pylist()})
    counted = pairs.group_by("first", "second").len("rows").sort("first", "second")
    assert _rows(base.tables["counts_3_4"]) == counted.rows()
    keys = [line for line in base.said if line.startswith('ALTER TABLE "s".counts_3_4')]
    assert keys == [
        'ALTER TABLE "s".counts_3_4 ADD PRIMARY KEY (first, second), ADD FOREIGN KEY (first) REFERENCES '
        '"s"."sets_3" (id), ADD FOREIGN KEY (second) REFERENCES "s"."sets_4" (id)'
    ]
    made = next(line for line in base.said if line.startswith('CREATE TABLE "s".cells'))
    assert made == 'CREATE TABLE "s".cells ("town" text, "age" int8, "ill" int NOT NULL, "job" int NOT NULL)'
    assert (
        'ALTER TABLE "s".cells ADD FOREIGN KEY ("ill") REFERENCES "s"."sets_3" (id), '
        'ADD FOREIGN KEY ("job") REFERENCES "s"."sets_4" (id)'
    ) in base.said
    assert 'CREATE TABLE "s"."sets_3" (id int PRIMARY KEY, value text[] NOT NULL)' in base.said
    assert base.said[0] == "BEGIN"
    assert base.said[-1] == "COMMIT"


def test_general_values_are_written_with_their_intervals(base: Base) -> None:
    released("mondrian").publish(PLACE)
    ages = base.tables["nodes_2"]
    for label, interval in zip(ages.column("value").to_pylist(), ages.column("as_text").to_pylist(), strict=True):
        low, high = re.findall(r"\d+", label)[0], re.findall(r"\d+", label)[-1]
        assert interval.startswith(f"[{low},{high}"), (label, interval)
    assert "as_text" not in base.tables["nodes_1"].column_names  # towns are no intervals
    assert 'UPDATE "s"."nodes_2" SET interval = as_text::int8range' in base.said
    assert any(line.startswith('ALTER TABLE "s"."nodes_2" DROP COLUMN as_text') for line in base.said)


def test_groups_are_keys_of_their_table(base: Base) -> None:
    release = released("anatomy")
    release.publish(PLACE)
    groups = base.tables["groups_1"].column("group").to_pylist()
    assert base.tables["groups_1_keys"].column("id").to_pylist() == sorted(set(groups))
    assert 'CREATE TABLE "s".groups_1_keys (id int8 PRIMARY KEY)' in base.said
    made = next(line for line in base.said if line.startswith('CREATE TABLE "s"."groups_1"'))
    assert made.endswith('FOREIGN KEY ("group") REFERENCES "s".groups_1_keys (id))')


def test_a_statement_that_is_refused_is_said(base: Base) -> None:
    release = released("decoys")
    base.refused = {"CREATE SCHEMA": "42P06"}
    with pytest.raises(ReleaseError, match=r"\(s\) exists already"):
        release.publish(PLACE)
    base.refused = {"CREATE SCHEMA": "42501"}
    with pytest.raises(Refused, match="lacks a right"):
        release.publish(PLACE)
    base.refused = {"GRANT USAGE": "42704"}
    with pytest.raises(ReleaseError, match="there is no role 'reader'"):
        release.publish(PLACE, grant=["reader"])
    base.refused = {"GRANT USAGE": "42501"}
    with pytest.raises(Refused, match="lacks a right"):
        release.publish(PLACE, grant=["reader"])
    assert "COMMIT" not in base.said


def test_what_the_base_gave_to_others_is_taken_away(base: Base) -> None:
    base.given = [("cells", "public"), ("cells", "Intern"), ("records", "public")]
    released("decoys").publish(PLACE, grant=["reader"])
    taken = [line for line in base.said if line.startswith("REVOKE")]
    assert taken == [
        'REVOKE ALL ON "s"."cells" FROM PUBLIC',
        'REVOKE ALL ON "s"."cells" FROM "Intern"',
        'REVOKE ALL ON "s"."records" FROM PUBLIC',
        'REVOKE ALL ON SCHEMA "s" FROM PUBLIC',
    ]


@pytest.mark.parametrize(("written", "refused"), [(-1, False), (240, False), (239, True), (-2, True)])
def test_rows_that_got_lost_are_noticed(
    base: Base, written: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that does not know how many it wrote says -1."""
    release = released("decoys")
    keep = base.ingest

    def ingest(table: str, batches: Any, schema: str) -> int:
        found = keep(table, batches, schema)
        return written if table == "cells" else found

    monkeypatch.setattr(base, "ingest", ingest)
    if refused:
        with pytest.raises(ReleaseError, match=f"{written} rows were written instead of 240"):
            release.publish(PLACE)
    else:
        assert release.publish(PLACE) == "postgresql://host/base (s)"


def test_a_base_that_holds_no_release_is_said(base: Base) -> None:
    with pytest.raises(ReleaseError, match="the address has no schema of a release"):
        nr.open_release("postgresql://host/base")
    with pytest.raises(ReleaseError, match="this is not a release"):
        nr.open_release(PLACE)
    released("decoys").publish(PLACE)
    base.said.append(next(line for line in base.said if line.startswith("INSERT")))
    with pytest.raises(ReleaseError, match="its manifest is not a manifest"):
        nr.open_release(PLACE)


def test_a_table_or_a_column_that_is_not_described_is_refused(base: Base) -> None:
    released("decoys").publish(PLACE)
    store: Any = nr.open_release(PLACE).store
    store.demand_closed()
    held = base.tables["sets_3"]
    base.tables["sets_3"] = held.append_column("name", held.column("id"))
    with pytest.raises(ReleaseError, match="it has the column 'name'"):
        store.demand_closed()
    base.tables |= {"sets_3": held, "names": held}
    with pytest.raises(ReleaseError, match="it holds the table 'names'"):
        store.demand_closed()
    del base.tables["names"]
    base.tables["counts_3_4"] = base.tables["counts_3_4"].slice(1)
    with pytest.raises(ReleaseError, match="counts_3_4 does not match its rows"):
        store.demand_closed()
    cells = base.tables["cells"]
    base.tables["cells"] = cells.append_column("name", cells.column("town"))
    with pytest.raises(ReleaseError, match="its cells have other columns"):
        nr.open_release(PLACE)
