"""Several attacks on one case: in their order, and of a large release those beside the others that need none of them.

Most attacks share what a case has read and computed, and follow each other. One that looks at the published cells alone
and draws for a long time runs in a thread of its own meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from noren.ahead import Begun
from noren.progress import quiet

if TYPE_CHECKING:
    from noren.audit.base import Attack, AttackResult, Case

LARGE = 500_000
"""Rows from which on it pays."""
Run = Callable[[], "list[AttackResult]"]


def runs(attacks: Sequence[Attack], case: Case) -> list[Run]:
    """For every attack how to get its results: it then runs, or has begun here. What went wrong is raised there."""
    begun = apart(attacks, case) if len(attacks) > 1 else {}
    return [begun.get(one.name) or partial(_run, one, case) for one in attacks]


def _run(attack: Attack, case: Case) -> list[AttackResult]:
    case.demand_counts(attack)
    return attack.run(case)


def apart(attacks: Sequence[Attack], case: Case) -> dict[str, Run]:
    """Those that stand apart, begun; of a release that is not large, none."""
    if case.release.rows < LARGE:
        return {}
    silent = replace(case, stage=quiet)  # two bars at once are none
    return {one.name: Begun(partial(_run, one, silent)) for one in attacks if one.stands_apart}
