"""Random sequences of releases: everybody keeps the secrets they were among, and every group is m-unique."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import noren as nr
from noren.secret import Register
from noren.workflow.anonymize import run
from tests.oracles.m_invariance import least_counterfeits, signature, wrong_groups

ILLS = tuple("abcdefg")


def policy(m: int, k: int) -> nr.Policy:
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "id": "identifier",
            "age": "quasi-identifier",
            "town": "quasi-identifier",
            "ill": {"role": "sensitive", "values": ILLS},
        },
        require=[{"model": "m-invariance", "on": "ill", "m": m}, {"model": "k-anonymity", "k": k}],
        method={"name": "m-invariance", "counterfeits": 10.0},
        randomness={"record_key": "id"},
        dependence={"most": 1.0},  # tables this small tell anything from anything
    )


@st.composite
def worlds(draw):
    n, m = draw(st.integers(8, 40)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    weights = rng.dirichlet(np.full(len(ILLS), draw(st.sampled_from([0.3, 1.0, 20.0]))))
    people = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 40, n),
            "town": rng.choice(["x", "y"], n),
            "ill": rng.choice(ILLS, n, p=weights),
        }
    )
    shares = [draw(st.sampled_from([0.3, 0.6, 0.9, 1.0])) for _ in range(3)]
    who = [sorted(rng.permutation(n)[: max(5, int(share * n))].tolist()) for share in shares]
    return people, who, m, draw(st.integers(2, 5))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_three_releases_keep_everybody_among_the_same_values(world):
    people, parts, m, k = world
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        nr.Secret.create(key)
        known: dict[str, frozenset[str]] = {}
        for part in parts:
            table = people[part]
            outcome = run(table, policy(m, k), secret=key)
            release, plan = outcome.release, outcome.facts.plan
            statement = release.column("ill")
            held = [(int(g), ILLS[v], int(c)) for g, v, c in zip(*_parts(statement.table), strict=True)]
            rows = release.cells(["ill"])["ill"].data.tolist()
            fakes = dict(statement.counterfeits)
            assert wrong_groups(held, rows, fakes, m) == []
            assert release.records == len(part)
            groups = dict(zip(table["id"].to_list(), plan.of("ill").data.tolist(), strict=True))
            secrets = dict(zip(table["id"].to_list(), table["ill"].to_list(), strict=True))
            again = {who: known[who] for who in groups if who in known}
            for who, group in groups.items():
                values = signature(held, group)
                assert secrets[who] in values
                assert known.setdefault(who, values) == values, "somebody is among other values than before"
            assert all(verdict.holds is True for verdict in outcome.facts.verdicts)
            if len(again) == len(part):  # no newcomer could take a place
                assert sum(fakes.values()) == least_counterfeits(again, secrets)
            truth = table["ill"].value_counts()
            for ill, count, _, low, high in release.estimate("ill").frame.rows():
                true = truth.filter(pl.col("ill") == ill)["count"].sum()
                assert low - 1e-6 <= true <= high + 1e-6, (ill, count)
        sets = Register.open(key).contents.classes["ill"]
        assert sorted(map(sorted, known.values())) == sorted(
            sorted(sets.values[c] for c in sets.codes[sets.bounds[i] : sets.bounds[i + 1]]) for i in sets.which
        )


def _parts(table):
    return table.group, table.value, table.count
