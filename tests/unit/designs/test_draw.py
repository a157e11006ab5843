"""Sets are drawn exactly as their design says: every word that is used counts the same for every set."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from math import comb

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import noren.designs.draw as module
from noren.designs.decoys import DecoyDesign
from noren.designs.draw import DrawingPlan, draw_columns
from noren.errors import DataError, SecretError
from noren.secret import Keystream, RecordStream, Secret
from tests.oracles import draw as oracle

TWO_32 = 1 << 32
ALPHA = 1e-9
SIZES = [1, 2, 3, 5, 15, 16, 715, 2380, 50_388, 65_537, 1 << 20]

# (d, eta, p): each way of drawing, small and large, and the corners of each.
DESIGNS = [
    (1, 1, 1.0), (1, 1, 0.5), (2, 1, 1.0), (2, 1, 0.5), (2, 1, 0.0), (2, 2, 1.0), (5, 2, 1.0), (5, 2, 0.5),
    (5, 1, 0.2), (5, 4, 0.7), (8, 3, 0.0), (9, 5, 0.3), (18, 5, 1.0), (33, 3, 0.5), (40, 20, 1.0), (40, 20, 0.5),
    (40, 20, 0.0), (64, 2, 0.3), (64, 63, 0.5), (64, 64, 1.0), (65, 1, 1.0), (65, 3, 1.0), (65, 64, 0.4),
    (256, 4, 0.5), (257, 4, 0.5), (300, 7, 0.5), (300, 200, 0.0), (300, 299, 1.0), (300, 300, 0.5),
]  # fmt: skip


def keystream() -> Keystream:
    return Keystream(Secret(bytes(32)), salt=b"test")


@pytest.fixture(params=[1 << 20, 1], ids=["table", "floyd"])
def way(request, monkeypatch):
    """Small designs by their table, then by Floyd."""
    monkeypatch.setattr(module, "TABLE_LIMIT", request.param)
    module.plan_decoys.cache_clear()
    yield
    module.plan_decoys.cache_clear()


def random_codes(d: int, n: int) -> np.ndarray:
    return np.random.default_rng(d).integers(0, d, n)


def binomial_bounds(n: int, p: float, tests: int) -> tuple[float, float]:
    """Exact bounds that all of `tests` binomial counts keep, but for a chance below ALPHA."""
    return tuple(stats.binom.ppf([ALPHA / (2 * tests), 1 - ALPHA / (2 * tests)], n, p))


def first_and_last_words(n: int) -> tuple[np.ndarray, np.ndarray]:
    """For each index, the smallest and the largest word that is accepted for it."""
    k = np.arange(n, dtype=object)
    first = -(-(k * TWO_32 + TWO_32 % n) // n)
    last = -(-(k + 1) * TWO_32 // n) - 1
    return first.astype(np.uint64), last.astype(np.uint64)


@pytest.mark.parametrize("n", SIZES)
def test_every_index_has_the_same_number_of_words(n):
    # For one index the low half of word * n grows with the word, so what holds at both ends holds in between.
    first, last = first_and_last_words(n)
    assert (last - first + 1 == TWO_32 // n).all()
    plan = DrawingPlan(32, 1, need=1, heads=0, table=np.arange(n, dtype=np.uint32), sizes=(n,))
    out = np.empty(n, np.uint32)
    for words in (first, last):
        assert not plan._attempt(words.astype(np.uint32)[:, None], np.zeros(n, np.uint8), out).size
        assert (out == plan.table).all()
    ends = [-1, *last.tolist()[:-1]]
    refused = [word - 1 for word, before in zip(first.tolist(), ends, strict=True) if word - 1 != before]
    assert bool(refused) == (TWO_32 % n > 0)
    for word in refused[:200]:
        assert plan._attempt(np.array([[word]], np.uint32), np.zeros(1, np.uint8), np.empty(1, np.uint32)).size


@pytest.mark.parametrize(("d", "k"), [(1, 0), (1, 1), (5, 0), (5, 2), (5, 5), (10, 4), (20, 3), (63, 2), (64, 63)])
def test_mask_tables_hold_every_subset_once_in_order(d, k):
    table = module.list_masks(k, d, np.dtype(np.uint64))
    assert table.tolist() == sorted(sum(1 << v for v in values) for values in combinations(range(d), k))


@pytest.mark.parametrize(("d", "eta"), [(2, 1), (4, 2), (7, 5), (8, 3), (9, 4), (64, 2)])
def test_each_index_is_another_set_around_the_truth(d, eta):
    table = module.list_masks(eta - 1, d - 1, np.dtype(np.uint64))
    plan = DrawingPlan(d, eta, need=1, heads=TWO_32, table=table, sizes=(len(table),))
    words = first_and_last_words(len(table))[0].astype(np.uint32)
    for v in range(d):
        out = np.empty(len(table), np.uint64)
        plan._attempt(words[:, None], np.full(len(table), v, np.uint8), out)
        others = [w for w in range(d) if w != v]
        expected = {sum(1 << w for w in (v, *rest)) for rest in combinations(others, eta - 1)}
        assert set(out.tolist()) == expected
        assert len(expected) == len(table)


@pytest.mark.parametrize(("d", "eta"), [(5, 2), (8, 3), (7, 6)])
def test_the_coin_chooses_between_sets_with_and_without_the_truth(d, eta):
    plan = module.plan_decoys(d, eta, 0.5)
    n_in, n_out = plan.sizes
    for v in range(d):
        for coin, n, inside in [(plan.heads - 1, n_in, True), (plan.heads, n_out, False)]:
            words = first_and_last_words(n)[1].astype(np.uint32)
            codes, out = np.full(n, v, np.uint8), np.empty(n, np.uint64)
            plan._attempt(np.column_stack([np.full(n, coin, np.uint32), words]), codes, out)
            sets = {sum(1 << w for w in values) for values in combinations(range(d), eta) if (v in values) == inside}
            assert set(out.tolist()) == sets
            assert len(sets) == n


def test_a_redraw_does_not_depend_on_the_coin():
    plan = module.plan_decoys(7, 3, 0.5)
    n_in, n_out = plan.sizes
    words = [0, 1, *(int(word) - 1 for word in first_and_last_words(n_in)[0][1:]), TWO_32 - 1]
    words += [int(word) - 1 for word in first_and_last_words(n_out)[0][1:]]
    for word in words:
        answers = {
            plan._attempt(np.array([[coin, word]], np.uint32), np.zeros(1, np.uint8), np.empty(1, np.uint8)).size > 0
            for coin in (0, plan.heads, TWO_32 - 1)
        }
        assert answers == {oracle.index(word, n_in) is None or oracle.index(word, n_out) is None}


@pytest.mark.parametrize("truth_inside", [True, False])
@pytest.mark.parametrize(("d", "eta"), [(4, 2), (6, 3), (7, 2)])
def test_floyd_gives_every_set_from_equally_many_choices(d, eta, truth_inside):
    bounds = [d - 1 - eta + step + 1 for step in range(eta)]
    choices = list(product(*(range(bound) for bound in bounds)))
    words = np.zeros((len(choices), 1 + eta), np.uint32)
    words[:, 0] = 0 if truth_inside else 1
    for step, bound in enumerate(bounds):
        first = first_and_last_words(bound)[0]
        words[:, 1 + step] = [first[choice[step]] for choice in choices]
    plan = DrawingPlan(d, eta, need=1 + eta, heads=1)
    for v in range(d):
        codes = np.full(len(choices), v, np.uint8)
        masks, rows = np.empty(len(choices), np.uint64), np.empty((len(choices), eta), np.uint16)
        assert not plan._attempt(words, codes, masks).size
        assert not plan._attempt(words, codes, rows).size
        counts = Counter(tuple(row) for row in rows.tolist())
        assert set(counts) == {values for values in combinations(range(d), eta) if (v in values) == truth_inside}
        assert len(set(counts.values())) == 1
        assert masks.tolist() == [sum(1 << value for value in row) for row in rows.tolist()]


class Scripted:
    """A lane that hands out given words, attempt after attempt."""

    def __init__(self, *attempts: list[list[int]]) -> None:
        self.attempts = [np.array(words, np.uint32) for words in attempts]
        self.asked: list[int] = []

    def cell_words(self, digests, codes, need, attempt):
        self.asked.append(len(codes))
        words = self.attempts[attempt]
        assert words.shape == (len(codes), need)
        return words


def test_only_rejected_cells_are_drawn_again():
    plan = module.plan_decoys(4, 2, 1.0)  # three sets; 2^32 mod 3 = 1, so the word 0 is refused
    lane = Scripted([[0], [1], [0], [TWO_32 - 1]], [[0], [1]], [[TWO_32 - 1]])
    out = plan.empty(4)
    plan.draw(lane, np.array([3, 3, 3, 3], np.uint8), None, out)
    assert lane.asked == [4, 2, 1]
    assert out.tolist() == [0b1100, 0b1001, 0b1001, 0b1100]

    plan = module.plan_decoys(67, 2, 1.0)  # Floyd; both steps are checked, although p = 1 uses only the second
    lane = Scripted([[9, 9, 9], [9, 9, 0], [9, 0, 9]], [[9, 9, TWO_32 - 1], [9, 9, 9]])
    out = plan.empty(3)
    plan.draw(lane, np.array([5, 5, 66], np.uint8), None, out)
    assert lane.asked == [3, 2]
    assert out.tolist() == [[0, 5], [5, 66], [0, 66]]


@pytest.mark.parametrize(("d", "eta", "p"), DESIGNS)
@pytest.mark.parametrize("mode", ["fresh", "memoised"])
def test_sizes_and_inclusion_frequencies_are_the_designs(d, eta, p, mode):
    n = 20_000
    design, codes = DecoyDesign(d=d, eta=eta, p=p), random_codes(d, n)
    if mode == "fresh":
        cells = design.draw(codes, keystream(), attribute="a")
    else:
        stream = RecordStream(Secret(bytes(32)))
        cells = design.draw(codes, stream, attribute="a", digests=stream.digests(pa.array(range(n))))
    rows = cells.codes(eta).astype(np.int64)
    assert (cells.sizes() == eta).all()
    assert rows.shape == (n, eta)
    assert rows.min() >= 0
    assert rows.max() < d
    assert (np.diff(rows, axis=1) > 0).all()
    inside = cells.contains(codes)
    low, high = binomial_bounds(n, design.p_true, 1 + d)
    assert low <= inside.sum() <= high
    if p == 1 or eta == d:
        assert inside.all()
    pairs = np.bincount((codes[:, None] * d + rows).ravel(), minlength=d * d).reshape(d, d)
    for v in range(d):  # each other value, over the records that hold something else
        holders = int((codes != v).sum())
        if holders:
            low, high = binomial_bounds(holders, design.p_other, 1 + d)
            assert low <= int(pairs[:, v].sum() - pairs[v, v]) <= high


@pytest.mark.parametrize(("d", "eta", "p"), [(5, 2, 1.0), (5, 2, 0.5), (6, 3, 0.0), (5, 1, 0.2)])
@pytest.mark.usefixtures("way")
def test_each_set_has_the_probability_the_design_states(d, eta, p):
    n, design = 100_000, DecoyDesign(d=d, eta=eta, p=p)
    for v in range(d):
        rows = design.draw(np.full(n, v), keystream(), attribute="a").codes(eta)
        counts = Counter(map(tuple, rows.tolist()))
        for values in combinations(range(d), eta):
            probability = design.kappa_in if v in values else design.kappa_out
            low, high = binomial_bounds(n, probability, d * comb(d, eta))
            assert low <= counts[values] <= high


def test_the_chance_of_truth_is_rounded_down_and_never_below_blind_chance():
    assert module.plan_decoys(3, 1, 0.5).heads == 2 * TWO_32 // 3
    assert module.plan_decoys(5, 2, 1.0).heads == TWO_32
    assert module.plan_decoys(5, 2, 0.0).heads == 0
    almost = module.plan_decoys(5, 2, float(np.nextafter(1, 0)))
    assert almost.heads == TWO_32 - 1
    # 2/5 + a hair rounds down to less than 2/5: drawn blindly instead.
    assert module.plan_decoys(5, 2, 1e-12).heads == 0
    for p in (0.1, 1 / 3, 0.7, 0.999999):
        assert module.plan_decoys(7, 3, p).heads == oracle.heads(7, 3, p)


def test_a_blind_draw_ignores_the_truth():
    design = DecoyDesign(d=6, eta=3, p=0.0)
    first = design.draw(np.zeros(50, np.uint8), keystream(), attribute="a")
    second = design.draw(np.full(50, 5), keystream(), attribute="a")
    assert (first.data == second.data).all()


@pytest.mark.parametrize("d", [5, 64, 300])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16, np.int64])
def test_codes_outside_the_domain_are_refused(d, dtype):
    top = np.iinfo(dtype).max
    design = DecoyDesign(d=d, eta=2)
    bad = [[0, d]] if d <= top else []
    bad += [[0, -1]] if np.iinfo(dtype).min < 0 else []
    for values in bad:
        with pytest.raises(DataError, match=f"'job' holds a code outside its domain of {d} values"):
            design.draw(np.array(values, dtype), keystream(), attribute="job")
    codes = np.array([min(d - 1, top), 0], dtype)
    assert design.draw(codes, keystream(), attribute="job").contains(codes).all()


def test_codes_must_be_a_row_of_integers():
    for codes in (np.array([0.5]), np.zeros((2, 2), np.uint8), np.array(["a"])):
        with pytest.raises(ValueError, match="one-dimensional array of integers"):
            DecoyDesign(d=5, eta=2).draw(codes, keystream(), attribute="a")
    design = DecoyDesign(d=5, eta=2)
    with pytest.raises(ValueError, match="differ in length"):
        draw_columns({"a": design, "b": design}, {"a": np.zeros(2, int), "b": np.zeros(3, int)}, keystream())


@pytest.mark.parametrize(("d", "eta", "p"), DESIGNS)
def test_no_records_give_no_sets(d, eta, p):
    stream = RecordStream(Secret(bytes(32)))
    none = np.zeros(0, np.uint8)
    design = DecoyDesign(d=d, eta=eta, p=p)
    assert len(design.draw(none, keystream(), attribute="a")) == 0
    digests = stream.digests(pa.array([], pa.string()))
    assert len(design.draw(none, stream, attribute="a", digests=digests)) == 0


def test_the_input_is_left_alone_and_may_be_any_view():
    codes = np.arange(40, dtype=np.int64)[::2] % 5
    codes.flags.writeable = False
    before = codes.copy()
    assert DecoyDesign(d=5, eta=2).draw(codes, keystream(), attribute="a").contains(codes).all()
    assert (codes == before).all()
    assert draw_columns({}, {}, keystream()) == {}


def test_memoised_mode_needs_digests_and_a_domain_it_can_number():
    stream = RecordStream(Secret(bytes(32)))
    codes, digests = np.zeros(2, np.uint8), stream.digests(pa.array(["a", "b"]))
    for wrong in (None, digests[:1]):
        with pytest.raises(SecretError, match="one digest for each of the 2 records"):
            DecoyDesign(d=5, eta=2).draw(codes, stream, attribute="a", digests=wrong)
    with pytest.raises(SecretError, match="65536 values"):
        DecoyDesign(d=65_537, eta=2).draw(codes, stream, attribute="a", digests=digests)


@pytest.mark.parametrize("mode", ["fresh", "memoised"])
def test_threads_share_the_work_and_no_words(mode, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 700)
    monkeypatch.setattr(module, "CELLS_PER_THREAD", 0)
    n = 5000
    designs = {f"a{number}": DecoyDesign(d=d, eta=eta, p=p) for number, (d, eta, p) in enumerate(DESIGNS)}
    columns = {name: random_codes(design.d, n) for name, design in designs.items()}
    records = RecordStream(Secret(bytes(32)))
    digests = records.digests(pa.array(range(n)))
    results = [
        draw_columns(designs, columns, keystream() if mode == "fresh" else records, digests=digests, threads=threads)
        for threads in (1, 2, 3)
    ]
    for name, design in designs.items():
        assert list(results[0]) == list(designs)
        for result in results:
            assert (result[name].sizes() == design.eta).all()
            if mode == "memoised":
                assert (result[name].data == results[0][name].data).all()
    if mode == "fresh":
        # Were a stretch of keystream used twice, two blocks or two columns of one design would repeat it.
        design = DecoyDesign(d=64, eta=4)
        codes = np.zeros(2100, np.uint8)
        twins = draw_columns({"x": design, "y": design}, {"x": codes, "y": codes}, keystream())
        blocks = [twins[name].data[start : start + 700].tobytes() for name in "xy" for start in (0, 700, 1400)]
        assert len(set(blocks)) == 6


def test_two_fresh_runs_differ_and_attributes_do_not_share_decoys():
    design, codes = DecoyDesign(d=30, eta=5), np.zeros(1000, np.uint8)
    one, two = (design.draw(codes, Keystream(), attribute="a").data for _ in range(2))
    assert (one != two).any()
    stream = RecordStream(Secret(bytes(32)))
    digests = stream.digests(pa.array(range(1000)))
    drawn = draw_columns({"a": design, "b": design}, {"a": codes, "b": codes}, stream, digests=digests)
    assert (drawn["a"].data != drawn["b"].data).mean() > 0.99
