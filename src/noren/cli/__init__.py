"""The command line: parse, call, render; the demo. Public are the helpers with which others render alike."""

from noren.lazy import lazy

_HOMES = {
    "read_grid": "noren.cli.compare",
    "POLICY_TOML": "noren.cli.hospital",
    "disease_hierarchy_csv": "noren.cli.hospital",
    "hospital_table": "noren.cli.hospital",
    "echo_json": "noren.cli.render",
    "guarded_frame": "noren.cli.render",
    "say": "noren.cli.render",
    "stages": "noren.cli.render",
    "table": "noren.cli.render",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
