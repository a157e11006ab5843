"""PostgreSQL as a source: types, one snapshot, hints, and addresses that never show their password."""

from __future__ import annotations

import datetime as dt
import json
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.engines.local import LocalEngine
from noren.errors import DataError
from noren.sources.postgres import Address, split_name
from noren.sources.source import open_source

TYPES = '''
CREATE TABLE kinds (
    i int, big bigint, n numeric(10, 2), x numeric, f real, b boolean, d date, t timestamp, z timestamptz,
    m mood, words text[], u uuid, c char(5), v varchar(3), "Odd ""name""" text
)
'''
ROW = """
INSERT INTO kinds VALUES (
    1, 9000000000, 1.50, 151.9, 1.5, true, '2020-02-29', '2020-01-01 10:00', '2020-01-01 10:00+02',
    'glad', '{x,"y z"}', '00000000-0000-0000-0000-000000000001', 'ab', 'xyz', 'ö'
), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


def people(n: int = 400, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "patient": [f"P{i:04}" for i in range(n)],
            "age": pa.array(rng.integers(18, 90, n)),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], n).tolist(),
            "ill": rng.choice(["flu", "burn", "gout", "cold"], n).tolist(),
        }
    )


POLICY = {
    "attributes": {"patient": "identifier", "age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"},
    "require": [{"model": "k-anonymity", "k": 5}, {"model": "distinct-l-diversity", "on": "ill", "l": 2}],
    "method": "mondrian",
}


def listed(source, name: str) -> list:
    return [value for batch in source.batches([name]) for value in batch.column(0).to_pylist()]


def test_every_type_comes_as_it_is(server, sql):
    sql("DROP TABLE IF EXISTS kinds", "DROP TYPE IF EXISTS mood", "CREATE TYPE mood AS ENUM ('glad', 'sad')")
    sql(TYPES, ROW)
    source = open_source(f"{server}&table=public.kinds")
    assert source.rows == 2
    (batch,) = source.batches(source.columns)
    first, second = batch.to_pylist()
    assert first == {
        "i": 1, "big": 9_000_000_000, "n": "1.50", "x": "151.9", "f": 1.5, "b": True, "d": dt.date(2020, 2, 29),
        "t": dt.datetime(2020, 1, 1, 10), "z": dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC), "m": "glad",
        "words": ["x", "y z"], "u": "00000000-0000-0000-0000-000000000001", "c": "ab", "v": "xyz", 'Odd "name"': "ö",
    }  # fmt: skip
    assert set(second.values()) == {None}


def test_odd_names_are_names(server, sql):
    """A type like an array's, columns like the alias of a table and like what a server calls the place of a row."""
    sql("DROP VIEW IF EXISTS odd_view", "DROP TABLE IF EXISTS odd", "DROP TYPE IF EXISTS _feeling")
    sql("CREATE TYPE _feeling AS ENUM ('glad', 'sad')")
    sql('CREATE TABLE odd (q text, "_q" _feeling, oid_ _feeling[], "noren row" int)')
    sql("INSERT INTO odd VALUES ('b', 'glad', '{sad,glad}', 1), ('a', 'sad', NULL, NULL)")
    sql('CREATE VIEW odd_view AS SELECT q, q AS ctid, _q, oid_, "noren row" AS xmin FROM odd')
    expected = {"q": ["a", "b"], "_q": ["sad", "glad"], "oid_": [None, ["sad", "glad"]]}
    for place in ("&table=odd", "&table=odd_view", f"&query={quote('SELECT *, q AS ctid FROM odd')}"):
        source = open_source(server + place)
        (batch,) = source.batches(source.columns)
        rows = sorted(batch.to_pylist(), key=lambda row: row["q"])
        assert {name: [row[name] for row in rows] for name in expected} == expected
        assert "ctid" not in batch.schema.names or [row["ctid"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(("kind", "value"), [("date", "infinity"), ("date", "-infinity"), ("date", "0044-03-15 BC"),
                                             ("date", "20000-01-01"), ("timestamp", "infinity"),
                                             ("timestamptz", "-infinity"), ("timestamp", "0044-03-15 BC")])  # fmt: skip
def test_dates_outside_of_the_calendar_are_refused(kind, value, server, sql, tmp_path):
    sql("DROP TABLE IF EXISTS endless", f"CREATE TABLE endless (ill text, until {kind})")
    sql(f"INSERT INTO endless SELECT 'flu', '2020-01-01'::{kind} FROM generate_series(1, 30)")
    sql(f"INSERT INTO endless VALUES ('gout', '{value}')")
    policy = tmp_path / "policy.toml"
    policy.write_text('[attributes]\nill = "identifier"\nuntil = "plain"\n')
    place = f"{server}&table=endless"
    for words in (["init", place], ["anonymize", place, str(policy), "--to", str(tmp_path / "out")],
                  ["measure", place, "--quasi", "until", "--sensitive", "ill"], ["risk", place]):  # fmt: skip
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2, (words, done.output)
        assert "'until' holds a date before the year 1 or after 9999" in done.output


def test_a_large_table_comes_in_lots_of_blocks_in_the_same_order(loaded, sql, monkeypatch):
    """Two readers, blocks that hold nothing, and rows that are written meanwhile behind the last block."""
    whole = people(5_000)
    address = loaded("visits", whole)
    sql("DELETE FROM visits WHERE patient BETWEEN 'P1000' AND 'P1999'")
    monkeypatch.setattr("noren.sources.postgres.AT_ONCE", 3)
    source = open_source(address)
    assert source._blocks > 10
    sql("INSERT INTO visits SELECT 'X' || patient, age, town, ill FROM visits")
    expected = [patient for patient in whole["patient"].to_pylist() if not "P1000" <= patient <= "P1999"]
    assert listed(source, "patient") == expected == listed(source, "patient")
    first = next(iter(source.batches(["patient"])))  # nobody asks for the rest
    assert first.num_rows > 0
    held = LocalEngine().held(source, address)
    once = [batch.to_pydict() for batch in held.batches(source.columns)]
    monkeypatch.setattr(type(source), "batches", None)
    assert [batch.to_pydict() for batch in held.batches(source.columns)] == once, "not read again"


def test_all_passes_see_one_snapshot_in_one_order(loaded, sql):
    source = open_source(loaded("visits", people()))
    before = [batch.to_pydict() for batch in source.batches(["patient", "age"])]
    sql("DELETE FROM visits WHERE age > 40", "INSERT INTO visits VALUES ('P9999', 20, 'Ulm', 'flu')")
    sql("CREATE INDEX ON visits (patient)", "ANALYZE visits")
    after = [batch.to_pydict() for batch in source.batches(["patient", "age"])]
    assert before == after
    assert listed(source, "patient") == [name for part in before for name in part["patient"]]
    assert open_source(source.address.uri + "&table=visits").rows != source.rows


def test_a_view_comes_in_one_order_whatever_is_asked_of_it(loaded, sql):
    address = loaded("visits", people())
    sql("CREATE VIEW grouped AS SELECT town, ill, count(*) AS many FROM visits GROUP BY town, ill")
    source = open_source(address.replace("table=visits", "table=grouped"))
    towns, ills = listed(source, "town"), listed(source, "ill")
    parts = [batch.to_pydict() for batch in source.batches(["town", "ill"])]
    both = [pair for part in parts for pair in zip(*part.values(), strict=True)]
    assert list(zip(towns, ills, strict=True)) == both


def test_a_table_in_a_base_gives_the_release_that_a_frame_gives(loaded):
    table = people()
    made = nr.anonymize(loaded("patients", table), nr.Policy(**POLICY))
    same = nr.anonymize(table, nr.Policy(**POLICY))
    assert all(verdict.holds for verdict in made.verdicts)
    assert [column.domain for column in made.statements] == [column.domain for column in same.statements]
    assert made.frame().height == table.num_rows


def test_a_query_is_read_instead_of_a_table(loaded, server, tmp_path):
    loaded("patients", people())
    policy = tmp_path / "policy.toml"
    policy.write_text(nr.Policy(**POLICY).to_toml())
    words = ["anonymize", server, str(policy), "--query", "SELECT * FROM patients WHERE age >= 40;"]
    done = CliRunner().invoke(main, [*words, "--to", str(tmp_path / "release"), "--json"])
    assert done.exit_code == 0, done.output
    expected = sum(age >= 40 for age in people().column("age").to_pylist())
    assert json.loads(done.output)["records"] == expected
    refused = CliRunner().invoke(main, ["init", "people.csv", "--query", "SELECT 1"])
    assert refused.exit_code == 2
    assert "postgresql://" in refused.output


def test_comments_on_columns_are_hints_for_a_draft(loaded, server, sql):
    loaded("patients", people())
    sql("COMMENT ON COLUMN patients.town IS 'Where they live. noren: sensitive'")
    sql("COMMENT ON COLUMN patients.age IS 'noren: identifier'")
    done = CliRunner().invoke(main, ["init", f"{server}&table=patients"])
    assert done.exit_code == 0, done.output
    drafted = nr.Policy.parse(done.output).attributes
    assert drafted["town"].role.value == "sensitive"
    assert drafted["age"].role.value == "identifier"
    assert "as the source declares" in done.output


def test_masked_views_are_judged_and_measured(loaded, server, sql):
    loaded("patients", people())
    sql("CREATE VIEW masked AS SELECT '*' AS age, town, ill FROM patients")
    sql("CREATE VIEW unmasked AS SELECT age, town, ill FROM patients")
    roles = {"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"}
    asked = [nr.models.KAnonymity(k=50), nr.models.DistinctLDiversity(on="ill", l=2)]
    policy = nr.Policy(attributes=roles, require=asked, method="mondrian")
    assert nr.check(f"{server}&table=masked", policy, suppressed=None)
    assert not nr.check(f"{server}&table=unmasked", policy)
    assert nr.measure(f"{server}&table=masked", quasi=["town"], sensitive=["ill"]).value("k-anonymity") > 50


SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://someone:{SECRET}@127.0.0.1:1/base?table=t",
        f"postgresql://someone:{SECRET}@127.0.0.1:1/base",
        f"postgresql://someone:{SECRET}@127.0.0.1:abc/base?table=t",
        f"postgresql://someone:{SECRET}@[::1/base?table=t",
        f"postgresql://127.0.0.1:1/base?table=t&password={SECRET}&nonsense=1",
    ],
)
@pytest.mark.parametrize("command", ["init", "risk", "verify", "measure"])
def test_no_message_shows_a_password(address, command):
    done = CliRunner().invoke(main, [command, address])
    assert done.exit_code == 2, done.output
    assert SECRET not in done.output
    assert "Traceback" not in done.output


def test_nothing_of_a_release_or_a_report_shows_where_it_came_from(loaded, server, tmp_path):
    address = loaded("patients", people()).replace("postgres:@", f"postgres:{SECRET}@")  # trusted: any password will do
    policy, report = tmp_path / "policy.toml", tmp_path / "report.html"
    policy.write_text(nr.Policy(**POLICY).to_toml())
    words = ["anonymize", address, str(policy), "--to", str(tmp_path / "release"), "--report", str(report)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    written = [*(tmp_path / "release").iterdir(), report]
    assert SECRET not in done.output
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("&table=nowhere", "no such table"),
        ("&table=a.b.c", "this is not the name of a table"),
        ("", "which table"),
        ("&query=SELEC", "not valid SQL"),
        ("&query=SELECT%20absent%20FROM%20pg_class", "no such column"),
        ("&query=CREATE%20TABLE%20made%20(i%20int)", "SQL"),
    ],
)
def test_what_cannot_be_read_is_said(server, rest, said):
    with pytest.raises(DataError, match=said):
        list(open_source(server + rest).batches([]))


def test_an_error_of_the_server_does_not_quote_a_cell(server, loaded):
    loaded("patients", people())
    asked = quote("SELECT ill::int AS x FROM patients")
    with pytest.raises(DataError) as caught:
        list(open_source(f"{server}&query={asked}").batches(["x"]))
    assert not any(ill in str(caught.value) for ill in ("flu", "burn", "gout", "cold"))


def test_names_and_addresses_are_taken_apart():
    assert split_name("t") == (None, "t")
    assert split_name("s.t") == ("s", "t")
    assert split_name('"a.b"."c""d"') == ("a.b", 'c"d')
    parsed = Address.parse("postgresql://me:pw@host:5/base?table=s.t&sslmode=require&application_name=a%20b")
    assert parsed.table == "s.t"
    assert parsed.uri == "postgresql://me:pw@host:5/base?sslmode=require&application_name=a%20b"
    assert parsed.name == "postgresql://host/base (s.t)"
