"""Adding a model, a method or a form of cell is one class and one line in a registry: here it is done, and used.

Nothing else of the library is touched, and everything else works with what was added: policies, methods, verification,
measures, comparisons, files, estimates, the report and the commands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from pydantic import Field

import noren as nr
from noren.audit import reasons
from noren.cli.main import main
from noren.designs.decoys import DecoyDesign
from noren.engines import Plan, RandomOrder, Records
from noren.errors import Problem
from noren.methods import METHODS
from noren.methods.base import ClassMethod, Method
from noren.methods.cover import cover
from noren.methods.requirements import class_problems
from noren.models import MODELS, Model, Promise, SearchRule
from noren.models.base import Check, Evidence
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import SetSizeCheck
from noren.progress import Meter, silent
from noren.release.manifest import Manifest, UsedMethod, VerdictEntry
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.secret import Keystream
from noren.statements import FORMS, Cells, CodeCells, ExactStatement, Judge, Likelihood, SetStatement, Statement
from noren.statements.exact import NumberedStatement
from noren.statements.statement import ReadDesign
from noren.statements.texts import labels_in
from noren.workflow.anonymize import run

N = 300
ILLS = ("burn", "cold", "flu", "gout")


def table() -> pl.DataFrame:
    rng = np.random.default_rng(6)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 60, N),
            "town": rng.choice(["Bonn", "Mainz", "Ulm"], N),
            "ill": rng.choice(ILLS, N, p=[0.3, 0.3, 0.2, 0.2]),
        }
    )


def policy(require: Any, method: Any) -> nr.Policy:
    roles = {"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"}
    return nr.Policy(mechanism="ignored", attributes=roles, require=require, method=method)


# ---------------------------------------------------------------- a model


class AtMost(ClassModel):
    """No value makes up more than a share of a class."""

    model: Literal["at-most"] = "at-most"
    share: float = Field(gt=0, lt=1, description="Largest share of one value in a class.")

    parameter: ClassVar[str] = "share"
    higher_is_safer: ClassVar[bool] = False

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("frequency", 1 / self.share)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(on=statement.name, share=0.5)] if statement is not None else []

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        top = part.largest(part.mass) / part.n
        return top, top <= self.share * (1 + TOLERANCE)

    def says(self, achieved: float, smallest: int) -> str:
        return f"no value makes up more than {achieved:.0%} of a class"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(f"No value of {names} makes up more than {self.share:.0%} of a class.", "")


@pytest.fixture
def at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "at-most", AtMost)


@pytest.mark.parametrize("method", ["mondrian", "incognito", "hilbert", "anatomy", "auto"])
@pytest.mark.usefixtures("at_most")
def test_a_new_model_is_required_met_and_verified(method: str, tmp_path: Path) -> None:
    rules = policy([{"model": "at-most", "on": "ill", "share": 0.5}], method)
    made = run(table(), rules, to=tmp_path / "release")
    assert [(v.model, v.column, v.required, v.holds) for v in made.facts.verdicts] == [("at-most", "ill", 0.5, True)]
    opened = nr.open_release(tmp_path / "release")
    for found in (nr.verify(opened), nr.verify(opened, rules, original=table())):
        assert all(verdict.holds is True for verdict in found)
    strict = policy([{"model": "at-most", "on": "ill", "share": 0.26}], method)
    assert nr.verify(opened, strict)[0].holds is False
    assert nr.Policy.model_validate(rules.model_dump()).require == rules.require


@pytest.mark.usefixtures("at_most")
def test_a_new_model_is_written_and_read_like_the_others(tmp_path: Path) -> None:
    rules = policy([AtMost(on="ill", share=0.5)], "mondrian")
    (tmp_path / "policy.toml").write_text(rules.to_toml(), encoding="utf-8")
    assert nr.Policy.load(tmp_path / "policy.toml").require == rules.require
    with pytest.raises(nr.errors.PolicyError, match=r"require\[1\]\.share"):
        policy([{"model": "at-most", "on": "ill", "share": 1.5}], "mondrian")


@pytest.mark.usefixtures("at_most")
def test_a_new_model_is_measured_and_compared() -> None:
    rules = policy([AtMost(on="ill", share=0.5)], "mondrian")
    release = nr.anonymize(table(), rules)
    found = nr.measure(release).frame.filter(pl.col("model") == "at-most")
    assert found.height == 1
    assert found["achieved"].item() == pytest.approx(release.verdicts[0].achieved)
    compared = nr.compare(table(), rules)
    assert {"mondrian", "incognito", "anatomy"} <= {one.title for one in compared if one.holds}
    assert all(one.verdicts[0].model == "at-most" for one in compared if one.holds)


@pytest.mark.usefixtures("at_most")
def test_a_new_model_that_says_nothing_about_sets_refuses_them() -> None:
    with pytest.raises(nr.errors.PolicyError, match="at-most"):
        policy([AtMost(on="ill", share=0.5)], "decoys")
    assert AtMost(on="ill", share=0.5).promise_about(["ill"], sets=False).says.endswith("50% of a class.")


class Wide(Model):
    """Every published set holds enough different values."""

    model: Literal["wide"] = "wide"
    l: int = Field(ge=2, description="Smallest number of values in a set.")  # noqa: E741

    coarsening_preserves: ClassVar[bool] = True

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return SetSizeCheck(self, statement, self.l, "every set holds at least {achieved} values")

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(f"{self.l} values of {names} remain possible for everybody.", "")


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "wide", Wide)


@pytest.mark.usefixtures("wide")
def test_a_new_model_about_sets_is_met_by_decoys(tmp_path: Path) -> None:
    rules = policy([Wide(on="ill", l=3)], "decoys")
    made = run(table(), rules, to=tmp_path / "release")
    assert [(v.model, v.required, v.achieved, v.holds) for v in made.facts.verdicts] == [("wide", 3, 3, True)]
    opened = nr.open_release(tmp_path / "release")
    assert nr.verify(opened, rules, original=table())[0].holds is True
    assert nr.verify(opened, policy([Wide(on="ill", l=4)], "decoys"))[0].holds is False


@pytest.mark.parametrize(
    ("model", "wrong", "right"),
    [(Wide(on="ill", l=3), "mondrian", "decoys"), (AtMost(on="ill", share=0.5), "decoys", "mondrian")],
)
@pytest.mark.usefixtures("wide", "at_most")
def test_a_refusal_names_a_method_that_meets_what_the_model_judges(model: Model, wrong: str, right: str) -> None:
    with pytest.raises(nr.errors.PolicyError) as caught:
        policy([model], wrong)
    (problem,) = caught.value.problems
    assert problem.hint == f'Use [method] name = "{right}".'
    assert nr.anonymize(table(), policy([model], right)).verdicts[0].holds is True


def test_a_model_for_which_no_method_looks_says_so() -> None:
    class Unsearched(AtMost):
        search_rule: ClassVar[None] = None

    for method in (nr.methods.Mondrian(), nr.methods.Decoys()):
        found = method.problems(
            {"age": Role.QUASI_IDENTIFIER, "ill": Role.SENSITIVE}, [Unsearched(on="ill", share=0.5)]
        )
        assert [one.hint for one in found] == [
            "No method looks for this model: give it a search_rule, or a judge_sets."
        ]


# ---------------------------------------------------------------- a method


class Veil(ClassMethod):
    """Every quasi-identifier becomes the whole of its domain."""

    name: Literal["veil"] = "veil"
    sentence: ClassVar[str] = "Quasi-identifiers say nothing."
    loud: bool = Field(default=False, description="Whether a note says so.")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        return class_problems(self.name, roles, requirements, self.suppression)

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        everybody = np.zeros(table.n, np.int64)
        whole = {name: cover(table.columns[name], table.codes[name], everybody, 1) for name in table.quasi}
        return Plan(whole, notes=["nothing is left to find people by"] if self.loud else [])


FREQUENCY = {"model": "frequency-l-diversity", "on": "ill", "l": 2}


@pytest.fixture
def veil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "veil", Veil)


@pytest.mark.usefixtures("veil")
def test_a_new_method_makes_a_release(tmp_path: Path) -> None:
    rules = policy([FREQUENCY, {"model": "k-anonymity", "k": N}], {"name": "veil", "loud": True})
    made = run(table(), rules, to=tmp_path / "release")
    assert "nothing is left to find people by" in made.facts.notes
    opened = nr.open_release(tmp_path / "release")
    assert opened.manifest.methods == (UsedMethod(name="veil"),)
    assert "is not known" in str(reasons(opened)["minimality"]), "it cannot be replayed"
    assert opened.frame().select("age", "town").unique().height == 1
    assert all(verdict.holds is True for verdict in nr.verify(opened, rules, original=table()))
    truth = dict(table().group_by("ill").len().iter_rows())
    counted = opened.estimate("ill").frame.select("ill", "count")
    assert {ill: round(count) for ill, count in counted.iter_rows()} == truth
    with pytest.raises(nr.errors.RequirementNotMet):
        nr.anonymize(table(), policy([FREQUENCY | {"l": 4}], "veil"))
    (tmp_path / "policy.toml").write_text(rules.to_toml(), encoding="utf-8")
    assert nr.Policy.load(tmp_path / "policy.toml").methods == (Veil(loud=True),)


@pytest.mark.usefixtures("veil")
def test_a_new_method_is_compared_and_chosen_among() -> None:
    rules = policy([FREQUENCY, {"model": "k-anonymity", "k": 5}], "mondrian")
    compared = {one.title: one for one in nr.compare(table(), rules)}
    assert compared["veil"].holds
    assert compared["veil"].smallest_class == N
    assert compared["veil + decoys"].holds
    assert compared["mondrian"].query_loss <= compared["veil"].query_loss
    with pytest.raises(nr.errors.RequirementNotMet, match="veil: somebody who replays it"):
        run(table(), policy([FREQUENCY], {"name": "auto", "among": ["veil"]}))


@pytest.mark.usefixtures("veil")
def test_a_new_method_shares_a_release() -> None:
    two = [{"name": "veil"}, {"name": "decoys", "on": ["ill"]}]
    release = nr.anonymize(table(), policy([{"model": "k-anonymity", "k": N}, FREQUENCY], two))
    assert [one.name for one in release.manifest.methods] == ["veil", "decoys"]
    assert all(verdict.holds for verdict in release.verdicts)


# ---------------------------------------------------------------- a form


@dataclass(frozen=True, eq=False)
class RoundedStatement(NumberedStatement):
    """The value rounded down: codes number the steps, and the truth is one of the values of its step."""

    step: int = 10

    form: ClassVar[str] = "rounded"
    words: ClassVar[str] = "published rounded"
    is_key: ClassVar[bool] = True
    numbers_of: ClassVar[str] = "steps"
    hides: ClassVar[bool] = True

    @property
    def kinds(self) -> int:
        return -(-self.d // self.step)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{value} or a little more" for value in self.domain.values[:: self.step])

    def likelihood(self, cells: Cells) -> Likelihood:
        first = self.check_cells(cells) * self.step
        sizes = np.minimum(first + self.step, self.d) - first
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        value = np.arange(bounds[-1]) - np.repeat(bounds[:-1] - first, sizes)
        return Likelihood(bounds, value, np.ones(len(value)))

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return np.asarray(self.check_cells(cells) == np.asarray(truth) // self.step)

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_classes(self, evidence)

    def label(self, code: Any) -> str:
        return self.labels[code]

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return pa.array(self.labels, pa.string()).take(pa.array(np.asarray(cells.data)))

    def from_arrow(self, column: Any) -> Cells:
        return CodeCells(self.kinds, labels_in(self.name, self.labels, column))

    def field(self) -> dict[str, Any]:
        return {"name": self.name, "type": "string", "description": f"Rounded down to every {self.step}th value."}

    def manifest_fields(self) -> dict[str, Any]:
        return {"step": self.step}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand(fields, "step")
        if not isinstance(fields["step"], int) or fields["step"] < 1:
            raise ValueError("a step is a whole number from 1 on")
        return cls(column, fields["step"])


@pytest.fixture
def rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMS, "rounded", RoundedStatement)


def diversity() -> float:
    """The frequency diversity of exact illnesses among people of one rounded age, at its worst."""
    sizes = table().group_by(pl.col("age") // 10, "ill").len()
    shares = sizes.group_by("age").agg((pl.col("len").max() / pl.col("len").sum()).alias("top"))
    return 1 / float(shares["top"].to_numpy().max())


def released(secret: str = "exact") -> nr.Release:
    """A release made by hand: rounded ages beside exact or drawn illnesses."""
    data = table()
    ages = Column(role=Role.QUASI_IDENTIFIER).over("age", Domain(tuple(map(str, range(20, 60))), "integer", "data"))
    ills = Column(role=Role.SENSITIVE).over("ill", Domain(ILLS, "string", "policy"))
    codes = np.array([ILLS.index(ill) for ill in data["ill"].to_list()])
    columns: list[Statement] = [RoundedStatement(ages, 10)]
    cells: dict[str, Cells] = {"age": CodeCells(4, ((data["age"].to_numpy() - 20) // 10).astype(np.uint8))}
    assert columns[0].covers(cells["age"], data["age"].to_numpy() - 20).all()
    if secret == "exact":
        columns.append(ExactStatement(ills))
        cells["ill"] = CodeCells(4, codes.astype(np.uint8))
    else:
        design = DecoyDesign(d=4, eta=2, p=1.0)
        columns.append(SetStatement(ills, design))
        cells["ill"] = design.draw(codes, Keystream(), attribute="ill")
    achieved = diversity() if secret == "exact" else 2
    manifest = Manifest(
        noren=nr.__version__,
        records=N,
        columns=tuple(columns),
        requirements=({"model": "frequency-l-diversity", "on": ["ill"], "l": 2},),
        methods=(UsedMethod(name="decoys"),),
        randomness="fresh",
        verdicts=(VerdictEntry(model="frequency-l-diversity", column="ill", required=2, achieved=achieved, holds=True,
                               basis="the release alone"),),
    )  # fmt: skip
    return nr.Release(manifest, MemoryStore(cells))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.usefixtures("rounded")
def test_a_new_form_is_saved_opened_and_verified(kind: Any, tmp_path: Path) -> None:
    release = released()
    opened = nr.open_release(release.save(tmp_path / "release", kind))
    assert opened.manifest == release.manifest
    assert opened.frame().equals(release.frame())
    assert opened.frame()["age"][0].endswith("or a little more")
    assert opened.column("age").words == "published rounded"
    (diverse,) = nr.verify(opened)
    assert diverse.achieved == pytest.approx(diversity())
    asked = policy([{"model": "k-anonymity", "k": 50}, FREQUENCY], "mondrian")
    fewest = table().group_by(pl.col("age") // 10).len()["len"].min()
    assert [v.achieved for v in nr.verify(opened, asked, show=2) if v.model == "k-anonymity"] == [fewest]
    found = {v.model: v for v in nr.verify(opened, original=table())}
    assert found["truth-in-set"].column == "age"
    assert found["truth-in-set"].holds is True
    assert "k-anonymity" in set(nr.measure(opened).frame["model"])


@pytest.mark.parametrize("secret", ["exact", "drawn"])
@pytest.mark.usefixtures("rounded")
def test_a_new_form_is_estimated_from(secret: str) -> None:
    """Where the rounding ends, an estimate is exact; inside a step it is open, and the bounds say so."""
    release = released(secret)
    truth = dict(table().group_by((pl.col("age") // 10 * 10).alias("age")).len().iter_rows())
    steps = release.estimate("age/10").frame.select("age/10", "count")
    assert {int(label[1:3]): round(count) for label, count in steps.iter_rows()} == truth
    single = dict(table().group_by(pl.col("age").cast(pl.String)).len().iter_rows())
    for age, low, high in release.estimate("age").frame.select("age", "low", "high").iter_rows():
        assert low - 1e-6 <= single.get(str(age), 0) <= high + 1e-6
    both = release.estimate(["age/10", "ill"]).frame
    assert both["count"].sum() == pytest.approx(N)
    if secret == "exact":
        true = {(a, i): n for a, i, n in table().group_by(pl.col("age") // 10 * 10, "ill").len().iter_rows()}
        for label, ill, count in both.select(both.columns[0], "ill", "count").iter_rows():
            assert count == pytest.approx(true.get((int(label[1:3]), ill), 0))


@pytest.mark.usefixtures("rounded")
def test_a_new_form_refuses_what_it_does_not_mean(tmp_path: Path) -> None:
    release = released()
    wrong = MemoryStore(release.cells(release.columns) | {"age": CodeCells(5, np.zeros(N, np.uint8))})
    with pytest.raises(nr.NorenError, match="4 steps"):
        nr.verify(nr.Release(release.manifest, wrong))
    block = json.loads(release.manifest.model_dump_json())
    block["columns"][0]["step"] = 0
    with pytest.raises(ValueError, match="a step is a whole number"):
        Manifest.model_validate(block)


def test_without_its_line_in_the_registry_it_is_not_known(tmp_path: Path) -> None:
    release = released()
    with pytest.raises(ValueError, match="a form that this version knows"):
        Manifest.model_validate_json(release.manifest.model_dump_json())
    with pytest.raises(nr.errors.PolicyError, match="at-most"):
        policy([{"model": "at-most", "on": "ill", "share": 0.5}], "mondrian")
    with pytest.raises(nr.errors.PolicyError, match="veil"):
        policy([FREQUENCY], "veil")


# ---------------------------------------------------------------- at the edges


def told(*words: object) -> Any:
    """What a command says as JSON."""
    result = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.usefixtures("at_most", "veil")
def test_commands_and_the_report_know_what_was_added(tmp_path: Path) -> None:
    data, rules, release = tmp_path / "table.csv", tmp_path / "policy.toml", tmp_path / "release"
    table().write_csv(data)
    rules.write_text(policy([AtMost(on="ill", share=0.5)], "veil").to_toml(), encoding="utf-8")
    told("anonymize", data, rules, "--to", release)
    verified = told("verify", release, "--policy", rules, "--original", data)
    assert "at-most" in json.dumps(verified)
    assert "at-most" in json.dumps(told("measure", release))
    assert "veil" in {one["method"] for one in told("compare", data, rules)["candidates"]}
    page = nr.make_report(release, rules)
    assert "No value of ill makes up more than 50% of a class." in page.html
    assert "Quasi-identifiers say nothing." in page.html
    assert "at-most" in page.json


@pytest.mark.usefixtures("rounded")
def test_commands_and_the_report_know_a_new_form(tmp_path: Path) -> None:
    release = released().save(tmp_path / "release")
    assert "frequency-l-diversity" in json.dumps(told("verify", release))
    assert sum(row["count"] for row in told("estimate", release, "--by", "ill")["cells"]) == pytest.approx(N)
    assert "no value of ill makes up more than 1/2" in nr.make_report(release).html
