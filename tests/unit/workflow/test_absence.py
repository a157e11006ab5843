"""Those who are missing from a release, as far as the original less the release shows them; and guesses by class."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.release.published import Published
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement
from noren.workflow import compare
from noren.workflow.compare import right_guesses
from noren.workflow.truth import is_countable, missing_verdict, published_counts

DIVERSE = nr.models.DistinctLDiversity(on="job", l=2)
JOB = ExactStatement(Column(role=Role.SENSITIVE).over("job", Domain(("cook", "clerk"))))


def judged(true: list[int], shown: list[int], missing: int, models: Any = (DIVERSE,), **more: Any) -> Any:
    """The verdict where the original has these counts, the release those, and so many people are left out."""
    cells = CodeCells(2, np.repeat([0, 1], shown))
    published = Published([JOB], MemoryStore({"job": cells}), sum(shown), suppressed=missing)
    columns = {"job": more.get("column", JOB.column)}
    return missing_verdict(published, models, columns, {"job": np.array(true)}, more.get("places", {}))


@pytest.mark.parametrize(
    ("true", "shown", "missing", "holds"),
    [
        ([3, 3], [2, 2], 2, True),
        ([4, 2], [2, 2], 2, False),
        ([2, 4], [2, 2], 2, False),
        ([1, 5], [2, 2], 2, None),
        ([3, 2], [2, 2], 2, None),
        ([4, 4], [2, 2], 2, None),
    ],
)
def test_the_missing_are_what_the_original_has_more(
    true: list[int], shown: list[int], missing: int, holds: bool | None
) -> None:
    found = judged(true, shown, missing)
    assert (found.holds, found.records) == (holds, missing)
    assert ("undecided: distinct-l-diversity" in found.statement) is (holds is None)


def test_only_what_is_not_settled_is_named() -> None:
    other = nr.models.DistinctLDiversity(on="pay", l=2)
    found = judged([3, 3], [2, 2], 2, (DIVERSE, other, nr.models.KAnonymity(k=2)))
    assert found.holds is None
    assert found.statement.endswith("undecided: distinct-l-diversity")
    assert judged([3, 3], [2, 2], 2, (nr.models.KAnonymity(k=2),)).holds is True
    assert judged([3, 3], [2, 2], 2, (nr.models.KAnonymity(k=3),)).holds is False
    assert judged([3, 2], [2, 2], 2, (nr.models.KAnonymity(k=2),)).holds is True
    assert judged([3, 2], [2, 2], 2, (nr.models.KAnonymity(k=3),)).holds is False


def test_published_values_stand_among_those_of_the_original() -> None:
    wide = Column(role=Role.SENSITIVE).over("job", Domain(("smith", "clerk", "cook")))
    place = {"job": np.array([2, 1])}
    assert judged([1, 2, 3], [2, 2], 2, column=wide, places=place).holds is True
    assert judged([2, 2, 2], [2, 2], 2, column=wide, places=place).holds is False


def test_exact_columns_and_groups_can_be_counted() -> None:
    table = SimpleNamespace(value=np.array([1, 0, 1]), count=np.array([2, 3, 1]))
    for exact, groups, listed, countable in (
        (True, None, True, True),
        (False, table, True, True),
        (False, None, True, False),
        (True, None, False, False),
    ):
        one: Any = SimpleNamespace(is_exact=exact, table=groups, lists_values=listed)
        assert is_countable(one) is countable
    grouped: Any = SimpleNamespace(table=table, d=3)
    assert published_counts(grouped, grouped).tolist() == [3, 3, 0]


# ---------------------------------------------------------------- guesses


def seen(keep: list[bool]) -> Any:
    """Four classes of towns by sex, and a secret that is published as it is."""

    def column(name: str, role: Role, codes: list[int]) -> Any:
        return SimpleNamespace(
            name=name, role=role, cells=np.array(codes), truth=np.array(codes), domain=Domain(("a", "b", "c"))
        )

    columns = {
        "town": column("town", Role.QUASI_IDENTIFIER, [0, 0, 0, 1, 1, 1]),
        "sex": column("sex", Role.SENSITIVE_QUASI_IDENTIFIER, [0, 0, 1, 0, 0, 0]),
        "note": column("note", Role.PLAIN, [0, 1, 2, 0, 1, 2]),
        "job": column("job", Role.SENSITIVE, [0, 1, 2, 1, 1, 0]),
    }
    return SimpleNamespace(columns=columns, keep=np.array(keep))


def test_the_commonest_value_of_a_class_is_guessed() -> None:
    """Classes of 2, 1 and 3 people, of whom 1, 1 and 2 have the commonest job."""
    view = seen([True] * 6)
    assert compare._by_class(view, "job") == pytest.approx(4 / 6)
    assert compare._by_class(view, "sex") == pytest.approx(5 / 6)
    assert compare._by_class(view, "nobody") is None
    assert compare._by_class(seen([True, True, False, False, False, True]), "job") == pytest.approx(2 / 3)


def test_the_best_guess_at_any_secret_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def statement(name: str, needs: bool = True, hides: bool = False, rows: int = 1) -> Any:
        return SimpleNamespace(
            name=name, role=SimpleNamespace(needs_requirement=needs), hides=hides, rows_per_record=rows
        )

    told = {"pay": SimpleNamespace(right=np.array([1.0, 0.5])), "none": SimpleNamespace(right=None), "not": None}
    cells = dict.fromkeys(["pay", "none", "not"])
    monkeypatch.setattr(compare, "_sampled", lambda draft: (dict.fromkeys(["pay", "none", "not"]), cells))
    monkeypatch.setattr(compare, "believed", lambda name, readable, cells, truth: told[name])

    def guessed(*statements: Any) -> float | None:
        return right_guesses(SimpleNamespace(statements=statements), seen([True] * 6))  # type: ignore[arg-type]

    assert guessed(statement("job")) == pytest.approx(4 / 6)
    assert guessed(statement("job"), statement("pay", hides=True)) == 0.75
    assert guessed(statement("none", hides=True), statement("not", hides=True)) is None
    assert guessed(statement("job", needs=False)) is None
    assert guessed(statement("job", rows=2)) is None
    assert guessed(statement("lost", hides=True)) is None
    assert guessed() is None
