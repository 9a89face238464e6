"""What is asked of many problems at small sizes, in processes: their controls, or how far their tolerances are used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from solbench.corpus.definitions import load_template
from solbench.corpus.llm_core.rules import Rules
from solbench.corpus.llm_core.small import small_instances
from solbench.corpus.load import Problem
from solbench.corpus.reduce import Instance, reduced
from solbench.corpus.validate import Finding, validate
from solbench.corpus.wellformed import Subject, Subjects
from solbench.errors import SolbenchError
from solbench.jobs import worker_pool

Answer = TypeVar("Answer")
Question = Callable[[Problem, Sequence[Instance]], Answer]


def run_controls(subjects: Subjects, workers: int | None = None) -> Iterator[tuple[Subject, list[Finding]]]:
    """Findings of every subject, in their order; ``workers``: processes, by default one a core."""
    return in_processes(subjects, validate, workers)


def in_processes(
    subjects: Subjects, question: Question[Answer], workers: int | None = None
) -> Iterator[tuple[Subject, Answer]]:
    """``question`` (a module's function) asked of every subject with an instance of each workload, in their order."""
    workers = min(len(subjects.found), workers or os.cpu_count() or 1)
    if not workers:
        return
    with worker_pool(workers) as pool:
        futures = [pool.submit(_answer, question, subject, subjects.rules) for subject in subjects.found]
        for subject, future in zip(subjects.found, futures):
            try:
                yield subject, future.result()
            except BrokenProcessPool:
                raise SolbenchError(f"{subject.problem.key}: a worker process died (out of memory?)") from None


def _answer(question: Question[Answer], subject: Subject, rules: Rules | None) -> Answer:
    problem, decision = subject.problem, subject.decision
    if decision is None or rules is None:
        return question(problem, [reduced(problem.definition, workload) for workload in problem.workloads])
    template = load_template(problem.path, corpus=problem.corpus)
    return question(problem, small_instances(template, rules.rules[decision.name], rules.generation, decision))
