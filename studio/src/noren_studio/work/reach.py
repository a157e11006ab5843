"""What a policy comes to on this table: planned and judged as a release would be, and nothing is written."""

from __future__ import annotations

from typing import Any

from noren.progress import Stage
from noren_studio.work.showing import verdict_rows
from noren_studio.work.some import rules_of, some_of


def reach(stage: Stage, place: str, policy: dict[str, Any], base: str) -> dict[str, Any]:
    """Verdicts and losses of a release that is not made."""
    from noren.workflow import run

    rules = rules_of(policy, base)
    with stage("Reading", None):
        source, _ = some_of(place, rules)
    outcome = run(source, rules, stage=stage)
    return {
        "records": outcome.facts.records,
        "suppressed": outcome.facts.suppressed,
        "verdicts": verdict_rows(outcome.facts.verdicts),
        "lost": {name: float(figure) for name, figure in outcome.facts.losses.items()},
    }
