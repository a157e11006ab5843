"""Published parameters of designs are public facts: no count, and nobody's secret, can be read from a manifest."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs import DESIGNS
from noren.methods import METHODS
from noren.methods.base import DrawingMethod
from noren.models import MODELS
from noren.workflow.anonymize import run

N = 1_000
SHADES = ("amber", "beige", "coral", "denim", "ebony", "fawn")
TREE = {"tree": {"warm": ["amber", "coral"], "pale": ["beige", "fawn"], "dark": ["denim", "ebony"]}}
ASKED: dict[str, list[dict[str, Any]]] = {
    "distinct-l-diversity": [{"l": 3}],
    "frequency-l-diversity": [{"l": 3}],
    "entropy-l-diversity": [{"l": 2.5}],
    "expanded-k": [{"k": 3}],
    "t-closeness": [
        {"t": 0.1},
        {"t": 0.2},
        {"t": 0.5},
        {"t": 0.2, "distance": "ordered"},
        {"t": 0.2, "distance": "tree"},
    ],
    "local-privacy": [{"epsilon": 1.0}],
    "semantic-diversity": [{"l": 2, "d": 2.0}],
    "le-diversity": [{"l": 2, "e": 1}],
    "informed-belief": [{"most": 0.5, "prior": dict.fromkeys(SHADES, 1.0) | {SHADES[0]: 2.0}}],
}
"""Requirements on sets or changed values, each as a policy may ask for it."""


def drawing() -> list[tuple[str, str, dict[str, Any]]]:
    """Every method that draws with every requirement that it serves."""
    out = []
    for method, kind in METHODS.items():
        for model, cases in ASKED.items():
            for case in cases if issubclass(kind, DrawingMethod) else ():
                made = MODELS[model].model_validate({"model": model, "on": "shade", **case})
                if made.judges_sets if method == "decoys" else made.judges_changed:
                    out.append((method, model, case))
    return out


def policy(method: dict[str, Any], model: str, case: dict[str, Any], **column: Any) -> nr.Policy:
    shade = {"role": "sensitive", "values": SHADES, "distance": "ordinal"} | column
    if "tree" in MODELS[model].model_validate({"model": model, "on": "shade", **case}).needs:
        shade = {"role": "sensitive", "hierarchy": TREE}
    return nr.Policy(
        attributes={"shade": shade},
        require=[{"model": model, "on": "shade", **case}],
        method=method,
    )


def people(counts: tuple[int, ...]) -> pl.DataFrame:
    return pl.DataFrame({"shade": np.repeat(np.array(SHADES), counts)})


def answers(yes: int, n: int = N) -> pl.DataFrame:
    return pl.DataFrame({"answer": ["yes"] * yes + ["no"] * (n - yes)})


def question(t: float = 0.2, **method: Any) -> nr.Policy:
    return nr.Policy(
        attributes={"answer": {"role": "sensitive", "values": ["no", "yes"]}},
        require=[{"model": "t-closeness", "on": "answer", "t": t}],
        method={"name": "decoys"} | method,
    )


def test_every_model_of_drawn_columns_is_tried():
    drawn = {name for name, kind in MODELS.items() if kind.judge_sets is not MODELS["k-anonymity"].judge_sets}
    assert ASKED.keys() == drawn


@pytest.mark.parametrize(("method", "model", "case"), drawing())
def test_the_design_does_not_depend_on_the_counts(method, model, case):
    """Two tables over one declared domain, as different as can be, publish one and the same design."""
    rules = policy({"name": method}, model, case)
    one = nr.anonymize(people((200, 150, 100, 30, 15, 5)), rules)
    other = nr.anonymize(people((1, 1, 1, 1, 1, 495)), rules)
    assert one.designs == other.designs
    assert one.designs["shade"].tells == ""


@pytest.mark.parametrize("yes", [31, 250, 402, 499])
def test_one_manifest_does_not_tell_a_count(yes):
    """The adversary tries every count and keeps those that would have given the published p."""
    seen = nr.anonymize(answers(yes), question()).designs["answer"]
    fits = [count for count in range(7, N, 12) if nr.anonymize(answers(count), question()).designs["answer"] == seen]
    assert len(fits) == len(range(7, N, 12))


@pytest.mark.parametrize("n", [100, 1_000])
def test_two_releases_do_not_tell_what_the_joiner_answered(n):
    before = nr.anonymize(answers(n // 3, n), question()).designs
    assert nr.anonymize(answers(n // 3 + 1, n + 1), question()).designs == before
    assert nr.anonymize(answers(n // 3, n + 1), question()).designs == before


def test_the_verdict_publishes_no_figure_of_the_counts():
    """What was found rests on the design, for the holder as for everybody."""
    entries = [nr.anonymize(answers(yes), question()).verdicts[0].to_dict() for yes in (31, 499)]
    assert entries[0] == entries[1]
    assert entries[0]["basis"] == "the published design"


def test_the_search_in_the_data_is_coarse_and_says_what_it_tells(tmp_path):
    """`prior = "data"`: many counts share one p, and remark, README and report say that it tells something."""
    rules = question(prior="data")
    outcome = run(answers(300), rules, to=tmp_path / "release")
    design = outcome.release.designs["answer"]
    near = [nr.anonymize(answers(count), rules).designs["answer"] for count in range(290, 311)]
    assert sum(one == design for one in near) >= 10, "not one count only"
    assert "counts" in design.tells
    assert any("counts" in note and "answer" in note for note in outcome.facts.notes)
    assert design.tells in (tmp_path / "release" / "README.md").read_text()
    assert nr.open_release(tmp_path / "release").designs["answer"] == design
    page = nr.make_report(tmp_path / "release", rules).html
    assert design.tells in page


def test_changed_values_by_the_distribution_say_so(tmp_path):
    """Parts are of at least twenty people each, so that a small table is not written out."""
    rules = policy({"name": "pram", "prior": "data"}, "t-closeness", {"t": 0.5})
    release = nr.anonymize(people((40, 30, 10, 10, 5, 5)), rules, to=tmp_path / "release")
    design = release.designs["shade"]
    assert sum(design.parts) <= 100 // 20 + len(SHADES)
    assert design.tells in (tmp_path / "release" / "README.md").read_text()


def test_every_design_says_what_its_parameters_tell():
    assert all(isinstance(kind.tells, property) for kind in DESIGNS.values())
