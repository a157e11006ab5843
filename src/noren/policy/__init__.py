"""The holder's policy: attributes, requirements, method; TOML in and out."""

from noren.lazy import lazy

_HOMES = {
    "Policy": "noren.policy.policy",
    "Proposal": "noren.policy.proposal",
    "Seen": "noren.policy.guessing",
    "open_table": "noren.policy.resolve",
    "study": "noren.policy.proposal",
    "text_for": "noren.policy.toml",
    "tree_of": "noren.policy.toml",
    "written": "noren.policy.proposal",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
