"""The problems of a release: those with workloads of their own, and those whose workloads its configurations give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from solbench.corpus.definitions import load_templates
from solbench.corpus.load import Problem, find_problems, load_corpus
from solbench.errors import InputError
from solbench.model.configuration import Configuration
from solbench.model.workload import Workload

GENERATED = "LLM_CORE"


@dataclass(frozen=True)
class ReleaseCorpus:
    """Problems by key, and the configurations by target. A generated problem has the workloads of all of them."""

    problems: tuple[Problem, ...]
    configurations: tuple[Configuration, ...]


def release_corpus(root: Path, capacity_gib: Mapping[str, int]) -> ReleaseCorpus:
    """All problems below ``root`` (``problems/``); ``capacity_gib``: the memory class of each target's configuration.

    Without any, LLM_CORE is left out. Raises :class:`InputError` for a target without a template, a number that is no
    capacity class, and whatever is wrong with a problem or a rule.
    """
    problems = load_corpus(root)
    if not capacity_gib:
        return ReleaseCorpus(tuple(problems), ())
    from solbench.corpus.llm_core.generate import generate
    from solbench.corpus.llm_core.rules import load_rules
    from solbench.corpus.llm_core.view import configuration, generated_workloads

    rules = load_rules(root / GENERATED)
    templates = {template.definition.name: template for template in load_templates(root)}
    views = []
    for target, class_gib in sorted(capacity_gib.items()):
        if class_gib not in rules.generation.classes_gib:
            known = ", ".join(map(str, rules.generation.classes_gib))
            raise InputError(f"params.yaml: capacity_gib.{target}", f"{class_gib} is no class; they are {known}")
        views.append(generate(rules, target, class_gib))
    for name, template in sorted(templates.items()):
        workloads: dict[str, Workload] = {}
        for view in views:
            for decision in view.generated:
                if decision.name == name:
                    found = generated_workloads(decision, rules.rules[name], template)
                    workloads |= {workload.uuid: workload for workload in found}
        given = tuple(workloads.values())
        problems.append(Problem(template.path, template.corpus, template.definition, given, template.solutions))
    configurations = tuple(configuration(view, GENERATED) for view in views)
    return ReleaseCorpus(tuple(sorted(problems, key=lambda problem: problem.key)), configurations)


def chosen_problems(root: Path, names: Sequence[str], target: str, capacity: str | None) -> list[Problem]:
    """The problems of ``names``, all without any. With a ``capacity`` (``16GiB``; rounded down to a class) those of
    LLM_CORE are among them, each with the workloads that its rule makes for ``target``; without, they are not.
    """
    if capacity is None:
        return find_problems(root, names) if names else load_corpus(root)
    from solbench.corpus.llm_core.capacity import capacity_class, parse_capacity
    from solbench.corpus.llm_core.rules import load_rules

    class_gib = capacity_class(parse_capacity(capacity), load_rules(root / GENERATED).generation)
    problems = release_corpus(root, {target: class_gib}).problems
    return find_problems(root, names, problems) if names else list(problems)
