"""Which noised margins know something of a question, and what they count of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noren.release import noised as room
from noren.release.noised import Margins, NoisedTable

TOWN_JOB = NoisedTable(("town", "job"), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 2.0, 1.0)
TOWN = NoisedTable(("town",), np.array([10.0, 20.0]), 2.0, 1.0)
SIZES = {"town": 2, "job": 3, "age": 4}


def found(monkeypatch: pytest.MonkeyPatch, table: NoisedTable, axes: list[str], **more: Any) -> Margins:
    monkeypatch.setattr(room, "noised_tables", lambda release: [table])
    groups = [
        SimpleNamespace(column=name, groups=np.arange(SIZES[name]), labels=tuple(range(SIZES[name]))) for name in axes
    ]
    exact = more.pop("exact", False)
    asked = {"weights": None, "terms": None, "allowed": {}, "fixed": {}, "shown": axes} | more
    columns = {name: SimpleNamespace(is_exact=exact) for name in SIZES}
    question: Any = SimpleNamespace(columns=columns, shape=SimpleNamespace(axes=groups), **asked)
    return Margins.of(None, question)  # type: ignore[arg-type]


SECOND = {"town": np.array([False, True])}
OUTER = {"job": np.array([True, False, True])}


@pytest.mark.parametrize(
    ("table", "axes", "more", "counts"),
    [
        (TOWN_JOB, ["job"], {}, [5, 7, 9]),
        (TOWN_JOB, ["town", "job"], {}, [[1, 2, 3], [4, 5, 6]]),
        (TOWN_JOB, ["job", "town"], {}, [[1, 4], [2, 5], [3, 6]]),
        (TOWN_JOB, ["job"], {"allowed": OUTER}, [5, 0, 9]),
        (TOWN_JOB, ["job"], {"fixed": OUTER}, [5, 0, 9]),
        (TOWN_JOB, ["job"], {"fixed": SECOND}, [4, 5, 6]),
        (TOWN_JOB, ["job"], {"allowed": SECOND}, [[4], [5], [6]]),
        (TOWN_JOB, ["town"], {"allowed": OUTER}, [[4], [10]]),
        (TOWN, [], {"fixed": SECOND}, 20),
    ],
)
def test_a_margin_counts_what_is_asked_under_the_conditions(
    table: NoisedTable, axes: list[str], more: Any, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    margins = found(monkeypatch, table, axes, **more)
    ((own, folded),) = margins.whole
    assert own is table
    assert folded.counts.tolist() == counts
    assert folded.cells.shape == folded.counts.shape
    assert margins.parts == []


@pytest.mark.parametrize(
    ("table", "axes", "more", "parts"),
    [
        (TOWN_JOB, ["job", "age"], {}, [("job",)]),
        (TOWN_JOB, ["job", "age"], {"shown": ["job"]}, []),
        (TOWN_JOB, ["age"], {}, []),
        (TOWN, ["town"], {"fixed": OUTER}, []),
        (TOWN_JOB, ["job"], {"weights": 1}, []),
        (TOWN_JOB, ["job"], {"terms": 1}, []),
        (TOWN_JOB, ["job"], {"exact": True}, []),
    ],
)
def test_others_know_some_of_its_columns_or_none(
    table: NoisedTable, axes: list[str], more: Any, parts: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    margins = found(monkeypatch, table, axes, **more)
    assert (list(margins.whole), list(margins.parts)) == ([], parts)
