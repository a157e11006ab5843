"""The best level vectors of full-domain generalisation under a policy, with what each would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.engines import Engine
from noren.methods.incognito import Incognito
from noren.methods.incognito.search import LevelVector, best_levels
from noren.methods.requirements import compiled
from noren.models.base import searched
from noren.policy.policy import Policy
from noren.policy.toml import value
from noren.progress import Stage, quiet
from noren.results import Results, make_frame, plain
from noren.workflow.prepare import prepare, read_policy

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False, eq=False)
class LevelVectors(Results[LevelVector]):
    """Level vectors that meet the requirements, the least loss first. For the holder only."""

    loss: str = "granularity"

    @property
    def frame(self) -> pl.DataFrame:
        columns: dict[str, type] = dict.fromkeys(self[0].levels if self else (), int)
        rows = (one.levels | {"loss": one.loss, "classes": one.classes, "dropped": one.dropped} for one in self)
        return make_frame(columns | {"loss": float, "classes": int, "dropped": int}, rows)

    def to_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "levels": [plain(vars(one)) for one in self]}

    def _headline(self) -> str:
        return f"{len(self)} level vectors that hold, by {self.loss} loss" + (f"; best {self[0]}" if self else "")


def find_levels(
    data: Any,
    policy: Policy | str | Path,
    *,
    count: int = 10,
    suppression: float | None = None,
    engine: str | Engine | None = None,
    stage: Stage = quiet,
) -> LevelVectors:
    """The `count` best level vectors that Incognito could publish, by the loss that the policy's method names.

    One of them is adopted by `levels = { age = 2, zip = 1 }` in the method. People with several rows are counted when
    it is: the classes may then have to be larger than these.
    """
    policy = read_policy(policy)
    own = next((method for method in policy.methods if isinstance(method, Incognito)), Incognito())
    share = own.suppression if suppression is None else suppression
    rules = policy.with_method(own.model_copy(update={"levels": {}}))
    table = prepare(data, rules, engine, stage=stage)
    records: Any = own.seen(table.records)
    found: Sequence[LevelVector] = best_levels(
        records,
        compiled(records, searched(policy.require)),
        own.loss,
        share,
        own.weights,
        count,
    )
    return LevelVectors(found, own.loss)


def line(vector: LevelVector) -> str:
    """What to write into the policy to fix a level vector."""
    return f"levels = {value(vector.levels)}"
