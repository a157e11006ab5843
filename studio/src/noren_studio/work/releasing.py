"""Makes a release and its report, signs the release, and saves it where it is to be published."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from noren.errors import ReleaseError
from noren.progress import Stage
from noren_studio import texts
from noren_studio.work.auditing import main_figures
from noren_studio.work.choosing import rules_of, verdict_rows


def make_release(stage: Stage, place: str, policy: dict[str, Any], base: str, to: str) -> dict[str, Any]:
    """Make a verified release in the private folder of the session. Only `save_release` publishes it."""
    from noren.estimates import Members
    from noren.workflow import run

    outcome = run(place, rules_of(policy, base), to=to, stage=stage)
    facts, release = outcome.facts, outcome.release
    members = Members.of({one.name: one.column for one in release.statements}).owner
    return {
        "path": to,
        "records": facts.records,
        "dropped": facts.dropped,
        "suppressed": facts.suppressed,
        "verdicts": verdict_rows(facts.verdicts),
        "replayed": [one.sentence for one in facts.replays],
        "losses": {name: float(figure) for name, figure in facts.losses.items()},
        "notes": list(facts.notes),
        "columns": [[one.name, one.role.value, one.words] for one in release.statements],
        "kept": [name for name in facts.table.source.columns if name not in (*release.columns, *members)],
        "files": sorted([path.name, path.stat().st_size] for path in Path(to).iterdir()),
    }


def make_report(stage: Stage, release: str, place: str, policy: dict[str, Any], base: str, to: str) -> dict[str, Any]:
    """Write the holder's report into the session's folder; return its path and the main figure of every attack."""
    from noren.report import make_report as run

    page = run(release, rules_of(policy, base), original=place, stage=stage)
    page.save(to)
    return {"page": to, "attacks": [main_figures(one) for one in page.content["attacks"]["run"]]}


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
        return {"to": where, "signer": None}
    target = Path(to).expanduser()
    with stage("Writing", None):
        if target.suffix.lower() == ".zip":
            _zipped(opened, target, file_format, signer)
        else:
            opened.save(target, file_format, sign=signer)  # type: ignore[arg-type]
    if target.is_dir():
        from noren import verify

        with stage("Verifying what was written", None):
            if verify(target).failed:
                raise ReleaseError(texts.not_kept(target), hint=texts.NOT_KEPT_HINT)
    return {"to": str(target), "signer": None if signer is None else signer.public.fingerprint}


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
