"""Which corpora an official score is over: their problems and workloads, under one digest each.

The digest covers every definition and, for one target, every workload that the release has for it, with the part that
it has in a score. A corpus that gains, loses or changes a workload is another corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from solbench import canonical
from solbench.model.configuration import load_selection
from solbench.store import Descriptor

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]

# (corpus, target) -> digest. A new version of a corpus gets a new line here, reviewed like code.
PINNED: Final[Mapping[tuple[str, str], str]] = {
    ("AMD_AKA", "cpu"): "blake3:afb0bb8c85390680292a0c626a0da61d912a9a41a302dac07d686383ad00bffc",
    ("AMD_AKA", "gfx1200"): "blake3:afb0bb8c85390680292a0c626a0da61d912a9a41a302dac07d686383ad00bffc",
    ("AMD_AKA", "gfx942"): "blake3:afb0bb8c85390680292a0c626a0da61d912a9a41a302dac07d686383ad00bffc",
    ("AMD_AKA", "sm_90"): "blake3:afb0bb8c85390680292a0c626a0da61d912a9a41a302dac07d686383ad00bffc",
    ("LLM_CORE", "gfx1200"): "blake3:f34142e9feca189dfd7a7bb4c99fa2d2731f919d98ffb101299f3bca44d4d7d7",
    ("LLM_CORE", "gfx942"): "blake3:fc408a2ec1c954a08d219a88ee20716d5885b6147f0b08bf36cb316337b865f6",
    ("LLM_CORE", "sm_90"): "blake3:e6f6871ba8c7da6b60e64527c4bc43586ee06255edad12cfa7a54de7fc0d26a6",
}


def corpus_digests(sections: Sections, load: Load, target: str) -> dict[str, str]:
    """Digest of each corpus that has a workload for ``target``, in key-derivation mode: it never equals a file's."""
    selection = load_selection(sections["workloads"], load)
    definitions = {name: entry for name, entry in sections["corpus"].items() if entry.kind == "definition"}
    rows: dict[str, list[list[str]]] = {}
    for name, entry in sorted(sections["workloads"].items()):
        if entry.kind != "workload" or not selection.includes(name, target):
            continue
        key = name.rpartition("/")[0]
        part = "scored" if selection.counts(name, target) else "smoke"
        row = [name, entry.digest, definitions[key].digest, part]
        rows.setdefault(name.partition("/")[0], []).append(row)
    return {corpus: f"blake3:{canonical.derived_key('corpus', found)}" for corpus, found in sorted(rows.items())}


def pinned(sections: Sections, load: Load, target: str) -> dict[str, bool]:
    """Whether each corpus of a target is the pinned one."""
    found = corpus_digests(sections, load, target)
    return {corpus: PINNED.get((corpus, target)) == digest for corpus, digest in found.items()}
