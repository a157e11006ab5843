"""(l,d)-semantic diversity as a design: publish l values, the true one among them, pairwise at distance d or more.

Every set of every design here is feasible and contains the truth. The designs differ in P(R | v), that is, in what a
set tells beyond "one of these": nothing under a uniform prior for `semantic-flat`, as little as any design for
`semantic-balanced`, more for the others.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from noren.designs.semantic.balanced import Balanced, Types, balance, check_types, kinds_of, least_belief
from noren.designs.semantic.compatibility import Classes, Compatibility, Line, Ranks, Structure, Table
from noren.designs.semantic.law import (
    WORST_CONDITION,
    CertainSets,
    Law,
)
from noren.designs.semantic.products import CircularFlat, Product, flat_weights, why_not_flat
from noren.designs.semantic.stepwise import LARGEST_L, WARNING, DuplicateProcessing, Simple, check_circle
from noren.errors import NorenError

Kind = Literal["simple", "duplicate-processing", "uniform-sets", "flat", "balanced"]
Asked = Kind | Literal["best"]
"""A kind, or whichever has the least error among those that tell no more than is permitted."""


class SemanticDesign(CertainSets):
    """The design of sets of pairwise distant values, with everything that a recipient needs to compute their
    likelihood.

    Guarantee: every set holds eta = l values, the true one among them, and any two are at least `threshold` apart.
    `semantic-flat` also guarantees P(v | R) = 1/l for every member under a uniform prior; `semantic-balanced` keeps the
    largest of these beliefs as small as any design can, which is 1/l wherever that is possible.
    """

    name: Literal[
        "semantic-simple",
        "semantic-duplicate-processing",
        "semantic-uniform-sets",
        "semantic-flat",
        "semantic-balanced",
    ]
    d: int = Field(ge=1, description="Number of values in the attribute's domain (the paper's F).")
    eta: int = Field(ge=1, description="Number of values in each published set (the paper's l).")
    threshold: float = Field(gt=0, description="Smallest distance between two values of a set (the paper's d).")
    structure: Structure = Field(description="Which values are compatible, in the shortest form.")
    weights: tuple[float, ...] | None = Field(
        default=None, description="Weights of the values in a flat design without a closed form."
    )
    types: tuple[tuple[int, ...], ...] | None = Field(
        default=None,
        description=(
            "Types of sets of the balanced design: the kinds of values of which a set holds one each (a kind has the "
            "same compatible values)."
        ),
    )
    chances: tuple[tuple[float, ...], ...] | None = Field(
        default=None, description="Chance of every type for a true value of each of its kinds."
    )
    note: str = Field(default="", description="The design that replaces the requested one, and why.")

    @model_validator(mode="after")
    def _fits(self) -> SemanticDesign:
        if self.eta > self.d:
            raise ValueError(f"eta={self.eta} exceeds the {self.d} values of the domain")
        match self.structure:
            case Line(positions=listed) | Classes(class_of=listed) | Table(compatible=listed):
                if len(listed) != self.d:
                    raise ValueError(f"the structure lists {len(listed)} values, the domain has {self.d}")
        if isinstance(self.structure, Table) and any(len(row) != self.d for row in self.structure.compatible):
            raise ValueError("the matrix of compatible values must be square")
        if self.weights is not None and (len(self.weights) != self.d or not all(0 < w < np.inf for w in self.weights)):
            raise ValueError(f"weights must be {self.d} positive numbers")
        if (self.weights is None) != (self.name != "semantic-flat" or isinstance(self.structure, Ranks)):
            raise ValueError("weights belong to the flat design away from ranks, and to no other")
        if {self.types is not None, self.chances is not None} != {self.name == "semantic-balanced"}:
            raise ValueError("types and chances belong to the balanced design, and to no other")
        if self.types is not None and self.chances is not None:
            compatibility = Compatibility(self.d, self.threshold, self.structure)
            check_types(compatibility, self.eta, self.types, self.chances)
        if self.name == "semantic-duplicate-processing" and not isinstance(self.structure, Ranks):
            raise ValueError("duplicate-processing is defined on ranks only")
        return self

    @classmethod
    def make(
        cls,
        kind: Kind,
        distances: NDArray | Compatibility,
        l: int,
        threshold: float | None = None,
        most: float = 0.0,
    ) -> SemanticDesign:
        """The design of this kind, or an InfeasibleDesign that names values without partners and what would work.

        Where `flat` does not exist the balanced design is made, or `uniform-sets` where that is too large to search,
        and the note says so. `most` lets the balanced design spread its sets as far as beliefs up to it permit.
        """
        if isinstance(distances, Compatibility):
            compatibility = distances
        elif threshold is None:
            raise ValueError("a distance matrix needs a threshold")
        else:
            compatibility = Compatibility.from_distances(distances, threshold)
        compatibility.check(l)
        name, weights, note, types = f"semantic-{kind}", None, "", None
        if l > LARGEST_L.get(name, l):
            raise NorenError(
                f"The likelihood of {kind} sums over all orders of a set; l = {l} exceeds {LARGEST_L[name]}.",
                hint="Use the design 'flat' or 'uniform-sets'.",
            )
        if kind == "duplicate-processing":
            check_circle(compatibility, l)
        if kind == "flat" and not isinstance(compatibility.structure, Ranks):
            found = flat_weights(compatibility, l)
            if found is None:
                name, note = "semantic-balanced", why_not_flat(compatibility, l)
            else:
                weights = tuple(found.tolist())
        if name == "semantic-balanced":
            solution = balance(compatibility, l, most)
            if solution is None:
                name = "semantic-uniform-sets"
                note += (
                    "There are too many types of sets to find the design of least belief, so uniform-sets is used; "
                    f"no design keeps every belief below {least_belief(compatibility, l):.4g}."
                )
            else:
                types = solution.types
                note += f"The balanced design keeps every belief in one value of a set to {solution.worst:.4g}."
        design = cls.model_validate(
            {
                "name": name,
                "d": compatibility.F,
                "eta": l,
                "threshold": compatibility.threshold,
                "structure": compatibility.structure,
                "weights": weights,
                "types": None if types is None else tuple(map(tuple, types.rows.tolist())),
                "chances": None if types is None else tuple(map(tuple, types.chances.tolist())),
                "note": note,
            }
        )
        if name == "semantic-uniform-sets" and isinstance(compatibility.structure, Table):
            _ = design.law.plan  # refuse now what could not be drawn later
        return design

    # ---------------------------------------------------------------- what every design answers

    @property
    def is_even(self) -> bool:
        return self.name == "semantic-flat"

    @property
    def title(self) -> str:
        return f"{self.name}, distance {self.threshold:g} ({self.digest})"

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        return self.set_weights(sets)

    @property
    def warning(self) -> str:
        """Return a warning about this design for the holder; empty if there is none."""
        return WARNING if self.name == "semantic-duplicate-processing" else ""

    @property
    def compatibility(self) -> Compatibility:
        return self.law.compatibility

    # ---------------------------------------------------------------- likelihood

    def set_weights(self, sets: NDArray) -> NDArray[np.float64]:
        """Return P(R | v) for each set, a row of eta ascending codes, and each member v; 0 for an infeasible set."""
        sets = np.asarray(sets)
        if sets.ndim != 2 or sets.shape[1] != self.eta or (sets.size and not 0 <= sets.min() <= sets.max() < self.d):
            raise ValueError(f"sets must be rows of {self.eta} codes below {self.d}")
        law, pairs = self.law, self.compatibility.pairs
        fine = np.ones(len(sets), bool)
        for a, b in combinations(range(self.eta), 2):
            fine &= pairs[sets[:, a], sets[:, b]] & (sets[:, a] < sets[:, b])
        if fine.all():
            return law.likelihood(sets)
        out = np.zeros(sets.shape)
        out[fine] = law.likelihood(sets[fine])
        return out

    def identifiability(self) -> tuple[bool, float]:
        """Return whether true counts can be recovered from inclusion counts, and the condition number.

        Theory decides on ranks and trees; at equality block totals are lost whatever a matrix of rounded numbers says.
        """
        if self.eta == 1:
            return True, 1.0
        condition = self.inclusion().condition()
        known = isinstance(self.structure, Ranks | Classes)
        fine = self.compatibility.identifiable(self.eta) if known else condition < WORST_CONDITION
        return fine and condition < WORST_CONDITION, condition if fine else float("inf")

    def expected_l2(self, n: int) -> float:
        """Return the root of the expected squared L2 error of relative frequencies by linear inversion, for equally
        frequent values.

        A function of the design and the number of records alone, like equation 9 of paper 000; infinite where counts
        are lost.
        """
        system = self.inversion
        if system.undetermined:
            return float("inf")
        noise = self.second_moment(system.inverse).mean(axis=1) - 1 / self.d**2
        return float(np.sqrt(noise.sum() / n))

    def worst_belief(self) -> float | None:
        return 1 / self.eta if self.name == "semantic-flat" else _worst(self)[0]

    def worst_set(self) -> tuple[int, tuple[int, ...]] | None:
        """Return the value with the largest belief and its set; None if there are too many sets."""
        return _worst(self)[1]

    def make_law(self) -> Law:
        compatibility = Compatibility(self.d, self.threshold, self.structure)
        if self.name == "semantic-simple":
            return Simple(compatibility, self.eta)
        if self.name == "semantic-duplicate-processing":
            return DuplicateProcessing(compatibility, self.eta)
        if self.name == "semantic-flat" and self.weights is None:
            return CircularFlat(compatibility, self.eta)
        if self.types is not None:
            types = Types(kinds_of(compatibility), np.array(self.types, np.int64), np.array(self.chances, float))
            return Balanced(compatibility, self.eta, types)
        weights = None if self.weights is None else np.array(self.weights)
        return Product(compatibility, self.eta, weights)


@lru_cache(maxsize=64)
def _worst(design: SemanticDesign) -> tuple[float | None, tuple[int, tuple[int, ...]] | None]:
    """Return the largest P(v | R) under a uniform prior, and its set; None if sets cannot be listed."""
    law, even = design.law, np.full(design.d, 1 / design.d)
    if isinstance(law, Balanced):
        beliefs, first = law.types.beliefs(), np.unique(law.types.kind, return_index=True)[1]
        row, place = np.unravel_index(int(beliefs.argmax()), beliefs.shape)
        members = first[law.types.rows[row]]
        return float(beliefs.max()), (int(members[place]), tuple(sorted(members.tolist())))
    listed = law.listed()
    if listed is None:
        return law.worst_posterior(even), None
    worst: tuple[float, tuple[int, tuple[int, ...]] | None] = (0.0, None)
    for sets, likelihood in listed:
        beliefs = likelihood / np.maximum(likelihood.sum(axis=1, keepdims=True), 1e-300)
        row, place = np.unravel_index(int(beliefs.argmax()), beliefs.shape)
        if beliefs[row, place] > worst[0]:
            worst = float(beliefs[row, place]), (int(sets[row, place]), tuple(sets[row].tolist()))
    return worst
