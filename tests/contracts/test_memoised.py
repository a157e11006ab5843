"""Under a secret a person's sets depend on the person and the value alone, and no later release may contradict them."""

from __future__ import annotations

from dataclasses import asdict
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import noren as nr
from noren.methods import METHODS
from noren.methods.base import DrawingMethod
from noren.secret import Register
from noren.workflow.anonymize import run

N = 700
DESIGN_METHODS = [name for name, kind in METHODS.items() if issubclass(kind, DrawingMethod)]
SHADES = [f"shade {i}" for i in range(9)]
WIDE = [f"town {i:02d}" for i in range(70)]  # too many for a bit mask
BOTH = [
    {"model": "frequency-l-diversity", "on": "shade", "l": 3},
    {"model": "frequency-l-diversity", "on": "town", "l": 4},
]


def people(n: int = N) -> pa.Table:
    rng = np.random.default_rng(23)
    # every value occurs, so that parts of the table have the same domains
    shade = np.concatenate([np.arange(9), rng.integers(0, 9, n - 9)])
    town = np.concatenate([np.arange(70), rng.integers(0, 70, n - 70)])
    return pa.table(
        {
            "id": pa.array(np.arange(n) + 1000),
            "row": pa.array(np.arange(n)),
            "shade": [SHADES[i] for i in shade],
            "town": [WIDE[i] for i in town],
        }
    )


@pytest.fixture
def key(tmp_path) -> Path:
    nr.Secret.create(tmp_path / "secret.key")
    return tmp_path / "secret.key"


CLOSE = [{"model": "t-closeness", "on": name, "t": 0.4} for name in ("shade", "town")]
SERVED = {"decoys": BOTH, "pram": CLOSE}
"""What each method of designs can be asked for."""


def again(first: Any, d: int, eta: int) -> float:
    """With which probability two independent draws around one truth agree.

    Two sets that hold it: 1 / C(d - 1, eta - 1). Two changed values: the sum of the squares of their probabilities.
    """
    design = first.designs["shade" if d == len(SHADES) else "town"]
    if eta == design.eta:
        return 1 / comb(d - 1, eta - 1)
    return float((design.inclusion_matrix()[0] ** 2).sum())


def policy(method: str = "decoys", require: Any = None, record_key: str = "id", **more: Any) -> nr.Policy:
    parameters = {"parameters": more.pop("parameters")} if "parameters" in more else {}
    fingerprint = {"fingerprint": more.pop("fingerprint")} if "fingerprint" in more else {}
    people = {"people": more.pop("people")} if "people" in more else {}
    attributes = {"id": "identifier", "row": "plain", "shade": "sensitive", "town": "sensitive"} | more
    return nr.Policy(
        attributes=attributes,
        require=SERVED[method] if require is None else require,
        method={"name": method, **parameters},
        randomness={"record_key": record_key, **fingerprint},
        **people,
    )


def rows(release: nr.Release) -> pl.DataFrame:
    """The published records in an order that does not depend on the shuffle."""
    return release.frame().sort("row")


# ---------------------------------------------------------------- the same rows, whatever the way


def other_order(monkeypatch, folder):
    order = np.random.default_rng(1).permutation(N)
    return people().take(pa.array(order))


def small_batches(monkeypatch, folder):
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", 13)
    return people()


def many_chunks(monkeypatch, folder):
    return pa.concat_tables([people().slice(start, 50) for start in range(0, N, 50)])


def csv_file(monkeypatch, folder):
    pv.write_csv(people(), folder / "people.csv")
    return folder / "people.csv"


def csv_file_in_small_blocks(monkeypatch, folder):
    monkeypatch.setattr("noren.sources.csv.BLOCK_BYTES", 300)
    return csv_file(monkeypatch, folder)


def parquet_file(monkeypatch, folder):
    pq.write_table(people(), folder / "people.parquet", row_group_size=111)
    return folder / "people.parquet"


def arrow_file(monkeypatch, folder):
    with pa.ipc.new_file(folder / "people.arrow", people().schema) as writer:
        writer.write_table(people(), max_chunksize=90)
    return folder / "people.arrow"


def polars_frame(monkeypatch, folder):
    return pl.from_arrow(people())


def pandas_frame(monkeypatch, folder):
    return people().to_pandas()


def text_keys(monkeypatch, folder):
    return people().set_column(0, "id", people()["id"].cast(pa.string()))


def many_threads(monkeypatch, folder):
    monkeypatch.setattr("noren.designs.draw.CELLS_PER_THREAD", 1)
    monkeypatch.setattr("noren.designs.draw.ROWS_AT_ONCE", 64)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    return people()


def buckets(monkeypatch, folder):
    monkeypatch.setattr("noren.engines.shuffle.MEMORY_BYTES", 0)
    monkeypatch.setattr("noren.engines.shuffle.BUCKET_BYTES", 40)
    return people()


WAYS = (
    other_order,
    small_batches,
    many_chunks,
    csv_file,
    csv_file_in_small_blocks,
    parquet_file,
    arrow_file,
    polars_frame,
    pandas_frame,
    text_keys,
    many_threads,
    buckets,
)


@pytest.mark.parametrize("method", DESIGN_METHODS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_rows_are_the_same_whatever_the_way(way, method, key, tmp_path, monkeypatch):
    plainly = rows(nr.anonymize(people(), policy(method), secret=key))
    given = way(monkeypatch, tmp_path)
    assert rows(nr.anonymize(given, policy(method), to=tmp_path / "release", secret=key)).equals(plainly)


@pytest.mark.parametrize("method", DESIGN_METHODS)
def test_another_secret_gives_other_sets(method, key, tmp_path):
    nr.Secret.create(tmp_path / "other.key")
    release = nr.anonymize(people(), policy(method), secret=key)
    first, second = rows(release), rows(nr.anonymize(people(), policy(method), secret=tmp_path / "other.key"))
    for name, d, eta in (("shade", 9, 3), ("town", 70, 4)):
        same = int((first[name] == second[name]).sum())
        low, high = stats.binom.ppf([0.25e-9, 1 - 0.25e-9], N, again(release, d, eta))
        assert low <= same <= high


@pytest.mark.parametrize("method", DESIGN_METHODS)
def test_another_record_key_gives_other_sets(method, key):
    moved = people().set_column(0, "id", pa.array(np.arange(N) + 50_000))
    release = nr.anonymize(people(), policy(method), secret=key)
    first, second = rows(release), rows(nr.anonymize(moved, policy(method), secret=key))
    low, high = stats.binom.ppf([0.5e-9, 1 - 0.5e-9], N, again(release, 9, 3))
    assert low <= int((first["shade"] == second["shade"]).sum()) <= high


# ---------------------------------------------------------------- the register


def registered(key: Path) -> dict[str, Any]:
    return {name: asdict(one.entry) for name, one in Register.open(key).contents.drawn.items()}


def refused(data: Any, rules: nr.Policy, key: Path, folder: Path) -> nr.errors.SecretError:
    before = key.with_name(key.name + ".register").read_bytes()
    with pytest.raises(nr.errors.SecretError, match="drew these attributes differently") as caught:
        nr.anonymize(data, rules, to=folder / "release", secret=key)
    assert not (folder / "release").exists()
    assert key.with_name(key.name + ".register").read_bytes() == before
    return caught.value


def test_a_changed_domain_is_refused_and_a_declared_one_accepted(key, tmp_path):
    nr.anonymize(people(), policy(), secret=key)
    fewer = people().filter(pa.compute.not_equal(people()["shade"], "shade 8"))
    error = refused(fewer, policy(), key, tmp_path)
    assert "'shade': domain (recorded 9 values, now 8: 0 new, 1 gone)" in error.message
    nr.anonymize(fewer, policy(shade={"role": "sensitive", "values": SHADES}), secret=key)
    error = refused(people(), policy(shade={"role": "sensitive", "values": SHADES[::-1]}), key, tmp_path)
    assert "another order" in error.message


def test_a_changed_set_size_is_refused(key, tmp_path):
    nr.anonymize(people(), policy(), secret=key)
    assert registered(key)["shade"] == {"domain": tuple(SHADES), "design": "uniform-decoys", "eta": 3, "p": 1.0}
    error = refused(people(), policy(require=[{**BOTH[0], "l": 4}, BOTH[1]]), key, tmp_path)
    assert "eta (recorded 3, now 4)" in error.message
    assert "eta = 3 and p = 1.0 under [method.parameters.shade]" in str(error.hint)
    # a weaker requirement is met by the recorded, larger sets, if the policy asks for them
    weaker = [{**BOTH[0], "l": 2}, BOTH[1]]
    refused(people(), policy(require=weaker), key, tmp_path)
    release = nr.anonymize(people(), policy(require=weaker, parameters={"shade": {"eta": 3}}), secret=key)
    assert release.designs["shade"].eta == 3


def test_a_coin_that_follows_the_data_is_refused_and_a_fixed_one_accepted(key, tmp_path):
    """With `prior = "data"` the next month's p may differ, or any that is fixed otherwise; the recorded one is kept."""
    require = [{"model": "t-closeness", "on": "shade", "t": 0.3}, BOTH[1]]
    first = run(people(), policy(require=require), secret=key).facts.designs["shade"]
    assert 0 < first.p < 1
    later = people().set_column(2, "shade", pa.array(["shade 0"] * 60 + people()["shade"].to_pylist()[60:]))
    later = later.set_column(2, "shade", pa.array([*SHADES, *later["shade"].to_pylist()[9:]]))
    assert run(later, policy(require=require), secret=key).facts.designs["shade"] == first, "the counts do not matter"
    other = {"shade": {"eta": first.eta, "p": first.p / 2}}
    error = refused(later, policy(require=require, parameters=other), key, tmp_path)
    assert "'shade': " in error.message
    assert f"p (recorded {first.p}, now " in error.message
    fixed = {"shade": {"eta": first.eta, "p": first.p}}
    looser = [{"model": "t-closeness", "on": "shade", "t": 0.5}, BOTH[1]]
    second = nr.anonymize(later, policy(require=looser, parameters=fixed), secret=key)
    assert second.designs["shade"] == first
    both = rows(nr.anonymize(people(), policy(require=require, parameters=fixed), secret=key))
    unchanged = [a == b for a, b in zip(people()["shade"].to_pylist(), later["shade"].to_pylist(), strict=True)]
    assert both.filter(unchanged)["shade"].equals(rows(second).filter(unchanged)["shade"])


def test_columns_that_are_new_to_the_register_are_added(key):
    alone = nr.Policy(
        attributes={"id": "identifier", "row": "plain", "shade": "sensitive", "town": "identifier"},
        require=BOTH[:1],
        people={"key": "id"},
        randomness={"record_key": "id"},
    )
    nr.anonymize(people(), alone, secret=key)
    assert registered(key).keys() == {"shade"}
    nr.anonymize(people(), policy(), secret=key)
    assert registered(key).keys() == {"shade", "town"}


# ---------------------------------------------------------------- what is refused


def test_a_secret_with_another_fingerprint_is_refused(key, tmp_path):
    right = nr.Secret.load(key).fingerprint
    nr.anonymize(people(), policy(fingerprint=right), secret=key)
    nr.Secret.create(tmp_path / "other.key")
    with pytest.raises(nr.errors.SecretError, match=right):
        nr.anonymize(people(), policy(fingerprint=right), to=tmp_path / "release", secret=tmp_path / "other.key")
    assert not (tmp_path / "release").exists()


def test_a_record_key_without_a_secret_and_a_secret_without_a_record_key_are_refused(key):
    with pytest.raises(nr.errors.SecretError, match="no secret is given"):
        nr.anonymize(people(), policy())
    keyless = nr.Policy(attributes=policy().attributes, require=BOTH)
    with pytest.raises(nr.errors.PolicyError, match="a secret needs a record key"):
        nr.anonymize(people(), keyless, secret=key)


def test_a_record_key_that_the_table_does_not_have_is_refused(key):
    with pytest.raises(nr.errors.PolicyError, match="no column 'id'"):
        nr.anonymize(people().drop_columns(["id"]), policy(), secret=key)
    with pytest.raises(nr.errors.PolicyError, match="no column 'number' in"):
        policy(record_key="number")


@pytest.mark.parametrize("batch", [1 << 16, 10])
def test_a_missing_record_key_is_refused(batch, key, monkeypatch):
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", batch)
    keys = [*range(N - 1), None]
    with pytest.raises(nr.errors.DataError, match="record key is missing in 1 of"):
        nr.anonymize(people().set_column(0, "id", pa.array(keys, pa.int64())), policy(), secret=key)


@pytest.mark.parametrize("batch", [1 << 16, 10])
def test_a_repeated_record_key_is_refused_even_across_batches(batch, key, monkeypatch):
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", batch)
    keys = [*range(N - 3), 0, 1, 1]
    data = people().set_column(0, "id", pa.array(keys))
    with pytest.raises(nr.errors.PolicyError, match=f"{N} records have {N - 3} different values"):
        nr.anonymize(data, policy(), secret=key)
    with pytest.raises(nr.errors.DataError, match="'id' is not unique: 3 records repeat"):
        nr.anonymize(data, policy(people={"rows": "independent"}), secret=key)
    assert Register.open(key).contents.releases == 0


def test_keys_of_dropped_records_do_not_count(key):
    """A record without a shade is dropped before its key could be a duplicate."""
    keys = [*range(N - 1), 0]
    shade = people()["shade"].to_pylist()
    data = people().set_column(0, "id", pa.array(keys)).set_column(2, "shade", pa.array([*shade[:-1], None]))
    release = nr.anonymize(data, policy(shade={"role": "sensitive", "missing": "drop"}), secret=key)
    assert release.records == N - 1
