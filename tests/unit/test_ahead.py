"""Items that are made one ahead: the same ones, faults included, and no thread that stays behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from noren.ahead import ahead, side_by_side

STRANGE: set[threading.Thread] = set()
"""Those of tests before, whose batches somebody still holds."""


@pytest.fixture(autouse=True)
def others() -> None:
    STRANGE.update(makers())


def makers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "noren-ahead" and one not in STRANGE]


def test_all_items_come_in_order() -> None:
    assert list(ahead(iter(range(1000)))) == list(range(1000))
    assert list(ahead([])) == []
    assert makers() == []


def test_a_fault_is_raised_where_items_are_used() -> None:
    def some() -> Iterator[int]:
        yield 1
        raise KeyError("here")

    made = ahead(some())
    assert next(made) == 1
    with pytest.raises(KeyError, match="here"):
        next(made)
    assert makers() == []


def test_a_maker_that_nobody_wants_any_more_ends_and_closes() -> None:
    closed = []

    def endless() -> Iterator[int]:
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            closed.append(True)

    made = ahead(endless())
    assert next(made) == 0
    made.close()  # type: ignore[attr-defined]
    assert closed == [True]
    assert makers() == []


def test_the_next_item_is_made_while_one_is_used() -> None:
    started = threading.Event()

    def two() -> Iterator[int]:
        yield 1
        started.set()
        yield 2

    for item in ahead(two()):
        if item == 1:
            assert started.wait(5)


def test_parts_side_by_side_come_in_their_order(monkeypatch) -> None:
    for cores in (1, 2, None):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        assert side_by_side(lambda part: part * part, range(100)) == [part * part for part in range(100)]
    assert side_by_side(abs, []) == []
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    meeting = threading.Barrier(2, timeout=60)
    assert len(side_by_side(lambda _: meeting.wait(), [0, 1])) == 2  # each waits until the other runs too
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda part: 1 // part, [1, 0])
