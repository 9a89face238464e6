"""One browser for every test that looks at the site: Debian's chromium, through playwright.

Skipped where there is none, but not in CI (``.ci/run`` sets CI and installs it).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None and not os.environ.get("CI"):
        pytest.skip("no chromium; apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def offline(browser: Any) -> Any:
    """A context of the browser without a network."""
    return browser.new_context(offline=True)
