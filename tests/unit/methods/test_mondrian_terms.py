"""Mondrian and quasi-sensitive terms: what is permitted, what is refused, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.methods.hilbert import Hilbert
from noren.methods.incognito import Incognito
from noren.methods.mondrian import Mondrian
from noren.methods.mondrian.classes import classes_of
from noren.methods.mondrian.terms import term_rules
from noren.methods.suppress.beliefs import linkages, measure_groups
from noren.methods.sweep import Sweep
from noren.models import MODELS
from noren.models.base import Model
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from tests.oracles.mondrian import table_of
from tests.oracles.mondrian_terms import Terms, terms_satisfy, with_terms

KNOWLEDGE = Knowledge.from_pairs(
    [("cold", "cough"), ("cold", "fever"), ("flu", "cough"), ("flu", "fever"), ("flu", "chills"), ("mumps", "swelling")]
)
COUGH, FEVER, CHILLS, SWELLING = 0, 1, 2, 3
UNKNOWN = 4


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def people(records: Terms, knowledge: Knowledge = KNOWLEDGE) -> Records:
    """One record per age."""
    n = len(records)
    return with_terms(table_of({"age": ("ranked", n, np.arange(n))}, {}), {"signs": (knowledge, records)})


def diverse(c: float = 1.0, l: int = 2, unlinked: str = "ignore") -> Model:  # noqa: E741
    return MODELS["qs-diversity"](c=c, l=l, on=("signs",), unlinked=unlinked)


def close(t: float, **more: str) -> Model:
    return MODELS["qs-closeness"](t=t, on=("signs",), **more)


def parts(table: Records, *requirements: Model, **options: float) -> list[list[int]]:
    classes, count = classes_of(table, requirements, order, Mondrian(**options))  # type: ignore[arg-type]
    return sorted(np.flatnonzero(classes == c).tolist() for c in range(count))


def test_a_class_may_reach_the_bound() -> None:
    """Cough fits two labels equally: c = 1 permits that, and no less does."""
    table = people([[COUGH], [COUGH]])
    assert parts(table, diverse(1.0)) == [[0], [1]]
    with pytest.raises(RequirementNotMet):
        Mondrian().recode(table, [diverse(0.99)], order)


def test_records_that_give_themselves_away_stay_together() -> None:
    """Chills mean flu, a swelling means mumps: only side by side do they hide each other."""
    table = people([[CHILLS], [SWELLING], [CHILLS], [SWELLING]])
    assert parts(table, diverse(), refinement=0) == [[0, 1], [2, 3]]
    assert parts(table, diverse(l=2), MODELS["k-anonymity"](k=3)) == [[0, 1, 2, 3]]


def test_records_without_terms_and_without_labels() -> None:
    """No terms fit every label and hide by themselves. A term nobody knows says nothing, unless it says the prior."""
    assert parts(people([[], [], [UNKNOWN], [UNKNOWN]]), diverse()) == [[0], [1], [2], [3]]
    pair = people([[CHILLS], [UNKNOWN]])
    with pytest.raises(RequirementNotMet):
        Mondrian().recode(pair, [diverse()], order)
    with pytest.raises(RequirementNotMet):
        Mondrian().recode(pair, [diverse(2.0, unlinked="prior")], order)
    told = Knowledge.from_sets([[0, 1], [0, 1, 2], [3]], terms=KNOWLEDGE.terms, priors=np.array([0.5, 0.0, 0.5]))
    assert parts(people([[CHILLS], [UNKNOWN]], told), diverse(2.0, unlinked="prior")) == [[0, 1]]


def test_closeness_to_a_given_prior() -> None:
    told = Knowledge.from_sets([[0, 1], [0, 1, 2], [3]], terms=KNOWLEDGE.terms, priors=np.array([0.0, 0.5, 0.5]))
    table = people([[CHILLS], [SWELLING], [SWELLING], [CHILLS]], told)
    assert parts(table, close(0.1), refinement=0) == [[0, 1], [2, 3]]
    assert parts(table, close(0.5**0.5), refinement=0) == [[0], [1], [2], [3]]
    assert parts(table, close(0.49, distance="emd"), refinement=0) == [[0, 1], [2, 3]]
    assert parts(table, close(0.5, distance="emd"), refinement=0) == [[0], [1], [2], [3]]


def test_columns_with_one_knowledge_are_read_together() -> None:
    """Cough alone fits two labels, and so does fever; chills in the other column leave one."""
    n = 2
    table = table_of({"age": ("ranked", n, np.arange(n))}, {})
    signs, more = [[COUGH], [COUGH]], [[CHILLS], [SWELLING]]
    apart = Knowledge.from_sets([[0, 1], [0, 1, 2], [3]], terms=KNOWLEDGE.terms)
    assert parts(with_terms(table, {"signs": (KNOWLEDGE, signs), "more": (apart, more)}), diverse()) == [[0], [1]]
    together = with_terms(table, {"signs": (KNOWLEDGE, signs), "more": (KNOWLEDGE, more)})
    with pytest.raises(RequirementNotMet, match="on 'signs"):
        Mondrian().recode(together, [diverse()], order)


@pytest.mark.parametrize(
    ("records", "requirement", "words"),
    [
        ([[CHILLS]] * 3, diverse(2.0), ("all 3 records", "believed with more than 1 ", '"suppress"')),
        ([[CHILLS], [CHILLS], [SWELLING]], diverse(1.0), ("c = 2 is reached", "Set c to at least 2")),
        ([[COUGH], [SWELLING]], diverse(1.0, 3), ("c = 2 is reached", "Set c to at least 2")),
    ],
)
def test_what_is_out_of_reach(records: Terms, requirement: Model, words: tuple[str, ...]) -> None:
    with pytest.raises(RequirementNotMet) as caught:
        Mondrian().recode(people(records), [requirement], order)
    for word in words:
        assert word in str(caught.value)


def test_closeness_out_of_reach_says_what_is_reachable() -> None:
    told = Knowledge.from_sets([[0], [1]], terms=("x", "y"), priors=np.array([0.5, 0.5]))
    table = people([[0], [0]], told)
    for options, least in (({}, "0.7072"), ({"distance": "emd"}, "0.5")):
        with pytest.raises(RequirementNotMet, match=f"Set t to at least {least}\\."):
            Mondrian().recode(table, [close(0.2, **options)], order)
        Mondrian().recode(table, [close(float(least), **options)], order)


def test_dropping_keeps_the_estimated_prior() -> None:
    """The prior comes from the whole original: dropping a record changes neither it nor what is permitted."""
    rng = np.random.default_rng(5)
    records = [[int(rng.integers(0, 4))] for _ in range(60)]
    codes = np.where(np.arange(60) < 59, 0, 7)
    base = table_of({"a": ("ranked", 8, codes), "b": ("set", 8, codes)}, {})
    table = with_terms(base, {"signs": (KNOWLEDGE, records)})
    asked = close(0.45)
    recoding = Mondrian(suppression=0.1, refinement=0).recode(table, [asked, MODELS["k-anonymity"](k=5)], order)
    assert recoding.keep is not None
    assert terms_satisfy(table, np.flatnonzero(recoding.keep).tolist(), asked)
    assert not recoding.omitted


def test_the_record_that_hides_the_others_is_not_dropped() -> None:
    """One swelling beside forty chills just suffices for c = 40, however much its age costs the others."""
    codes = np.array([0] * 40 + [7])
    base = table_of({"a": ("ranked", 8, codes), "b": ("set", 8, codes)}, {})
    table = with_terms(base, {"signs": (KNOWLEDGE, [[CHILLS]] * 40 + [[SWELLING]])})
    method = Mondrian(suppression=0.05, refinement=0)
    assert method.recode(table, [diverse(40.0)], order).keep is None
    assert method.recode(table, [MODELS["k-anonymity"](k=3)], order).keep is not None


@pytest.mark.parametrize("asked", [diverse(1.0, 3), diverse(2.0, 2, "prior"), close(0.3), close(0.6, distance="emd")])
def test_moving_and_dropping_records_keeps_every_class(asked: Model) -> None:
    rng = np.random.default_rng(11)
    n = 600
    sets = [rng.choice(20, 6, replace=False).tolist() for _ in range(25)]
    knowledge = Knowledge.from_sets(sets, terms=tuple(f"term {i}" for i in range(20)))
    records = [rng.choice(sets[rng.integers(25)], rng.integers(0, 4), replace=False).tolist() for _ in range(n)]
    records[::20] = [[20]] * len(records[::20])
    base = table_of({name: ("ranked", 30, rng.integers(0, 30, n)) for name in "abc"}, {})
    table = with_terms(base, {"signs": (knowledge, records)})
    (found,) = linkages(table, [asked])
    ((rule, unlinked),) = found.rules
    counts = []
    for options in ({"refinement": 0}, {"refinement": 4}, {"refinement": 4, "suppression": 0.2}):
        groups = parts(table, asked, **options)
        counts.append(sum(map(len, groups)))
        measures = measure_groups(
            np.concatenate(groups), np.cumsum([0, *map(len, groups)]), found.cells.offsets, found.cells.data, knowledge,
            found.alpha, l=rule.l, unlinked=unlinked,
        )  # fmt: skip
        assert rule.holds(measures).all()
        assert len(groups) > 5
    assert counts[0] == counts[1] == n


def test_records_with_the_same_terms_share_a_profile() -> None:
    rules = term_rules(people([[COUGH], [COUGH, FEVER], [], [UNKNOWN], [COUGH]]), [diverse()])
    assert rules.profiles[:, 0].tolist()[2:4] == [-1, -2]
    assert rules.labels.tolist() == [0, 1, 0, 1]
    assert rules.shares.tolist() == [0.5, 0.5]


def test_without_requirements_on_terms_nothing_is_kept() -> None:
    assert term_rules(people([[COUGH], [FEVER]]), [MODELS["k-anonymity"](k=2)]) is None


def test_which_methods_serve_terms() -> None:
    roles = {"age": Role.QUASI_IDENTIFIER, "signs": Role.QUASI_SENSITIVE}
    assert Mondrian(suppression=0.1).problems(roles, [diverse(), close(0.3)]) == []
    for method in (Incognito(), Hilbert()):
        found = [
            problem for problem in method.problems(roles, [diverse()]) if '"suppress" or "mondrian"' in problem.hint
        ]
        assert [problem.where for problem in found] == ["require[1].model", "attributes.signs.role"]
    assert any('"suppress" or "mondrian"' in problem.hint for problem in Sweep().problems(roles, []))
    both = {"age": Role.SENSITIVE_QUASI_IDENTIFIER, "job": Role.QUASI_IDENTIFIER}
    assert any("decoys" in problem.hint for problem in Mondrian().problems(both, []))
