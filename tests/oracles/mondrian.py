"""Tables for `mondrian`, and slow, plain answers: what a class may look like and which cuts it would still permit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.models.base import Model
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from tests.oracles.classes import judge

TOWNS = Hierarchy.from_tree(
    {"北": ["札幌", "函館"], "南": {"九州": ["福岡", "長崎"], "四国": ["高松", "松山", "高知"]}}
)
"""Seven leaves of different depth."""


def facts(name: str, kind: str, d: int, codes: NDArray, role: Role = Role.QUASI_IDENTIFIER) -> Column:
    """A column of d values: "ranked" numbers, a "set" of names, or a "tree" over the towns."""
    if kind == "tree":
        return Column(role=role).over(name, Domain(TOWNS.leaves, "string", "policy"), hierarchy=TOWNS)
    if kind == "ranked":
        return Column(role=role).over(name, Domain(tuple(str(3 * v + v * v) for v in range(d)), "integer", "data"))
    return Column(role=role).over(name, Domain(tuple(f"é{v:04d}" for v in range(d)), "string", "data"))


def table_of(quasi: dict[str, tuple[str, int, NDArray]], secrets: dict[str, tuple[int, NDArray]]) -> Records:
    columns = {name: facts(name, kind, d, codes) for name, (kind, d, codes) in quasi.items()}
    for name, (d, codes) in secrets.items():
        plain = facts(name, "set", d, codes, Role.SENSITIVE)
        columns[name] = plain.over(name, plain.domain, hierarchy=Hierarchy((plain.domain.values,)))
    codes = {name: item[-1] for name, item in (quasi | secrets).items()}
    return Records(len(next(iter(codes.values()))), columns, codes)


def small_table(seed: int, n: int, columns: Sequence[str] = ("ranked", "set", "tree")) -> Records:
    """A random table with one quasi-identifier per kind and two sensitive columns, all values of which occur."""
    rng = np.random.default_rng(seed)
    quasi = {}
    for number, kind in enumerate(columns):
        d = len(TOWNS.leaves) if kind == "tree" else int(rng.integers(1, 8))
        quasi[f"q{number}"] = (kind, d, rng.choice(d, n, p=rng.dirichlet(np.ones(d))))
    secrets = {}
    for number in range(2):
        _, codes = np.unique(rng.integers(0, 4, n), return_inverse=True)
        secrets[f"s{number}"] = (int(codes.max()) + 1, codes)
    return table_of(quasi, secrets)


def satisfies(table: Records, members: Sequence[int], requirements: Sequence[Model]) -> bool:
    """Whether a class of these records meets every requirement, from the definitions."""
    n = len(members)
    for model in requirements:
        if model.model == "k-anonymity":
            if n < model.parameters()["k"]:
                return False
            continue
        for name in model.on:
            domain = table.columns[name].domain.values
            inside = [int(table.codes[name][i]) for i in members]
            overall = [int(code) for code in table.codes[name]]
            p = [Fraction(inside.count(v), n) for v in range(len(domain))]
            q = [Fraction(overall.count(v), table.n) for v in range(len(domain))]
            if not judge(model.model, model.parameters(), p, n, q, (domain, ("*",) * len(domain)))[1]:
                return False
    return True


def cuts(table: Records, members: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Every cut that the method considers in a class: both sides."""
    for name in table.quasi:
        column, codes = table.columns[name], table.codes[name]
        present = sorted({int(codes[i]) for i in members})
        groups: list[set[int]] = []
        if column.hierarchy is not None:
            for level in column.hierarchy.levels:
                groups += [{v for v in present if level[v] == label} for label in dict.fromkeys(level)]
        else:
            groups = [set(present[:place]) for place in range(1, len(present))]
            if column.domain.kind == "string":
                groups += [{v} for v in present]
        for group in groups:
            first = [i for i in members if int(codes[i]) in group]
            rest = [i for i in members if int(codes[i]) not in group]
            if first and rest:
                yield first, rest


def published_loss(table: Records, name: str, members: Sequence[int]) -> float:
    """The normalised certainty penalty of a class in one column."""
    column = table.columns[name]
    present = {int(table.codes[name][i]) for i in members}
    d = len(column.domain)
    if d == 1:
        return 0.0
    if column.hierarchy is not None:
        for level in column.hierarchy.levels:
            labels = {level[v] for v in present}
            if len(labels) == 1:
                return (sum(label in labels for label in level) - 1) / (d - 1)
    if column.domain.kind == "integer":
        numbers = [float(value) for value in column.domain.values]
        return (numbers[max(present)] - numbers[min(present)]) / (numbers[-1] - numbers[0])
    return (len(present) - 1) / (d - 1)
