"""Names that no bundle may hold, in archives made to measure. Numbers in comments: the case that a test is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sample_archives import gzip_of, tar_of, zip_of

from solbench.release import paths
from solbench.release.verify import verify

NAMES: list[tuple[list[str], str]] = [
    (["../x"], "path-traversal"),  # 1
    (["a/../../x"], "path-dot"),  # 2
    (["a/./b"], "path-dot"),
    (["/etc/x"], "path-absolute"),  # 3
    (["C:\\x"], "path-windows"),  # 4
    (["C:x"], "path-windows"),
    (["\\\\srv\\x"], "path-windows"),
    (["a\\b"], "path-windows"),
    ([""], "path-empty"),  # 5
    (["a//b"], "path-empty"),
    (["site/"], "path-empty"),
    (["site/a\0b"], "path-control"),  # 6
    (["site/a\nb"], "path-control"),
    (["site/a\x1b[2Jb"], "path-control"),
    (["site/a\x7f"], "path-control"),
    (["site/a\x9b"], "path-control"),
    (["site/CON"], "path-reserved"),  # 7
    (["site/nul.txt"], "path-reserved"),
    (["site/COM1"], "path-reserved"),
    (["site/a."], "path-reserved"),
    (["site/a "], "path-reserved"),
    (["-rf"], "path-reserved"),  # 14
    (["~root"], "path-reserved"),
    (["site/\u00e9", "site/e\u0301"], "path-collision"),  # 9
    (["site/Index.html", "site/index.html"], "path-collision"),
    (["site/\u00e9"], "path-unicode"),
    (["site/a\u202eb"], "path-unicode"),  # 11
    (["site/a\u200bb"], "path-unicode"),
    (["site/" + "x" * 600], "limit-path"),  # 12
    (["site/" + "a/" * 40 + "b"], "limit-path"),
    (["site/a", "site/a/b"], "path-conflict"),  # 13
    (["objects/ab/" + "c" * 61], "digest-format"),  # 40
    (["objects/ab/" + "c" * 126], "digest-format"),
    (["objects/AB/" + "c" * 62], "digest-format"),  # 36
    (["objects/" + "a" * 64], "object-path"),
    (["objects/a/b/" + "c" * 62], "object-path"),
    (["objects/README"], "extra-file"),
    (["b", "a"], "unsorted"),
    (["site/a", "site/a"], "duplicate-entry"),  # 63
]
# What the fields of a tar header cannot say: it ends a name at a NUL, and holds 100 bytes after the last slash.
NOT_IN_TAR = ("site/a\0b", "site/" + "x" * 600, "objects/ab/" + "c" * 126)
MAKERS: dict[str, Callable[[list[bytes]], bytes]] = {
    "zip": zip_of,
    "tar": tar_of,
    "tar.gz": lambda names: gzip_of(tar_of(names)),
}


@pytest.mark.parametrize(
    ("form", "names", "code"),
    [(form, names, code) for form in MAKERS for names, code in NAMES if form == "zip" or names[0] not in NOT_IN_TAR],
)
def test_names(tmp_path: Path, form: str, names: list[str], code: str) -> None:
    path = tmp_path / "bundle"
    path.write_bytes(MAKERS[form]([name.encode("utf-8", "surrogateescape") for name in names]))
    result = verify(path)
    assert code in [error.code for error in result.errors]
    assert result.exit_code == 1


@pytest.mark.parametrize("form", MAKERS)
def test_a_name_that_is_not_utf8(tmp_path: Path, form: str) -> None:
    (tmp_path / "bundle").write_bytes(MAKERS[form]([b"site/\xff"]))
    result = verify(tmp_path / "bundle")
    assert "path-unicode" in [error.code for error in result.errors]
    assert result.exit_code == 1


@pytest.mark.parametrize("form", MAKERS)
def test_fine_names_have_no_code(tmp_path: Path, form: str) -> None:
    (tmp_path / "bundle").write_bytes(MAKERS[form]([b"objects/ab/" + b"c" * 62, b"release.json", b"site/x"]))
    result = verify(tmp_path / "bundle")
    assert result.levels[0].state == "verified"
    assert not [error for error in result.errors if error.code.startswith("path")]


@pytest.mark.parametrize("name", ["release.json", "objects/ab/" + "c" * 62, "site/a-b_c.1/index.html", "site/x"])
def test_names_that_are_fine(name: str) -> None:
    assert list(paths.problems_of(name)) == []
    assert paths.misplaced(name) is None
