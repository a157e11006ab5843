"""The command line: parse, call, render; and the built-in example."""

from noren.lazy import lazy

_HOMES = {
    "POLICY_TOML": "noren.cli.hospital",
    "disease_hierarchy_csv": "noren.cli.hospital",
    "hospital_table": "noren.cli.hospital",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
