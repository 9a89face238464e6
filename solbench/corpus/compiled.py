"""``compile``: the reference through ``torch.compile``, a solution that every problem can have without writing one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from solbench.corpus.load import Problem
from solbench.model.definition import Definition
from solbench.model.solution import COMPILED, Solution

# Inductor's default mode, with nothing that turns what cannot be compiled into an eager call.
_SOURCE: Final = '''"""The reference through torch.compile, as one graph a shape; what that cannot do is an error."""

import torch
import torch._dynamo
import torch._inductor.config

from reference import run as reference

# One process may see all workloads of the problem, and each of their shapes is compiled for itself.
torch._dynamo.config.recompile_limit = 64
torch._dynamo.config.fail_on_recompile_limit_hit = True
torch._dynamo.config.suppress_errors = False
# In this process: a pool of compilers would stay beside the calls that are timed.
torch._inductor.config.compile_threads = 1

run = torch.compile(reference, fullgraph=True, dynamic=False)
'''


def compiled_solution(definition: Definition) -> Solution:
    """The reference of ``definition`` through ``torch.compile``, for cards.

    A graph break, a recompilation beyond the limit and an error of the compiler are the candidate's failure. On the
    host it is left out: there a process compiles for tens of seconds what it then calls for milliseconds.
    """
    fields = {
        "name": COMPILED,
        "definition": definition.name,
        "author": "solbench",
        "description": "The reference, through torch.compile.",
        "spec": {
            "languages": ["pytorch"],
            "target_hardware": ["gfx1200", "gfx942", "sm_90"],
            "entry_point": "compiled.py::run",
        },
        "sources": [
            {"path": "compiled.py", "content": _SOURCE},
            {"path": "reference.py", "content": definition.reference},
        ],
    }
    return Solution.load(fields, f"{definition.name}: {COMPILED}")


def with_compiled(problems: Iterable[Problem]) -> list[Problem]:
    """``problems``, each with its :func:`compiled_solution` as last solution."""
    return [
        replace(problem, solutions=(*problem.solutions, compiled_solution(problem.definition))) for problem in problems
    ]
