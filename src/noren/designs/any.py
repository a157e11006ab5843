"""Any decoy design, told apart by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from numpy.typing import NDArray
from pydantic import Field

from noren.cells import SetCells
from noren.designs.decoys import DecoyDesign
from noren.designs.draw import draw_table
from noren.designs.semantic.design import SemanticDesign
from noren.secret import Keystream, RecordStream

Design = DecoyDesign | SemanticDesign
PublishedDesign = Annotated[Design, Field(discriminator="name")]
"""The same for pydantic models that read a design from a file."""


def draw_columns(
    designs: Mapping[str, Design],
    columns: Mapping[str, NDArray],
    randomness: Keystream | RecordStream,
    *,
    digests: NDArray | None = None,
) -> dict[str, SetCells]:
    """Sets for all columns of a batch, each by its own design."""
    plain = {name: design for name, design in designs.items() if isinstance(design, DecoyDesign)}
    out = draw_table(plain, {name: columns[name] for name in plain}, randomness, digests=digests) if plain else {}
    for name, design in designs.items():
        if isinstance(design, SemanticDesign):
            out[name] = design.draw(columns[name], randomness, attribute=name, digests=digests)
    return out
