"""The contracts: one module each, frozen, closed and versioned."""

from solbench.model.definition import Definition, TensorSpec
from solbench.model.record import Value
from solbench.model.release import Release
from solbench.model.score import Entry, Score
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace
from solbench.model.workload import Workload

__all__ = ["Definition", "Entry", "Release", "Score", "Solution", "Status", "TensorSpec", "Trace", "Value", "Workload"]
