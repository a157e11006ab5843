"""The methods that are tried when a holder compares, or leaves the choice to Noren."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from noren.methods.base import Method, RecodingMethod
from noren.models.base import Model
from noren.schema.roles import Role


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


def serving(
    methods: Sequence[RecodingMethod], roles: Mapping[str, Role], requirements: Sequence[Model]
) -> list[RecodingMethod]:
    """The methods that can serve a policy, as far as that is known without the data."""
    return [method for method in methods if not method.problems(roles, requirements)]


def title_of(method: Method) -> str:
    """Name and the settings that differ from the default: "sweep chunk=16"."""
    changed = method.model_dump(exclude_defaults=True, exclude={"name"})
    words = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in changed.items()]
    return " ".join([method.name, *words])
