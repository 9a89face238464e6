"""Every format of a bundle: the same members and bytes everywhere, readable by plain tools, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
import sample_release
from blake3 import blake3
from sample_archives import written

from solbench.cli import run
from solbench.cli.bundle import format_of
from solbench.errors import InputError, IntegrityError
from solbench.release import archive, bundle, gz, tar
from solbench.release.verify import verify
from solbench.store import Store

FORMATS: tuple[bundle.ArchiveFormat, ...] = ("zip", "tar", "tar.gz")
GNU_TAR = (
    shutil.which("tar") is not None and b"GNU tar" in subprocess.run(["tar", "--version"], capture_output=True).stdout
)
needs_gnu_tar = pytest.mark.skipif(not GNU_TAR, reason="no GNU tar here")
OURS = ["--format=ustar", "--owner=0", "--group=0", "--numeric-owner", "--mode=0644", "--mtime=@0", "-b1"]


def members_of(path: Path) -> dict[str, bytes]:
    """Members and their bytes, read by the standard library."""
    if path.is_dir():
        return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as file:
            return {name: file.read(name) for name in file.namelist()}
    with tarfile.open(path) as packed:
        return {member.name: read(packed, member) for member in packed}


def read(packed: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = packed.extractfile(member)
    assert file is not None
    return file.read()


def test_every_format_holds_the_same_members(sample: Path, tmp_path: Path) -> None:
    inside = members_of(sample / "sample")
    for form in FORMATS:
        found = members_of(written(sample, tmp_path / f"x.{form}", form))
        assert list(found) == sorted(inside)
        assert found == inside


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_said_of_it(sample: Path, tmp_path: Path, form: bundle.ArchiveFormat) -> None:
    out = tmp_path / f"x.{form}"
    said = bundle.write_bundle(Store(sample / "store"), out, sample_release.PREDICATE, sample / "site", form)
    data = out.read_bytes()
    assert (said.size, said.digest) == (len(data), f"blake3:{blake3(data).hexdigest()}")
    assert said.members == len(members_of(out))
    assert (tmp_path / f"x.{form}.b3").read_text() == f"{blake3(data).hexdigest()}  x.{form}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"x.{form}", f"x.{form}.b3"]
    assert out.stat().st_mode & 0o777 == 0o644
    assert verify(out, said.root.digest).exit_code == 0


def test_members_of_a_tar_have_no_time_owner_or_mode_of_their_own(sample: Path, tmp_path: Path) -> None:
    with tarfile.open(written(sample, tmp_path / "x.tar", "tar")) as packed:
        assert packed.pax_headers == {}
        for member in packed:
            assert member.isreg() and not member.pax_headers
            assert (member.mode, member.uid, member.gid, member.mtime) == (0o644, 0, 0, 0)
            assert (member.uname, member.gname, member.linkname) == ("", "", "")


def test_python_writes_the_same_tar(sample: Path, tmp_path: Path) -> None:
    """Apart from the device numbers, which POSIX leaves open for files, and the fill of the last record."""
    ours = bytearray(written(sample, tmp_path / "x.tar", "tar").read_bytes())
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name, data in sorted(members_of(sample / "sample").items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    theirs = bytearray(out.getvalue()[: len(ours)])
    assert not out.getvalue()[len(ours) :].strip(b"\0")
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as file:
        offsets = [member.offset for member in file]
    for offset in offsets:
        for data in (ours, theirs):
            data[offset + 148 : offset + 156] = bytes(8)
            data[offset + 329 : offset + 345] = bytes(16)
    assert ours == theirs


@needs_gnu_tar
def test_gnu_tar_writes_the_same_bytes(sample: Path, tmp_path: Path) -> None:
    """From the directory bundle, and with a name that needs the prefix."""
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    long = Path("d" * 50) / ("e" * 50) / ("f" * 40) / "page.html"
    (site / long).parent.mkdir(parents=True)
    (site / long).write_bytes(b"x" * 1000)
    store = Store(sample / "store")
    sample_release.write_site_manifest(site, store.index("release")["release"])
    bundle.write_bundle(store, tmp_path / "x.tar", {}, site, "tar")
    bundle.write_directory(store, tmp_path / "x", {}, site)
    names = sorted(members_of(tmp_path / "x"))
    assert f"site/{long.as_posix()}" in names
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in names))
    subprocess.run(
        ["tar", *OURS, "-C", str(tmp_path / "x"), "--no-recursion", "-T", "names", "-cf", "again.tar"],
        cwd=tmp_path,
        check=True,
    )
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "x.tar").read_bytes()
    assert verify(tmp_path / "x.tar").exit_code == 0


@needs_gnu_tar
@pytest.mark.parametrize("form", ["tar", "tar.gz"])
def test_gnu_tar_lists_and_unpacks_it(sample: Path, tmp_path: Path, form: bundle.ArchiveFormat) -> None:
    path = written(sample, tmp_path / f"x.{form}", form)
    listed = subprocess.run(["tar", "tf", str(path)], capture_output=True, text=True, check=True)
    assert listed.stdout.splitlines() == sorted(members_of(sample / "sample"))
    assert listed.stderr == ""
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "xf", str(path), "-C", str(tmp_path / "out")], check=True)
    assert members_of(tmp_path / "out") == members_of(sample / "sample")
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path / "out", check=True)
    for line in (tmp_path / "out" / "B3SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert blake3((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert verify(tmp_path / "out").exit_code == 0


@pytest.mark.skipif(shutil.which("gunzip") is None, reason="no gunzip here")
def test_gunzip_gives_the_tar(sample: Path, tmp_path: Path) -> None:
    plain = written(sample, tmp_path / "x.tar", "tar").read_bytes()
    packed = written(sample, tmp_path / "x.tar.gz", "tar.gz")
    done = subprocess.run(["gunzip", "-c", str(packed)], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (plain, b"")
    assert gzip.decompress(packed.read_bytes()) == plain


# -- the same everywhere

BUILD = """
import hashlib, json, os, sys
from pathlib import Path
os.umask(int(sys.argv[1], 8))
sys.path.insert(0, sys.argv[2])
import sample_release
from solbench.release import bundle
folder = Path(sys.argv[3])
store = sample_release.build_store(folder / "store")
site = sample_release.build_site(folder / "site", store.index("release")["release"])
for form in ("zip", "tar", "tar.gz"):
    bundle.write_bundle(store, folder / f"x.{form}", sample_release.PREDICATE, site, form)
bundle.write_directory(store, folder / "x", sample_release.PREDICATE, site)
"""


def test_two_builds_in_different_surroundings(tmp_path: Path) -> None:
    helper = Path(sample_release.__file__).parent
    surroundings = [
        {"TZ": "UTC", "LANG": "C", "PYTHONHASHSEED": "0", "HOME": "/nowhere"},
        {"TZ": "Asia/Kathmandu", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "4711", "COLUMNS": "7"},
    ]
    built = []
    for number, environment in enumerate(surroundings):
        folder = tmp_path / str(number) / ("x" * number)
        folder.mkdir(parents=True)
        umask, target = ("077", "built") if number else ("022", str(folder / "built"))
        subprocess.run(
            [sys.executable, "-c", BUILD, umask, str(helper), target],
            cwd=folder if number else "/",
            env={**os.environ, **environment, "LC_ALL": environment["LANG"]},
            check=True,
        )
        built.append(folder / "built")
    one, two = built
    for form in FORMATS:
        assert (one / f"x.{form}").read_bytes() == (two / f"x.{form}").read_bytes()
        assert (one / f"x.{form}.b3").read_bytes() == (two / f"x.{form}.b3").read_bytes()
        assert {(folder / f"x.{form}").stat().st_mode for folder in built} == {0o100644}
    members = [members_of(folder / name) for folder in built for name in ("x.zip", "x.tar", "x.tar.gz", "x")]
    assert all(found == members[0] for found in members)
    modes = [
        {path.relative_to(folder).as_posix(): oct(path.stat().st_mode) for path in (folder / "x").rglob("*")}
        for folder in built
    ]
    assert modes[0] == modes[1]
    assert set(modes[0].values()) == {"0o100644", "0o40755"}


def test_the_bytes_of_today(sample: Path, tmp_path: Path) -> None:
    """A gzip file of ours begins like this, and holds what Python's zlib makes of the tar at level 6."""
    plain = written(sample, tmp_path / "x.tar", "tar").read_bytes()
    data = written(sample, tmp_path / "x.tar.gz", "tar.gz").read_bytes()
    coder = zlib.compressobj(6, zlib.DEFLATED, -15, 8)
    assert data[:10] == bytes.fromhex("1f8b08000000000000ff")
    assert data[10:-8] == coder.compress(plain) + coder.flush()
    assert data[-8:] == zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")


# -- whole or not at all, and what does not fit


@pytest.mark.parametrize("form", FORMATS)
def test_a_failure_leaves_the_old_bundle(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: bundle.ArchiveFormat
) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        written(sample, path, form)
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("form", FORMATS)
def test_a_site_that_changes_while_it_is_bundled(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: bundle.ArchiveFormat
) -> None:
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    original = bundle._unchanged

    def late(name: str, member: bundle._Measured) -> object:
        if name == "site/index.html":
            (site / "index.html").write_bytes(b"something else")
        return original(name, member)

    monkeypatch.setattr(bundle, "_unchanged", late)
    with pytest.raises(IntegrityError, match="changed while"):
        bundle.write_bundle(Store(sample / "store"), tmp_path / f"x.{form}", {}, site, form)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("form", ["tar", "tar.gz"])
@pytest.mark.parametrize("name", ["n" * 101, "d" * 101 + "/" + "n" * 101, "d/" * 20 + "n" * 101])
def test_a_name_that_no_ustar_header_holds(sample: Path, tmp_path: Path, form: bundle.ArchiveFormat, name: str) -> None:
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    (site / name).parent.mkdir(parents=True, exist_ok=True)
    (site / name).write_bytes(b"x")
    store = Store(sample / "store")
    with pytest.raises(InputError, match="--format zip"):
        bundle.write_bundle(store, tmp_path / f"x.{form}", {}, site, form)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    bundle.write_bundle(store, tmp_path / "x.zip", {}, site)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("n" * 100, 0), ("d" * 155 + "/" + "n" * 100, 155), ("d/" * 60 + "n", 119), ("d" * 50 + "/" + "n" * 50, 50)],
)
def test_names_that_just_fit(name: str, prefix: int) -> None:
    block = tar.header(name.encode(), 0)
    assert len(block) == 512
    assert len(tar.field(block, "prefix").rstrip(b"\0")) == prefix
    with tarfile.open(fileobj=io.BytesIO(block + tar.END)) as file:
        assert [member.name for member in file] == [name]
    assert tar.name_of(block) == name.encode()


def test_sizes_that_just_fit() -> None:
    most = 8 * 1024**3 - 1
    assert tar.size_of(tar.header(b"x", most)) == most
    with pytest.raises(InputError, match="8 GiB"):
        tar.header(b"x", most + 1)


def test_more_than_a_plain_zip_can_hold(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("MAX_MEMBERS", 10), ("MAX_BYTES", 5000)):
        with monkeypatch.context() as patch:
            patch.setattr(archive, limit, value)
            with pytest.raises(InputError, match="--format tar"):
                written(sample, tmp_path / "x.zip", "zip")
            written(sample, tmp_path / f"{limit}.tar", "tar")
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_memory_does_not_grow_with_the_members(sample: Path, tmp_path: Path, form: bundle.ArchiveFormat) -> None:
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    with (site / "large.bin").open("wb") as file:
        file.truncate(32 << 20)
    store = Store(sample / "store")
    sample_release.write_site_manifest(site, store.index("release")["release"])
    tracemalloc.start()
    try:
        bundle.write_bundle(store, tmp_path / f"x.{form}", {}, site, form)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


# -- the command


@pytest.mark.parametrize(
    ("stated", "output", "form"),
    [
        (None, None, "zip"),
        ("zip", None, "zip"),
        ("tar", None, "tar"),
        ("tar.gz", None, "tar.gz"),
        ("directory", None, "directory"),
        (None, "x.zip", "zip"),
        (None, "x.tar", "tar"),
        (None, "x.tar.gz", "tar.gz"),
        (None, "x.tgz", "tar.gz"),
        ("tar.gz", "x.tgz", "tar.gz"),
        ("tar", "x", "tar"),
        ("directory", "x", "directory"),
        ("directory", "x.zip", None),
        ("zip", "x.tar", None),
        ("tar", "x.tar.gz", None),
        ("tar.gz", "x.tar", None),
        (None, "x", None),
        (None, "x.tar.xz", None),
        (None, "zip", None),
    ],
)
def test_which_format(stated: str | None, output: str | None, form: str | None) -> None:
    path = None if output is None else Path("somewhere.tar") / output
    if form is not None:
        assert format_of(stated, path) == form
    else:
        with pytest.raises(InputError, match="--format"):
            format_of(stated, path)


def test_a_contradiction_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bundle", "--format", "zip", "--output", str(tmp_path / "x.tar")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("solbench: ") and "--format says zip" in err and err.count("\n") == 1
    assert run(["bundle", "--output", str(tmp_path / "x.rar")]) == 2
    assert "ends in none of .zip, .tar, .tar.gz, .tgz" in capsys.readouterr().err
    assert run(["bundle", "--format", "7z"]) == 2
    assert list(tmp_path.iterdir()) == []


PARAMETERS = """\
release: published
path: aten
targets: [gfx1200, cpu]
capacity_gib: {}
protocol: full
max_call_s: 0.25
budget_s: 60.0
"""


@pytest.fixture
def checkout(sample: Path, tmp_path: Path) -> Path:
    """A checkout with a built store, as the command meets it."""
    root = tmp_path / "checkout"
    (root / "problems").mkdir(parents=True)
    (root / "params.yaml").write_text(PARAMETERS)
    shutil.copytree(sample / "store", root / "store")
    shutil.copytree(Path(__file__).resolve().parents[3] / "site_templates", root / "site_templates")
    return root


def test_the_command_writes_each_format(
    sample: Path, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    members = []
    for form in ("zip", "tar", "tar.gz", "directory"):
        assert run(["bundle", "--format", form]) == 0
        lines = capsys.readouterr().out.splitlines()
        command = lines[-1].split()
        path = f"release/published.{form}" if form != "directory" else "release/published"
        assert command[:3] == ["solbench", "verify", path]
        assert run([*command[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["matches_expected"] is True
        members.append(members_of(Path(path)))
        assert Path(f"{path}.b3").exists() == (form != "directory")
    assert all(found == members[0] for found in members)
    assert "site/index.html" in members[0]
    byproducts = json.loads(members[0]["provenance.json"])["predicate"]["runDetails"]["byproducts"]
    assert [one["name"] for one in byproducts] == ["cpu/full"]
    assert hashlib.sha256(members[0]["provenance.json"]).hexdigest() in members[0]["SHA256SUMS"].decode()


def test_verify_takes_its_flag(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(sample, tmp_path / "x.tar.gz", "tar.gz")
    assert run(["verify", "--max-expansion", "1000", str(path)]) == 0
    assert run(["verify", "--max-expansion", "0", str(path)]) == 2
    assert gz.EXPANSION_SLACK == 1 << 20
