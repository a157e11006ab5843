"""The policies that the experiments ask for: age and gender as they are, one secret column protected."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noren.methods.base import Method
    from noren.models.base import Model
    from noren.papers.semantic.material import Material
    from noren.policy.policy import Policy


def policy(table: Material, distance: str, model: Model, method: Method) -> Policy:
    """A policy for the table's three columns."""
    import noren as nr

    options: dict[str, Any] = {} if table.hierarchy is None else {"hierarchy": table.hierarchy}
    secret = nr.sensitive(values=table.values, distance=distance, **options)
    people = {"age": nr.quasi_identifier(), "gender": nr.quasi_identifier()}
    return nr.Policy(attributes={**people, "secret": secret}, require=[model], method=method)


def diverse(l: int, d: float) -> Model:
    """(l, d)-semantic diversity of the secret."""
    import noren as nr

    return nr.SemanticDiversity(on=("secret",), l=l, d=d)


def parted(l: int, e: int) -> Model:
    """(l, e)-diversity of the secret."""
    import noren as nr

    return nr.LEDiversity(on=("secret",), l=l, e=e)
