"""What is compiled ahead: what every method's releases, judgements and attacks need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from noren.errors import NorenError
from noren.methods import METHODS
from noren.workflow import warm as module
from noren.workflow.warm import _policies, _read, _works, compiled_by, warm

ASKED = {
    "decoys": [{"frequency-l-diversity"}, {"t-closeness"}],
    "pram": [{"t-closeness"}],
    "anatomy": [{"frequency-l-diversity"}],
    "rating": [{"frequency-l-diversity"}],
    "suppress": [{"qs-diversity", "k-anonymity"}, {"qs-closeness", "k-anonymity"}],
    "sweep": [{"k-anonymity", "frequency-l-diversity"}, {"frequency-l-diversity"}],
    "m-invariance": [{"k-anonymity", "frequency-l-diversity"}, {"frequency-l-diversity"}],
    "microaggregation": [{"k-anonymity", "frequency-l-diversity"}],
}
CLASSES = [{"k-anonymity", "frequency-l-diversity"}, {"t-closeness"}, {"frequency-l-diversity"}]


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_requirement_is_asked_of_a_method(method: str) -> None:
    found = [{model.model for model in policy.require} for policy in _policies(method, 20)]
    assert found == ASKED.get(method, CLASSES)


def test_tables_and_attacks_are_made_of_the_first_release_of_a_size() -> None:
    reading, *works = _works("mondrian")
    assert reading is _read
    asked = [work.keywords["asked"] for work in works]  # type: ignore[attr-defined]
    assert asked == [True, False, False] * 2


def test_only_a_search_over_levels_needs_intervals() -> None:
    for values, widths in ((20, (5, 10)), (2_000, (500, 1_000))):
        given = {method: next(_policies(method, values)).attributes["age"].hierarchy for method in METHODS}
        assert given.pop("incognito").widths == widths  # type: ignore[union-attr]
        assert set(given.values()) == {None}


def test_a_column_of_more_values_has_more_people() -> None:
    assert [module._table(values).height for values in (20, 2_000)] == [600, 1_800]
    assert [module._table(values)["age"].n_unique() > 256 for values in (20, 2_000)] == [False, True]


class Watched:
    """A stage that remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.notes: list[tuple[int, str]] = []

    @contextmanager
    def __call__(self, name: str, total: int | None) -> Iterator[Any]:
        self.stages.append((name, total))
        yield lambda done, note="": self.notes.append((done, note))


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every method compiles as many kernels as its name has letters; how many workers each pool had."""
    asked: list[int] = []

    def pool(workers: int, mp_context: object) -> ThreadPoolExecutor:
        asked.append(workers)
        return ThreadPoolExecutor(workers)

    monkeypatch.setattr(module, "compiled_by", len)
    monkeypatch.setattr(module, "ProcessPoolExecutor", pool)
    return asked


@pytest.mark.parametrize(
    ("workers", "cores", "pool"),
    [(1, 8, []), (2, 8, [2]), (5, 8, [3]), (None, 2, [2]), (None, 1, []), (None, None, []), (0, 2, [2])],
)
def test_methods_are_compiled_beside_each_other_and_added_up(
    workers: int | None, cores: int | None, pool: list[int], pools: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many at once as asked for, else as there are cores, and no more than there is to do."""
    monkeypatch.setattr(module.os, "cpu_count", lambda: cores)
    stage = Watched()
    assert warm(["mondrian", "decoys", "pram"], workers=workers, stage=stage) == 8 + 6 + 4
    assert pools == pool
    assert stage.stages == [("Compiling kernels", 3)]
    assert sorted(stage.notes) == [(1, f"Compiled {name}") for name in ("decoys", "mondrian", "pram")]


def test_everything_is_compiled_where_nothing_is_named(pools: list[int]) -> None:
    assert warm(workers=1) == sum(map(len, METHODS))
    assert warm(["pram"]) == 4
    assert pools == [], "one method needs no pool"


def test_a_method_that_does_not_exist_is_named() -> None:
    with pytest.raises(NorenError, match="there is no method 'mondrain'") as caught:
        warm(["mondrian", "mondrain"])
    assert "mondrian" in str(caught.value.hint)


def test_kernels_are_counted_also_where_a_table_cannot_be_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_one() -> None:
        for told in listeners:
            told("kernel", 0)

    def fails() -> None:
        compile_one()
        raise NorenError("this table is too small.")

    listeners: list[Callable[[str, int], None]] = []
    monkeypatch.setattr(module, "compiling", listeners)
    monkeypatch.setattr(module, "_works", lambda method: [compile_one, fails, compile_one])
    assert compiled_by("mondrian") == 3
    assert listeners == [], "nobody listens any more"
