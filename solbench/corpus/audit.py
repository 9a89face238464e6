"""A materialization held against its corpus: the record, the decisions, and every file. No process, no PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from solbench.corpus.document import read_json
from solbench.corpus.load import load_problem
from solbench.corpus.manifest import FILES, Corpus, Target, file_digests
from solbench.corpus.materialize import (
    MATERIALIZATION,
    Decision,
    Materialization,
    folder_name,
    static_decisions,
    target_rules,
)


def audit_materialization(corpus: Corpus, folder: Path) -> list[str]:
    """What is wrong with the materialization in ``folder``, one line each; :class:`InputError` where it is none.

    The record is of this manifest and target; the decisions are one a workload, and what the static rules decide is
    decided anew; the files are those recorded and no others; workloads are the corpus's own.
    """
    path = folder / MATERIALIZATION
    record = Materialization.load(read_json(path), str(path))
    rules = target_rules(corpus, record.target)
    manifest = corpus.manifest
    facts = {
        "corpus": (record.corpus, manifest.corpus),
        "revision": (record.revision, manifest.source.revision),
        "manifest": (record.manifest, corpus.digest),
        "rules": (record.rules, rules),
    }
    found = [f"{path}: {name} is not the manifest's" for name, (here, there) in facts.items() if here != there]
    found += [f"{path}: {line}" for line in _wrong_decisions(corpus, record.decisions, rules)]
    if set(record.problems) != {decision.problem for decision in record.decisions if decision.included}:
        found.append(f"{path}: problems are not those of the included decisions")
    return found + _wrong_files(corpus, folder, record)


def _wrong_decisions(corpus: Corpus, decisions: Sequence[Decision], rules: Target) -> list[str]:
    every = [(folder_name(corpus, problem), w.uuid) for problem in corpus.problems for w in problem.workloads]
    found = []
    if [(decision.problem, decision.workload) for decision in decisions] != every:
        found.append(f"does not decide each of the {len(every)} workloads once, in order")
    excluded = [
        decision for problem in corpus.problems for decision in static_decisions(corpus, problem, rules).values()
    ]
    if [decision for decision in decisions if decision.stage == "static"] != excluded:
        found.append("static decisions are not those of the target's rules")
    for decision in decisions:
        if decision.included != (decision.reason == "probe_passed"):
            found.append(f"{decision.workload}: {decision.reason}, but included is {decision.included}")
    return found


def _wrong_files(corpus: Corpus, folder: Path, record: Materialization) -> list[str]:
    name_of = corpus.manifest.corpus
    listed = {f"{name_of}/{name}/{file}" for name in record.problems for file in FILES} | {MATERIALIZATION}
    there = {(Path(at) / name).relative_to(folder).as_posix() for at, _, names in os.walk(folder) for name in names}
    found = [f"{folder / name}: is not recorded" for name in sorted(there - listed)]
    found += [f"{folder / name}: is recorded, but not there" for name in sorted(listed - there)]
    originals = {folder_name(corpus, problem): problem for problem in corpus.problems}
    for name, digests in record.problems.items():
        at = folder / name_of / name
        if name not in originals or not {f"{name_of}/{name}/{file}" for file in FILES} <= there:
            continue
        pinned = file_digests(originals[name].path)
        for file, digest in file_digests(at).items():
            if digest != digests.get(file):
                found.append(f"{at / file}: is not the file that was recorded")
            elif file != "workloads.yaml" and digest != pinned[file]:
                found.append(f"{at / file}: is not the corpus's")
        included = {decision.workload for decision in record.decisions if decision.included}
        expected = [workload for workload in originals[name].workloads if workload.uuid in included]
        if list(load_problem(at, corpus=name_of).workloads) != expected:
            found.append(f"{at / 'workloads.yaml'}: workloads are not the included ones of the corpus")
    return found
