"""The methods that are tried when a holder compares, or leaves the choice to Noren."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from noren.methods.base import ClassMethod, Method
from noren.models.base import Model
from noren.schema.roles import Role

GROUP_SIZES = (1, 2, 5, 10, 20)
"""Values of k on the curve between left-out terms and general quasi-identifiers."""
SECONDS_PER_GROUP = 0.05
"""Time that a candidate of that curve has for one group: enough for a proof in most small groups."""


def all_candidates(suppression: float = 0.0) -> list[ClassMethod]:
    """Every method of general values and groups, with the settings worth a try."""
    from noren.methods import METHODS

    tried = [method for kind in METHODS.values() for method in kind.candidates(suppression)]
    return [method for method in tried if isinstance(method, ClassMethod)]


def with_blind(methods: Sequence[ClassMethod], requirements: Sequence[Model]) -> list[ClassMethod]:
    """The methods and, where something is required of the mechanism, those that can be blind once more as such."""
    if not any(model.of_mechanism for model in requirements):
        return list(methods)
    usual = {method.name: method for method in reversed(methods) if "blind" in type(method).model_fields}
    return [*methods, *(method.model_copy(update={"blind": True}) for method in reversed(usual.values()))]


def term_candidates(own: Method, requirements: Sequence[Model], suppression: float = 0.0) -> list[ClassMethod]:
    """The curve between the two ways to protect quasi-sensitive terms, from term removal to generalisation only.

    `suppress` with groups of at least 1, 2, 5, ... records, from the k on that the requirements ask for anyway, and
    with the search and first phase of the policy's own `suppress`; then `mondrian`, which leaves out no term.
    """
    from noren.methods.mondrian import Mondrian
    from noren.methods.suppress import Suppress

    kept: dict[str, object] = {}
    if isinstance(own, Suppress):
        free = {"k", "balance", "seconds", "total_seconds", "nodes", "suppression"}
        kept = own.model_dump(exclude_defaults=True, exclude=free)
    least = max([1, *(model.least_class_size for model in requirements if not model.on)])
    shared = kept | {"seconds": SECONDS_PER_GROUP, "suppression": suppression}
    sizes = [least, *(k for k in GROUP_SIZES if k > least)]
    curve: list[ClassMethod] = [Suppress.model_validate(shared | {"k": k}) for k in sizes]
    return [*curve, Mondrian(suppression=suppression)]


def serving(
    methods: Sequence[ClassMethod], roles: Mapping[str, Role], requirements: Sequence[Model]
) -> list[ClassMethod]:
    """The methods that can serve a policy, as far as that is known without the data."""
    return [method for method in methods if not method.problems(roles, requirements)]
