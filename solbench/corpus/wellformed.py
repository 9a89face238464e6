"""What a validation is of: the problems below a root with workloads of their own, and those that rules generate.

Reading them is the first check: every file is what the others say, the manifest's digests hold, and each rule gives its
Definition nine workloads of the standard configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from solbench.corpus.configured import GENERATED
from solbench.corpus.definitions import load_templates
from solbench.corpus.llm_core.generate import Decision, View, generate
from solbench.corpus.llm_core.rules import Rules, load_rules
from solbench.corpus.llm_core.view import generated_workloads
from solbench.corpus.load import Problem, find_problems, load_corpus
from solbench.corpus.manifest import load_manifested, require_pinned
from solbench.errors import InputError

# The standard configuration of gfx1200, the smallest one that a release publishes.
TARGET, CLASS_GIB = "gfx1200", 16


@dataclass(frozen=True)
class Subject:
    """A problem; ``decision``: what its rule made of the standard configuration, null with workloads of its own."""

    problem: Problem
    decision: Decision | None = None


@dataclass(frozen=True)
class Subjects:
    """What was read, by key; ``counts``: a line a corpus; ``rules``: those of the generated ones, null without."""

    found: tuple[Subject, ...]
    counts: tuple[str, ...]
    rules: Rules | None


def subjects(root: Path, names: Sequence[str] = ()) -> Subjects:
    """The problems of ``names`` (as :func:`find_problems` takes them, Definitions too), or all below ``root``.

    :class:`InputError` where a file, a manifest or a rule is wrong. Generated lengths and offsets need PyTorch.
    """
    rules = load_rules(root / GENERATED) if (root / GENERATED / "generation.yaml").exists() else None
    decided = _decided(root, rules, names) if rules else []
    taken = {name for name in names for subject in decided if _is_named(subject.problem, name)}
    if names:
        own = find_problems(root, [name for name in names if name not in taken])
        found = [*(Subject(problem) for problem in own), *decided]
        return Subjects(tuple(found), (), rules)
    own = load_corpus(root)
    counts = [_count(root, corpus, own) for corpus in sorted({problem.corpus for problem in own})]
    if rules:
        counts.append(_count_generated(rules, decided))
    found = sorted([*(Subject(problem) for problem in own), *decided], key=lambda subject: subject.problem.key)
    return Subjects(tuple(found), tuple(counts), rules)


def _is_named(problem: Problem, name: str) -> bool:
    if Path(name).is_dir():
        return problem.path.resolve() == Path(name).resolve()
    return problem.key == name or problem.key.endswith(f"/{name}")


def _decided(root: Path, rules: Rules, names: Sequence[str]) -> list[Subject]:
    templates = {
        template.definition.name: template for template in load_templates(root) if template.corpus == GENERATED
    }
    if set(templates) != set(rules.rules):
        name = sorted(set(templates) ^ set(rules.rules))[0]
        what = "has no rule" if name in templates else "is a rule without a Definition"
        raise InputError(f"{root / GENERATED}: {name}", what)
    view: View | None = None
    found = []
    for name, template in sorted(templates.items()):
        problem = Problem(template.path, template.corpus, template.definition, (), ())
        if names and not any(_is_named(problem, wanted) for wanted in names):
            continue
        view = view or generate(rules, TARGET, CLASS_GIB)
        decision = next(decision for decision in view.decisions if decision.name == name)
        workloads = tuple(generated_workloads(decision, rules.rules[name], template))
        found.append(Subject(replace(problem, workloads=workloads), decision))
    return found


def _count(root: Path, corpus: str, own: Sequence[Problem]) -> str:
    if (root / corpus / "manifest.yaml").exists():
        manifested = load_manifested(root, corpus)
        require_pinned(manifested)
        return f"{corpus}: {manifested.counts()}; files are those of the manifest"
    problems = [problem for problem in own if problem.corpus == corpus]
    return f"{corpus}: {len(problems)} problems, {sum(len(problem.workloads) for problem in problems)} workloads"


def _count_generated(rules: Rules, decided: Sequence[Subject]) -> str:
    workloads = sum(len(subject.problem.workloads) for subject in decided)
    return (
        f"{GENERATED}: {len(decided)} Definitions, {len(rules.rules)} rules, {len(rules.generation.slots)} slots; "
        f"{workloads} workloads for {TARGET} in the {CLASS_GIB} GiB class"
    )
