"""Candidates side by side under one policy: what each would risk, what it would lose, how long it takes.

Every candidate is recoded and verified like a release; nothing is written. The figures rest on the original, so they
are for the holder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from noren.errors import NorenError, PolicyError, Problem, QueryError
from noren.methods.base import Method, RecodingMethod
from noren.methods.candidates import all_candidates, term_candidates, title_of
from noren.methods.decoys import Decoys
from noren.methods.scoring import count_query_loss
from noren.metrics.general import GeneralTable
from noren.models import FrequencyLDiversity, KAnonymity
from noren.models.base import Model, Verdict
from noren.pipeline.anonymize import Stage, profile_source, quiet
from noren.pipeline.compare_decoys import DecoyTrial
from noren.pipeline.compare_terms import TermFigures, TermMeasures, curve_chart
from noren.pipeline.losses import losses_of
from noren.pipeline.recoding import Gathered, RecodedDraft, gather
from noren.pipeline.verify import check_store
from noren.policy.policy import Policy
from noren.policy.reading import dropping, open_table
from noren.policy.resolve import ResolvedColumn, resolve
from noren.policy.toml import key, value
from noren.release.store import MemoryStore
from noren.schema.roles import Role


@dataclass(frozen=True)
class Candidate:
    """One line of a comparison. `failure` says why a method publishes nothing; the figures are then empty."""

    title: str
    method: Method
    seconds: float
    failure: str = ""
    verdicts: Sequence[Verdict] = ()
    records: int = 0
    suppressed: int = 0
    smallest_class: float = 0.0
    """Records that share all published quasi-identifiers, at least: 1 / this bounds re-identification."""
    worst_share: float = 0.0
    """Largest share of one secret value in a class: the certainty of an adversary who finds the class."""
    query_loss: float = 0.0
    losses: dict[str, float] | None = None
    classification: dict[str, float] | None = None
    """Decision trees and rules for a target column, where one was asked for."""
    terms: TermFigures | None = None
    """What left-out terms cost and leave to believe, where the policy has quasi-sensitive columns."""

    @property
    def holds(self) -> bool:
        return not self.failure

    @property
    def snippet(self) -> str:
        """What to write into the policy to adopt this candidate."""
        fields = self.method.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        fields["name"] = self.method.name
        ordered = {"name": fields.pop("name"), **fields}
        return "\n".join(["[method]", *(f"{key(name)} = {value(item)}" for name, item in ordered.items())])

    def figures(self) -> dict[str, Any]:
        """The line as plain data."""
        out: dict[str, Any] = {"method": self.title, "holds": self.holds, "seconds": self.seconds}
        if self.failure:
            return out | {"failure": self.failure}
        more = {} if self.terms is None else {"terms": self.terms.plain()}
        return (
            out
            | more
            | {
                "records": self.records,
                "suppressed": self.suppressed,
                "smallest_class": self.smallest_class,
                "worst_share": self.worst_share,
                "query_loss": self.query_loss,
                "losses": self.losses,
                "classification": self.classification,
                "verdicts": [vars(verdict) for verdict in self.verdicts],
                "policy": self.snippet,
            }
        )


def compare(
    data: Any,
    policy: Policy | str | Path,
    *,
    among: Sequence[str] = (),
    suppression: float | None = None,
    classify: str | None = None,
    stage: Stage | None = None,
) -> list[Candidate]:
    """Try every method that can serve the policy, best count-query error first, failures last.

    With quasi-sensitive columns the candidates are the trade-off between left-out terms and general quasi-identifiers,
    over the size of groups; least generalisation comes first.

    `classify` names a quasi-identifier or sensitive column: how well it can be predicted from a release is then
    measured too, by decision trees (needs scikit-learn) and by rules.
    """
    policy = policy if isinstance(policy, Policy) else Policy.load(policy)
    stage = stage or quiet
    if suppression is None:
        suppression = getattr(policy.method, "suppression", 0.0)
    own = policy.method
    if isinstance(own, RecodingMethod):
        own = own.model_copy(update={"suppression": suppression})
    linked = any(attribute.role is Role.QUASI_SENSITIVE for attribute in policy.attributes.values())
    everything: list[Method] = [Decoys(), *all_candidates(suppression)]
    if linked:
        everything = [*term_candidates(own, policy.require, suppression)]
    if own not in everything and own.name != "auto":
        everything.insert(0, own)
    methods = [method for method in everything if not among or method.name in among]
    unknown = sorted(set(among) - {method.name for method in methods})
    if unknown:
        known = ", ".join(sorted({method.name for method in everything}))
        raise QueryError(f"no method {unknown[0]!r} to compare.", hint=f"Known: {known}.")
    served = [(method, made) for method in methods if (made := _with_method(policy, method)) is not None]
    if not served:
        raise PolicyError(
            [Problem("require", "no method can serve these requirements.", "Give the columns other roles.")],
            source=policy.source,
        )
    source = open_table(data, policy)
    shape = served[-1][1]
    drop = dropping(shape, source.columns)
    profile = profile_source(shape, source, drop, stage)
    columns = resolve(shape, source.name, source.columns, profile)
    served = [(method, rules) for method, rules in served if _within(method, own, profile.records)]
    if classify is not None and not _can_be_learned(columns.get(classify)):
        raise QueryError(f"no quasi-identifier or sensitive column {classify!r} to predict.", hint="Name one of them.")
    with stage("Reading codes", profile.records) as progress:
        gathered = gather(shape, source, columns, profile.records, drop, progress)
    measures = TermMeasures(gathered.table, policy.require, own) if linked else None
    found = []
    with stage("Comparing methods", len(served)) as progress:
        for method, rules in served:
            if isinstance(method, Decoys):
                found.append(_drawn(method, rules, gathered))
            else:
                found.append(_tried(method, rules, source, columns, drop, gathered, classify, measures))
            progress(1)
    if measures is not None:
        return sorted(found, key=lambda c: (not c.holds, (c.losses or {}).get("ncp_loss", 1.0), c.title))
    return sorted(found, key=lambda candidate: (not candidate.holds, candidate.query_loss, candidate.title))


def _with_method(policy: Policy, method: Method) -> Policy | None:
    """The policy under another method, or None where the method cannot serve it."""
    try:
        return replace(policy, method=method)
    except PolicyError:
        return None


def _within(method: Method, own: Method, records: int) -> bool:
    """Whether there are enough records for one group. The policy's own method may find out by itself."""
    return method == own or int(getattr(method, "k", 1)) <= records


def _can_be_learned(column: ResolvedColumn | None) -> bool:
    return column is not None and column.attribute.role not in (Role.PLAIN, Role.QUASI_SENSITIVE)


def _drawn(method: Decoys, policy: Policy, gathered: Gathered) -> Candidate:
    started = perf_counter()
    try:
        trial = DecoyTrial(policy, gathered.columns, gathered.table)
        seconds = perf_counter() - started
        verdicts = trial.verdicts()
        if any(verdict.holds is not True for verdict in verdicts):
            return Candidate(title_of(method), method, seconds, failure="a requirement does not hold.")
        loss = trial.query_loss()
    except NorenError as error:
        return Candidate(title_of(method), method, perf_counter() - started, failure=_reason(error))
    return Candidate(
        title_of(method),
        method,
        seconds,
        verdicts=verdicts,
        records=gathered.table.n,
        smallest_class=trial.smallest_class(),
        worst_share=trial.worst_share(),
        query_loss=loss,
    )


def _tried(
    method: Method,
    policy: Policy,
    source: Any,
    columns: dict[str, ResolvedColumn],
    drop: Sequence[str],
    gathered: Gathered,
    classify: str | None,
    measures: TermMeasures | None,
) -> Candidate:
    started = perf_counter()
    title = title_of(method)
    try:
        draft = RecodedDraft(policy, source, columns, drop, gathered)
        seconds = perf_counter() - started
        verdicts, risk = _judged(policy, draft)
    except NorenError as error:
        return Candidate(title, method, perf_counter() - started, failure=_reason(error))
    failed = [verdict for verdict in verdicts if verdict.holds is not True]
    if failed:
        return Candidate(title, method, seconds, failure=f"{failed[0].model} on {failed[0].column} does not hold.")
    view = draft.view()
    smallest = min((v.achieved for v in risk if v.model == "k-anonymity"), default=0.0)
    shares = [1 / v.achieved for v in risk if v.model == "frequency-l-diversity" and v.achieved > 0]
    losses, terms = losses_of(view), None
    if measures is not None:
        more, terms = measures.of(draft, view)
        losses |= more
    return Candidate(
        title,
        method,
        seconds,
        verdicts=verdicts,
        records=draft.records,
        suppressed=draft.suppressed,
        smallest_class=smallest,
        worst_share=max(shares, default=0.0),
        query_loss=count_query_loss(draft.table, view) if terms is None else terms.query_loss,
        losses=losses,
        classification=None if classify is None else _classified(view, classify),
        terms=terms,
    )


def _reason(error: NorenError) -> str:
    """One line that says why a candidate publishes nothing."""
    return error.problems[0].message if isinstance(error, PolicyError) else error.message


def _classified(view: GeneralTable, target: str) -> dict[str, float]:
    """What learning from the release instead of the original costs."""
    from noren.metrics.classification import preserved_rules, tree_accuracy

    trees = tree_accuracy(view, target)
    rules = preserved_rules(view, target, support=max(1, view.n // 120))
    return {
        "accuracy_ratio_score": trees.ratio,
        "accuracy_released": trees.released,
        "accuracy_original": trees.original,
        "rules_original": rules.original,
        "rules_preserved": rules.preserved,
    }


def _judged(policy: Policy, draft: RecodedDraft) -> tuple[list[Verdict], list[Verdict]]:
    """The policy's verdicts, and two more that measure the risk, by the independent checks."""
    kept = draft.keep.nonzero()[0]
    store = MemoryStore({name: cells.take(kept) for name, cells in draft.recoded.items()})
    entries = [entry for entry in draft.entries if entry.name in draft.recoded]
    measures: list[Model] = [FrequencyLDiversity(on=name, l=2) for name in draft.table.sensitive]
    if draft.table.quasi:
        measures.append(KAnonymity(k=2))
    wanted = len(policy.require)
    models = [*policy.require, *measures]
    verdicts = check_store(store, entries, models, draft.priors, tables=draft.tables, knowledge=draft.knowledge)
    asked = sum(1 if model.about == "classes" else max(1, len(model.on)) for model in models[:wanted])
    return verdicts[:asked], verdicts[asked:]


def chart(candidates: Sequence[Candidate]) -> Any:
    """Risk against loss, one point per candidate that holds; the trade-off curve where terms may be left out."""
    import altair as alt

    if any(candidate.terms is not None for candidate in candidates):
        return curve_chart(candidates)
    rows = [
        {"method": c.title, "error": c.query_loss, "share": c.worst_share, "smallest": c.smallest_class}
        for c in candidates
        if c.holds
    ]
    shapes = alt.Shape("method:N", title="Method")
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "share:Q", title="Largest share of one secret value in a class", scale=alt.Scale(zero=False, padding=30)
        ),
        y=alt.Y("error:Q", title="Mean relative error of count queries", scale=alt.Scale(zero=False, padding=20)),
    )
    tips = [alt.Tooltip(f"{name}:{kind}") for name, kind in zip(rows[0], "NQQQ", strict=True)] if rows else []
    points = base.mark_point(filled=True, size=120, opacity=0.85).encode(
        color=alt.Color("method:N", title="Method"), shape=shapes, tooltip=tips
    )
    return points.properties(width=560, height=380, title="Risk and loss of the candidates")
