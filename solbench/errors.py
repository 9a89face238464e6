"""Errors that a user can cause. Each says what is wrong, where, and what to do.

Exit codes (DESIGN §8): 1 proven bad or failed, 2 usage or bad input, 3 could not decide, 4 unsupported.
"""

from __future__ import annotations


class SolbenchError(Exception):
    """Base of every error that ends a command with one line instead of a traceback."""

    exit_code = 2


class InputError(SolbenchError):
    """A file or an argument breaks a rule: ``where`` names the file and the field."""

    exit_code = 2

    def __init__(self, where: str, rule: str) -> None:
        super().__init__(f"{where}: {rule}")
        self.where = where
        self.rule = rule


class IntegrityError(SolbenchError):
    """Stored bytes are not what their name, size or canonical form says."""

    exit_code = 1


class UndecidedError(SolbenchError):
    """Something outside the data kept us from an answer (I/O, permission, a limit)."""

    exit_code = 3


class UnsupportedError(SolbenchError):
    """Well-formed, but asks for a version, language or capability that is not here."""

    exit_code = 4
