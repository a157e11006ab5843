"""A release in a base: what stands there, who may read it, and that it is the release it came from."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.errors import DataError, ReleaseError
from tests.unit.release.test_faults import TABLE, holder

SET = {"model": "frequency-l-diversity", "on": "ill", "l": 2}
CLASSES = [{"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "on": "ill", "l": 2}]


def people(n: int = 300, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    ages = rng.integers(18, 90, n).tolist()
    return pl.DataFrame(
        {
            "age": [None if i % 50 == 0 else age for i, age in enumerate(ages)],
            "height": rng.normal(170, 9, n).round(1),
            "born": pl.Series(np.datetime64("1950-01-01") + rng.integers(0, 9000, n)),
            "Stadt": rng.choice(["Ulm", "Bonn", "Köln 'Süd'"], n),
            "member": rng.choice([True, False], n),
            "ill": rng.choice(["flu", "burn", "gout", "co\\ld"], n),
        }
    )


def released(method: str) -> nr.Release:
    """A release of every form of cell: sets, general values, groups, changed values, means, exact ones."""
    names = ("age", "height", "born", "Stadt")
    if method in ("decoys", "pram"):
        roles = dict.fromkeys((*names, "member"), "plain") | {"ill": "sensitive", "age": "sensitive"}
        roles["age"] = {"role": "sensitive", "bins": [0, 40, 60, 120]}
        asked = [SET, {"model": "frequency-l-diversity", "on": "age", "l": 2}]
        asked = asked if method == "decoys" else [{"model": "local-privacy", "on": ["ill", "age"], "epsilon": 4}]
        return nr.anonymize(
            people(), nr.Policy(attributes=roles, require=asked, method=method, dependence={"most": 1.0})
        )
    roles = dict.fromkeys(names, "quasi-identifier") | {"member": "plain", "ill": "sensitive"}
    if method == "anatomy":
        roles |= dict.fromkeys(names, "plain")
        return nr.anonymize(
            people(), nr.Policy(attributes=roles, require=[SET], method=method, dependence={"most": 1.0})
        )
    policy = nr.Policy(attributes=roles, require=CLASSES, method=method, dependence={"most": 1.0})
    return nr.anonymize(people(), policy)


@pytest.fixture
def schema(sql, request):
    name = f"rel_{abs(hash(request.node.nodeid)) % 10**9}"
    sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    return name


@pytest.mark.parametrize("method", ["decoys", "pram", "mondrian", "hilbert", "anatomy", "rating", "microaggregation"])
def test_a_published_release_is_the_release(method, server, schema, sql):
    if method == "rating":
        roles = {"Stadt": "sensitive-quasi-identifier", "ill": "sensitive-quasi-identifier"}
        table = people().select("Stadt", "ill")
        asked = [{"model": "frequency-l-diversity", "on": ["Stadt", "ill"], "l": 2}]
        release = nr.anonymize(table, nr.Policy(attributes=roles, require=asked, method="rating"))
    else:
        release = released(method)
    place = f"{server}&schema={schema}"
    release.publish(place)
    opened = nr.open_release(place)
    assert opened.frame().equals(release.frame())
    assert opened.manifest == release.manifest
    assert [(v.model, v.holds) for v in nr.verify(opened)] == [(v.model, v.holds) for v in nr.verify(release)]
    by = release.columns[-1]
    assert opened.estimate(by).frame.equals(release.estimate(by).frame)
    assert sql(f"SELECT count(*) FROM {schema}.records")[0][0] == release.rows


def test_sets_that_a_file_keeps_once(server, schema, tmp_path, monkeypatch):
    monkeypatch.setattr("noren.release.set_tally.LEAST_ROWS", 1)
    released("decoys").save(tmp_path / "release")
    release = nr.open_release(tmp_path / "release")
    assert release.column("ill").side is not None, "a release whose file has numbers for sets is wanted"
    release.publish(f"{server}&schema={schema}")
    opened = nr.open_release(f"{server}&schema={schema}")
    assert opened.frame().equals(release.frame())
    assert [(v.model, v.holds) for v in nr.verify(opened)] == [(v.model, v.holds) for v in nr.verify(release)]


def test_terms_and_their_knowledge(server, schema, sql, tmp_path):
    release = nr.anonymize(TABLE, nr.Policy.load(holder(tmp_path, "terms")))
    release.publish(f"{server}&schema={schema}")
    opened = nr.open_release(f"{server}&schema={schema}")
    assert opened.frame().equals(release.frame())
    assert all(verdict.holds for verdict in nr.verify(opened))


def test_sets_are_arrays_and_intervals_are_ranges(server, schema, sql):
    released("mondrian").publish(f"{server}&schema={schema}")
    kinds = dict(
        sql(f"SELECT column_name, udt_name FROM information_schema.columns WHERE table_schema = '{schema}' "
            "AND table_name = 'records'")
    )  # fmt: skip
    assert kinds["height"] == "numrange"
    assert kinds["born"] == "daterange"
    assert kinds["member"] == "bool"
    assert kinds["age"] in ("int8range", "text")  # a missing cell beside an interval is no interval
    (inside,) = sql(f"SELECT count(*) FROM {schema}.records WHERE height @> 170.0")[0]
    assert 0 < inside <= 300
    sql(f"DROP SCHEMA {schema} CASCADE")
    released("decoys").publish(f"{server}&schema={schema}")
    (held,) = sql(f"SELECT count(*) FROM {schema}.records WHERE 'flu' = ANY (ill)")[0]
    assert 0 < held < 300
    keys = sql(
        f"SELECT table_name, count(*) FROM information_schema.table_constraints WHERE table_schema = '{schema}' "
        "AND constraint_type = 'FOREIGN KEY' GROUP BY table_name"
    )
    assert dict(keys) == {"cells": 2, "counts_1_6": 2}
    uncommented = sql(
        "SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname = 'records' "
        f"AND c.relnamespace = '{schema}'::regnamespace AND a.attnum > 0 AND col_description(c.oid, a.attnum) IS NULL"
    )
    assert uncommented == []


def test_only_the_named_role_may_read(server, schema, sql):
    for role in ("reader", "stranger"):
        sql(f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    sql("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC, stranger")  # as a careless base may have it
    try:
        released("decoys").publish(f"{server}&schema={schema}", grant=["reader"])
    finally:
        sql("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC, stranger")
    tables = [name for (name,) in sql(f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace "
                                      "AND relkind IN ('r', 'v')")]  # fmt: skip
    for table in tables:
        (reads,) = sql(f"SELECT has_table_privilege('reader', '{schema}.{table}', 'SELECT')")[0]
        (strange,) = sql(f"SELECT has_table_privilege('stranger', '{schema}.{table}', 'SELECT')")[0]
        (writes,) = sql(f"SELECT has_table_privilege('reader', '{schema}.{table}', 'INSERT')")[0]
        assert (reads, strange, writes) == (True, False, False), table
    assert sql(f"SELECT has_schema_privilege('stranger', '{schema}', 'USAGE')")[0][0] is False


def test_default_privileges_on_schemas_are_taken_back(server, schema, sql):
    """Who may create in the schema could plant a table beside the release."""
    sql("DO $$ BEGIN CREATE ROLE stranger; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    sql("ALTER DEFAULT PRIVILEGES GRANT CREATE, USAGE ON SCHEMAS TO PUBLIC, stranger")
    try:
        released("decoys").publish(f"{server}&schema={schema}")
    finally:
        sql("ALTER DEFAULT PRIVILEGES REVOKE CREATE, USAGE ON SCHEMAS FROM PUBLIC, stranger")
    for right in ("CREATE", "USAGE"):
        assert sql(f"SELECT has_schema_privilege('stranger', '{schema}', '{right}')")[0][0] is False


VIEWS = {
    "the original": "CREATE VIEW {0}.records AS SELECT * FROM original",
    "another order": "CREATE VIEW {0}.records AS {1} ORDER BY 1",
    "fewer rows": "CREATE VIEW {0}.records AS {1} LIMIT 5",
    "another table": "CREATE TABLE {0}.records AS {1}",
    "a stored answer": "CREATE MATERIALIZED VIEW {0}.records AS {1}",
    "a cell of somebody": 'CREATE VIEW {0}.records AS SELECT height, ill, born, "Stadt", member, 1::int8 AS age '
    "FROM ({1}) AS r",
    "none": "SELECT 1",
}


@pytest.mark.parametrize("forged", VIEWS)
def test_the_view_that_people_read_is_compared(forged, server, schema, sql):
    place = f"{server}&schema={schema}"
    released("decoys").publish(place)
    assert all(verdict.holds for verdict in nr.verify(nr.open_release(place)))
    sql("DROP TABLE IF EXISTS original CASCADE")
    sql('CREATE TABLE original (age int8, height float8, born date, "Stadt" text, member boolean, ill text)')
    (definition,) = sql(f"SELECT rtrim(pg_get_viewdef('{schema}.records'::regclass), ';')")[0]
    sql(f"DROP VIEW {schema}.records", VIEWS[forged].format(schema, definition))
    with pytest.raises(ReleaseError, match="'records' is not the view"):
        nr.verify(nr.open_release(place))


@pytest.mark.parametrize(
    "forged",
    [
        "ALTER TABLE {0}.cells ENABLE ROW LEVEL SECURITY",
        "CREATE RULE more AS ON INSERT TO {0}.cells DO NOTHING",
        "CREATE TABLE {0}.counts_0_0 () INHERITS ({0}.cells)",
    ],
)
def test_tables_that_show_each_reader_something_else_are_refused(forged, server, schema, sql):
    place = f"{server}&schema={schema}"
    released("decoys").publish(place)
    sql(forged.format(schema))
    with pytest.raises(ReleaseError, match="not as published"):
        nr.verify(nr.open_release(place))


def test_a_reader_without_the_right_to_compare_is_not_told_that_it_holds(server, schema, sql):
    sql("DO $$ BEGIN CREATE ROLE reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$", "ALTER ROLE reader LOGIN")
    released("decoys").publish(f"{server}&schema={schema}", grant=["reader"])
    place = f"{server}&schema={schema}".replace("postgres:@", "reader:@")
    assert all(verdict.holds for verdict in nr.verify(nr.open_release(place)))
    (base,) = sql("SELECT current_database()::text")[0]
    sql(f"REVOKE TEMPORARY ON DATABASE {base} FROM PUBLIC")
    try:
        with pytest.raises(ReleaseError, match="may not create temporary views"):
            nr.verify(nr.open_release(place))
        assert nr.open_release(place).estimate("ill").frame.height > 0
    finally:
        sql(f"GRANT TEMPORARY ON DATABASE {base} TO PUBLIC")


@pytest.mark.parametrize("name", ["ctid", "xmin", "tableoid", "q", "c", "first", "rows", "id", "value", "l1"])
def test_odd_names_of_columns_work_or_are_refused(name, server, schema):
    place = f"{server}&schema={schema}"
    table = people().select("age", "ill").rename({"age": name}).fill_null(30)
    roles = {name: {"role": "sensitive", "bins": [0, 40, 60, 120]}, "ill": "sensitive"}
    policy = nr.Policy(attributes=roles, require=[SET | {"on": "ill"}, SET | {"on": name}], dependence={"most": 1.0})
    release = nr.anonymize(table, policy)
    if name in ("ctid", "xmin", "tableoid"):
        with pytest.raises(ReleaseError, match=f"column '{name}' is reserved by PostgreSQL"):
            release.publish(place)
        return
    release.publish(place)
    opened = nr.open_release(place)
    assert opened.frame().equals(release.frame())
    assert all(verdict.holds for verdict in nr.verify(opened))
    assert opened.estimate(["ill", name]).frame.equals(release.estimate(["ill", name]).frame)


def test_a_label_with_a_nul_character_is_refused(server, schema, sql):
    roles = {"ill": {"role": "sensitive", "values": ["flu", "burn", "gout", "co\\ld", "no\0thing"]}}
    policy = nr.Policy(attributes=roles, require=[SET])
    with pytest.raises(DataError, match="NUL"):
        nr.anonymize(people().select("ill"), policy).publish(f"{server}&schema={schema}")
    assert sql(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'")[0][0] == 0


def test_nothing_is_left_where_it_fails(server, schema, sql):
    place = f"{server}&schema={schema}"
    with pytest.raises(ReleaseError, match="no role"):
        released("decoys").publish(place, grant=["nobody-of-that-name"])
    assert sql(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'")[0][0] == 0
    released("decoys").publish(place)
    with pytest.raises(ReleaseError, match="exists already"):
        released("decoys").publish(place)
    with pytest.raises(ReleaseError, match="which schema"):
        released("decoys").publish(server)


KILLED = """
import sys, time
import noren as nr
from noren.sources import postgres
from noren.release.database import publish as room
real = room._close
def slow(*arguments):
    print("written", flush=True)
    time.sleep(60)
    real(*arguments)
room._close = slow
nr.open_release(sys.argv[1]).publish(sys.argv[2])
"""


def test_a_killed_publish_leaves_nothing(server, schema, sql, tmp_path):
    released("decoys").save(tmp_path / "release")
    words = [sys.executable, "-c", KILLED, str(tmp_path / "release"), f"{server}&schema={schema}"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    stuck = threading.Timer(60, process.kill)
    stuck.start()
    assert process.stdout.readline().strip() == "written"
    process.kill()
    process.communicate()
    stuck.cancel()
    for _ in range(50):
        if not sql(f"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{schema}%' AND state <> 'active'")[0][0]:
            break
        time.sleep(0.1)
    assert sql(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'")[0][0] == 0


def test_what_the_manifest_does_not_describe_is_refused(server, schema, sql):
    place = f"{server}&schema={schema}"
    released("decoys").publish(place)
    sql(f"CREATE TABLE {schema}.names (name text)")
    with pytest.raises(ReleaseError, match="the table 'names'"):
        nr.verify(nr.open_release(place))
    sql(f"DROP TABLE {schema}.names", f"ALTER TABLE {schema}.manifest ADD COLUMN remark text")
    with pytest.raises(ReleaseError, match="the column 'remark'"):
        nr.verify(nr.open_release(place))
    sql(f"ALTER TABLE {schema}.manifest DROP COLUMN remark", f"ALTER TABLE {schema}.cells ADD COLUMN name text")
    with pytest.raises(ReleaseError, match="other columns"):
        nr.open_release(place)


def test_a_changed_base_is_refused(server, schema, sql):
    place = f"{server}&schema={schema}"
    released("decoys").publish(place)
    sql(f"UPDATE {schema}.manifest SET manifest = jsonb_set(manifest::jsonb, '{{title}}', '\"forged\"')::json")
    with pytest.raises(ReleaseError, match="checksum"):
        nr.open_release(place)
    sql(f"DROP SCHEMA {schema} CASCADE")
    released("decoys").publish(place)
    opened = nr.open_release(place)
    sql(f"DELETE FROM {schema}.cells WHERE ctid IN (SELECT ctid FROM {schema}.cells LIMIT 5)")
    assert opened.frame().height == 300  # its snapshot
    with pytest.raises(ReleaseError, match="rows"):
        nr.open_release(place).estimate("ill")
    with pytest.raises(ReleaseError, match="this is not a release"):
        nr.open_release(f"{server}&schema=nowhere")
    with pytest.raises((ReleaseError, DataError)):
        nr.open_release(server)


def explained(server: str, asked: str) -> str:
    from adbc_driver_postgresql import StatementOptions, dbapi

    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{StatementOptions.USE_COPY.value: False})
        cursor.execute(f"EXPLAIN {asked}")
        return "\n".join(line for (line,) in cursor.fetchall())


def test_counting_happens_in_the_base(server, schema, sql):
    release = released("decoys")
    release.publish(f"{server}&schema={schema}")
    opened = nr.open_release(f"{server}&schema={schema}")
    asked = opened.store.counting([opened.column("ill"), opened.column("Stadt")])
    plan = explained(server, asked)
    assert "Aggregate" in plan
    cells, rows = opened.store.count_combinations([opened.column("ill"), opened.column("Stadt")])
    assert len(rows) == len(cells["ill"]) <= 6 * 3
    assert rows.sum() == 300
    asked_of = {"ill": ["flu"], "Stadt": ["Ulm"]}
    assert opened.count(asked_of).count == pytest.approx(release.count(asked_of).count)


def test_two_hidden_columns_are_counted_when_they_are_published(server, schema, sql, tmp_path, monkeypatch):
    """The counts are those of the rows, a question reads them, and its answer is the directory's to the last digit."""
    monkeypatch.setattr("noren.release.set_tally.LEAST_ROWS", 1)
    released("decoys").save(tmp_path / "release")
    release = nr.open_release(tmp_path / "release")
    release.publish(f"{server}&schema={schema}")
    opened = nr.open_release(f"{server}&schema={schema}")
    both = [opened.column("ill"), opened.column("age")]
    assert "counts_1_6" in explained(server, opened.store.counting(both))
    assert "counts_1_6" in explained(server, opened.store.counting(both[:1]))
    assert "cells" in explained(server, opened.store.counting([*both, opened.column("Stadt")]))
    grouped = sql(f"SELECT age, ill, count(*) FROM {schema}.cells GROUP BY age, ill")
    assert sorted(grouped) == sorted(sql(f"SELECT first, second, rows FROM {schema}.counts_1_6"))
    for asked in ({"ill": "flu", "age": ["[0, 40)"]}, {"age": ["[40, 60)"]}, {"ill": "burn", "Stadt": "Ulm"}):
        assert opened.count(asked).to_dict() == release.count(asked).to_dict()
    for by in (["ill", "age"], ["age", "ill"], ["ill"]):
        assert opened.estimate(by).frame.equals(release.estimate(by).frame)


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE {0}.counts_1_6 SET rows = rows + 1 - 2 * second WHERE second < 2 AND first = 0",
        "DELETE FROM {0}.counts_1_6 WHERE first = 0 AND second = 0",
    ],
)
def test_counts_that_are_not_of_the_rows_are_refused(forged, server, schema, sql):
    place = f"{server}&schema={schema}"
    released("decoys").publish(place)
    sql(forged.format(schema))
    with pytest.raises(ReleaseError, match="counts_1_6 does not match its rows"):
        nr.verify(nr.open_release(place))


def test_a_release_without_counts_opens(server, schema, sql):
    """As published before there were any."""
    release, place = released("decoys"), f"{server}&schema={schema}"
    release.publish(place)
    sql(f"DROP TABLE {schema}.counts_1_6")
    opened = nr.open_release(place)
    assert all(verdict.holds for verdict in nr.verify(opened))
    assert opened.estimate(["ill", "age"]).frame.equals(release.estimate(["ill", "age"]).frame)


def test_the_command(server, schema, tmp_path):
    released("mondrian").save(tmp_path / "release")
    place = f"{server}&schema={schema}".replace("postgres:@", "postgres:hunter2-hunter2@")
    run = CliRunner()
    done = run.invoke(main, ["publish", str(tmp_path / "release"), place, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["records"] == 300
    for words in (["verify", place], ["count", place, "--where", "ill=flu"], ["estimate", place, "--by", "ill"],
                  ["measure", place], ["audit", place, "--attack", "homogeneity"],
                  ["report", place, "--to", str(tmp_path / "page.html")]):  # fmt: skip
        done = run.invoke(main, words)
        assert done.exit_code in (0, 3), (words, done.output)
        assert "hunter2" not in done.output
    assert "hunter2" not in Path(tmp_path / "page.html").read_text()


def test_a_name_that_does_not_fit_is_refused(server, schema):
    table = people().rename({"ill": "i" * 80})
    roles = dict.fromkeys(("age", "height", "born", "Stadt", "member"), "plain") | {"i" * 80: "sensitive"}
    policy = nr.Policy(attributes=roles, require=[SET | {"on": "i" * 80}])
    with pytest.raises(ReleaseError, match="63 bytes"):
        nr.anonymize(table, policy).publish(f"{server}&schema={schema}")


def test_duckdb_is_a_source():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is read through the Arrow C stream")
    frame = people().to_arrow()
    base = duckdb.connect()
    base.register("frame", frame)
    relation = base.sql("SELECT * FROM frame WHERE height > 150")
    roles = dict.fromkeys(("age", "height", "born", "Stadt"), "quasi-identifier") | {
        "member": "plain",
        "ill": "sensitive",
    }
    made = nr.anonymize(relation, nr.Policy(attributes=roles, require=CLASSES, method="mondrian"))
    assert made.records == relation.count("*").fetchall()[0][0]
    assert isinstance(frame, pa.Table)
