"""The published order is one uniform permutation of the whole table and says nothing about the original's."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pytest
from scipy import stats

import noren as nr
from noren.engines.shuffle import Shuffler
from noren.secret import Keystream
from noren.statements import CodeCells, batch_length
from tests.leaks.world import ALPHA, use_buckets, use_small_batches

N = 12_000
BATCH = 1_000


@pytest.fixture(scope="module")
def numbered() -> pa.Table:
    """Each record holds its own row number in the clear, and a secret that follows the row number too."""
    return pa.table({"row": np.arange(N), "s": [f"v{i * 5 // N}" for i in range(N)]})


@pytest.fixture(scope="module")
def policy() -> nr.Policy:
    requirement = {"model": "frequency-l-diversity", "on": "s", "l": 2}
    return nr.Policy(attributes={"row": "plain", "s": "sensitive"}, require=[requirement])


def published_rows(way: str, table: pa.Table, policy: nr.Policy, folder, monkeypatch) -> np.ndarray:
    use_small_batches(monkeypatch, BATCH)
    if way in ("buckets", "open-buckets"):
        use_buckets(monkeypatch, 1_500)
    if way.startswith("open"):
        monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 100)
    if way == "memory":
        release = nr.anonymize(table, policy)
    elif way == "memoised":
        nr.Secret.create(folder / "key")
        keyed = nr.Policy(attributes=policy.attributes, require=policy.require, randomness={"record_key": "row"})
        release = nr.anonymize(table, keyed, secret=folder / "key")
    elif way == "csv":
        monkeypatch.setattr("noren.sources.csv.BLOCK_BYTES", 8 * BATCH)
        pv.write_csv(table, folder / "table.csv")
        release = nr.anonymize(folder / "table.csv", policy, to=folder / "release", file_format="csv")
    else:
        release = nr.anonymize(table, policy, to=folder / "release")
    rows = release.frame()["row"].cast(int).to_numpy()
    assert (np.sort(rows) == np.arange(N)).all()
    return rows


WAYS = ("memory", "memoised", "streamed", "csv", "buckets", "open-streamed", "open-buckets")


@pytest.mark.parametrize("way", WAYS)
def test_the_published_order_is_independent_of_the_original(way, numbered, policy, tmp_path, monkeypatch):
    rows = published_rows(way, numbered, policy, tmp_path, monkeypatch)

    # Rank correlation. Over all permutations it has the first four moments of Pearson's r under independence
    # (Pitman 1937), so Student's t gives its tail.
    t = stats.t.isf(ALPHA / 2, N - 2)
    assert abs(np.corrcoef(rows, np.arange(N))[0, 1]) < t / np.sqrt(N - 2 + t * t)

    # Batches are mixed: of the rows of the first batch, those that stay in front are hypergeometric. So are the
    # rows of the first half that stay in it.
    for size in (BATCH, N // 2):
        low, high = stats.hypergeom.ppf([ALPHA / 2, 1 - ALPHA / 2], N, size, size)
        assert low <= (rows[:size] < size).sum() <= high

    # Neighbours part. At m given places a permutation keeps neighbours in at most 2^m (N - m)! of the N! cases, and
    # there are C(N - 1, m) choices of places: P(m or more neighbours) <= 2^m / m!.
    most = next(m for m in range(1, 100) if 2**m / factorial(m) < ALPHA)
    assert (np.abs(np.diff(rows)) == 1).sum() < most


def test_two_runs_have_two_orders(numbered, policy, tmp_path, monkeypatch):
    first = published_rows("memory", numbered, policy, tmp_path, monkeypatch)
    second = published_rows("memory", numbered, policy, tmp_path, monkeypatch)
    assert (first != second).any()


def test_a_table_through_buckets_really_goes_through_several(numbered, policy, tmp_path, monkeypatch):
    seen: list[int] = []
    finish = Shuffler.finish

    def spied(self):
        for batch in finish(self):
            seen.append(batch_length(batch))
            yield batch

    monkeypatch.setattr(Shuffler, "finish", spied)
    published_rows("buckets", numbered, policy, tmp_path, monkeypatch)
    assert len(seen) >= 8
    assert sum(seen) == N


def shuffled(values: list[int], parts: list[int], stream: Keystream, folder) -> tuple[int, ...]:
    """The values in the order in which a shuffler gives them back, after they came in parts."""
    shuffler = Shuffler(stream, len(values), folder)
    start = 0
    for size in parts:
        shuffler.add({"x": CodeCells(len(values), np.array(values[start : start + size], np.uint8))})
        start += size
    return tuple(int(value) for batch in shuffler.finish() for value in batch["x"].data)


@pytest.mark.parametrize(
    ("on_disk", "parts", "runs"),
    [(False, [4], 12_000), (False, [1, 3], 12_000), (True, [4], 1_200), (True, [1, 2, 1], 1_200)],
)
def test_every_order_of_four_rows_is_equally_likely(on_disk, parts, runs, tmp_path, monkeypatch):
    if on_disk:
        use_buckets(monkeypatch, 1)
    stream = Keystream()
    places = {order: place for place, order in enumerate(permutations(range(4)))}
    counts = np.zeros(len(places), np.int64)
    for _ in range(runs):
        counts[places[shuffled([0, 1, 2, 3], parts, stream, tmp_path if on_disk else None)]] += 1
    assert not list(tmp_path.iterdir())
    # Exact: each count is binomial, and the 24 of them share the chance of a false alarm.
    low, high = stats.binom.ppf([ALPHA / 48, 1 - ALPHA / 48], runs, 1 / 24)
    assert low <= counts.min()
    assert counts.max() <= high
    # Sharper, with 50 or more expected in each cell; a tenth of the chance leaves room for the approximation.
    assert stats.chisquare(counts).statistic < stats.chi2.isf(ALPHA / 10, 23)
