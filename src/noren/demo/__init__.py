"""A built-in example, from generator to chart, on the public surface only."""

from noren.lazy import lazy

_HOMES = {
    "POLICY_TOML": "noren.demo.hospital",
    "disease_hierarchy_csv": "noren.demo.hospital",
    "hospital_table": "noren.demo.hospital",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
