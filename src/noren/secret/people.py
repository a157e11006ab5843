"""How people are told apart over several releases: by which column, and which ways of writing a key mean the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from noren.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Unicode = Literal["NFKC", "NFC", "keep"]
Spaces = Literal["trim", "keep"]
Case = Literal["fold", "keep"]
UNSEEN = r"\p{Cf}"
"""Characters without a width: a key with one of them looks the same."""


@dataclass(frozen=True)
class KeyRule:
    """The key column, and what is evened out before a key is hashed."""

    column: str
    unicode: Unicode = "NFKC"
    spaces: Spaces = "trim"
    case: Case = "fold"

    def differences(self, other: KeyRule) -> list[str]:
        """What `other` would even out otherwise, in words."""
        own, theirs = asdict(self), asdict(other)
        return [f"{name} (recorded {own[name]}, now {theirs[name]})" for name in ("unicode", "spaces", "case")
                if own[name] != theirs[name]]  # fmt: skip

    def evened(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """The keys as they are hashed. Letters are folded by way of their capitals, so that ß and SS are the same."""
        import polars as pl
        import pyarrow as pa

        if not len(texts):
            return texts
        column: Any = pl.Series(texts)
        column = column if self.unicode == "keep" else column.str.normalize(self.unicode)
        if self.case == "fold":
            column = column.str.to_uppercase().str.to_lowercase()
            column = column if self.unicode == "keep" else column.str.normalize(self.unicode)
        if self.spaces == "trim":
            column = column.str.replace_all(UNSEEN, "").str.replace_all(r"\s+", " ").str.strip_chars()
        if empty := int((column == "").sum()):
            raise DataError(
                f"The record key is missing in {empty} of {len(column)} rows.",
                hint="Every record needs a key; drop those rows or name another key column.",
            )
        return pa.chunked_array([column.to_arrow().cast(pa.large_string())])
