"""The policies that the experiments ask for: age and gender as they are, one secret column protected."""

from __future__ import annotations

from typing import Any

from noren import Policy
from noren.methods import Method
from noren.models import LEDiversity, Model, SemanticDiversity
from noren.schema.column import quasi_identifier, sensitive
from noren_papers.semantic.material import Material


def policy(table: Material, distance: str, model: Model, method: Method) -> Policy:
    """A policy for the table's three columns."""
    options: dict[str, Any] = {} if table.hierarchy is None else {"hierarchy": table.hierarchy}
    secret = sensitive(values=table.values, distance=distance, **options)
    people = {"age": quasi_identifier(), "gender": quasi_identifier()}
    return Policy(dependence={"most": 1.0}, attributes={**people, "secret": secret}, require=[model], method=method)


def diverse(l: int, d: float) -> Model:
    """(l, d)-semantic diversity of the secret, whatever a set betrays: the paper's designs promise no more."""
    return SemanticDiversity(on=("secret",), l=l, d=d, most=1.0)


def parted(l: int, e: int) -> Model:
    """(l, e)-diversity of the secret."""
    return LEDiversity(on=("secret",), l=l, e=e, most=1.0)
