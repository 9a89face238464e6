"""The words of one page of each kind, as they were last read and found right: ``snapshots/*.txt``.

After a change that is meant, write them anew and read the difference before it is committed:
``python tests/solbench/site/test_site_snapshots.py --renew``
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from pathlib import Path

import pytest
from page_kinds import KINDS, build_site
from page_text import page_text

SNAPSHOTS = Path(__file__).with_name("snapshots")
RENEW = "python tests/solbench/site/test_site_snapshots.py --renew"


def changes(kind: str, page: str) -> str:
    """What differs between the text of a page and its snapshot, and what to do; empty where nothing does."""
    old, new = (SNAPSHOTS / f"{kind}.txt").read_text(encoding="utf-8"), page_text(page)
    if old == new:
        return ""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"snapshots/{kind}.txt", KINDS[kind], "", "", 1, ""
    )
    return "\n".join([f"the text of {kind} changed; if that is meant, run {RENEW}", *lines])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("snapshots"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_of_a_page_are_those_that_were_read(site, kind):
    said = changes(kind, (site / KINDS[kind]).read_text(encoding="utf-8"))
    assert not said, said


def test_one_snapshot_for_each_kind():
    assert sorted(path.name for path in SNAPSHOTS.iterdir()) == sorted(f"{kind}.txt" for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("old", ["Every number leads", "solbench</a>", "<h1>", "</main>"])
def test_a_changed_word_is_seen(site, kind, old):
    page = (site / KINDS[kind]).read_text(encoding="utf-8")
    assert page.count(old) == 1
    said = changes(kind, page.replace(old, old.replace("number", "figure") if "number" in old else f"x {old} x"))
    assert RENEW in said and f"snapshots/{kind}.txt" in said


def test_markup_digests_and_sizes_do_not_matter():
    one = f'<p class="a"><a href="x">word</a> <code>{"0" * 12}…</code> 1.20&nbsp;kB</p>'
    two = f"<p>word\n<b>blake3:{'f' * 64}</b> 98 B</p>"
    assert page_text(one) == page_text(two) == "word DIGEST SIZE\n"
    assert page_text("<pre>a\n  b</pre><ul><li>c</li></ul>") == "    a\n      b\n- c\n"
    row = "<table><tr><th>T<sub>k</sub></th><td>1 s</td></tr></table><svg><title id='t'>d</title><text>e</text></svg>"
    assert page_text(row) == "T_k | 1 s\ndrawing: d · e\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--renew"]:
        sys.exit(f"usage: {RENEW}")
    SNAPSHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = build_site(Path(folder))
        for name, path in KINDS.items():
            text = page_text((made / path).read_text(encoding="utf-8"))
            (SNAPSHOTS / f"{name}.txt").write_text(text, encoding="utf-8")
