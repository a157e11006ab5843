"""Several methods make one release: quasi-identifiers generalised by one, secrets drawn by another."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.workflow.anonymize import run
from noren.workflow.compare import compare

N = 1200
JOBS = ("baker", "clerk", "guard", "nurse", "pilot")
ILLS = ("cold", "flu", "gout", "none", "burn", "plague")
FREQUENCY = {"model": "frequency-l-diversity", "on": ["ill"], "l": 3}
ALIKE = {"model": "k-anonymity", "k": 5}
TWO = [{"name": "mondrian"}, {"name": "decoys", "on": ["ill"]}]


def table(n: int = N) -> pl.DataFrame:
    """The illness depends on the age, so that an estimate of both must find more than two margins."""
    rng = np.random.default_rng(4)
    age = rng.integers(20, 70, n)
    old = (age >= 45)[:, None]
    shares = np.where(old, [0.1, 0.1, 0.3, 0.2, 0.1, 0.2], [0.3, 0.3, 0.05, 0.25, 0.05, 0.05])
    ill = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1).clip(0, len(ILLS) - 1)
    return pl.DataFrame(
        {
            "row": np.arange(n),
            "age": age,
            "town": rng.choice(["13021", "13022", "13145", "24011"], n),
            "job": rng.choice(JOBS, n, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
            "ill": np.array(ILLS)[ill],
        }
    )


def policy(method: Any = None, require: Any = None, randomness: Any = None, **columns: Any) -> nr.Policy:
    attributes: dict[str, Any] = {
        "row": "plain",
        "age": "quasi-identifier",
        "town": {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 2]}},
        "job": "plain",
        "ill": "sensitive",
    }
    more = {} if randomness is None else {"randomness": randomness}
    return nr.Policy(
        attributes=attributes | columns, require=require or [ALIKE, FREQUENCY], method=method or TWO, **more
    )


def problems(*arguments: Any, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(nr.errors.PolicyError) as caught:
        policy(*arguments, **options)
    return [(problem.where, problem.message) for problem in caught.value.problems]


# ---------------------------------------------------------------- what a policy may say


def test_a_column_belongs_to_one_method() -> None:
    both = [{"name": "mondrian", "on": ["age", "ill"]}, {"name": "decoys", "on": ["ill"]}]
    assert ("method[2].on", "'ill' belongs to method[1] already.") in problems(both)


def test_columns_that_nobody_has() -> None:
    assert problems([{"name": "mondrian"}, {"name": "decoys", "on": ["il"]}])[0] == (
        "method[2].on",
        "no column 'il' in [attributes].",
    )


def test_one_method_at_most_takes_the_rest() -> None:
    assert ("method", "several methods have no `on`.") in problems([{"name": "mondrian"}, {"name": "decoys"}])


def test_one_method_forms_classes_and_one_draws() -> None:
    two = problems([{"name": "mondrian"}, {"name": "incognito", "on": ["town"]}])
    assert any("several methods form classes" in message for _, message in two)
    two = problems([{"name": "decoys"}, {"name": "decoys", "on": ["ill"]}])
    assert any("several methods draw" in message for _, message in two)


def test_shuffled_records_stand_alone() -> None:
    two = problems([{"name": "mondrian"}, {"name": "decoys", "on": ["ill"], "form": "records"}])
    assert any("shuffled records cannot be combined with another method" in message for _, message in two)


def test_a_method_without_a_requirement_is_refused() -> None:
    assert problems(TWO, [FREQUENCY]) == [("method", "the columns of 'mondrian' have no requirement.")]


def test_columns_that_are_taken_together_belong_to_one_method() -> None:
    both = {"job": "sensitive-quasi-identifier"}
    asked = [{"model": "k-anonymity", "k": 5, "on": ["age", "job"]}, FREQUENCY | {"on": ["ill", "job"]}]
    two = [{"name": "mondrian"}, {"name": "decoys", "on": ["ill", "job"]}]
    assert ("require[1].on", "k-anonymity covers columns that different methods treat.") in problems(two, asked, **both)


def test_classes_cannot_rest_on_a_column_that_is_drawn() -> None:
    """Nobody can say which records look alike in sets: such a policy is refused before any data is read."""
    two = [{"name": "mondrian"}, {"name": "decoys", "on": ["ill", "job"]}]
    found = problems(two, [ALIKE, FREQUENCY | {"on": ["ill", "job"]}], job="sensitive-quasi-identifier")
    assert found == [
        ("method", "'job' identifies people but is published as decoy sets, so equivalence classes cannot be formed.")
    ]
    ages = [{"model": "k-anonymity", "k": 5, "on": ["age"]}, FREQUENCY | {"on": ["ill", "job"]}]
    release = nr.anonymize(table(), policy(two, ages, job="sensitive-quasi-identifier"))
    assert all(verdict.holds for verdict in release.verdicts), "classes in the age alone do not rest on the job"


def test_a_problem_keeps_the_number_of_its_requirement() -> None:
    """The second method sees one requirement only, which is the third of the policy."""
    asked = [ALIKE, {"model": "distinct-l-diversity", "on": "job", "l": 2}, FREQUENCY | {"l": 9}]
    found = problems(TWO, asked, job="sensitive", ill={"role": "sensitive", "values": list(ILLS)})
    assert any(where.startswith("require[3]") for where, _ in found)


# ---------------------------------------------------------------- who meets what


def test_a_requirement_on_columns_of_both_is_split() -> None:
    rules = policy(require=[ALIKE, FREQUENCY | {"on": ["job", "ill"], "l": 2}], job="sensitive")
    grouping, drawing = rules.parts
    assert [(model.model, model.on) for model in grouping.requirements] == [
        ("k-anonymity", ()),
        ("frequency-l-diversity", ("job",)),
    ]
    assert [(model.model, model.on) for model in drawing.requirements] == [("frequency-l-diversity", ("ill",))]
    assert drawing.columns == ("ill",)
    assert set(grouping.columns) == {"row", "age", "town", "job"}
    release = nr.anonymize(table(), rules)
    assert [(v.model, v.column, v.holds) for v in release.verdicts] == [
        ("k-anonymity", "quasi-identifiers", True),
        ("frequency-l-diversity", "job", True),
        ("frequency-l-diversity", "ill", True),
    ]


@pytest.fixture(scope="module")
def made() -> Any:
    return run(table(), policy())


def test_classes_are_judged_on_classes_and_sets_on_sets(made: Any) -> None:
    release = made.release
    assert release.column("age").nodes is not None
    assert release.column("town").nodes is not None
    assert release.column("ill").design is not None
    assert release.column("job").is_exact
    alike, diverse = made.facts.verdicts
    frame = release.frame()
    sizes = frame.group_by("age", "town").len()["len"]
    assert (alike.holds, alike.achieved) == (True, sizes.min())
    assert sizes.min() >= 5
    assert (diverse.holds, diverse.achieved) == (True, 3)
    assert set(frame["ill"].list.len()) == {3}
    truth = table().sort("row")["ill"].to_list()
    assert all(value in cell for value, cell in zip(truth, frame.sort("row")["ill"].to_list(), strict=True))


def test_classes_see_no_secret_that_is_drawn(made: Any) -> None:
    """What the drawing method protects must not steer how people are grouped."""
    assert set(made.facts.plan.columns) == {"age", "town"}


def test_the_manifest_says_who_made_what(made: Any) -> None:
    assert [(one.name, set(one.on)) for one in made.release.manifest.methods] == [
        ("mondrian", {"row", "age", "town", "job"}),
        ("decoys", {"ill"}),
    ]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_saved_release_is_verified_with_and_without_the_original(made: Any, kind: Any, tmp_path: Path) -> None:
    opened = nr.open_release(made.release.save(tmp_path / "release", kind))
    assert opened.manifest == made.release.manifest
    assert opened.frame().sort("row").equals(made.release.frame().sort("row"))
    for found in (nr.verify(opened), nr.verify(opened, policy()), nr.verify(opened, policy(), original=table())):
        assert all(verdict.holds is True for verdict in found)
    truth = {(v.model, v.column) for v in nr.verify(opened, policy(), original=table())}
    assert {("truth-in-set", "age"), ("truth-in-set", "town"), ("truth-in-set", "ill")} <= truth
    other = table().with_columns(pl.lit("gout").alias("ill"))
    assert any(verdict.holds is False for verdict in nr.verify(opened, policy(), original=other))


def test_stricter_requirements_fail(made: Any) -> None:
    strict = policy(require=[ALIKE | {"k": 700}, FREQUENCY | {"l": 4}])
    assert [verdict.holds for verdict in nr.verify(made.release, strict)] == [False, False]


def test_with_suppression_the_same_people_are_missing_everywhere() -> None:
    stranger = pl.when(pl.col("row") < 12).then(pl.col("row") * 100 + 200).otherwise("age").alias("age")
    lonely = table().with_columns(stranger)
    two = [{"name": "incognito", "suppression": 0.05}, {"name": "decoys", "on": ["ill"]}]
    made = run(lonely, policy(two))
    assert 0 < made.facts.suppressed <= 0.05 * N
    frame = made.release.frame().sort("row")
    assert frame.height == made.release.records == N - made.facts.suppressed
    rows = frame.join(lonely.rename({"ill": "truth"}).select("row", "truth"), on="row", how="left")
    assert all(truth in cell for truth, cell in rows.select("truth", "ill").iter_rows())
    assert [v.holds for v in made.facts.verdicts if v.model == "left-out"] == [True]
    found = nr.verify(made.release, policy(two), original=lonely)
    assert not found.failed
    assert [v.model for v in found.undecided] == ["left-out"], "who had which drawn secret is not known any more"


# ---------------------------------------------------------------- there and back, and again


def test_a_policy_is_written_and_read_again(tmp_path: Path) -> None:
    two = [{"name": "incognito", "loss": "ncp", "suppression": 0.1}, {"name": "decoys", "on": ["ill"]}]
    rules = policy(two)
    (tmp_path / "policy.toml").write_text(rules.to_toml(), encoding="utf-8")
    again = nr.Policy.load(tmp_path / "policy.toml")
    assert again.methods == rules.methods
    assert again.parts == rules.parts
    assert len(tomllib.loads(rules.to_toml())["method"]) == 2


def test_memoised_sets_stay_with_their_person(tmp_path: Path) -> None:
    """Whoever stands beside them, and however they are grouped, the same people get the same sets."""
    nr.Secret.create(tmp_path / "key")
    rules = policy(randomness={"record_key": "row"})
    first = nr.anonymize(table(), rules, secret=tmp_path / "key")
    assert first.manifest.randomness == "memoised"
    some = table().sample(fraction=0.5, shuffle=True, seed=3)
    again = nr.anonymize(some, rules, secret=tmp_path / "key")
    sets = dict(first.frame().select("row", "ill").iter_rows())
    assert dict(again.frame().select("row", "ill").iter_rows()) == {row: sets[row] for row in some["row"].to_list()}
    assert all(verdict.holds is True for verdict in nr.verify(again, rules, original=some))


# ---------------------------------------------------------------- what the recipient learns


@pytest.mark.parametrize("width", [None, 25])
def test_an_estimate_of_a_general_and_a_drawn_column_contains_the_truth(made: Any, width: int | None) -> None:
    """Every true count lies in its interval or within eight standard errors: a false alarm is rarer than 1e-9."""
    frame = made.release.estimate(["town" if width is None else f"age/{width}", "ill"]).frame
    assert frame["count"].sum() == pytest.approx(N)
    first = pl.col("age") // 25 * 25
    whole = pl.col("town") if width is None else pl.format("[{}, {})", first, first + 25)
    true = {key[:2]: key[2] for key in table().group_by(whole.alias("place"), "ill").len().iter_rows()}
    for where, ill, count, std_error, low, high in frame.select(
        frame.columns[0], "ill", "count", "std_error", "low", "high"
    ).iter_rows():
        truth = true.pop((where, ill), 0)
        near = std_error is not None and abs(count - truth) <= 8 * std_error
        assert near or low - 1e-6 <= truth <= high + 1e-6
    assert true == {}, "every combination that occurs is estimated"


def test_a_count_has_an_interval(made: Any) -> None:
    truth = table().filter((pl.col("town") == "24011") & (pl.col("ill") == "gout")).height
    count = made.release.count({"town": "24011", "ill": "gout"})
    assert count.low - 1e-6 <= truth <= count.high + 1e-6 or abs(count.count - truth) <= 8 * count.std_error


# ---------------------------------------------------------------- a choice among pairs


def test_auto_chooses_among_pairs() -> None:
    rules = policy({"name": "auto", "among": ["mondrian + decoys"]})
    made = run(table(), rules)
    assert any(note.startswith("auto chose") for note in made.facts.notes)
    assert made.release.column("ill").design is not None
    assert made.release.column("age").nodes is not None
    assert all(verdict.holds is True for verdict in nr.verify(made.release, rules, original=table()))
    both = run(table(), policy({"name": "auto", "among": ["mondrian + decoys", "mondrian"]}))
    note = next(note for note in both.facts.notes if note.startswith("auto chose"))
    assert "mondrian + decoys" in note
    assert "classes alone" in note


def test_auto_needs_a_secret_to_draw() -> None:
    rules = policy({"name": "auto", "among": ["mondrian + decoys"]}, [ALIKE], ill="plain")
    with pytest.raises(nr.errors.RequirementNotMet, match="there is no secret to draw"):
        run(table(), rules)
    assert ("method.among", "no method 'anatomy + decoys' to try.") in problems(
        {"name": "auto", "among": ["anatomy + decoys"]}
    )


def test_compare_lists_pairs_whose_snippets_work() -> None:
    some = table(400)
    found = compare(some, policy("mondrian"), among=["mondrian + decoys", "incognito + decoys", "mondrian"])
    pairs = {one.title: one for one in found if len(one.methods) > 1}
    assert {"mondrian + decoys", "incognito + decoys"} <= pairs.keys()
    for one in pairs.values():
        assert one.holds
        assert one.smallest_class >= 5
        assert one.worst_share <= 1 / 3 + 1e-9
        section = tomllib.loads(one.snippet)
        adopted = policy(section["method"])
        assert adopted.methods == one.methods
    release = nr.anonymize(some, policy(tomllib.loads(pairs["incognito + decoys"].snippet)["method"]))
    assert all(verdict.holds for verdict in release.verdicts)


def test_the_policys_own_pair_is_compared() -> None:
    found = compare(table(400), policy(), among=["mondrian + decoys"])
    assert {one.title for one in found} == {"mondrian + decoys", "mondrian strict=false + decoys"}
