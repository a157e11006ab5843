"""Tables that are decided in parts elsewhere: which are, how they are cut, and what their parts say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noren.errors import NorenError, PolicyError, Problem
from noren.workflow import apart as room
from noren.workflow.apart import PartedDraft, _as_seen, _cut, _figures, _notes, drawn_plan, parted, problems


def test_parts_say_what_all_of_them_say() -> None:
    parts = [
        SimpleNamespace(records=30, notes=["first", "all"], figures={"loss": 0.5}),
        SimpleNamespace(records=10, notes=["all", "second"], figures={"loss": 0.1}),
        SimpleNamespace(records=20, notes=["all", "first"], figures={"loss": 0.3}),
    ]
    decided: Any = SimpleNamespace(found=parts)
    assert _notes(decided) == ["all", "decided in 3 parts of 10 to 30 records"]
    assert _figures(decided) == {"loss": pytest.approx((15 + 1 + 6) / 60)}


def test_counts_are_of_values_as_a_part_sees_them() -> None:
    counts = np.array([[1, 2, 3], [4, 5, 6]])
    decide: Any = SimpleNamespace(codes={"job": np.array([0, 1, 0])}, columns={"job": SimpleNamespace(d=2)})
    assert _as_seen(counts, decide, "job").tolist() == [[4, 2], [10, 5]]
    assert _as_seen(counts, decide, "town") is counts


@pytest.mark.parametrize(("kinds", "size"), [(20, 20), (None, 0)])
def test_sampled_records_are_looked_up_in_their_parts(kinds: int | None, size: int) -> None:
    """Two parts with two pairs each; a town's code counts only the towns that occur, a job is drawn."""
    drawn: list[Any] = []

    def of_records(batch: Any, names: Any, rows: Any, number: Any) -> dict[str, str]:
        drawn.append((batch.codes["job"].tolist(), batch.records, batch.start, names, rows.tolist(), number.tolist()))
        return {"job": "sets"}

    codes = {"town": np.array([0, 1, 1]), "job": np.array([3, 4, 5], np.int8)}
    one: Any = SimpleNamespace(
        decided=SimpleNamespace(sampled=lambda most: (codes, np.array([0, 0, 1]), np.array([70, 71, 72]))),
        tables=lambda: [{"town": np.array([10, 11])}, {"town": np.array([12, 13])}],
        table=SimpleNamespace(counts={"town": np.array([0, 1, 1, 0, 1, 1])}, seen=(None, ["town"])),
        _cells={"town": None},
        places=[{"town": np.array([0, 1])}, {"town": np.array([1, 2])}],
        records_seen=SimpleNamespace(codes={"town": np.array([3, 2, 1])}),
        by_name={"town": SimpleNamespace(kinds=kinds)},
        others=SimpleNamespace(under=lambda stream: SimpleNamespace(of_records=of_records)),
        stream=None,
    )
    truth, cells = PartedDraft.sampled(one, 3)
    assert {name: found.tolist() for name, found in truth.items()} == {"town": [5, 4, 2], "job": [3, 4, 5]}
    assert (cells["town"].data.tolist(), cells["town"].d, cells["job"]) == ([10, 11, 13], size, "sets")  # type: ignore[attr-defined]
    assert drawn == [([3, 4, 5], 3, 0, ["job"], [0, 1, 2], [70, 71, 72])]
    one.table.seen = (None, [])
    assert PartedDraft.sampled(one, 3)[0]["town"].tolist() == [3, 2, 1]


# ---------------------------------------------------------------- whether


def policy(*parts: Any, forms: bool = True) -> Any:
    return SimpleNamespace(forms_classes=forms, parts=parts, require=[], mechanism="ignored")


def part(forms: bool, name: str = "p") -> Any:
    method = SimpleNamespace(forms_classes=forms, for_parts=lambda table: f"in parts of {table.asked}")
    return SimpleNamespace(method=method, requirements=f"asked of {name}", columns=(name,))


class Elsewhere:
    """Another machine, whose driver has so much room."""

    room = 100

    def __init__(self, fits: bool) -> None:
        self._fits = fits

    def fits(self, room: int) -> bool:
        return self._fits

    def decided(self, source: Any, reading: Any, cuts: Any, decide: Any) -> tuple[Any, ...]:
        return ("decided", source, reading, cuts, decide)


def table(elsewhere: Any) -> Any:
    made = SimpleNamespace(engine=SimpleNamespace(elsewhere=elsewhere), room=1000, n=50, reading=lambda: "reading")
    made.asking = lambda asked: SimpleNamespace(asked=asked, source="whole", seen=("columns", None))
    made.part = lambda columns, asked: SimpleNamespace(asked=asked, source="part", seen=(columns, None))
    return made


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ClassMethod", SimpleNamespace)
    monkeypatch.setattr(room, "obstacles", lambda method, require, table: [])
    monkeypatch.setattr(room, "problems", lambda table, part: None)
    monkeypatch.setattr(room, "DecidePart", SimpleNamespace(of=lambda mine, method: method))
    monkeypatch.setattr(room, "_cut", lambda mine, decide, elsewhere: "cuts")
    monkeypatch.setattr(room, "drawn_plan", lambda table, policy: "drawn")
    monkeypatch.setattr(room, "PartedDraft", lambda *given, **more: (given, more))


def test_what_fits_or_forms_no_classes_or_has_nowhere_to_go_is_decided_here(steps: None) -> None:
    classes = policy(part(True))
    assert parted(table(None), classes) is None
    assert parted(table(Elsewhere(True)), classes) is None
    assert parted(table(Elsewhere(False)), policy(part(True), forms=False)) is None
    assert parted(table(Elsewhere(False)), classes) is not None


def test_the_method_of_classes_decides_about_its_own_columns(steps: None) -> None:
    (given, more) = parted(table(Elsewhere(False)), policy(part(True, "a")), stream="s")  # type: ignore[arg-type,misc]
    assert given[1] == ("decided", "whole", "reading", "cuts", "in parts of asked of a")
    assert (given[2], given[3], more) == ("columns", "drawn", {"stream": "s"})
    (given, _) = parted(table(Elsewhere(False)), policy(part(False, "d"), part(True, "a")))  # type: ignore[misc]
    assert given[1][1] == "part"
    assert given[2] == ("a",)


def test_a_key_ties_rows_of_different_parts(steps: None) -> None:
    with pytest.raises(NorenError, match="because a record key ties rows to people"):
        parted(table(Elsewhere(False)), policy(part(True)), key="id")


def test_columns_of_the_part_are_judged_by_its_method() -> None:
    seen: list[Any] = []
    method = SimpleNamespace(problems=lambda roles, asked: seen.append(roles) or [])
    columns = {name: SimpleNamespace(role=f"role of {name}") for name in ("a", "b")}
    one: Any = SimpleNamespace(columns=("a",), method=method, requirements=())
    problems(SimpleNamespace(columns=columns), one)  # type: ignore[arg-type]
    assert seen == [{"a": "role of a"}]
    method.problems = lambda roles, asked: [Problem("a", "no.")]
    with pytest.raises(PolicyError):
        problems(SimpleNamespace(columns=columns), one)  # type: ignore[arg-type]


def test_only_what_draws_is_planned_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "Plan", SimpleNamespace(merged=list))
    drawing = SimpleNamespace(
        method=SimpleNamespace(forms_classes=False, plan=lambda one: one), columns=("d",), requirements="asked"
    )
    one: Any = SimpleNamespace(part=lambda columns, asked: (columns, asked))
    assert drawn_plan(one, policy(part(True), drawing)) == [(("d",), "asked")]  # type: ignore[comparison-overlap]


# ---------------------------------------------------------------- cuts


@pytest.mark.parametrize(("short", "sizes"), [([], [30, 20]), ([1], [50])])
@pytest.mark.parametrize("fits", [True, False])
def test_a_cut_that_leaves_a_part_short_is_taken_back(
    short: list[int], sizes: list[int], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker takes 20 of 50 records, so with a quarter more than that there are four parts."""
    role = SimpleNamespace(needs_requirement=False), SimpleNamespace(needs_requirement=True)
    decide: Any = SimpleNamespace(
        columns={"job": SimpleNamespace(role=role[1]), "town": SimpleNamespace(role=role[0])}, codes={}
    )
    asked: list[Any] = []

    def cuts_of(records: Any, parts: int, largest: float) -> Any:
        asked.append((records.n, list(records.columns), parts, largest))
        return SimpleNamespace(parts=2, joined=lambda part: (SimpleNamespace(parts=1), np.array([0, 0])))

    left = list(short)
    monkeypatch.setattr(room, "_sample", lambda table, quasi: {name: np.zeros(7, np.int64) for name in quasi})
    monkeypatch.setattr(room, "cuts_of", cuts_of)
    monkeypatch.setattr(room, "rules_of", lambda decide: SimpleNamespace(sensitive={"job": 1}))
    monkeypatch.setattr(room, "demand_sound", lambda *given: None)
    monkeypatch.setattr(room, "sound", lambda cuts, sizes, held, rules: left.pop() if left else None)
    room_asked: list[int] = []
    elsewhere = SimpleNamespace(
        rows_apart=20,
        part_counts=lambda *given: (np.array([30, 20]), {"job": np.array([[1, 2], [3, 4]])}),
        fits_part=lambda size: room_asked.append(size) or fits,
    )
    whole: Any = SimpleNamespace(n=50, room=1000, source=None, reading=lambda names: names)
    if fits:
        assert _cut(whole, decide, elsewhere).parts == len(sizes)
    else:
        with pytest.raises(NorenError, match=f"a part of {max(sizes)} records"):
            _cut(whole, decide, elsewhere)
    assert asked == [(7, ["town"], 4, 0.4)]
    assert room_asked == [max(sizes) * 20]
