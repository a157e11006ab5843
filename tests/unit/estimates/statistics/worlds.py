"""Small tables with a known truth, and releases of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

import noren as nr


@cache
def people(n: int = 4_000) -> pl.DataFrame:
    """Pay depends on age and sex, a vote on pay; the trade depends on sex."""
    rng = np.random.default_rng(7)
    age, sex = rng.integers(2, 8, n) * 10, rng.integers(0, 2, n)
    pay = np.clip(np.round(age / 15 + sex + rng.normal(0, 1.2, n)), 0, 7).astype(int)
    vote = rng.random(n) < 1 / (1 + np.exp(2 - 0.6 * pay))
    trade = np.where(rng.random(n) < 0.3 + 0.3 * sex, rng.integers(0, 2, n), rng.integers(2, 5, n))
    return pl.DataFrame(
        {
            "age": age,
            "sex": np.array(["F", "M"])[sex],
            "pay": pay,
            "vote": np.array(["no", "yes"])[vote.astype(int)],
            "trade": np.array(["clerk", "cook", "miner", "nurse", "welder"])[trade],
        }
    )


@cache
def exact(n: int = 4_000) -> nr.Release:
    frame = people(n)
    return nr.anonymize(frame, nr.Policy(attributes=dict.fromkeys(frame.columns, "plain")))


@cache
def drawn(n: int = 4_000, l: int = 2) -> nr.Release:  # noqa: E741  the papers' letter
    frame = people(n)
    roles = dict.fromkeys(frame.columns, "plain") | {"pay": "sensitive", "trade": "sensitive"}
    require = [nr.models.FrequencyLDiversity(on=["pay", "trade"], l=l)]
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


@cache
def general() -> nr.Release:
    """Ages in general values, pay in groups."""
    frame = people(1_200)
    roles = dict.fromkeys(frame.columns, "plain") | {"age": "quasi-identifier"}
    policy = nr.Policy(attributes=roles, require=[nr.models.KAnonymity(k=300)], method=nr.methods.Mondrian())
    return nr.anonymize(frame, policy)


@cache
def grouped(number: int = 0) -> nr.Release:
    """Pay in groups; another number is another release."""
    frame = people(1_200)
    roles = dict.fromkeys(frame.columns, "plain") | {"pay": "sensitive", "sex": "quasi-identifier"}
    require = [nr.models.FrequencyLDiversity(on="pay", l=2)]
    free = {"most": 1.0}
    policy = nr.Policy(attributes=roles, require=require, method=nr.methods.Anatomy(), dependence=free)
    return nr.anonymize(frame, policy)
