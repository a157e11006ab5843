"""The documentation site: it builds, its links lead somewhere, and it is searched from disk without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import noren
from tests.browser import Browser, browser

__all__ = ["browser"]  # a fixture is found by its name
ROOT = Path(noren.__file__).parents[2]
FOUND = ".md-search-result__item"


@pytest.mark.slow
def test_the_site_is_searched_from_disk(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the site needs MkDocs")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path / "site")]
    built = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    page, asked = browser.started.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "site" / "tutorial.html").as_uri(), wait_until="load")
    page.focus(".md-search__input")
    page.keyboard.type("suppression", delay=30)
    page.wait_for_selector(FOUND, state="attached", timeout=60_000)
    assert any(
        "perturbation.html" in link for link in page.eval_on_selector_all(f"{FOUND} a", "all => all.map(a => a.href)")
    )
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()
