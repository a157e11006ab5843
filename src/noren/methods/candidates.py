"""The methods that are tried when a holder compares, or leaves the choice to Noren."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from noren.methods.base import Method, RecodingMethod
from noren.models import KAnonymity
from noren.models.base import Model
from noren.schema.roles import Role

GROUP_SIZES = (1, 2, 5, 10, 20)
"""Values of k on the curve between left-out terms and general quasi-identifiers."""
SECONDS_PER_GROUP = 0.05
"""Time that a candidate of that curve has for one group: enough for a proof in most small groups."""


def all_candidates(suppression: float = 0.0) -> list[RecodingMethod]:
    """Every method of general values and groups, with the settings worth a try."""
    from noren.methods.anatomy import Anatomy
    from noren.methods.hilbert import Hilbert
    from noren.methods.incognito import Incognito
    from noren.methods.mondrian import Mondrian
    from noren.methods.rating import Rating
    from noren.methods.sweep import Sweep
    from noren.methods.three_phase import ThreePhase

    return [
        Sweep(suppression=suppression),
        Sweep(chunk=16, suppression=suppression),
        Mondrian(suppression=suppression),
        Mondrian(strict=False, suppression=suppression),
        Hilbert(suppression=suppression),
        ThreePhase(suppression=suppression),
        ThreePhase(refine=False, suppression=suppression),
        Incognito(suppression=suppression),
        Anatomy(suppression=suppression),
        Rating(suppression=suppression),
    ]


def term_candidates(own: Method, requirements: Sequence[Model], suppression: float = 0.0) -> list[RecodingMethod]:
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
    least = max([1, *(model.k for model in requirements if isinstance(model, KAnonymity) and not model.on)])
    shared = kept | {"seconds": SECONDS_PER_GROUP, "suppression": suppression}
    sizes = [least, *(k for k in GROUP_SIZES if k > least)]
    curve: list[RecodingMethod] = [Suppress.model_validate(shared | {"k": k}) for k in sizes]
    return [*curve, Mondrian(suppression=suppression)]


def serving(
    methods: Sequence[RecodingMethod], roles: Mapping[str, Role], requirements: Sequence[Model]
) -> list[RecodingMethod]:
    """The methods that can serve a policy, as far as that is known without the data."""
    return [method for method in methods if not method.problems(roles, requirements)]


def title_of(method: Method) -> str:
    """Name and the settings that differ from the default: "sweep chunk=16"; k always where it is the whole story."""
    changed = method.model_dump(exclude_defaults=True, exclude={"name"}, exclude_none=True)
    if method.name == "suppress":
        changed = {"k": getattr(method, "k", 1), **changed}
    return " ".join([method.name, *_words(changed)])


def _words(settings: Mapping[str, object], prefix: str = "") -> list[str]:
    out = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            out += _words(value, f"{prefix}{name}.")
        else:
            out.append(f"{prefix}{name}={str(value).lower() if isinstance(value, bool) else value}")
    return out
