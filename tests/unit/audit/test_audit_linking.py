"""The linking attack: Figure 1 of paper 001, people in several groups or none, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import ATTACKS, attack, linking
from noren.audit.chart import steps
from noren.audit.linking import Adversary
from noren.audit.targets import alike
from noren.engines.finding import Finder, exact_nodes, numbered_sets
from noren.errors import DataError, QueryError
from noren.schema.nodes import Nodes
from noren.statements import TermCells

DISEASES = nr.Knowledge.from_pairs(
    [("Flu", term) for term in ("coughing", "headache", "sore throat")]
    + [("Hepatitis B", term) for term in ("loss of appetite", "vomiting", "body aches", "dark urine")]
)
FIGURE_1 = pl.DataFrame(
    {
        "age": [22, 25, 27, 30, 35],
        "gender": ["M", "M", "M", "F", "F"],
        "state": ["GA", "GA", "GA", "TX", "TX"],
        "occupation": ["student", "student", "student", "engineer", "engineer"],
        "symptoms": [
            ["coughing", "headache", "sore throat"],
            ["coughing", "headache"],
            ["headache", "sore throat"],
            ["headache", "vomiting"],
            ["headache", "sore throat"],
        ],
        "disease": ["Flu", "Flu", "Flu", "Hepatitis B", "Flu"],
    }
)


def figure_1_policy(knowledge: nr.Knowledge = DISEASES, **changed) -> nr.Policy:
    quasi = {name: nr.quasi_identifier() for name in ("age", "gender", "state", "occupation")}
    given = {
        "attributes": quasi | {"symptoms": nr.quasi_sensitive(knowledge=knowledge), "disease": nr.identifier()},
        "require": [nr.models.KAnonymity(k=2), nr.models.QSDiversity(on="symptoms", c=1.0, l=2)],
        "method": nr.methods.Suppress(),
    }
    return nr.Policy(**(given | changed))


@pytest.fixture(scope="module")
def figure_1() -> tuple[nr.Release, nr.Policy]:
    policy = figure_1_policy()
    return nr.anonymize(FIGURE_1, policy), policy


@pytest.mark.parametrize("diversity", ["frequency", "distinct"])
def test_figure_1_reveals_flu_unless_terms_are_left_out(figure_1, diversity) -> None:
    release, policy = figure_1
    (found,) = attack(
        release, "linking", original=FIGURE_1, policy=policy, truth="disease", k=2, l=2, diversity=diversity
    )
    assert [scenario.name for scenario in found.scenarios] == [
        "raw", "k-anonymous", "l-diverse", "release", "release-rows"
    ]  # fmt: skip
    for name in ("raw", "k-anonymous", "l-diverse"):
        students = found.scenario(name).frame.head(3)
        assert students["belief"].to_list() == [1.0] * 3
        assert students["label"].to_list() == ["Flu"] * 3
        assert students["labels"].to_list() == [1] * 3
        assert students["right"].to_list() == [1.0] * 3
    for name in ("k-anonymous", "l-diverse"):
        engineers = found.scenario(name).frame.tail(2)
        # headache and vomiting belong to no disease together, so half of the group tells nothing
        assert engineers["belief"].to_list() == [0.5] * 2
        assert engineers["belief_linked"].to_list() == [1.0] * 2
        assert engineers["linked_records"].to_list() == [1] * 2
        assert found.scenario(name).summary["certain"] == pytest.approx(0.6)
    raw = found.scenario("raw").frame
    assert raw["linked"].to_list() == [True, True, True, False, True]
    assert raw["label"].to_list() == ["Flu", "Flu", "Flu", None, "Flu"]
    assert found.scenario("release").summary["max_belief"] <= 0.5
    assert found.scenario("release").summary["certain"] == 0


def test_the_prior_is_the_baseline(figure_1) -> None:
    release, policy = figure_1
    (found,) = attack(release, "linking", original=FIGURE_1, policy=policy, truth="disease")
    # four of five records are linked, all to Flu
    assert found.baseline["mean_belief"] == pytest.approx(0.8)
    assert found.baseline["right"] == pytest.approx(0.8)
    assert found.baseline["mean_truth_belief"] == pytest.approx(0.8 * 0.8)
    assert found.facts["prior"] == "the original"
    raw = found.scenario("raw")
    assert raw.frame["rise"].to_list() == pytest.approx([0.2, 0.2, 0.2, 0.0, 0.2])
    assert raw.summary["right"] == pytest.approx(0.8), "who is linked to nothing is guessed by the prior"
    assert raw.summary["mean_truth_belief"] == pytest.approx(0.8)
    assert found.holder_only
    assert all(scenario.holder_only for scenario in found.scenarios)


def test_given_priors_are_the_baseline_and_rows_stay_public() -> None:
    known = nr.Knowledge.from_sets(
        [[0, 1, 2], [3, 4, 5, 6]], terms=DISEASES.terms, labels=("Flu", "Hepatitis B"), priors=np.array([0.25, 0.75])
    )
    policy = figure_1_policy(known)
    release = nr.anonymize(FIGURE_1, policy)
    (found,) = attack(release, "linking", original=FIGURE_1, policy=policy, truth="disease")
    assert found.facts["prior"] == "the knowledge table"
    assert found.baseline["right"] == pytest.approx(0.2)
    assert found.scenario("raw").frame["rise"].to_list() == pytest.approx([0.75, 0.75, 0.75, -0.25, 0.75])
    assert not found.scenario("release-rows").holder_only
    (outside,) = attack(release, "linking")
    assert outside.scenario("release-rows").frame.equals(found.scenario("release-rows").frame)


def test_an_outsider_sees_rows_alone(figure_1) -> None:
    release, _ = figure_1
    (found,) = attack(release, "linking")
    assert [scenario.name for scenario in found.scenarios] == ["release-rows"]
    assert not found.holder_only
    assert found.facts["prior"] == "an estimate from the release"
    frame = found.scenario("release-rows").frame
    assert frame["record"].to_list() == [1, 2, 3, 4, 5]
    assert frame.columns == [
        "record", "groups", "candidates", "linked_records", "labels", "belief", "linked", "label", "ties",
        "belief_linked", "rise",
    ]  # fmt: skip
    assert sorted(frame["candidates"].to_list()) == [2, 2, 3, 3, 3]
    assert "right" not in found.baseline


def test_people_that_were_left_out_keep_the_prior() -> None:
    """A record that was dropped and that no group covers: the adversary finds nobody."""
    people = pl.DataFrame(
        {
            "age": [20] * 4 + [60] * 4 + [90],
            "symptoms": [["coughing"], ["vomiting"]] * 4 + [["headache"]],
        }
    )
    policy = nr.Policy(
        attributes={"age": nr.quasi_identifier(), "symptoms": nr.quasi_sensitive(knowledge=DISEASES)},
        require=[nr.models.KAnonymity(k=2), nr.models.QSDiversity(on="symptoms", c=1.0, l=2)],
        method=nr.methods.Suppress(suppression=0.25),
    )
    others = nr.anonymize(people[:8], policy)
    release = nr.Release(others.manifest.model_copy(update={"suppressed": 1}), others.store)
    (found,) = attack(release, "linking", original=people, policy=policy)
    last = found.scenario("release").frame.row(8, named=True)
    assert (last["groups"], last["candidates"], last["rise"]) == (0, 0, 0.0)
    assert last["belief"] == pytest.approx(5 / 9)
    assert found.scenario("release").summary["without_group"] == 1
    assert any("1 person falls into no published group" in note for note in found.notes)


def test_intervals_do_not_blur_the_raw_table() -> None:
    """Bins are the holder's; whoever has the raw table has exact ages."""
    people = pl.DataFrame(
        {"age": [20, 21, 40, 40], "symptoms": [["coughing"], ["vomiting"], ["coughing"], ["vomiting"]]}
    )
    policy = nr.Policy(
        attributes={
            "age": nr.quasi_identifier(bins=[0, 30, 60]),
            "symptoms": nr.quasi_sensitive(knowledge=DISEASES),
        },
        require=[nr.models.QSDiversity(on="symptoms", c=1.0, l=2)],
        method=nr.methods.Suppress(),
    )
    release = nr.anonymize(people, policy)
    (found,) = attack(release, "linking", original=people, policy=policy)
    assert found.scenario("raw").frame["belief"].to_list() == [1.0, 1.0, 0.5, 0.5]
    assert found.scenario("release").frame["belief"].to_list() == [0.5] * 4


def test_records_keep_their_number_where_others_are_dropped() -> None:
    people = pl.DataFrame(
        {
            "age": [20, None, 21, 22, 23],
            "symptoms": [["coughing"], ["coughing"], ["vomiting"], ["coughing"], ["vomiting"]],
            "disease": ["Flu", "Flu", "Hepatitis B", "Flu", None],
        }
    )
    policy = nr.Policy(
        attributes={
            "age": nr.quasi_identifier(missing="drop"),
            "symptoms": nr.quasi_sensitive(knowledge=DISEASES),
            "disease": nr.identifier(),
        },
        require=[nr.models.KAnonymity(k=2), nr.models.QSDiversity(on="symptoms", c=1.0, l=2)],
        method=nr.methods.Suppress(),
    )
    release = nr.anonymize(people, policy)
    (found,) = attack(release, "linking", original=people, policy=policy, truth="disease")
    raw = found.scenario("raw").frame
    assert raw["record"].to_list() == [1, 3, 4, 5]
    assert raw["right"].to_list() == [1.0, 1.0, 1.0, None]
    assert any("1 person lacks a true label" in note for note in found.notes)


def test_records_without_a_link_are_told_of() -> None:
    """They count as doubt, which an adversary need not share."""
    policy = figure_1_policy(require=[nr.models.KAnonymity(k=2), nr.models.QSDiversity(on="symptoms", c=9.0, l=2)])
    people = FIGURE_1.with_columns(
        pl.Series("symptoms", [["headache"], ["vomiting"], ["headache", "vomiting"], [], []])
    )
    (found,) = attack(nr.anonymize(people, policy), "linking")
    rows = found.scenario("release-rows").summary
    assert rows["mean_unlinked_records"] == pytest.approx(0.2)
    assert rows["max_belief"] == pytest.approx(0.5)
    assert found.notes == (
        "20.0% of the published records are linked to no label; among the others the largest belief is 0.500",
    )


def test_the_rise_counts_labels_that_nothing_is_linked_to() -> None:
    """Where every belief falls, the largest rise is the smallest fall, be it of a label that nobody is linked to."""
    adversary = Adversary(DISEASES, np.array([0.9, 0.1]))
    cells = TermCells(7, np.array([0, 1, 2]), np.array([0, -1], np.int32))
    found = adversary.figures(cells, [alike([np.zeros(2, np.int64)], 2)], 2, None)
    assert found["belief"].tolist() == [0.5, 0.5]
    assert found["rise"].tolist() == pytest.approx([-0.1, -0.1])


def test_two_knowledge_tables_are_two_targets() -> None:
    towns = nr.Knowledge.from_pairs([("north", "a"), ("south", "b"), ("south", "c")])
    people = FIGURE_1.with_columns(pl.Series("tags", [["a"], ["b"], ["c"], ["b"], ["a"]]))
    base = figure_1_policy()
    policy = nr.Policy(
        attributes=dict(base.attributes) | {"tags": nr.quasi_sensitive(knowledge=towns)},
        require=[*base.require, nr.models.QSDiversity(on="tags", c=2.0, l=2)],
        method=nr.methods.Suppress(),
    )
    release = nr.anonymize(people, policy)
    found = attack(release, "linking", original=people, policy=policy, truth="disease")
    assert [one.target for one in found] == [("symptoms",), ("tags",)]
    assert "right" in found[0].baseline
    assert "right" not in found[1].baseline
    assert [one.target for one in attack(release, "linking")] == [("symptoms",), ("tags",)]


def test_a_table_that_cannot_be_had_is_a_note(figure_1) -> None:
    release, policy = figure_1
    (found,) = attack(release, "linking", original=FIGURE_1, policy=policy, k=9, l=4)
    assert [scenario.name for scenario in found.scenarios] == ["raw", "release", "release-rows"]
    assert sum(note.startswith("no table that is") for note in found.notes) == 2


def test_the_defaults_are_the_policys(figure_1) -> None:
    release, policy = figure_1
    (found,) = attack(release, "linking", original=FIGURE_1, policy=policy)
    assert (found.facts["k"], found.facts["l"]) == (2, 2)


def test_results_as_plain_data_and_as_lines(figure_1) -> None:
    release, policy = figure_1
    (found,) = attack(release, "linking", original=FIGURE_1, policy=policy, truth="disease")
    plain = found.to_dict()
    assert plain["target"] == ["symptoms"]
    assert plain["holder_only"] is True
    assert [one["lines"] for one in plain["scenarios"]] == [5] * 5
    lines = found.records()
    assert lines.height == 25
    assert lines["scenario"].unique(maintain_order=True).to_list()[:2] == ["raw", "k-anonymous"]
    assert lines.filter(pl.col("by") == "row")["right"].null_count() == 5
    assert "vconcat" in found.chart().to_dict() or "hconcat" in found.chart().to_dict()
    with pytest.raises(QueryError, match="no scenario 'x'"):
        found.scenario("x")


def test_the_curve_starts_with_everybody_and_ends_with_nobody(figure_1) -> None:
    release, policy = figure_1
    (found,) = attack(release, "linking", original=FIGURE_1, policy=policy)
    points = steps(found.scenario("k-anonymous"), "belief")
    assert points == [(0.0, 1.0), (0.5, 1.0), (1.0, 0.6), (1.0, 0.0)]


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"name": "guessing"}, QueryError, "no attack 'guessing'"),
        ({"k": 1}, QueryError, "linking: k: "),
        ({"speed": 3}, QueryError, "linking: speed: "),
        ({"truth": "disease"}, QueryError, "the true labels are in the original, which was not given"),
        ({"original": FIGURE_1}, QueryError, "the original cannot be read without a policy"),
    ],
)
def test_wrong_options_are_refused(figure_1, options, kind, says) -> None:
    with pytest.raises(kind, match=says):
        attack(figure_1[0], **{"name": "linking"} | options)


def test_a_wrong_truth_is_refused_without_naming_cells(figure_1) -> None:
    release, policy = figure_1
    with pytest.raises(QueryError, match="no column 'illness'"):
        attack(release, "linking", original=FIGURE_1, policy=policy, truth="illness")
    with pytest.raises(QueryError, match="holds sets of terms"):
        attack(release, "linking", original=FIGURE_1, policy=policy, truth="symptoms")
    strange = FIGURE_1.with_columns(pl.Series("disease", ["Flu", "Scurvy", "Rickets", "Flu", None]))
    with pytest.raises(DataError, match="2 of 5 cells of 'disease' are not labels") as caught:
        attack(release, "linking", original=strange, policy=policy, truth="disease")
    assert "Scurvy" not in str(caught.value)
    empty = FIGURE_1.with_columns(pl.lit(None, pl.String).alias("disease"))
    with pytest.raises(DataError, match="holds no true label"):
        attack(release, "linking", original=empty, policy=policy, truth="disease")


def test_another_table_or_policy_is_refused(figure_1) -> None:
    release, policy = figure_1
    with pytest.raises(DataError, match="the original has 4 records, but the release has 5"):
        attack(release, "linking", original=FIGURE_1.head(4), policy=policy)
    plain = nr.Policy(
        attributes={"age": nr.quasi_identifier(), "gender": nr.sensitive()},
        require=[nr.models.DistinctLDiversity(on="gender", l=2)],
        method=nr.methods.Mondrian(),
        mechanism="ignored",  # a table of few people
    )
    with pytest.raises(DataError, match="the policy has no knowledge table for 'symptoms'"):
        attack(release, "linking", original=FIGURE_1, policy=plain)
    without = nr.anonymize(FIGURE_1.select("age", "gender"), plain)
    with pytest.raises(QueryError, match="the release has no sets of terms"):
        attack(without, "linking")


def test_every_attack_states_its_knowledge_and_measure() -> None:
    for name, kind in ATTACKS.items():
        assert kind.model_fields["name"].default == name
        assert len(kind.adversary) > 20
        assert len(kind.success) > 20
        assert all(field.description for option, field in kind.model_fields.items() if option != "name")


def test_a_person_in_two_groups_has_the_records_of_both() -> None:
    ages = Nodes.from_runs(10, ["low", "high"], [[(0, 6)], [(4, 10)]])
    finder = Finder([ages, exact_nodes(2)], [np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])], 4)
    parts = list(finder.candidates([np.array([5, 1, 9, 5, 3, 5]), np.array([0, 0, 1, 1, 1, -1])], 6))
    rows = {}
    for part in parts:
        for person, of in zip(part.people.tolist(), part.of.tolist(), strict=True):
            rows[person] = (sorted(part.order[part.bounds[of] : part.bounds[of + 1]].tolist()), int(part.groups[of]))
    assert rows == {0: ([0, 1, 2], 2), 1: ([0, 1], 1), 2: ([3], 1), 3: ([3], 1)}


def test_without_quasi_identifiers_everybody_could_be_anybody() -> None:
    (part,) = Finder([], [], 3).candidates([], 5)
    assert part.people.tolist() == [0, 1, 2, 3, 4]
    assert part.of.tolist() == [0] * 5
    assert part.order.tolist() == [0, 1, 2]


def test_equal_lists_have_one_number() -> None:
    lists = [[1, 2], [], [1], [1, 2], [2], [], [1, 2, 3]]
    offsets = np.cumsum([0, *map(len, lists)])
    found = numbered_sets(offsets, np.array([x for one in lists for x in one])).tolist()
    assert [found[i] == found[j] for i in range(7) for j in range(7)] == [a == b for a in lists for b in lists]


@pytest.mark.parametrize("most", [16, 20, 40])
@pytest.mark.parametrize("diversity", ["frequency", "distinct"])
def test_the_diverse_table_is_diverse_however_few_sets_are_told_apart(monkeypatch, most, diversity) -> None:
    """Classes are formed with fewer values than there are sets; what comes out must hold for the sets."""
    monkeypatch.setattr(linking, "MOST_VALUES", most)
    rng = np.random.default_rng(most)
    n = 200
    sets = [sorted(rng.choice(list(DISEASES.terms), size=rng.integers(1, 4), replace=False)) for _ in range(n)]
    people = pl.DataFrame({"age": rng.integers(20, 60, n), "symptoms": sets})
    policy = nr.Policy(
        attributes={"age": nr.quasi_identifier(), "symptoms": nr.quasi_sensitive(knowledge=DISEASES)},
        require=[nr.models.KAnonymity(k=3), nr.models.QSDiversity(on="symptoms", c=3.0, l=2)],
        method=nr.methods.Suppress(nodes=100),
    )
    release = nr.anonymize(people, policy)
    seen = []
    real = linking._finder

    def watched(*given):
        seen.append(real(*given))
        return seen[-1]

    monkeypatch.setattr(linking, "_finder", watched)
    (found,) = attack(release, "linking", original=people, policy=policy, k=3, l=2, diversity=diversity)
    assert not [note for note in found.notes if note.startswith("no table")]
    diverse = seen[1]
    for low, high in pairwise(diverse.bounds.tolist()):
        mine = [tuple(sets[i]) for i in diverse.order[low:high]]
        assert len(mine) >= 3
        assert len(set(mine)) >= 2
        if diversity == "frequency":
            assert max(map(mine.count, mine)) * 2 <= len(mine)
    assert len(diverse.bounds) > 3, "more than one or two classes"
