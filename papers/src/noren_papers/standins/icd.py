"""A stand-in for the tabular list of ICD-10-CM: chapters, blocks, categories and codes, as uneven as in the list.

It begins with the codes that the worked example of paper 003 names, at their places; the rest is generated.
"""

from __future__ import annotations

import numpy as np
import polars as pl

EXAMPLE = (
    ("B20", "B20", "B20", "1"),
    ("B97.35", "B97", "B95-B97", "1"),
    ("C18.0", "C18", "C15-C26", "2"),
    ("J38.1", "J38", "J30-J39", "10"),
    ("K02.9", "K02", "K00-K14", "11"),
    ("K25.9", "K25", "K20-K31", "11"),
)
"""Code, category, block, chapter."""
CHAPTERS = 22


def make(name: str, rows: int) -> pl.DataFrame:
    """Codes with their places; a chapter's share falls with its number, as few chapters hold most codes."""
    rng = np.random.default_rng(2026)
    weight = 1.0 / (np.arange(CHAPTERS) + 1.5)
    left = max(0, rows - len(EXAMPLE))
    chapter = np.sort(rng.choice(CHAPTERS, left, p=weight / weight.sum())) + 1
    block, category = rng.integers(0, 13, left), rng.integers(0, 7, left)
    out = [_row(*one) for one in EXAMPLE]
    for number, (c, b, g) in enumerate(zip(chapter.tolist(), block.tolist(), category.tolist(), strict=True)):
        out.append(_row(f"X{c}.{b}.{g}.{number}", f"X{c}.{b}.{g}", f"X{c}.{b}", str(c)))
    return pl.DataFrame(out[:rows])


def _row(code: str, category: str, block: str, chapter: str) -> dict[str, str]:
    parent, depth = (block, "0") if code == category else (category, "1")
    return {
        "code": code, "description": f"disease {code}", "parent": parent, "category": category, "block": block,
        "chapter": chapter, "depth": depth,
    }  # fmt: skip
