"""The sample bundle, built once a session; tests change copies of it."""

import shutil
from pathlib import Path

import pytest
import sample_release


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``store``, ``site``, ``sample.zip`` and the directory bundle ``sample``."""
    folder = tmp_path_factory.mktemp("release")
    sample_release.build_all(folder)
    return folder


@pytest.fixture
def folder(sample: Path, tmp_path: Path) -> Path:
    """A directory bundle that a test may damage."""
    return Path(shutil.copytree(sample / "sample", tmp_path / "bundle"))


@pytest.fixture
def archive_file(sample: Path, tmp_path: Path) -> Path:
    """An archive that a test may damage."""
    return Path(shutil.copy(sample / "sample.zip", tmp_path / "bundle.zip"))
