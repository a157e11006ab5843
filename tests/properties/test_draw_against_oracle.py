"""In memoised mode a set depends on its own record only, and equals what the slow twin draws."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren.designs.draw as module
from noren.designs.decoys import DecoyDesign
from noren.designs.draw import draw_columns
from noren.secret import RecordStream, Secret
from tests.oracles import draw as oracle

keys = st.binary(min_size=32, max_size=32)
texts = st.text(st.characters(codec="utf-8"), max_size=40)


@st.composite
def designs(draw: st.DrawFn) -> DecoyDesign:
    d = draw(st.one_of(st.integers(1, 12), st.sampled_from([40, 63, 64, 65, 130, 256, 257, 300])))
    eta = draw(st.integers(1, d)) if d <= 12 else draw(st.sampled_from([1, 2, 3, d // 2, d - 1, d]))
    p = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)))
    return DecoyDesign(d=d, eta=eta, p=p)


def as_sets(cells, eta: int) -> list[set[int]]:
    return [set(row) for row in cells.codes(eta).tolist()]


@settings(max_examples=60, deadline=None)
@given(keys, designs(), st.lists(texts, min_size=1, max_size=4, unique=True), st.data())
def test_sets_equal_the_oracles(key, design, records, data):
    if design.d in (40, 63, 64) and design.eta == 3:  # keep the oracle's table of combinations small
        design = DecoyDesign(d=design.d, eta=2, p=design.p)
    codes = np.array([data.draw(st.integers(0, design.d - 1)) for _ in records])
    attribute = data.draw(texts)
    stream = RecordStream(Secret(key))
    digests = stream.digests(pa.array(records, pa.string()))
    cells = design.draw(codes, stream, attribute=attribute, digests=digests)
    expected = [
        oracle.memoised_set(key, attribute, record, int(v), design.d, design.eta, design.p, module.TABLE_LIMIT)
        for record, v in zip(records, codes, strict=True)
    ]
    assert as_sets(cells, design.eta) == expected


@settings(max_examples=60, deadline=None)
@given(keys, designs(), st.integers(1, 60), st.data())
def test_order_batches_and_threads_change_nothing(key, design, n, data):
    stream = RecordStream(Secret(key))
    records = [f"person {number}" for number in range(n)]
    codes = np.array([data.draw(st.integers(0, design.d - 1)) for _ in range(n)])
    whole = design.draw(codes, stream, attribute="job", digests=stream.digests(pa.array(records)))

    order = np.array(data.draw(st.permutations(range(n))))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))
    again = RecordStream(Secret(key))  # another run
    for part in np.split(order, cuts):
        digests = again.digests(pa.array([records[row] for row in part], pa.string()))
        drawn = design.draw(codes[part], again, attribute="job", digests=digests)
        assert (drawn.data == whole.data[part]).all()

    beside = draw_columns(
        {"age": design, "job": design}, {"age": codes, "job": codes}, stream, digests=stream.digests(pa.array(records))
    )
    assert (beside["job"].data == whole.data).all()


@settings(max_examples=60, deadline=None)
@given(keys, st.lists(texts, max_size=30))
def test_digests_equal_the_oracles(key, records):
    digests = RecordStream(Secret(key)).digests(pa.array(records, pa.string()))
    assert [row.tobytes()[:12] for row in digests] == [oracle.digest(key, text) for text in records]


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_rejected_cells_take_the_next_words_of_their_own_record(p):
    key, d, eta, n = bytes(32), 22, 8, 150_000  # a table of 116,280 sets (170,544 without the truth)
    design, stream = DecoyDesign(d=d, eta=eta, p=p), RecordStream(Secret(key))
    codes = np.random.default_rng(3).integers(0, d, n)
    digests = stream.digests(pa.array(range(n)))
    cells = design.draw(codes, stream, attribute="job", digests=digests)
    plan = module.plan_decoys(d, eta, p)
    words = stream.cell_words("job", digests, codes.astype(np.uint8), plan.need, 0)[:, plan.need - 1]
    rejected = [row for row in range(n) if any(oracle.index(int(words[row]), size) is None for size in plan.sizes)]
    assert rejected  # this key and these records have some; nothing here is random
    for row in [*rejected, 0, n - 1]:
        expected = oracle.memoised_set(key, "job", str(row), int(codes[row]), d, eta, p, module.TABLE_LIMIT)
        assert as_sets(cells.take(slice(row, row + 1)), eta) == [expected]
