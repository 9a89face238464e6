"""Archives made to measure, good and bad: of our layouts, from members that no bundle would have."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import sample_release

from solbench.release import archive, bundle, gz, tar
from solbench.store import Store

TARS = ("tar", "tar.gz")


def zip_of(names: Iterable[bytes]) -> bytes:
    """A ZIP archive of our layout with these names, empty members, in this order."""
    members = archive.laid_out((name, 0, 0) for name in names)
    return b"".join(archive.pieces(members, [()] * len(members)))


def tar_of(names: Iterable[bytes]) -> bytes:
    """The same as a tar archive."""
    return b"".join(tar.pieces((name, 0, ()) for name in names))


def gzip_of(data: bytes) -> bytes:
    """``data`` in gzip as we write it."""
    return b"".join(gz.pack([data]))


def packed(form: str, data: bytes) -> bytes:
    """A tar archive's bytes in the form ``tar`` or ``tar.gz``."""
    return gzip_of(data) if form == "tar.gz" else data


def written(sample: Path, out: Path, form: bundle.ArchiveFormat) -> Path:
    """The sample release as an archive in another format than its own."""
    bundle.write_bundle(Store(sample / "store"), out, sample_release.PREDICATE, sample / "site", form)
    return out


def sealed(block: bytes) -> bytes:
    """A header block with the checksum that belongs to it."""
    return put(block, "chksum", tar.checksum(block))


def put(block: bytes, name: str, value: bytes) -> bytes:
    """A header block with other bytes in one field, from that field's start."""
    start = 0
    for field, size in tar.FIELDS:
        if field == name:
            assert len(value) <= size
            return block[:start] + value + block[start + len(value) :]
        start += size
    raise KeyError(name)


def tar_of_folder(folder: Path) -> bytes:
    """A directory bundle as a tar archive of our layout."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    contents = [(name.encode(), (folder / name).read_bytes()) for name in names]
    return b"".join(tar.pieces((name, len(data), [data]) for name, data in contents))


def zeros_bundle(sample: Path, folder: Path, size: int, form: bundle.ArchiveFormat) -> Path:
    """A sound bundle whose site holds ``size`` zeros: it is compressed several hundred times."""
    site = Path(shutil.copytree(sample / "site", folder / "site"))
    (site / "zeros.bin").write_bytes(bytes(size))
    store = Store(sample / "store")
    sample_release.write_site_manifest(site, store.index("release")["release"])
    bundle.write_bundle(store, folder / f"zeros.{form}", sample_release.PREDICATE, site, form)
    return folder / f"zeros.{form}"
