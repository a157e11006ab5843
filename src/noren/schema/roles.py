"""The roles of columns for the holder and for an adversary."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The role of a column in a release."""

    IDENTIFIER = "identifier"
    """Names a person. Dropped; may serve as record key."""
    QUASI_IDENTIFIER = "quasi-identifier"
    """Could be matched with other data, is no secret itself."""
    SENSITIVE = "sensitive"
    """A secret."""
    SENSITIVE_QUASI_IDENTIFIER = "sensitive-quasi-identifier"
    """Both at once: whoever knows it can find a person, whoever does not may want to learn it."""
    QUASI_SENSITIVE = "quasi-sensitive"
    """A set of harmless terms that outside knowledge links to secrets."""
    PLAIN = "plain"
    """Harmless; published as it is."""
    DROP = "drop"
    """Not wanted in the release, and nobody's name."""

    @property
    def is_dropped(self) -> bool:
        """Return whether the column is never published."""
        return self in (Role.IDENTIFIER, Role.DROP)

    @property
    def needs_requirement(self) -> bool:
        """Return whether a policy must have a requirement on the column."""
        return self in (Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER, Role.QUASI_SENSITIVE)
