"""Makes a release and its report, signs the release, and saves it where it is to be published."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noren.progress import Stage
from noren_studio.work.choosing import cell_text, rules_of, verdict_rows

EXAMPLE = 3
"""Number of published records that a page shows."""


def make_release(stage: Stage, place: str, policy: dict[str, Any], base: str, to: str) -> dict[str, Any]:
    """Make a verified release in the private folder of the session. Only `save_release` publishes it."""
    from noren.workflow import run

    outcome = run(place, rules_of(policy, base), to=to, stage=stage)
    facts, release = outcome.facts, outcome.release
    frame = release.frame().head(EXAMPLE)
    return {
        "path": to,
        "records": facts.records,
        "dropped": facts.dropped,
        "suppressed": facts.suppressed,
        "verdicts": verdict_rows(facts.verdicts),
        "replayed": [one.sentence for one in facts.replays],
        "losses": {name: float(figure) for name, figure in facts.losses.items()},
        "notes": list(facts.notes),
        "seconds": {name: float(spent) for name, spent in facts.seconds.items()},
        "columns": [[one.name, one.role.value, one.words] for one in release.statements],
        "kept": [name for name in facts.table.source.columns if name not in frame.columns],
        "rows": [[cell_text(cell) for cell in row] for row in frame.rows()],
        "files": sorted([path.name, path.stat().st_size] for path in Path(to).iterdir()),
    }


def make_report(stage: Stage, release: str, place: str, policy: dict[str, Any], base: str, to: str) -> dict[str, Any]:
    """Write the holder's report into the session's folder; return its path and the main figure of every attack."""
    from noren.report import make_report as run

    page = run(release, rules_of(policy, base), original=place, stage=stage)
    page.save(to)
    return {"page": to, "attacks": [_attack(one) for one in page.content["attacks"]["run"]]}


def _attack(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the main figure of an attack: without a release, in the raw table, and in the release."""
    from noren.report import final, headline, shown_scenarios

    name = headline(found)
    last = final(found)
    raw = next((one["summary"].get(name) for one in shown_scenarios(found) if one["name"] == "raw"), None)
    return {
        "attack": found["attack"],
        "target": list(found["target"]),
        "adversary": found["adversary"],
        "figure": None if name is None else str(found["titles"].get(name, name.replace("_", " "))),
        "nothing": None if name is None else found["baseline"].get(name),
        "raw": raw,
        "release": None if name is None else last["summary"].get(name),
        "means": last["title"],
    }


def save_release(
    stage: Stage, release: str, to: str, file_format: str, key: str, passphrase: str | None, new_key: bool
) -> dict[str, Any]:
    """The release where it is to be published: a folder, a ZIP, or a schema of PostgreSQL; signed if there is a key."""
    from noren import SigningKey, open_release

    signer = None
    if key:
        signer = SigningKey.create(key, passphrase) if new_key else SigningKey.load(key, passphrase)
    opened = open_release(release)
    if "://" in to:
        from noren.release import publish

        with stage("Publishing", opened.rows) as meter:
            where = publish(opened, to, meter=meter)
        return {"to": where, "signer": None, "verdicts": []}
    target = Path(to).expanduser()
    with stage("Writing", None):
        if target.suffix.lower() == ".zip":
            _zipped(opened, target, file_format, signer)
        else:
            opened.save(target, file_format, sign=signer)  # type: ignore[arg-type]
    checked: list[dict[str, Any]] = []
    if target.is_dir():
        from noren import verify

        with stage("Verifying what was written", None):
            checked = verdict_rows(verify(target))
    return {"to": str(target), "signer": None if signer is None else signer.public.fingerprint, "verdicts": checked}


def _zipped(release: Any, target: Path, file_format: str, signer: Any) -> None:
    """Write the release as a ZIP file. After a failure there is no file."""
    from noren.files import publish_file, refuse_target

    refuse_target(target)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".noren-zip-") as aside:
        folder = release.save(Path(aside) / target.stem, file_format, sign=signer)
        packed = Path(aside) / "release.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(folder.iterdir()):
                file.write(path, f"{target.stem}/{path.name}")
        publish_file(packed, target)
        shutil.rmtree(folder)
