"""Texts of step 5, the release."""

from __future__ import annotations

from collections.abc import Sequence

STAYS = "Stays with you"
STAYS_WHY = "Noren never writes any of this into a release."
ORIGINAL_TABLE = "the original table"
NEVER_PUBLISHED = "columns that are not published"
RANDOMNESS = "Randomness"
RANDOMNESS_SAYS = "random and not stored"
OFFICERS_REPORT = "The officer's report"
REPORT_SAYS = "for the holder only: its figures are computed from the original"
SIGNING_KEY = "Your signing key"
KEY_SAYS = "signs the release; only its public half is published"
PUBLISHED = "Is published"
NOTHING_YET = (
    "Nothing yet. Noren makes and verifies the release in a private folder. You publish it when you hand it over."
)
MAKE = "Make the release"
MAKE_AGAIN = "Make it again"
STALE_RELEASE = "The policy has changed since this release was made. Make it again, or undo."
VERDICTS = "What holds"
VERDICTS_WHY = "Verified on the written files, by code that is independent of the method."
RECORDS_PUBLISHED = "records published"
LEFT_OUT = "records left out"
NCP_SAYS = "of the detail of quasi-identifiers is lost (NCP)"
ALL_HOLD = "requirements, which all hold"
NOT_ALL_HOLD = "requirements hold; not all do"
REPORT = "The officer's report"
REPORT_WHY = (
    "Runs every attack that applies on the raw table and on the release, and writes a report for those who decide."
)
REPORT_GO = "Attack it and write the report"
ATTACK_HEADS = (
    ("Attack", ""), ("What is measured", ""), ("No release", ""), ("Raw table", ""), ("This release", ""),
    ("What this means, and what the adversary knows", ""),
)  # fmt: skip
HAND_OVER = "Hand it over"
HAND_OVER_WHY = (
    "A folder, a file that ends in .zip, or postgresql://...?schema=name. Existing files are never overwritten."
)
SAVE_TO = "Where to"
FORMAT = "Format"
KEY_FILE = "Signing key (optional)"
PASSPHRASE = "Its passphrase"
NEW_KEY = "make a new key (without a path: signing.key in the folder where the studio was started)"
SAVE = "Hand over"
SIGNED_HINT = "Give recipients the public key (.pub) in another way, so that they can recognise forged releases."
NOT_KEPT_HINT = "Do not publish it. Check the disk, and hand the release over again."
UNSIGNED_HINT = "Without a signature, recipients cannot recognise a forged release: give a key to sign it."


def will_be(names: Sequence[str]) -> str:
    return f"To be published, once every requirement holds: {', '.join(names)}."


def published_of(records: int, columns: int) -> str:
    return f"{records:,} records, {columns} columns, in a random order."


def file_of(name: str, size: int) -> str:
    return f"{name}  {size / 1024:,.0f} KB"


def saved(place: str, signer: str | None) -> str:
    signed = f", signed by {signer}" if signer else ", not signed"
    return f"Handed over to {place}{signed}."


def not_kept(place: object) -> str:
    return f"what was written to {place} does not meet its requirements."


def share_of(attack: str, figure: str, share: float) -> str:
    return f"{attack}: {figure}, {share:.1%}"
