"""What a published column's codes mean: the recipient's view of the schema."""

from __future__ import annotations

from dataclasses import dataclass

from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy


@dataclass(frozen=True)
class Meaning:
    """Name, domain and hierarchy of a column. An open column has no domain."""

    name: str
    domain: Domain | None
    hierarchy: Hierarchy | None = None
