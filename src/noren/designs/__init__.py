"""Decoy designs: how a set is drawn given the truth, and its likelihood. The registry is explicit: one line a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from noren.designs.decoys import DecoyDesign
from noren.designs.draw import draw_table
from noren.designs.pram import PramDesign
from noren.designs.semantic.design import SemanticDesign
from noren.secret import Keystream, RecordStream
from noren.statements.batch import CodeCells
from noren.statements.design import Design
from noren.statements.set_cells import SetCells

DESIGNS: dict[str, type[BaseModel]] = {
    "uniform-decoys": DecoyDesign,
    "pram": PramDesign,
    "semantic-flat": SemanticDesign,
    "semantic-balanced": SemanticDesign,
    "semantic-uniform-sets": SemanticDesign,
    "semantic-simple": SemanticDesign,
    "semantic-duplicate-processing": SemanticDesign,
}


def read_design(given: Any) -> Design:
    """The design that a manifest describes. Raises ValueError for anything that is none."""
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(name, str) or name not in DESIGNS:
        raise ValueError("no design of this name")
    try:
        found: Any = DESIGNS[name].model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{error.error_count()} fields of the design are not valid") from None
    made: Design = found
    return made


def draw_columns(
    designs: Mapping[str, Design],
    columns: Mapping[str, NDArray],
    randomness: Keystream | RecordStream,
    *,
    digests: NDArray | None = None,
) -> dict[str, SetCells | CodeCells]:
    """Sets (or changed values) for all columns of a batch, each by its own design. Uniform decoys share the threads."""
    plain = {name: design for name, design in designs.items() if isinstance(design, DecoyDesign)}
    out: dict[str, SetCells | CodeCells] = {}
    if plain:
        out |= draw_table(plain, {name: columns[name] for name in plain}, randomness, digests=digests)
    for name, design in designs.items():
        if name not in plain:
            out[name] = design.draw(columns[name], randomness, attribute=name, digests=digests)
    return out


__all__ = ["DESIGNS", "DecoyDesign", "Design", "PramDesign", "SemanticDesign", "draw_columns", "read_design"]
