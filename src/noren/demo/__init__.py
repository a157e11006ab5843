"""A built-in example, from generator to chart, on the public surface only."""
