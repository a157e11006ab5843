"""Against a real server, started from its wheel."""
