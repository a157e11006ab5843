"""Which columns tell which, against the definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from noren.policy import guessing
from noren.policy.guessing import ALONE, FOLLOWS, TELLS, TRIVIAL, Pairing


def tells(a: list[int], b: list[int]) -> bool:
    """Of the records whose first value is not rare, nearly all have the second value that is the usual one for it."""
    if not a or max(Counter(b).values()) > TRIVIAL * len(b):
        return False
    size = Counter(a)
    known = [(x, y) for x, y in zip(a, b, strict=True) if size[x] >= ALONE]
    if len(known) < FOLLOWS * len(a):
        return False
    best: dict[int, int] = {}
    for (x, _), count in Counter(known).items():
        best[x] = max(best.get(x, 0), count)
    return sum(best.values()) >= TELLS * len(known)


@pytest.mark.parametrize("cells", [guessing.SMALL_TABLE, 0])
def test_a_column_tells_another_as_defined(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of counting; the tables hold pairs that tell, that nearly do, that do not, and rare values."""
    monkeypatch.setattr(guessing, "SMALL_TABLE", cells)
    rng = np.random.default_rng(5)
    seen: Counter[bool] = Counter()
    for case in range(300):
        records, values = int(rng.integers(0, 200)), int(rng.integers(1, 60))
        a = rng.integers(0, values, records)
        noise = rng.random(records) < rng.choice([0.0, 0.03, 0.06, 0.5])
        b = np.where(noise, rng.integers(0, 9, records), a // int(rng.integers(1, 6)))
        if case % 3 == 0:
            a, b = b, a
        found = Pairing(a).tells(Pairing(b))
        assert found is tells(a.tolist(), b.tolist())
        seen[found] += 1
    assert min(seen[True], seen[False]) > 30


def test_an_empty_table_tells_nothing() -> None:
    empty = np.array([], np.int64)
    assert not Pairing(empty).tells(Pairing(empty))
