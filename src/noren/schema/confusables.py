"""Detects labels that look the same, whatever their characters are.

The skeleton of a label is what a reader sees of it: letters of other scripts that look like a Latin one become that
letter, spaces of all kinds one space, and characters without a glyph vanish. It follows the algorithm of Unicode
Technical Standard 39 with a table of its own, of the letters, digits and marks that people's tables hold. No two
letters of one script become one, but for 0 and O, and 1, I and l: a column in Greek or Cyrillic stays as it is. Codes
such as Y93.1 and Y93.I (both are in ICD-10-CM) differ, if they are plain ASCII and have other digits as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category, normalize

from noren.errors import Problem

LOOKALIKES = {
    "A": "ΑАᎪ", "B": "ΒВᏴ", "C": "СϹᏟ", "D": "Ꭰ", "E": "ΕЕᎬ", "F": "Ϝ", "G": "ԌᏀ", "H": "ΗНᎻ", "J": "ЈͿᎫ",
    "K": "ΚКᏦ", "L": "Ꮮ", "M": "ΜМϺᎷ", "N": "Ν", "P": "ΡРᏢ", "Q": "Ԛ", "S": "ЅՏᏚ", "T": "ΤТᎢ", "U": "Ս",
    "V": "ѴᏙ", "W": "ԜᎳ", "X": "ΧХ", "Y": "ΥҮᎩ", "Z": "ΖᏃ", "a": "αаɑ", "b": "ЬᏏ", "c": "сϲᴄ", "d": "ԁ", "e": "еҽ",
    "g": "ɡց", "h": "һհ", "i": "ιіɩı", "j": "јϳȷ", "k": "κкĸ", "n": "ո", "o": "οоօᴏ", "p": "ρр", "q": "ԛ",
    "r": "г", "s": "ѕꜱ", "u": "υսᴜ", "v": "νѵᴠ", "w": "ԝѡաᴡ", "x": "χх×", "y": "γуү", "z": "ᴢ", "ß": "β",
    "O": "0ΟОՕ", "l": "1I|ΙІӀӏ׀∣ǀ", "3": "ЗƷ", "6": "б", "8": "Ȣ",
    "-": "‐‒–—―−⁃˗", "'": "’‘‛′`´ʹʼʻˈ՚", "''": '"“”„‟', ",": "‚،", ":": "꞉∶ː։", "/": "⁄∕╱", "\\": "∖", "!": "ǃ",
    "<": "‹˂", ">": "›˃", "*": "∗⁎٭", "_": "ˍ", "~": "∼˜", "·": "‧∙⋅•", "ك": "ک", "ي": "ی",
    " ": "\u2800",
}  # fmt: skip
"""What a reader takes for a character, once compatible forms (full width, mathematical, ligatures) are resolved."""
TABLE = str.maketrans({other: seen for seen, others in LOOKALIKES.items() for other in others})
LETTERS = str.maketrans("I|", "ll")
CODE = re.compile(r"[ -~]*[2-9][ -~]*|[ -~]+\*+")
"""A plain code with digits that no letter looks like, or with masked ones."""
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Marks and letters without a glyph; besides them characters that steer (Cc), format (Cf) or are none (Cn)."""


def skeleton(text: str) -> str:
    """Return a key that is equal for labels that look the same, and empty for one that shows nothing."""
    if not text.isascii():
        text = "".join(c for c in normalize("NFKD", text) if c.isspace() or not _is_unseen(c))
        text = normalize("NFD", text)
    elif not text.isprintable():
        text = "".join(c for c in text if c.isspace() or not _is_unseen(c))
    return " ".join(text.translate(TABLE).split())


def _is_unseen(character: str) -> bool:
    return character in FILLERS or category(character) in ("Cc", "Cf", "Cn")


def merge_lookalikes(labels: Sequence[str]) -> list[str]:
    """Replace every label by the first one that looks the same."""
    seen: dict[str, list[str]] = {}
    for label in labels:
        seen.setdefault(skeleton(label), []).append(label)
    if len(seen) == len(labels):
        return list(labels)
    codes = {shown for shown, alike in seen.items() if len(alike) > 1 and all(map(CODE.fullmatch, alike))}
    first: dict[str, str] = {}
    out = []
    for label in labels:
        shown = skeleton(label)
        key = shown if shown not in codes else " ".join(label.translate(LETTERS).split())
        out.append(first.setdefault(key, label))
    return out


def count_lookalikes(labels: Sequence[str]) -> int:
    """Count the labels that look like an earlier one, or like nothing."""
    merged = merge_lookalikes(labels)
    return sum(one != label or not skeleton(label) for one, label in zip(merged, labels, strict=True))


def lookalike_problems(where: str, name: str, labels: Sequence[str]) -> list[Problem]:
    """Return the problems of a column whose labels a reader cannot distinguish."""
    found = count_lookalikes(labels)
    if not found:
        return []
    what = "1 value looks" if found == 1 else f"{found:,} values look"
    message = f"{what} like another value of {name!r}, or like an empty cell, so they would protect nobody."
    hint = "Write every value of the column in one way: the same letters, no invisible characters, no extra spaces."
    return [Problem(where, message, hint)]
