"""The command line: parse, call, render. Public are the helpers with which other distributions render alike."""

from noren.lazy import lazy

_HOMES = {
    "echo_json": "noren.cli.render",
    "guarded_frame": "noren.cli.render",
    "read_grid": "noren.cli.compare",
    "say": "noren.cli.render",
    "stages": "noren.cli.render",
    "table": "noren.cli.render",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
