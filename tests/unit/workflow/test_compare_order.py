"""Candidates side by side on tables of few people: their order, their figures, and what is measured of whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.methods import Anatomy, Decoys, Mondrian
from noren.workflow import compare as module
from noren.workflow.compare import compare, iterate_candidates
from noren.workflow.comparison import Candidate

PEOPLE = pl.DataFrame({"town": ["Ulm"] * 10 + ["Hof"] * 10, "ill": ["flu"] * 10 + ["cold"] * 10})
"""Everybody of a town has the same."""


def rules(*asked: Any, method: Any = "mondrian", **roles: Any) -> nr.Policy:
    attributes = {"town": "quasi-identifier", "ill": "sensitive"} | roles
    return nr.Policy(
        attributes=attributes, require=list(asked), method=method, dependence={"most": 1.0}, mechanism="ignored"
    )


MIXED = PEOPLE.with_columns(ill=pl.Series(["flu", "cold"] * 10))
FOUR = MIXED.with_columns(town=pl.Series(["a", "b", "c", "d", "e"] * 4), ill=pl.Series(["p", "q", "r", "s"] * 5))
DIVERSE = nr.models.DistinctLDiversity(on="ill", l=2)


# ---------------------------------------------------------------- a line


def test_a_candidate_that_publishes_nothing_has_no_figures() -> None:
    failed = Candidate("mondrian", (Mondrian(),), 1.0, failure="k is out of reach")
    assert (failed.holds, failed.records, failed.suppressed, failed.risk) == (False, 0, 0, 0.0)
    assert repr(failed) == "<Candidate mondrian: publishes nothing: k is out of reach>"


def test_a_snippet_names_one_method_or_several_with_what_differs_from_their_defaults() -> None:
    one = Candidate("mondrian", (Mondrian(strict=False),), 1.0)
    assert one.snippet.splitlines()[0] == "[method]"
    two = Candidate("mondrian + decoys", (Mondrian(), Decoys(on=("ill",))), 1.0)
    assert [line for line in two.snippet.splitlines() if line.startswith("[")] == ["[[method]]", "[[method]]"]
    assert "suppression" not in one.snippet
    assert "suppression" not in Candidate("anatomy", (Anatomy(),), 1.0).snippet


# ---------------------------------------------------------------- their order


def test_candidates_come_one_by_one_as_each_is_measured(monkeypatch) -> None:
    measured = []
    real = module._tried
    monkeypatch.setattr(module, "_tried", lambda methods, *rest: measured.append(methods) or real(methods, *rest))
    policy = rules(DIVERSE, method="anatomy")
    one_by_one = iterate_candidates(FOUR, policy, among=["anatomy", "mondrian"])
    first = next(one_by_one)
    assert len(measured) == 1, "no other has been tried yet"
    rest = [first, *one_by_one]
    assert {one.title for one in rest} == {one.title for one in compare(FOUR, policy, among=["anatomy", "mondrian"])}


class Watched:
    """A stage that adds up what it is told."""

    total, done = 0, 0

    @contextmanager
    def __call__(self, name: str, total: int | None) -> Iterator[Any]:
        counted = name == "Comparing methods"
        self.total += (total or 0) * counted

        def meter(done: int, **more: Any) -> None:
            self.done += done * counted

        yield meter


def test_risks_that_are_alike_to_a_thousandth_stand_by_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "mondrian": {"belief": 0.50049, "query_loss": 0.1},
        "hilbert": {"belief": 0.50001, "query_loss": 0.2},
        "incognito": {"belief": 0.498, "query_loss": 0.9},
        "three-phase": {"failure": "l is out of reach", "belief": 0.0},
    }

    def tried(methods: Any, *rest: Any) -> Candidate:
        return Candidate(methods[0].name, methods, 0.0, **found[methods[0].name])  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_tried", tried)
    stage = Watched()
    titles = [one.title for one in compare(MIXED, rules(DIVERSE), among=list(found), stage=stage)]
    assert list(dict.fromkeys(titles)) == ["incognito", "mondrian", "hilbert", "three-phase"]
    assert stage.total == stage.done == len(titles)


# ---------------------------------------------------------------- what is measured


def test_a_class_of_one_secret_is_certain() -> None:
    (found,) = compare(PEOPLE, rules(nr.models.TCloseness(on="ill", t=0.6)), among=["incognito"])
    assert found.holds, found.failure
    assert (found.worst_share, found.smallest_class) == (1.0, 10.0)
    (mixed,) = compare(MIXED, rules(DIVERSE), among=["incognito"])
    assert (mixed.worst_share, mixed.smallest_class) == (0.5, 10.0)


def test_nobody_is_found_by_columns_that_identify_nobody() -> None:
    asked = nr.models.FrequencyLDiversity(on="ill", l=2)
    (found,) = compare(FOUR, rules(asked, method="decoys", town="plain"), among=["decoys"])
    assert found.holds, found.failure
    assert found.smallest_class == 0.0
    assert found.worst_share == 0.5


def test_drawn_quasi_identifiers_form_no_classes() -> None:
    both = nr.models.FrequencyLDiversity(on=["town", "ill"], l=2)
    roles = {"town": "sensitive-quasi-identifier"}
    (found,) = compare(FOUR, rules(both, method="decoys", **roles), among=["decoys"])
    assert found.holds, found.failure
    assert found.smallest_class == 0.0


@pytest.mark.parametrize(("form", "measured"), [("sets", True), ("records", False)])
def test_a_secret_in_shuffled_members_has_no_share_in_a_class(form: str, measured: bool) -> None:
    method = {"name": "decoys", "form": form}
    ill = {"role": "sensitive", "distance": "ordinal"}
    asked = nr.models.SemanticDiversity(on="ill", l=2, d=0.3)
    table = FOUR.with_columns(ill=pl.Series([1, 2, 3, 4, 5, 6, 7, 8, 9, 10] * 2))
    found = compare(table, rules(asked, method=method, ill=ill), among=["decoys"])
    (own,) = (one for one in found if one.methods == (nr.methods.Decoys(form=form),))
    assert own.holds, own.failure
    assert (own.worst_share > 0) == measured


def test_rules_of_a_small_table_need_one_record() -> None:
    """Of 20 people one is told by a rule of his own: so are others in tables of up to 239."""
    table = MIXED.with_columns(town=pl.Series(["Kiel"] + ["Ulm"] * 9 + ["Hof"] * 10))
    (found,) = compare(table, rules(nr.models.TCloseness(on="ill", t=0.9)), among=["incognito"], classify="ill")
    assert found.classification is not None, found.failure
    alone = found.classification["rules_original"]
    doubled = pl.concat([table] * 12)
    (many,) = compare(doubled, rules(nr.models.TCloseness(on="ill", t=0.9)), among=["incognito"], classify="ill")
    assert many.classification is not None
    assert alone == many.classification["rules_original"] > 0
