"""The page Verify in a real browser: its BLAKE3 against the reference implementation, and bundles good and bad."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from playwright import sync_api as playwright
from site_fixture import build_store

from solbench import canonical
from solbench.release import bundle, verify
from solbench.site import render
from solbench.store import Store

# Lengths of the official test vectors; the input is 0, 1, … 250, 0, 1, …
LENGTHS = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096, 4097, 5120,
    5121, 6144, 6145, 7168, 7169, 8192, 8193, 16384, 31744, 102400,
)  # fmt: skip
PREDICATE = {"buildDefinition": {"buildType": "test"}, "runDetails": {"builder": {"id": "t"}}}
HOSTILE = "<img src=x onerror=alert(1)>&amp;\u202e.txt"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``site``, its bundle ``own`` (a folder), ``own.zip``, ``own.tar``, and ``other.zip`` of another."""
    root = tmp_path_factory.mktemp("verify")
    builder = build_store(root / "store")
    render(root / "store", root / "site")
    store = Store(root / "store")
    bundle.write_bundle(store, root / "own.zip", PREDICATE, root / "site")
    bundle.write_bundle(store, root / "own.tar", PREDICATE, root / "site", "tar")
    bundle.write_directory(store, root / "own", PREDICATE, root / "site")
    builder.finish(name="another")
    bundle.write_bundle(store, root / "other.zip", PREDICATE)
    return root


@pytest.fixture
def page(made: Path, offline: Any) -> Iterator[Any]:
    """The page Verify from disk, offline; it must ask for nothing but its own files, and complain of nothing."""
    page = offline.new_page()
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.goto((made / "site/verify.html").as_uri())
    yield page
    assert [line for line in seen if not line.startswith((made / "site").as_uri())] == []
    page.close()


def chosen(page: Any, *paths: Path) -> Any:
    """The report on a folder, an archive or files."""
    field = page.get_by_label("Folder") if paths[0].is_dir() else page.get_by_label("Archive or files")
    field.set_input_files(paths[0] if paths[0].is_dir() else list(paths))
    playwright.expect(page.locator("#verify-report .verdict").first).to_be_visible(timeout=60_000)
    return page.locator("#verify-report")


def verdicts(report: Any) -> list[str]:
    return report.locator(".verdict strong").all_inner_texts()


def faults(report: Any) -> dict[str, str]:
    """Words on each file with a fault; of several on one, all."""
    lines = [(line.locator("code").inner_text(), line.inner_text()) for line in report.locator(".faults li").all()]
    assert len({name for name, _ in lines}) == len(lines)
    return {name: words.removeprefix(name).strip() for name, words in lines}


def listed(report: Any) -> list[list[str]]:
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    return report.locator("#verify-files tbody tr").evaluate_all(cells)


def test_blake3_is_that_of_the_reference_implementation(page):
    vector = bytes(i % 251 for i in range(max(LENGTHS)))
    expected = [blake3(vector[:length]).hexdigest() for length in LENGTHS]
    fill = "Uint8Array.from({ length }, (_, i) => i % 251)"
    whole = page.evaluate(f"lengths => lengths.map((length) => Blake3.hex({fill}))", list(LENGTHS))
    assert whole == expected
    # A piece at a time, in steps that end inside chunks and start at odd addresses.
    steps = f"""lengths => lengths.map((length) => {{
        const bytes = {fill}, hasher = new Blake3.Hasher();
        for (let at = 0, step = 1; at < length; at += step, step = step * 3 % 5003)
            hasher.update(bytes.subarray(at, at + step));
        return hasher.hex();
    }})"""
    assert page.evaluate(steps, list(LENGTHS)) == expected


@pytest.mark.parametrize("form", ["own.zip", "own.tar", "own"])
def test_a_sound_bundle_is_whole_with_pythons_hashes(made, page, form):
    report = chosen(page, made / form)
    assert verdicts(report) == ["Whole", "This release", "Not compared"]
    files = {path.relative_to(made / "own").as_posix(): path for path in (made / "own").rglob("*") if path.is_file()}
    expected = {
        name: ["as it should be", blake3(path.read_bytes()).hexdigest(), hashlib.sha256(path.read_bytes()).hexdigest()]
        for name, path in files.items()
    }
    assert {row[0]: row[2:] for row in listed(report)} == expected
    objects = sum(name.startswith("objects/") for name in files)
    assert f"leads to all {objects} objects in it" in report.inner_text() and objects > 100
    assert "MB/s" in page.locator("#verify-status").inner_text()
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("form", ["own.zip", "own"])
def test_an_archive_or_a_folder_can_be_dropped(made, page, form):
    drop = page.locator(".drop")
    drop.scroll_into_view_if_needed()
    box = drop.bounding_box()
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(made / form)], "dragOperationsMask": 1}
    for step in ("dragEnter", "dragOver", "drop"):
        place = {"type": step, "x": box["x"] + 20, "y": box["y"] + 20}
        session.send("Input.dispatchDragEvent", {**place, "data": data})
    playwright.expect(page.locator("#verify-report .verdict").first).to_contain_text("Whole")


def test_another_release_is_named(made, page):
    report = chosen(page, made / "other.zip")
    root = verify.verify(made / "other.zip").root
    assert verdicts(report) == ["Whole", "Another release", "Not compared"]
    assert f"Its root is {root}, its name “another”. This site shows published" in report.inner_text()


def test_the_root_that_is_expected(made, page):
    root = canonical.digest((made / "own/release.json").read_bytes())
    report = chosen(page, made / "own.zip")
    for typed, words in (
        (root, "As expected"),
        (root.removeprefix("blake3:"), "As expected"),
        ("blake3:" + "0" * 64, "Not as expected"),
        ("0" * 63, "Not compared"),
    ):
        page.get_by_label("The root that you expect").fill(typed)
        assert verdicts(report)[2] == words


def reseal(folder: Path) -> None:
    """Both checksum files anew, as a forger would write them."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = {name: data for name, data in files.items() if name not in bundle.SUMS}
    (folder / "B3SUMS").write_bytes(bundle.sums({name: blake3(data).hexdigest() for name, data in files.items()}))
    (folder / "SHA256SUMS").write_bytes(
        bundle.sums({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    )


def of_kind(folder: Path, kind: str, position: int = 0) -> Path:
    marker = f'"kind":"{kind}"'.encode()
    found = [path for path in sorted(folder.glob("objects/*/*")) if marker in path.read_bytes()[:4096]]
    return [path for path in found if canonical.parse(path.read_bytes()).get("kind") == kind][position]


def tampered(folder: Path) -> dict[str, str]:
    path = of_kind(folder, "score")
    path.write_bytes(path.read_bytes().replace(b'"schema"', b'"schemb"'))
    return {str(path.relative_to(folder)): "damaged: its bytes hash to " + blake3(path.read_bytes()).hexdigest()}


def missing(folder: Path) -> dict[str, str]:
    path = of_kind(folder, "bound")
    path.unlink()
    return {str(path.relative_to(folder)): "missing: the release refers to it as bound"}


def extra(folder: Path) -> dict[str, str]:
    digits = blake3(b"{}").hexdigest()
    path = folder / "objects" / digits[:2] / digits[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"{}")
    return {str(path.relative_to(folder)): "extra: nothing in the release refers to it"}


def swapped(folder: Path) -> dict[str, str]:
    one, two = of_kind(folder, "solution", 0), of_kind(folder, "solution", 1)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    return {str(path.relative_to(folder)): "damaged: its bytes hash to" for path in (one, two)}


def page_changed(folder: Path) -> dict[str, str]:
    path = folder / "site/index.html"
    path.write_text(path.read_text().replace("0.514", "0.914"))
    return {"site/index.html": "damaged: site.json has another hash for it"}


def page_added(folder: Path) -> dict[str, str]:
    (folder / "site/more.html").write_text("<p>more</p>")
    return {"site/more.html": "extra: not listed in site.json"}


def root_changed(folder: Path) -> dict[str, str]:
    release = canonical.loads((folder / "release.json").read_bytes())
    (folder / "release.json").write_bytes(canonical.dumps({**release, "problems": 4}))
    root = blake3((folder / "release.json").read_bytes()).hexdigest()
    return {
        f"objects/{root[:2]}/{root[2:]}": "missing",
        "provenance.json": "about another",
        "site.json": "another release",
    }


def markup(folder: Path) -> dict[str, str]:
    (folder / HOSTILE).write_text("x")
    return {"<img src=x onerror=alert(1)>&amp;\\u{202e}.txt": "extra: no bundle holds such a file"}


@pytest.mark.parametrize(
    "change",
    [tampered, missing, extra, swapped, page_changed, page_added, root_changed, markup],
    ids=lambda c: c.__name__,
)
def test_what_is_wrong_in_a_folder_is_named(made, page, tmp_path, change: Callable[[Path], dict[str, str]]):
    folder = Path(shutil.copytree(made / "own", tmp_path / "own"))
    expected = change(folder)
    reseal(folder)
    report = chosen(page, folder)
    assert verdicts(report)[0] == "Damaged"
    found = faults(report)
    assert {name for name in found if name not in bundle.SUMS} >= set(expected)
    for name, words in expected.items():
        assert words in found[name], name
    if change in (tampered, missing, page_changed, page_added, swapped):
        assert set(found) == set(expected)
    assert report.locator("img").count() == 0
    # The command finds the same files at fault.
    errors = verify.verify(folder).errors
    same = {error.path.encode("ascii", "backslashreplace").decode() for error in errors}
    assert {name.replace("\\u{202e}", "\\u202e") for name in expected} <= same


def test_checksum_files_are_held_against_the_rest(made, page, tmp_path):
    folder = Path(shutil.copytree(made / "own", tmp_path / "own"))
    for name, old, new in (
        ("B3SUMS", "provenance.json", "provenance.jso"),
        ("SHA256SUMS", "  release.json", " *release.json"),
    ):
        (folder / name).write_text((folder / name).read_text().replace(old, new))
    found = faults(chosen(page, folder))
    assert "extra: not listed in B3SUMS" in found["provenance.json"]
    assert "missing: listed in B3SUMS" in found["provenance.jso"]
    assert set(found) == {"provenance.json", "provenance.jso", "SHA256SUMS"}


def cut(data: bytes) -> bytes:
    return data[:-100]


def longer(data: bytes) -> bytes:
    return data + b"\0"


def other_rights(data: bytes) -> bytes:
    """Another mode or external attribute in the first header that has one."""
    return (
        data.replace(b"0000644\0", b"0000755\0", 1)
        if b"ustar" in data[:512]
        else data.replace(b"\xa4\x81", b"\xed\x81", 1)
    )


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("change", [cut, longer, other_rights], ids=lambda change: change.__name__)
def test_an_archive_that_is_not_ours_is_refused(made, page, tmp_path, form, change):
    path = tmp_path / f"own.{form}"
    path.write_bytes(change((made / f"own.{form}").read_bytes()))
    report = chosen(page, path)
    assert verdicts(report) == ["Refused"]
    assert "as solbench writes it" in report.inner_text() and "Use solbench verify" in report.inner_text()


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_a_damaged_member_of_an_archive_is_named(made, page, tmp_path, form):
    data = bytearray((made / f"own.{form}").read_bytes())
    member = of_kind(made / "own", "score")
    at = data.find(member.read_bytes())
    data[at + 10] ^= 1
    (tmp_path / f"own.{form}").write_bytes(data)
    report = chosen(page, tmp_path / f"own.{form}")
    name = str(member.relative_to(made / "own"))
    assert verdicts(report)[:2] == ["Damaged", "This release"] and set(faults(report)) == {name}
    assert "damaged: its bytes hash to" in faults(report)[name]
    assert ("another CRC-32" in faults(report)[name]) == (form == "zip")
    assert listed(report)[0][0] == name


def test_other_archives_are_refused_with_what_to_do(made, page, tmp_path):
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(made / "own/release.json", "release.json")
    assert "release.json is compressed or encrypted" in chosen(page, packed).inner_text()
    (tmp_path / "own.tar.gz").write_bytes(gzip.compress((made / "own.tar").read_bytes(), 1))
    assert "gunzip --keep" in chosen(page, tmp_path / "own.tar.gz").inner_text()
    subprocess.run(["tar", "-cf", tmp_path / "gnu.tar", "-C", made / "own", "release.json"], check=True)
    assert "the header of release.json is not ours" in chosen(page, tmp_path / "gnu.tar").inner_text()


def test_single_files(made, page, tmp_path):
    sound = of_kind(made / "own", "score")
    damaged = tmp_path / sound.name
    hostile = tmp_path / HOSTILE
    hostile.write_bytes(b"")
    report = chosen(page, sound, made / "own/release.json", hostile)
    rows = {row[0]: row[1:] for row in listed(report)}
    assert rows[sound.name][1] == "its name is its hash"
    assert rows["release.json"][1] == "the root object of this site’s release"
    assert rows["<img src=x onerror=alert(1)>&amp;\\u{202e}.txt"] == [
        "0 B", "nothing to compare with", blake3(b"").hexdigest(), hashlib.sha256(b"").hexdigest(),
    ]  # fmt: skip
    assert report.locator("img").count() == 0
    damaged.write_bytes(sound.read_bytes() + b" ")
    assert listed(chosen(page, damaged))[0][2] == "damaged: its name is not its hash"


def test_a_large_file_leaves_the_page_free_and_can_be_cancelled(page, tmp_path):
    size = 96 << 20
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(size)
    page.evaluate("() => { window.turns = 0; setInterval(() => { window.turns += 1; }, 1); }")
    row = listed(chosen(page, large))[0]
    assert row[3:] == [blake3(bytes(size)).hexdigest(), "not computed: beyond 64 MiB"]
    assert page.evaluate("window.turns") > 5
    with large.open("wb") as file:
        file.truncate(64 * size)
    page.get_by_label("Archive or files").set_input_files(large)
    page.get_by_role("button", name="Cancel").click()
    playwright.expect(page.locator("#verify-status")).to_have_text("Cancelled: nothing was decided.")
    assert page.locator("#verify-report").inner_text() == ""


def test_without_scripts_the_page_says_how_else(made, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((made / "site/verify.html").as_uri())
    words = page.locator("main").inner_text()
    assert "JavaScript is off" in words and "solbench verify release/published.zip --expect-root" in words
    assert "b3sum --check B3SUMS" in words and page.locator("input").count() == 0
    context.close()
