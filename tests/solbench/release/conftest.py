"""The sample bundle for the tests of this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bundles"))

from sample_fixtures import archive_file, folder, sample

__all__ = ["archive_file", "folder", "sample"]
