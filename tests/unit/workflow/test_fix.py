"""A policy that does not run, changed as little as needed: what is changed, what it costs, and that it runs."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.cli.demo import POLICY_TOML, disease_hierarchy_csv, hospital_table
from noren.errors import NorenError, PolicyError, RequirementNotMet
from noren.schema.knowledge import Knowledge
from noren.workflow import Fix

EXAMPLES = Path(__file__).parents[3] / "examples"
N = 1500


def people(n: int = N, seed: int = 1) -> pl.DataFrame:
    """Adults whose schooling stands in the table twice, and whose job follows from it more often than not."""
    rng = np.random.default_rng(seed)
    school = rng.integers(0, 8, n)
    job = np.where(rng.random(n) < 0.6, school, rng.integers(0, 10, n))
    return pl.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "sex": rng.choice(["f", "m"], n),
            "school": [f"school {code}" for code in school],
            "years": school + 8,
            "job": [f"job {code}" for code in job],
            "hours": rng.integers(1, 60, n),
            "ill": [f"ill {code}" for code in rng.integers(0, 7, n)],
        }
    )


def fixed(table: pl.DataFrame, policy: nr.Policy) -> Fix:
    """What `fix` makes of a policy; it runs, and asks what was asked."""
    found = nr.fix(table, policy)
    assert found.policy is not None
    release = nr.anonymize(table, found.policy)
    assert all(verdict.holds for verdict in release.verdicts)
    asked = {(model.model, name): model for model in policy.require for name in model.on}
    for model in found.policy.require:
        for name in model.on:
            if (before := asked.get((model.model, name))) is not None and hasattr(before, "l"):
                assert model.l >= before.l, "no requirement is lowered"  # type: ignore[attr-defined]
    return found


def policy(attributes: dict[str, Any], l: int = 3, **more: Any) -> nr.Policy:  # noqa: E741
    secrets = [name for name, one in attributes.items() if "sensitive" in str(one)]
    return nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on=secrets, l=l)], **more)


def found_by(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "quasi-identifier")


def test_a_policy_that_runs_stays_as_it_is() -> None:
    given = policy({"ill": "sensitive", "sex": "plain"})
    found = fixed(people().select("ill", "sex"), given)
    assert len(found) == 0
    assert found.policy == given
    assert found.text == given.to_toml()
    assert 0.3 < found.kept < 0.9, "a set of three of seven values keeps some of them"


def test_rare_values_are_merged_and_the_dearer_ways_are_listed() -> None:
    table = people().with_columns(hours=pl.col("hours").replace(59, 99).replace(1, 98)).select("hours", "ill")
    (change,) = fixed(table, policy({"hours": {"role": "sensitive", "min_count": 24}, "ill": "sensitive"}))
    assert change.problem.startswith("attributes.hours.min_count: ")
    assert change.chosen.words == "merge values of 'hours' with fewer than 24 records"
    assert [one.words.split()[0] for one in change.others] == ["put", "drop"]
    prices = [change.chosen.kept, *(one.kept for one in change.others)]
    assert prices == sorted(prices, reverse=True), "the cheapest first"
    assert prices[-1] == 0


def test_columns_that_say_the_same_are_hidden_together() -> None:
    table = people().select("school", "years", "ill")
    given = policy({"school": "sensitive", "years": "sensitive", "ill": "sensitive"})
    with pytest.raises(PolicyError, match="disclose each other"):
        nr.anonymize(table, given)
    found = fixed(table, given)
    assert found.policy is not None
    assert [group.columns for group in found.policy.together] == [("school", "years")]
    (change,) = found
    assert change.chosen.words == "hide 'school' and 'years' together"
    dropped = next(one for one in change.others if one.words == "drop 'years'")
    assert dropped.kept < change.chosen.kept
    assert "#    changed: hide 'school' and 'years' together (keeps " in found.text


def test_a_name_that_is_misspelled_is_taken_for_the_column() -> None:
    given = nr.Policy.parse(
        '# mine\n[attributes]\nil = { role = "sensitive" }  # what they have\nsex = { role = "plain" }\n\n'
        '[[require]]\nmodel = "frequency-l-diversity"\non = "il"\nl = 2\n'
    )
    found = fixed(people().select("ill", "sex", "age"), given)
    assert [one.chosen.words for one in found] == [
        "use the policy's lines about 'il' for 'ill'",
        "drop 'age', which is not in the policy",
    ]
    assert found[0].chosen.kept is None


def test_people_are_counted_where_an_identifier_repeats() -> None:
    table = people().with_columns(patient=pl.int_range(N) // 3).select("patient", "ill")
    found = fixed(table, policy({"patient": "identifier", "ill": "sensitive"}))
    assert found.policy is not None
    assert found.policy.people.key == ("patient",)
    assert [one.chosen.words for one in found] == ["count people by 'patient'"]


def test_missing_cells_that_are_rejected_become_a_category() -> None:
    table = people().with_columns(sex=pl.when(pl.int_range(N) < 90).then(None).otherwise("sex")).select("sex", "ill")
    found = fixed(table, policy({"sex": {"role": "plain", "missing": "reject"}, "ill": "sensitive"}))
    assert found[0].chosen.words == "publish missing cells as a category"


def test_what_no_simple_change_solves_is_said() -> None:
    table = pl.DataFrame({"ill": ["a", "b"] * 50})
    with pytest.raises(RequirementNotMet, match="no simple change makes this policy acceptable") as caught:
        nr.fix(table, policy({"ill": "sensitive"}, l=5))
    assert "Lower the requirements" in str(caught.value)


def test_the_text_of_the_holder_stays_where_nothing_is_changed(tmp_path: Path) -> None:
    text = (
        '# Our table.\n[attributes]\nhours = { role = "sensitive", min_count = 24 }   # a week\n'
        'school = { role = "sensitive" }\nyears = { role = "sensitive" }\n\n# What must hold.\n[[require]]\n'
        'model = "frequency-l-diversity"\non = ["hours", "school", "years"]\nl = 3\n'
    )
    file = tmp_path / "policy.toml"
    file.write_text(text, encoding="utf-8")
    table = people().with_columns(hours=pl.col("hours").replace(59, 99)).select("hours", "school", "years")
    found = nr.fix(table, file)
    lines = found.text.splitlines()
    assert lines[0].startswith("# Changed by `noren fix`")
    assert '# was: hours = { role = "sensitive", min_count = 24 }   # a week' in lines
    assert 'hours = { role = "sensitive", min_count = 24, rare = "merge" }' in lines
    for kept in ("# Our table.", 'school = { role = "sensitive" }', "# What must hold.", "l = 3"):
        assert kept in lines
    assert nr.Policy.parse(found.text).to_toml() == found.policy.to_toml()  # type: ignore[union-attr]


def test_a_policy_over_several_lines_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        '[attributes.hours]\nrole = "sensitive"\nmin_count = 24\n\n[attributes.ill]\nrole = "plain"\n\n[[require]]\n'
        'model = "frequency-l-diversity"\non = "hours"\nl = 3\n',
        encoding="utf-8",
    )
    table = people().with_columns(hours=pl.col("hours").replace(59, 99)).select("hours", "ill")
    found = nr.fix(table, file)
    assert found.text.startswith("# Changed by `noren fix`")
    assert nr.Policy.parse(found.text).to_toml() == found.policy.to_toml()  # type: ignore[union-attr]


def test_a_result_shows_itself() -> None:
    found = nr.fix(people().select("ill", "sex"), policy({"ill": "sensitive", "sex": "plain"}))
    assert repr(found).startswith("<Fix: runs without changes; keeps ")
    assert found.frame.columns == ["problem", "change", "kept", "alternatives"]
    assert set(found.to_dict()) == {"policy", "kept", "checked", "changes"}


# ---------------------------------------------------------------- the examples, the demo and the papers


def paper_policies() -> dict[str, tuple[pl.DataFrame, nr.Policy]]:
    """What each of the five papers asks, of a table such as its own, with the checks that the library adds."""
    table = people()
    both = dict.fromkeys(("age", "job", "school", "years"), "sensitive-quasi-identifier")
    tree = {"tree": {"low": [f"school {i}" for i in range(4)], "high": [f"school {i}" for i in range(4, 8)]}}
    rng = np.random.default_rng(5)
    signs = pl.Series("signs", [";".join(rng.choice(list("abcdef"), 3, replace=False)) for _ in range(400)])
    knowledge = Knowledge.from_pairs(
        [(f"ill {i}", sign) for i, fits in enumerate(("abc", "bcd", "cde", "def")) for sign in fits]
    )
    return {
        "sensitive quasi-identifiers": (table.select(*both), policy(both, 5)),
        "quasi-sensitive": (
            table.head(400).select("age", "sex").with_columns(signs),
            nr.Policy(
                attributes={
                    "age": "quasi-identifier",
                    "sex": "quasi-identifier",
                    "signs": nr.quasi_sensitive(separator=";", knowledge=knowledge),
                },
                require=[nr.models.KAnonymity(k=5), nr.models.QSCloseness(on="signs", t=0.3)],
                method="suppress",
            ),
        ),
        "untouched quasi-identifiers": (
            table.select("age", "sex", "school", "job"),
            policy(found_by("age", "sex", "school") | {"job": "sensitive"}, 4, method="three-phase"),
        ),
        "semantic": (
            table.select("age", "sex", "school"),
            nr.Policy(
                attributes={
                    "age": "quasi-identifier",
                    "sex": "quasi-identifier",
                    "school": {"role": "sensitive", "hierarchy": tree, "distance": "tree"},
                },
                require=[nr.models.SemanticDiversity(on=("school",), l=2, d=2)],
            ),
        ),
        "tau l": (
            table.select("age", "sex", "job"),
            nr.Policy(
                attributes={"age": "quasi-identifier", "sex": "quasi-identifier", "job": "sensitive"},
                require=[nr.models.TauLDiversity(on="job", tau=0.6, l=3)],
                method="sweep",
            ),
        ),
    }  # fmt: skip


@pytest.mark.parametrize("paper", paper_policies())
def test_policies_of_the_papers_run(paper: str) -> None:
    fixed(*paper_policies()[paper])


def test_the_policy_of_the_demo_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
    given = nr.Policy.parse(POLICY_TOML, base=tmp_path)
    assert given.dependence.most == 0.05, "the demo asks for no exception"
    assert len(fixed(pl.from_arrow(hospital_table(5000)), given)) == 0  # type: ignore[arg-type]


def test_the_policy_of_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "symptoms"
    shutil.copytree(EXAMPLES / "symptoms", folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["make_patients.py", "--records", "300"])
    runpy.run_path(str(folder / "make_patients.py"), run_name="__main__")
    found = nr.fix(folder / "patients.csv", folder / "policy.toml")
    assert len(found) == 0
    assert found.text == (folder / "policy.toml").read_text(encoding="utf-8")


def test_errors_are_those_of_the_policy() -> None:
    with pytest.raises(NorenError, match="no such file"):
        nr.fix(people(), "nowhere.toml")


def test_secrets_of_too_few_values_for_a_set_are_named_and_dropped_one_by_one() -> None:
    """A set of both values of a column says nothing, and no other requirement is asked for in its place."""
    columns = {"sex": ["f", "m"] * 40, "ill": ["yes", "no", "no", "yes"] * 20, "job": ["a", "b", "c", "d", "e"] * 16}
    diverse = nr.models.FrequencyLDiversity(on=("sex", "ill", "job"), l=2)
    policy = nr.Policy(attributes=dict.fromkeys(columns, "sensitive"), require=[diverse])
    found = nr.fix(pl.DataFrame(columns), policy)
    assert [one.chosen.words for one in found] == ["drop 'sex'", "drop 'ill'"]
    assert nr.anonymize(pl.DataFrame(columns), found.policy).columns == ("job",)
