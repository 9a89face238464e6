"""What is in a bundle, as ZIP archive and as directory, and which stores and sites give none."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import sample_release
from blake3 import blake3

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.release import bundle
from solbench.release.verify import verify
from solbench.store import Store, index_bytes


def test_what_is_in_it(sample: Path) -> None:
    with zipfile.ZipFile(sample / "sample.zip") as file:
        names = file.namelist()
        assert file.testzip() is None
        assert names == sorted(names)
        assert {name for name in names if not name.startswith(("objects/", "site/"))} == {
            "B3SUMS", "SHA256SUMS", "provenance.json", "release.json", "site.json",
        }  # fmt: skip
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr >> 16 for info in file.infolist()} == {0o100644}
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}
        release = file.read("release.json")
        root = Store(sample / "store").index("release")["release"]
        assert canonical.digest(release) == root.digest
        assert file.read(f"objects/{root.path}") == release
        listed = {line.split("  ")[1]: line.split("  ")[0] for line in file.read("SHA256SUMS").decode().splitlines()}
        assert listed == {n: hashlib.sha256(file.read(n)).hexdigest() for n in names if n not in bundle.SUMS}
        b3 = {line.split("  ")[1]: line.split("  ")[0] for line in file.read("B3SUMS").decode().splitlines()}
        assert b3 == {n: blake3(file.read(n)).hexdigest() for n in names if n not in bundle.SUMS}


def test_every_object_of_every_stage_is_in_it(sample: Path) -> None:
    store = Store(sample / "store")
    wanted = {f"objects/{entry.path}" for stage in store.stages() for entry in store.index(stage).values()}
    with zipfile.ZipFile(sample / "sample.zip") as file:
        assert {name for name in file.namelist() if name.startswith("objects/")} == wanted


def test_the_digest_beside_the_archive(sample: Path) -> None:
    line = (sample / "sample.zip.b3").read_text()
    assert line == f"{blake3((sample / 'sample.zip').read_bytes()).hexdigest()}  sample.zip\n"


def test_sha256sum_accepts_an_unpacked_bundle(sample: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=sample / "sample", check=False
    )
    assert done.returncode == 0


@pytest.mark.skipif(shutil.which("unzip") is None, reason="no unzip here")
def test_unzip_accepts_it(sample: Path) -> None:
    done = subprocess.run(["unzip", "-tq", str(sample / "sample.zip")], capture_output=True, check=False)
    assert done.returncode == 0


def test_provenance_names_the_root(sample: Path) -> None:
    value = json.loads((sample / "sample" / "provenance.json").read_bytes())
    release = (sample / "sample" / "release.json").read_bytes()
    assert value["_type"] == "https://in-toto.io/Statement/v1"
    assert value["subject"] == [
        {
            "name": "sample",
            "digest": {"blake3": blake3(release).hexdigest(), "sha256": hashlib.sha256(release).hexdigest()},
        }
    ]
    assert value["predicate"] == sample_release.PREDICATE


def test_the_root_says_nothing_about_its_builder(sample: Path, tmp_path: Path) -> None:
    store = Store(sample / "store")
    other = bundle.write_bundle(store, tmp_path / "x.zip", {"builder": "somebody else"})
    assert other.root == store.index("release")["release"]
    assert verify(tmp_path / "x.zip", other.root.digest).exit_code == 0


def test_a_bundle_without_a_site(sample: Path, tmp_path: Path) -> None:
    written = bundle.write_bundle(Store(sample / "store"), tmp_path / "x.zip", sample_release.PREDICATE)
    result = verify(tmp_path / "x.zip")
    assert (result.exit_code, result.objects, result.levels[-2].state) == (0, written.objects, "skipped")


# -- refusals


def copied(sample: Path, tmp_path: Path) -> Store:
    return Store(Path(shutil.copytree(sample / "store", tmp_path / "store")))


def test_a_store_without_a_release(tmp_path: Path) -> None:
    (tmp_path / "release.json").write_bytes(index_bytes({}))
    with pytest.raises(IntegrityError, match="no entry 'release'"):
        bundle.write_bundle(Store(tmp_path), tmp_path / "x.zip", {})


def test_a_missing_object(sample: Path, tmp_path: Path) -> None:
    store = copied(sample, tmp_path)
    (store.root / "bounds" / "objects" / store.index("bounds")["hardware/cpu"].path).unlink()
    with pytest.raises(IntegrityError, match="solbench pull"):
        bundle.write_bundle(store, tmp_path / "x.zip", {})
    assert not (tmp_path / "x.zip").exists()


def test_an_object_that_no_index_has(sample: Path, tmp_path: Path) -> None:
    store = copied(sample, tmp_path)
    index = store.index("einsums")
    index.pop("DEMO/unit/scale/w2/graph")
    (store.root / "einsums.json").write_bytes(index_bytes(index))
    with pytest.raises(IntegrityError, match="in no index"):
        bundle.write_bundle(store, tmp_path / "x.zip", {})


def test_a_damaged_object(sample: Path, tmp_path: Path) -> None:
    store = copied(sample, tmp_path)
    path = store.root / "bounds" / "objects" / store.index("bounds")["hardware/cpu"].path
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    with pytest.raises(IntegrityError, match="digest"):
        bundle.write_bundle(store, tmp_path / "x.zip", {})


def test_the_site_of_another_release(sample: Path, tmp_path: Path) -> None:
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    other = Store(sample / "store").index("scores")["cpu/eager"]
    sample_release.write_site_manifest(site, other)
    with pytest.raises(InputError, match="another release"):
        bundle.write_bundle(Store(sample / "store"), tmp_path / "x.zip", {}, site)
    (site / "site.json").unlink()
    with pytest.raises(InputError, match="render the site first"):
        bundle.write_bundle(Store(sample / "store"), tmp_path / "x.zip", {}, site)


@pytest.mark.parametrize("name", ["caf\u00e9.html", "nul.txt", "Index.html"])
def test_a_page_that_no_bundle_may_hold(sample: Path, tmp_path: Path, name: str) -> None:
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    (site / name).write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be in a bundle"):
        bundle.write_bundle(Store(sample / "store"), tmp_path / "x.zip", {}, site)


def test_a_link_in_the_site(sample: Path, tmp_path: Path) -> None:
    site = Path(shutil.copytree(sample / "site", tmp_path / "site"))
    (site / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="not a regular file"):
        bundle.write_bundle(Store(sample / "store"), tmp_path / "x.zip", {}, site)


def test_a_directory_is_not_overwritten(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(InputError, match="exists"):
        bundle.write_directory(Store(sample / "store"), tmp_path / "here", {})
