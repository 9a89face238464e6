"""The kinds of pages, one full page of each, and a site in which every part of every kind is rendered."""

from __future__ import annotations

from pathlib import Path

from compared_releases import PREDICATE, build

from solbench.release import bundle
from solbench.site import render
from solbench.store import Store

MATMUL = "AMD_AKA/torch2hip/l1n2_standard_matmul"
KINDS = {
    "index": "index.html",
    "corpus": "corpus.html",
    "target": "targets/cpu.html",
    "problem": f"problems/{MATMUL}.html",
    "workload": f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w1.html",
    "solution": f"solutions/{MATMUL}/openmp.html",
    "hardware": "hardware.html",
    "status": "status.html",
    "compare": "compare.html",
    "method": "method.html",
    "verify": "verify.html",
}


def kind(path: str) -> str:
    """Of a page by its address in the site: ``targets/gfx1200.html`` is a target."""
    folder, slash, _ = path.partition("/")
    return folder.removesuffix("s") if slash else path.removesuffix(".html")


def build_site(root: Path) -> Path:
    """The site of the newer of two releases, compared with the older one; ``root/old.zip`` is that one's bundle."""
    build(root)
    bundle.write_bundle(Store(root / "old/store"), root / "old.zip", PREDICATE)
    render(root / "new/store", root / "site", compare_with=str(root / "old.zip"))
    return root / "site"
