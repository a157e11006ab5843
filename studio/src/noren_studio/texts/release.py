"""Texts of step 5, the release."""

from __future__ import annotations

from collections.abc import Sequence

STAYS = "Stays with you"
STAYS_WHY = "Behind the curtain: nothing of this is ever written into a release."
ORIGINAL_TABLE = "the original table"
NEVER_PUBLISHED = "columns that are not published"
RANDOMNESS = "Randomness"
RANDOMNESS_SAYS = "made for this release, and forgotten"
OFFICERS_REPORT = "The officer's report"
REPORT_SAYS = "holder only: its figures rest on the original"
SIGNING_KEY = "Your signing key"
KEY_SAYS = "signs, and is never published; its public half is"
PUBLISHED = "Is published"
NOTHING_YET = "Nothing yet. A release is made in a private folder and verified; it is published when you hand it over."
MAKE = "Make the release"
MAKE_AGAIN = "Make it again"
STALE_RELEASE = "The policy has changed since this release was made. Make it again, or undo."
VERDICTS = "What holds"
VERDICTS_WHY = (
    "Judged on what was written, by code that the method does not share. If one failed, nothing was published."
)
RECORDS_PUBLISHED = "records published"
LEFT_OUT = "records left out"
NCP_SAYS = "of the detail of quasi-identifiers is lost (NCP)"
ALL_HOLD = "requirements, and every one holds"
NOT_ALL_HOLD = "requirements hold; not all do"
REPORT = "The officer's report"
REPORT_WHY = "Every attack that applies, against the raw table and against the release; one page for whoever must sign."
REPORT_GO = "Attack it and write the report"
ATTACK_HEADS = (
    ("Attack", ""), ("What is measured", ""), ("No release", ""), ("Raw table", ""), ("This release", ""),
    ("What that is, and what the adversary knows", ""),
)  # fmt: skip
HAND_OVER = "Hand it over"
HAND_OVER_WHY = "A folder, a file that ends in .zip, or postgresql://...?schema=name. What exists is never overwritten."
SAVE_TO = "Where to"
FORMAT = "Format"
KEY_FILE = "Signing key (optional)"
PASSPHRASE = "Its passphrase"
NEW_KEY = "make this key"
SAVE = "Hand over"
SIGNED_HINT = (
    "Give recipients the public key (.pub) by another way, so that they can tell your releases from forged ones."
)
UNSIGNED_HINT = "Without a signature recipients cannot tell it from a forged one: give a key to sign it."


def will_be(names: Sequence[str]) -> str:
    return f"To be published, once every requirement holds: {', '.join(names)}."


def published_of(records: int, columns: int) -> str:
    return f"{records:,} records, {columns} columns, in an order that says nothing."


def file_of(name: str, size: int) -> str:
    return f"{name}  {size / 1024:,.0f} KB"


def saved(place: str, signer: str | None) -> str:
    signed = f", signed by {signer}" if signer else ", not signed"
    return f"Handed over to {place}{signed}."
