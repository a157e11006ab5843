"""What a column is to a person who wants to protect it, or to one who wants to find somebody in it."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The part a column plays in a release."""

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
        """Whether no release shows the column."""
        return self in (Role.IDENTIFIER, Role.DROP)

    @property
    def needs_requirement(self) -> bool:
        """Whether a policy must say what protects the column."""
        return self in (Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER, Role.QUASI_SENSITIVE)
