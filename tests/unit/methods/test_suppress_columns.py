"""'suppress' with several columns, unknown terms, weights and priors: everything an adversary could put together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.release.store import MemoryStore
from noren.schema.domain import Domain
from noren.workflow.anonymize import Outcome, run
from tests.oracles.terms import Demand, World, squared
from tests.unit.term_world import CLOSE, DIVERSE, ENOUGH, WORLD, check, known, policy, table

PAIR = World({"Flu": frozenset("ab"), "Cold": frozenset("a"), "Pox": frozenset("b")})
"""Either sign alone leaves two diseases, both together one."""
TWO = Demand("cl", Fraction(1), 2)


def people(*rows: tuple[int, str, str]) -> pa.Table:
    texts = pa.list_(pa.string())
    return pa.table(
        {
            "row": range(len(rows)),
            "age": [age for age, _, _ in rows],
            "signs": pa.array([list(word) for _, word, _ in rows], texts),
            "more": pa.array([list(word) for _, _, word in rows], texts),
        }
    )


def two_columns(first: World, second: World | None, *require: Any, **more: Any) -> nr.Policy:
    """Two set-valued columns, with one knowledge table or two."""
    knowledge = known(first)
    other = knowledge if second is None else known(second)
    models = require or (nr.models.QSDiversity(on=("signs", "more"), c=1, l=2),)
    return nr.Policy(
        attributes={
            "row": "plain",
            "age": "quasi-identifier",
            "signs": {"role": "quasi-sensitive", "knowledge": knowledge, **more},
            "more": {"role": "quasi-sensitive", "knowledge": other, **more},
        },
        require=list(models),
        method={"name": "suppress", "nodes": 500},
    )


# ---------------------------------------------------------------- columns that are read together


def test_columns_with_one_table_are_linked_together() -> None:
    original = people((1, "a", "b"), (1, "a", "b"), (2, "a", ""))
    made = run(original, two_columns(PAIR, None))
    check(made.release, original, TWO, PAIR, ("signs", "more"))
    assert [verdict.column for verdict in made.facts.verdicts] == ["signs", "more"]
    (figures,) = made.facts.terms
    assert (figures.columns, figures.entries, figures.removed) == (("signs", "more"), 5, 2)
    sets = [made.release.column(name) for name in ("signs", "more")]
    assert sets[0].column.known is sets[1].column.known
    assert {column.side for column in sets} == {"knowledge-1"}


def test_the_verification_links_them_too() -> None:
    """The raw pair, published by hand: each column alone is diverse, and both are found to fail."""
    original = people((1, "a", "b"), (1, "a", "b"))
    release = nr.anonymize(original, two_columns(PAIR, None))
    cells = release.cells(release.columns)
    raw = {name: type(cells[name])(2, np.array([0, 1, 2]), np.full(2, code, np.int32)) for name, code in
           (("signs", 0), ("more", 1))}  # fmt: skip
    forged = nr.Release(release.manifest, MemoryStore(cells | raw))
    assert [verdict.holds for verdict in nr.verify(forged)] == [False, False]
    assert [verdict.breaches for verdict in nr.verify(forged)] == [2, 2]
    apart = [column if column.terms is None else column.with_side(known(PAIR)) for column in forged.statements]
    manifest = forged.manifest.model_copy(update={"columns": tuple(apart)})
    assert [v.holds for v in nr.verify(nr.Release(manifest, forged.store))] == [True, True]


def test_a_term_that_stands_in_both_columns_is_one_term() -> None:
    original = people((1, "ab", "ab"), (1, "ab", "b"))
    made = run(original, two_columns(PAIR, None))
    rows = check(made.release, original, TWO, PAIR, ("signs", "more"))
    assert made.facts.terms[0].entries == 4
    for row in rows:
        both = set(row["signs_true"]) & set(row["more_true"])
        assert all((term in row["signs"]) == (term in row["more"]) for term in both), "it is left out of both"


def test_columns_with_tables_of_their_own() -> None:
    food = World({"East": frozenset("xy"), "West": frozenset("x"), "North": frozenset("y")})
    original = people((1, "ab", "xy"), (1, "a", "x"), (2, "", "xy"), (2, "b", ""), (3, "ab", "z"))
    made = run(original, two_columns(PAIR, food, unknown="drop"))
    check(made.release, original, TWO, PAIR, ("signs",))
    check(made.release, original, TWO, food, ("more",))
    assert [figures.columns for figures in made.facts.terms] == [("signs",), ("more",)]
    assert [made.release.column(name).side for name in ("signs", "more")] == ["knowledge-1", "knowledge-2"]


def test_tables_of_their_own_may_have_requirements_of_their_own() -> None:
    food = World({"East": frozenset("xy"), "West": frozenset("x"), "North": frozenset("y")})
    original = people((1, "ab", "xy"), (1, "a", "x"), (2, "", "xy"), (2, "b", ""))
    close = nr.models.QSCloseness(on="more", t=0.3, distance="emd")
    made = run(original, two_columns(PAIR, food, nr.models.QSDiversity(on="signs", c=1, l=2), close))
    check(made.release, original, TWO, PAIR, ("signs",))
    check(made.release, original, Demand("emd", t=Fraction(3, 10)), food, ("more",))


# ---------------------------------------------------------------- terms that nobody knows, records that link to nothing


@pytest.mark.parametrize("unknown", ["drop", "keep", "reject"])
def test_unknown_terms(unknown: str) -> None:
    signs = [["cough", "warts"]] * 3 + [["cough", "sneeze"], [], ["warts"], ["glow", "rash"]]
    original = pa.table({"row": range(7), "age": [1] * 7, "town": ["x"] * 7, "ill": ["y"] * 7, "signs": signs})
    attributes = dict(policy().attributes)
    attributes["signs"] = nr.quasi_sensitive(knowledge=known(), unknown=unknown)
    rules = nr.Policy(attributes=attributes, require=[DIVERSE], method={"name": "suppress", "nodes": 300})
    if unknown == "reject":
        with pytest.raises(nr.errors.PolicyError, match="lacks 2 rare values") as caught:
            run(original, rules)
        assert "warts" not in str(caught.value)
        return
    made = run(original, rules)
    rows = check(made.release, original, ENOUGH)
    listed = made.release.column("signs").domain.values
    published = {term for row in rows for term in row["signs"]}
    assert set(listed) == set(known().terms) | published
    assert published & {"warts", "glow"} == ({"warts", "glow"} if unknown == "keep" else set())
    said = sum(note.startswith("signs: 5 terms that the knowledge table lacks") for note in made.facts.notes)
    assert said == (unknown == "drop")


@pytest.mark.parametrize("unknown", ["drop", "keep"])
def test_unknown_terms_count_for_the_prior_as_they_did_when_it_was_made(unknown: str) -> None:
    """Who had a term that no label has was linked to nothing, also where that term is published nowhere."""
    signs = [["cough", "warts"], ["nausea"], ["cough", "warts"]] * 6
    original = table(18).set_column(4, "signs", pa.array(signs))
    attributes = dict(policy().attributes) | {"signs": nr.quasi_sensitive(knowledge=known(), unknown=unknown)}
    method = {"name": "suppress", "nodes": 300, "k": 3}
    rules = nr.Policy(attributes=attributes, require=[CLOSE | {"t": 0.6}], method=method)
    made = run(original, rules)
    assert all(verdict.holds is True for verdict in made.facts.verdicts)
    cells = made.release.cells(made.release.columns)
    bare = type(cells["signs"])(6, np.zeros(19, np.int64), np.zeros(0, np.int32))
    silenced = made.release.column("signs")
    silenced = silenced.over(silenced.column.over("signs", Domain(known().terms)))
    columns = [silenced if one.name == "signs" else one for one in made.release.statements]
    manifest = made.release.manifest.model_copy(update={"columns": tuple(columns)})
    silent = nr.Release(manifest, MemoryStore(cells | {"signs": bare}))
    (verdict, *_) = nr.verify(silent, rules, original=original)
    told = [own if unknown == "keep" else [term for term in own if term != "warts"] for own in signs]
    wanted = squared(WORLD.mean([()]), WORLD.alpha(told))
    assert verdict.achieved == pytest.approx(float(wanted) ** 0.5)


@pytest.mark.parametrize("unlinked", ["ignore", "prior"])
@pytest.mark.parametrize("model", [DIVERSE, CLOSE])
def test_records_that_link_to_nothing(unlinked: str, model: dict[str, Any]) -> None:
    """A third of them have signs that no disease has together."""
    signs = [["nausea", "rash"], ["cough", "sneeze"], ["fever", "cough"]] * 8
    original = table(24).set_column(4, "signs", pa.array(signs))
    assert WORLD.linked(["nausea", "rash"]) == []
    rules = policy(require=[model | {"unlinked": unlinked}], generalise="incognito", k=2)
    kind = Demand("cl", Fraction(1), 3) if model is DIVERSE else Demand("l2", t=Fraction(1, 2))
    made = run(original, rules)
    check(made.release, original, Demand(kind.kind, kind.c, kind.l, kind.t, unlinked == "prior"))
    (verdict,) = made.facts.verdicts
    needed = model is CLOSE or unlinked == "prior"
    assert verdict.basis == ("the original" if needed else "the release alone")
    assert [entry.achieved is None for entry in made.release.verdicts] == [needed]


# ---------------------------------------------------------------- weights and priors


def test_weights_decide() -> None:
    """Flu and cold fit a cough alike. If a cold is nine times as common, a cough says cold."""
    world = World({"Flu": frozenset("ab"), "Cold": frozenset("a"), "Pox": frozenset("b")}, {"Cold": Fraction(9)})
    original = people((1, "a", ""), (1, "a", ""))
    plain = run(original, two_columns(PAIR, None)).release
    assert plain.frame()["signs"].to_list() == [["a"], ["a"]]
    with pytest.raises(nr.errors.RequirementNotMet):
        run(original, two_columns(world, None))
    mixed = people((1, "a", ""), (1, "b", ""))
    release = run(mixed, two_columns(world, None)).release
    check(release, mixed, TWO, world)
    assert release.column("signs").column.known.label_weights.tolist() == [1, 9, 1]


def close(world: World, original: pa.Table, t: float = 0.3, distance: str = "l2", **method: Any) -> Outcome:
    require = [{"model": "qs-closeness", "on": "signs", "t": t, "distance": distance}]
    made = run(original, policy(known(world), require, k=3, **method))
    check(made.release, original, Demand(distance, t=Fraction(str(t))), world)
    return made


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_priors_given_and_estimated(distance: str) -> None:
    original = table()
    tenths = dict(zip(WORLD.labels, (2, 2, 2, 1, 1, 2), strict=True))
    given = World(WORLD.labels, priors={label: Fraction(share, 10) for label, share in tenths.items()})
    t = 0.3 if distance == "l2" else 0.5
    by_table, by_data = close(given, original, t, distance), close(WORLD, original, t, distance)
    assert by_table.facts.verdicts[0].basis == "the release alone"
    assert by_data.facts.verdicts[0].basis == "the original"
    assert nr.verify(by_table.release)[0].holds is True
    (alone,) = nr.verify(by_data.release)
    assert (alone.holds, alone.basis) == (None, "an estimate from the release")
    rules = policy(known(), [{"model": "qs-closeness", "on": "signs", "t": t, "distance": distance}], k=3)
    (verdict, *truth) = nr.verify(by_data.release, rules, original=original)
    assert (verdict.holds, verdict.basis) == (True, "the original")
    assert all(other.holds is True for other in truth)
    assert verdict.achieved == pytest.approx(by_data.facts.verdicts[0].achieved)


def test_a_prior_that_no_group_can_reach_is_told() -> None:
    absent = World(WORLD.labels, priors={"Idiopathic": Fraction(1)})
    with pytest.raises(nr.errors.RequirementNotMet, match="whole table as one group"):
        close(absent, table(), 0.2)


def test_labels_without_terms_and_records_without_terms() -> None:
    """Who has no sign may have anything, also what no sign tells."""
    original = table(20).set_column(4, "signs", pa.array([[]] * 20, pa.list_(pa.string())))
    made = run(original, policy())
    check(made.release, original, ENOUGH)
    assert (made.facts.terms[0].entries, made.facts.terms[0].mean_cost) == (0, 0)
    assert made.release.frame()["signs"].to_list() == [[]] * 20
    assert "Idiopathic" in made.release.column("signs").column.known.labels


# ---------------------------------------------------------------- other columns beside it


def test_secrets_and_harmless_columns_beside_terms() -> None:
    original = table(120)
    close_ill = {"model": "t-closeness", "on": "ill", "t": 0.4}
    made = run(original, policy(require=[DIVERSE, close_ill], ill="sensitive", k=4))
    check(made.release, original, ENOUGH)
    frame = made.release.frame().sort("row")
    assert frame["row"].to_list() == original["row"].to_pylist()
    assert frame["ill"].to_list() == original["ill"].to_pylist()
    assert [verdict.holds for verdict in made.facts.verdicts] == [True, True]


@pytest.mark.parametrize("suppression", [0.0, 0.1])
def test_records_that_the_first_phase_drops_stay_dropped(suppression: float) -> None:
    original = table(120)
    made = run(original, policy(k=5, generalise="incognito", suppression=suppression))
    rows = check(made.release, original, ENOUGH)
    assert len(rows) == 120 - made.facts.suppressed
    assert made.facts.suppressed <= 120 * suppression
    (figures,) = made.facts.terms
    assert figures.entries == sum(len(set(row["signs_true"])) for row in rows)
    assert figures.records.sum() == len(rows)
