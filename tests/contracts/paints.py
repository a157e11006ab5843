"""The shades and paints of the tables that every method and model is tried on."""

from __future__ import annotations

import noren as nr

SHADES = ("amber", "beige", "coral", "denim", "ebony", "fawn")
PALETTE = {"tree": {"warm": ["amber", "coral"], "pale": ["beige", "fawn"], "dark": ["denim", "ebony"]}}
PAINTS = nr.Knowledge.from_pairs(
    (paint, sign)
    for paint, signs in {
        "lead": ("gloss", "smell", "weight"),
        "chalk": ("matt", "dust"),
        "oil": ("gloss", "smell"),
        "lime": ("matt", "dust", "smell"),
        "wax": ("gloss", "weight"),
    }.items()
    for sign in signs
)
"""What links the signs that 'suppress' protects beside the shade."""
