"""What a comparison tries under one policy: methods, pairs of methods, and settings of the requirements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from pydantic import ValidationError

from noren.errors import PolicyError, QueryError
from noren.methods import METHODS
from noren.methods.base import ClassMethod, Method
from noren.methods.candidates import term_candidates, with_blind
from noren.methods.parts import paired
from noren.policy.policy import Policy
from noren.schema.roles import Role

Setting = Mapping[str, float]
"""Parameters of requirements: k = 5, l = 3."""
MOST_SETTINGS = 200


def candidates(policy: Policy, own: tuple[Method, ...], suppression: float) -> list[tuple[Method, ...]]:
    """Everything that is worth a try under a policy: its own methods, each method alone, and pairs."""
    out: list[tuple[Method, ...]]
    if any(column.role is Role.QUASI_SENSITIVE for column in policy.attributes.values()):
        out = [(method,) for method in term_candidates(own[0], policy.require, suppression)]
    else:
        alone: list[Method] = [method for kind in METHODS.values() for method in kind.candidates(suppression)]
        forming = [method for method in alone if isinstance(method, ClassMethod)]
        alone += with_blind(forming, policy.require)[len(forming) :]
        drawing = [method for method in alone if not method.forms_classes]
        pairs = [
            paired(method, other, policy.attributes)
            for method in alone
            if isinstance(method, ClassMethod) and method.hides_quasi
            for other in drawing
        ]
        out = [*((method,) for method in alone), *(pair for pair in pairs if pair is not None)]
    if own not in out and not any(method.chooses for method in own):
        out.insert(0, own)
    return out


def title(methods: Sequence[Method]) -> str:
    """How a candidate is called: "mondrian strict=false", "mondrian + decoys"."""
    return " + ".join(method.title for method in methods)


def plain_title(methods: Sequence[Method]) -> str:
    return " + ".join(method.name for method in methods)


def with_methods(policy: Policy, methods: tuple[Method, ...]) -> Policy | None:
    """The policy under other methods, or None where they cannot serve it."""
    try:
        return policy.with_method(*methods)
    except PolicyError:
        return None


def settings(policy: Policy, grid: Mapping[str, Sequence[float]]) -> list[Setting]:
    """Every combination of the parameters in a grid; one empty setting where there is none."""
    if grid and any(column.role is Role.QUASI_SENSITIVE for column in policy.attributes.values()):
        raise QueryError("with quasi-sensitive columns k is swept already.", hint="Leave the grid out.")
    known = {name for model in policy.require for name in model.parameters()}
    for name, values in grid.items():
        if name not in known:
            hint = f"Requirements here have {', '.join(sorted(known)) or 'no parameters'}."
            raise QueryError(f"no requirement has a parameter {name!r}.", hint=hint)
        if not values:
            raise QueryError(f"no values of {name!r} to try.", hint="For example k=3,5,10.")
    out = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if len(out) > MOST_SETTINGS:
        raise QueryError(f"the grid has {len(out):,} settings; {MOST_SETTINGS} are tried at most.", hint="Try fewer.")
    return list(out)


def under(policy: Policy, setting: Setting) -> Policy:
    """The policy with other parameters in every requirement that has them."""
    if not setting:
        return policy
    changed = []
    for model in policy.require:
        known = {name: value for name, value in setting.items() if name in model.parameters()}
        try:
            changed.append(type(model).model_validate(model.model_dump() | known))
        except ValidationError as error:
            said = error.errors()[0]["msg"].removeprefix("Value error, ")
            text = ", ".join(f"{name} = {value:g}" for name, value in known.items())
            raise QueryError(f"{model.model} cannot have {text}: {said}.", hint="Change the grid.") from None
    parts = {name: getattr(policy, name) for name in type(policy).model_fields}
    return Policy(**(parts | {"require": tuple(changed)}))
