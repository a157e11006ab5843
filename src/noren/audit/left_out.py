"""The minimality attack on terms that were left out: what could have stayed was never there."""

from __future__ import annotations

import numpy as np

from noren.audit.base import AttackResult, Scenario
from noren.audit.told import class_keys, searchable
from noren.methods.mechanism.omissions import left_out
from noren.models import MODELS
from noren.models.term_check import TermModel, linked_terms
from noren.ragged import rows_in_order
from noren.release.release import Release
from noren.statements import Statement

RULE = "the cheapest terms are left out that let a group hold: what could have stayed was never there"
TITLES = {"mean_belief": "mean belief", "max_belief": "largest belief", "certain": "certain", "gains": "gain"}
RISES = 1e-6


def term_requirements(release: Release) -> list[tuple[tuple[Statement, ...], TermModel]]:
    """The columns of terms that one knowledge table links to labels, with what is required of them."""
    asked = [MODELS[str(one["model"])].model_validate(one) for one in release.manifest.requirements]
    out: dict[int, tuple[list[Statement], TermModel]] = {}
    for one in release.statements:
        models = [model for model in asked if isinstance(model, TermModel) and one.name in model.on]
        if one.terms is not None and models:
            out.setdefault(id(one.column.known), ([], models[0]))[0].append(one)
    return [(tuple(columns), model) for columns, model in out.values()]


def attack_terms(
    release: Release, columns: tuple[Statement, ...], model: TermModel, adversary: str, success: str
) -> AttackResult:
    """What whoever knows the search believes about the rows of every group, whose they are being unknown."""
    import polars as pl

    from noren.models.kernels import mean_beliefs

    knowledge = columns[0].column.known
    cells = release.cells([one.name for one in columns])
    terms = linked_terms([(one, cells[one.name]) for one in columns], knowledge)
    alpha = knowledge.priors
    if alpha is None:
        alpha = np.asarray(mean_beliefs(terms.offsets, terms.data, *knowledge.links))
    order, bounds = rows_in_order(class_keys(release, searchable(release)), release.rows)
    found = left_out(terms, knowledge, model, np.asarray(alpha, np.float64), order, bounds)
    n = len(found.rows)
    scenarios = []
    for name, title, belief in (
        ("terms", "the terms as they stand", found.before),
        ("minimality", "with the method's rule", found.after),
    ):
        gains = belief > found.before + RISES
        frame = pl.DataFrame({"record": found.rows + 1, "belief": belief, "before": found.before, "gains": gains})
        summary = {
            "mean_belief": float(belief.mean()),
            "max_belief": float(belief.max(initial=0.0)),
            "above_half": float((belief > 0.5 + 1e-9).mean()),
            "certain": float((belief > 1 - 1e-6).mean()),
            "mean_rise": float((belief - found.before).mean()),
            "gains": float(gains.mean()),
        }
        scenarios.append(Scenario(name, title, "row", summary, frame, holder_only=False))
    peak = float(np.max(alpha))
    facts = {"method": "suppress", "rule": RULE, "excluded": found.excluded, "possible": found.possible, "rows": n}
    notes = [
        f"of all terms that a row does not show, {found.excluded:,} could have stayed and were never there; "
        f"{found.possible:,} may be missing"
    ]
    if n < release.rows:
        notes.append(f"{n:,} of {release.rows:,} rows were looked at")
    return AttackResult(
        attack="minimality",
        target=tuple(one.name for one in columns),
        adversary=adversary,
        success=success,
        baseline={"mean_belief": peak, "max_belief": peak, "certain": 0.0, "gains": 0.0},
        scenarios=tuple(scenarios),
        titles=TITLES,
        measure="belief",
        shares=("certain", "mean_belief", "gains"),
        facts=facts,
        notes=tuple(notes),
    )
