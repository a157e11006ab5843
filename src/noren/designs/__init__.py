"""Decoy designs: how a set is drawn given the true value, and its likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from noren.designs.decoys import DecoyDesign
from noren.designs.draw import draw_columns
from noren.designs.informed import InformedDesign
from noren.designs.pram import PramDesign
from noren.designs.semantic.design import SemanticDesign
from noren.statements.design import Design

DESIGNS: dict[str, type[BaseModel]] = {
    "uniform-decoys": DecoyDesign,
    "pram": PramDesign,
    "informed": InformedDesign,
    "semantic-flat": SemanticDesign,
    "semantic-balanced": SemanticDesign,
    "semantic-uniform-sets": SemanticDesign,
    "semantic-simple": SemanticDesign,
    "semantic-duplicate-processing": SemanticDesign,
}


def read_design(given: Any) -> Design:
    """Return the design that a manifest describes; raise ValueError if it is invalid."""
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(name, str) or name not in DESIGNS:
        raise ValueError("no design of this name")
    try:
        found: Any = DESIGNS[name].model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{error.error_count()} fields of the design are not valid") from None
    made: Design = found
    return made


__all__ = [
    "DESIGNS",
    "DecoyDesign",
    "Design",
    "InformedDesign",
    "PramDesign",
    "SemanticDesign",
    "draw_columns",
    "read_design",
]
