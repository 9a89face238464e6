"""Why an analysis ends without a bound. One line: what, where, what to do."""

from __future__ import annotations


class SolarError(Exception):
    """Base of every reason for which a workload gets no bound."""


class ModuleError(SolarError):
    """A file cannot be read or run, or has not the form of a module to analyse."""


class ExtractionError(SolarError):
    """The reference cannot be recorded: data-dependent shape, float value needed, undeclared mutation."""


class ConversionError(SolarError):
    """An operator has no rule, or its arguments are outside its rule."""


class GraphError(SolarError):
    """An IR is not well-formed: unknown tensor, wrong rank, cycle, missing operand."""


class ReplayError(SolarError):
    """The IR does not compute what the reference computes."""


class HardwareError(SolarError):
    """A machine model lacks a rate, or a rate contradicts its own published figure."""


class MappingError(SolarError):
    """An einsum is outside of what the mapper can tile: its index maps, or too many tilings."""
