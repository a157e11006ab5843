"""Cells batch by batch: by which key sets are drawn, whose row is whose, and what stands elsewhere."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.designs.decoys import DecoyDesign
from noren.engines import Plan
from noren.engines.engine import CodeBatch
from noren.engines.plan import Draw
from noren.secret import Keystream, RecordStream, Secret
from noren.statements import CodeCells, OpenCells
from noren.statements.batch import PERSON
from noren.workflow.draft import Drawn, Making, explode_sets

DESIGN = DecoyDesign(d=40, eta=5)
N = 12


def batch(start: int = 0, keys: list[str] | None = None) -> CodeBatch:
    codes = {"x": np.zeros(N, np.int64), "y": np.arange(N) % 3}
    given = None if keys is None else pa.chunked_array([keys])
    texts = {"t": OpenCells(pa.array([f"t{i}" for i in range(N)]))}
    return CodeBatch(codes=codes, terms={}, open=texts, keys=given, records=N, start=start)


def making(**options: Any) -> Making:
    fields: dict[str, Any] = {
        "columns": ("x", "y", "t"), "sizes": {"x": 40, "y": 3}, "designs": {"x": DESIGN}, "cells": {}, "places": {},
        "keep": None, "people": None, "randomness": Keystream(), "keyed": False,
    }  # fmt: skip
    return Making(**fields | options)


def test_a_persons_rows_with_one_value_have_one_set() -> None:
    people = np.arange(100) // 4
    stream = RecordStream(Secret.fresh())
    for start in (0, 24):
        found = making(people=people, persons=25, randomness=stream)(batch(start))
        sets = found["x"].codes(5).tolist()  # type: ignore[attr-defined]
        whose = people[start : start + N]
        assert found[PERSON].data.tolist() == whose.tolist()  # type: ignore[attr-defined]
        assert [[a == b for b in sets] for a in sets] == (whose[:, None] == whose).tolist()
    part = making(people=people, persons=25, randomness=stream).part(24, 36).under(stream)
    assert part(batch(24))["x"].codes(5).tolist() == sets  # type: ignore[attr-defined]


def test_rows_of_their_own_are_drawn_by_their_number_or_by_their_key() -> None:
    stream = RecordStream(Secret.fresh())
    one, again = making(randomness=stream)(batch(0)), making(randomness=stream)(batch(0))
    other = making(randomness=stream)(batch(500))
    assert (one["x"].data == again["x"].data).all()  # type: ignore[attr-defined]
    assert (one["x"].data != other["x"].data).any()  # type: ignore[attr-defined]
    assert len(np.unique(one["x"].data)) > 1  # type: ignore[attr-defined]
    keys = [f"k{i // 2}" for i in range(N)]
    keyed = making(randomness=stream, keyed=True)(batch(0, keys))["x"].data  # type: ignore[attr-defined]
    assert (keyed == making(randomness=stream, keyed=True)(batch(500, keys))["x"].data).all()  # type: ignore[attr-defined]
    assert (keyed[::2] == keyed[1::2]).all()
    fresh = making()
    assert (fresh(batch())["x"].data != fresh(batch())["x"].data).any()  # type: ignore[attr-defined]


def test_records_that_are_left_out_are_left_out_of_every_column() -> None:
    keep = np.arange(2 * N) % 2 == 0
    stream = RecordStream(Secret.fresh())
    whole, less = making(randomness=stream)(batch(N)), making(randomness=stream, keep=keep)(batch(N))
    rows = np.flatnonzero(keep[N:])
    assert (less["x"].data == whole["x"].data[rows]).all()  # type: ignore[attr-defined]
    assert less["y"].data.tolist() == (np.arange(N) % 3)[rows].tolist()  # type: ignore[attr-defined]
    assert less["t"].data.to_pylist() == [f"t{i}" for i in rows]  # type: ignore[attr-defined]


def test_decided_cells_and_new_places_stand_at_their_records() -> None:
    decided = CodeCells(7, np.arange(2 * N) % 7)
    made = making(designs={}, cells={"x": decided}, places={"y": np.array([2, 0, 1])})
    found = made(batch(N))
    assert found["x"].data.tolist() == ((np.arange(N) + N) % 7).tolist()  # type: ignore[attr-defined]
    assert found["y"].data.tolist() == [[2, 0, 1][i % 3] for i in range(N)]  # type: ignore[attr-defined]
    assert (found["y"].d, made.is_alike) == (3, False)  # type: ignore[attr-defined]
    assert making().is_alike
    assert not making(keep=np.ones(N, bool)).is_alike
    assert not making(people=np.arange(N)).is_alike


def test_how_often_the_truth_was_inside_is_counted() -> None:
    made = making()
    for start in (0, N):
        made(batch(start))
    assert (made.drawn.heads["x"], made.drawn.expected["x"]) == (2 * N, pytest.approx(2 * N))
    whole = Drawn()
    whole.add(made.drawn)
    whole.add(made.drawn)
    assert whole.heads["x"] == 4 * N
    again = pickle.loads(pickle.dumps(making(designs={}, randomness=None)))
    assert again(batch())["y"].data.tolist() == (np.arange(N) % 3).tolist()


def test_members_stand_in_rows_of_their_own() -> None:
    found = explode_sets(making()(batch()), "x", {"x": DESIGN})
    assert [len(cells) for cells in found.values()] == [5 * N] * 3
    assert list(found) == ["x", "y", "t"]
    assert found["y"].data.tolist() == np.repeat(np.arange(N) % 3, 5).tolist()  # type: ignore[attr-defined]
    own = making(exploded="x")(batch())
    assert len(own["x"]) == 5 * N


# ---------------------------------------------------------------- parts that are decided elsewhere


def part(forms_classes: bool, name: str, found: list[str] | None = None) -> Any:
    plan = Plan({name: Draw(DecoyDesign(d=4, eta=2))})
    method = SimpleNamespace(
        forms_classes=forms_classes, plan=lambda _: plan, problems=lambda roles, asked: found or []
    )
    return SimpleNamespace(method=method, columns=(name,), requirements=())
