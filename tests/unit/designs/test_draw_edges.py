"""Words that are fair to the last one, draws without chance, and what memoised cells of earlier releases rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.designs import draw as room
from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups
from noren.designs.pram import PramDesign
from noren.secret import RecordStream, Secret
from tests.statements import expected_counts

TWO_32 = 1 << 32


@pytest.mark.parametrize(
    ("n", "word", "refused"),
    [
        (4, 0, False),  # 2^32 is a multiple of four: no word is one too many
        (3, 0, True),
        (3, 2863311531, False),  # three times it is 2 * 2^32 + 1
        (3, 1431655766, False),  # and 2^32 + 2
        (5, 0, True),
        (5, 3435973837, False),  # 4 * 2^32 + 1 = five times it; 2^32 mod 5 = 1
        (6, 715827883, True),  # 2^32 + 2, below 2^32 mod 6 = 4
        (6, 1431655766, False),  # 2 * 2^32 + 4
    ],
)
def test_a_word_is_unfair_where_its_product_ends_below_the_remainder(n: int, word: int, refused: bool) -> None:
    assert (word * n % TWO_32 < TWO_32 % n) is refused
    assert room.unfair(np.array([word * n], np.uint64), n).tolist() == [refused]


class Nothing:
    """Randomness that nobody may ask."""


@pytest.mark.parametrize(
    ("design", "sets"),
    [(DecoyDesign(d=4, eta=4, p=0.5), [[0, 1, 2, 3]] * 2), (DecoyDesign.exact(4), [[3], [0]])],
    ids=["all", "truth"],
)
def test_sets_without_chance_need_no_word(design: DecoyDesign, sets: list[list[int]]) -> None:
    nothing: Any = Nothing()
    found = design.draw(np.array([3, 0]), nothing, attribute="a")
    assert found.codes(design.eta).tolist() == sets


def test_which_sets_come_from_tables_stays_as_it_was() -> None:
    """Another way to draw would give other memoised sets than earlier releases have."""
    tables = {(d, eta): room.plan_decoys(d, eta, 1.0).table for d, eta in ((64, 2), (65, 2), (22, 11), (24, 12))}
    assert {key for key, table in tables.items() if table is not None} == {(64, 2), (22, 11)}
    # 1/2 and a hair is exactly 1/2 in 32 bits: still a coin
    assert room.plan_decoys(4, 2, 1e-12).heads == TWO_32 // 2


def test_memoised_codes_reach_to_65536() -> None:
    stream = RecordStream(Secret(bytes(32)))
    digests = stream.digests(pa.array(["a", "b"]))
    codes = np.array([65_535, 7])
    found = DecoyDesign(d=65_536, eta=2).draw(codes, stream, attribute="a", digests=digests)
    assert found.contains(codes).all()


@pytest.mark.parametrize("parts", [None, (1, 2, 5)])
def test_a_memoised_value_is_drawn_by_the_words_of_its_record_and_true_code(parts: tuple[int, ...] | None) -> None:
    """The first word is the coin, the second times the number of parts the part."""
    stream = RecordStream(Secret(bytes(32)))
    digests = stream.digests(pa.array([f"r{i}" for i in range(60)]))
    codes = np.arange(60) % 3
    design = PramDesign(d=3, keep=0.25, parts=parts)
    found = design.draw(codes, stream, attribute="ill", digests=digests).data
    words = np.array(stream.lane("ill").cell_words(digests, codes.astype(np.uint8), 2, 0)).astype(object)
    table = [v for v in range(3) for _ in range(1 if parts is None else parts[v])]
    drawn = [table[int(word) * len(table) // TWO_32] for word in words[:, 1]]
    assert found.tolist() == [
        code if coin < TWO_32 // 4 else other for coin, code, other in zip(words[:, 0], codes, drawn, strict=True)
    ]


# ---------------------------------------------------------------- changed values


@pytest.mark.parametrize("parts", [None, (1, 2, 5)])
def test_what_a_changed_value_says_of_itself_is_what_its_matrix_says(parts: tuple[int, ...] | None) -> None:
    design = PramDesign(d=3, keep=0.4, parts=parts)
    shares = np.full(3, 1 / 3) if parts is None else np.array(parts) / 8
    matrix = 0.4 * np.eye(3) + 0.6 * shares
    assert design.inclusion_matrix() == pytest.approx(matrix)
    assert design.rho == pytest.approx((matrix.max(axis=0) / matrix.min(axis=0)).max())
    assert design.eta == 1
    own = np.diag(matrix)
    other = np.array([matrix[(u + 1) % 3, u] for u in range(3)])
    assert design.member_weights(np.arange(3)[:, None])[:, 0] / design.floor == pytest.approx(own / other)
    system = design.inversion
    assert system.inverse @ matrix.T == pytest.approx(np.eye(3))
    assert (system.condition, system.undetermined, system.unreliable) == (pytest.approx(2.5), 0, False)


@pytest.mark.parametrize("parts", [None, (1, 2, 5)])
def test_the_worst_belief_in_a_changed_value_by_the_rule_of_bayes(parts: tuple[int, ...] | None) -> None:
    design = PramDesign(d=3, keep=0.4, parts=parts)
    joint = design.inclusion_matrix() / 3
    assert design.worst_belief() == pytest.approx((joint / joint.sum(axis=0)).max())


def test_one_value_alone_tells_nothing() -> None:
    assert PramDesign(d=1, keep=0.5).rho == 1.0
    assert PramDesign(d=2, keep=0.5).rho == pytest.approx(3.0)


def test_the_largest_keep_is_a_multiple_of_a_ten_thousandth_unless_it_is_less() -> None:
    """keep / ((1 - keep) s) = rho - 1, with s = 1/2."""
    for rho, keep in ((3.0, 0.5), (1 + 2 * 0.12345 / 0.87655, 0.1234), (1 + 2e-4 / 0.9999, 1e-4), (1 + 1e-6, 5e-7)):
        assert PramDesign.within(2, rho).keep == pytest.approx(keep, rel=1e-5)


# ---------------------------------------------------------------- what is left out


@pytest.mark.parametrize(
    ("kind", "fine", "wrong"),
    [
        (DecoyDesign, {"d": 1, "eta": 1}, [{"d": 0}, {"eta": 0}, {"eta": 2}, {"p": -1e-9}, {"p": 1 + 1e-9}, {"x": 1}]),
        (DecoyDesign, {"d": 2, "eta": 1, "p": 0.0}, [{"d": 0}]),
        (PramDesign, {"d": 1, "keep": 1e-9}, [{"d": 0}, {"keep": 0.0}, {"keep": 1.0}, {"x": 1}]),
        (PramDesign, {"d": 2, "keep": 0.9, "parts": (1, (1 << 20) - 1)}, [{"parts": (1, 1 << 20)}, {"parts": (0, 2)}]),
    ],
)
def test_how_far_the_numbers_of_a_design_may_go(kind: Any, fine: dict[str, Any], wrong: list[dict[str, Any]]) -> None:
    design = kind(**fine)
    with pytest.raises(ValueError, match="frozen"):
        design.d = 3
    for one in wrong:
        with pytest.raises(ValueError, match="validation error"):
            kind(**(fine | one))


def test_what_holds_if_nothing_else_is_said() -> None:
    assert DecoyDesign(d=4, eta=2).p == 1.0
    assert DecoyDesign.within(4, 9.0).eta == 1, "sets of one value may be best"
    groups = Groups(np.array([0, 0, 1]), 2)
    assert groups.sum(np.array([1.0, 2.0, 4.0]), 0).tolist() == [3, 4], "groups are summed unless each is a value"
    design = DecoyDesign(d=3, eta=2, p=0.5)
    assert design.inversion.undetermined == 0
    counts = np.array([5.0, 1.0, 0.0])
    assert expected_counts(design.inversion, counts, 0) == pytest.approx(design.inclusion_matrix().T @ counts)
    changed = PramDesign(d=3, keep=0.4, parts=(1, 2, 5))
    assert expected_counts(changed.inversion, counts, 0) == pytest.approx(changed.inclusion_matrix().T @ counts)
    assert expected_counts(changed.inversion, counts, 0, back=True) == pytest.approx(
        changed.inclusion_matrix() @ counts
    )
