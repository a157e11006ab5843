"""The commands about signing keys."""

from __future__ import annotations

import os
from pathlib import Path

import click

from noren.cli.render import echo_json, say
from noren.errors import SecretError
from noren.secret.signing import PASSPHRASE, SigningKey, is_locked

DEFAULT = "noren-signing.key"
PASSPHRASE_FILE = "A file whose first line is the passphrase."


@click.group(epilog=f"Example: noren key new {DEFAULT} (with --json, the outcome as JSON)")
def key() -> None:
    """Keys that sign releases."""


@key.command("new", epilog=f"Example: noren key new {DEFAULT}; noren anonymize ... --sign {DEFAULT}")
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT)
@click.option("--passphrase", "ask", is_flag=True, help=f"Lock the key by a passphrase: {PASSPHRASE}, or asked for.")
@click.option("--passphrase-file", type=click.Path(path_type=Path), help=PASSPHRASE_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def new(file: Path, ask: bool, passphrase_file: Path | None, as_json: bool) -> None:
    """Make a signing key FILE (yours alone) and FILE.pub (for everybody who checks your releases)."""
    word = None
    if passphrase_file is not None:
        word = read_passphrase(passphrase_file)
    elif ask:
        word = os.environ.get(PASSPHRASE) or click.prompt("Passphrase", hide_input=True, confirmation_prompt=True)
    made = SigningKey.create(file, word)
    if as_json:
        echo_json({"key": str(file), "public": f"{file}.pub", "fingerprint": made.public.fingerprint})
        return
    say(f"Signing key: {file} (keep it, and a copy in a safe place)")
    say(f"Public key: {file}.pub (give it to recipients and auditors)")
    say(f"Fingerprint: {made.public.fingerprint} (publish it where a release cannot be forged)")


def read_passphrase(path: Path) -> str:
    """The first line of a file."""
    try:
        with path.open(encoding="utf-8") as file:
            word = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise SecretError(f"{path}: cannot be read as a passphrase.", hint="One line of UTF-8 text.") from None
    if not word:
        raise SecretError(f"{path}: its first line is empty.", hint="The first line is the passphrase.")
    return word


def load_key(path: Path, passphrase_file: Path | None) -> SigningKey:
    """The signing key that a command was given; the passphrase from a file, the environment or the person."""
    if passphrase_file is not None:
        return SigningKey.load(path, read_passphrase(passphrase_file))
    locked = path.is_file() and is_locked(path.read_bytes())
    if locked and not os.environ.get(PASSPHRASE) and os.isatty(0):
        return SigningKey.load(path, click.prompt(f"Passphrase of {path}", hide_input=True))
    return SigningKey.load(path)
