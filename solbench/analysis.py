"""Analyses in a process of their own: what is asked, what comes back, and the folder that it is written to.

A file that somebody wrote may crash, hang or leave; whatever it does, the answer here is a result or one line.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from solbench import canonical
from solbench.child import ask
from solbench.errors import InputError, SolbenchError, UndecidedError
from solbench.store import Descriptor
from solbench.workspace import write_file

SCHEMA = "solbench.analysis.v1"
MANIFEST_SCHEMA = "solbench.analysis-manifest.v1"
MANIFEST = "manifest.yaml"
# Artifact kinds by the file that holds them.
FILES = {
    "operator_graph.yaml": "operator-graph",
    "einsum_graph.yaml": "einsum-graph",
    "conversion-attestation.yaml": "attestation",
    "solar-analysis.yaml": "analysis",
    "attainable-traffic.json": "attainable-traffic",
}
_NEEDED = ("solar-analysis.yaml", "einsum_graph.yaml")
MEMORY_BYTES = 8 << 30
_LOG_TAIL = 8_000


@dataclass(frozen=True)
class Request:
    """What to analyse: a ``problem`` (a folder) with its ``workload``, a ``module`` (a file), or a ``program`` (an
    einsum graph's file); on ``machine`` (:meth:`solar.hardware.Machine.to_dict`), by extraction ``path``."""

    subject: Literal["problem", "module", "program"]
    name: str
    file: str
    machine: Mapping[str, Any]
    workload: str | None = None
    path: str = "aten"
    attest: bool = True
    attainable: bool = False


@dataclass(frozen=True)
class Result:
    """``files``: bytes of every artifact by file name; ``analysis`` and ``program``: two of them, read; ``log``: what
    the analysed code printed, its end."""

    files: Mapping[str, bytes]
    analysis: Mapping[str, Any]
    program: Mapping[str, Any]
    log: str


class _Refused(SolbenchError):
    """The process has said why there is no analysis."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def analyse(request: Request, timeout_s: float) -> Result:
    """Run a request in a confined process; :class:`SolbenchError` with one line where it gives no analysis."""
    with tempfile.TemporaryDirectory(prefix="solbench-analysis-") as name:
        folder = Path(name)
        (folder / "out").mkdir()
        answers, fault = ask(
            "solbench.analysis_process:answers", asdict(request), folder, timeout_s=timeout_s,
            memory_bytes=MEMORY_BYTES, reads=_read(request), cwd=Path.cwd(), torch=request.subject != "program",
        )  # fmt: skip
        if fault == "timeout":
            raise UndecidedError(f"{request.name}: no analysis after {timeout_s:g} s (--timeout)")
        if not answers:
            how = fault or "left with exit code 0"
            raise UndecidedError(f"{request.name}: the process {how} before the analysis was done")
        match answers[0]:
            case None if all((folder / "out" / needed).is_file() for needed in _NEEDED):
                return _result(folder)
            case {"message": str(message), "exit_code": int(exit_code)}:
                raise _Refused(message, exit_code)
        raise UndecidedError(f"{request.name}: the process gave no answer that can be read")


def _read(request: Request) -> list[Path]:
    """What the process is shown: the file, and what lies beside it or, a problem, below it."""
    file = Path(request.file)
    return [file] if request.subject == "problem" else [file, file.parent, file.resolve().parent]


def _result(folder: Path) -> Result:
    files = {name: (folder / "out" / name).read_bytes() for name in FILES if (folder / "out" / name).is_file()}
    with (folder / "log").open("rb") as stream:
        stream.seek(max((folder / "log").stat().st_size - _LOG_TAIL, 0))
        said = stream.read().decode("utf-8", "replace")
    return Result(
        files,
        canonical.loads(files["solar-analysis.yaml"], "solar-analysis.yaml"),
        canonical.loads(files["einsum_graph.yaml"], "einsum_graph.yaml"),
        said,
    )


def manifest(files: Mapping[str, bytes]) -> bytes:
    """Bytes of the manifest: kind, digest and size of every file by its name."""
    listed = {name: Descriptor.of(json.loads(data)["kind"], data).as_dict() for name, data in files.items()}
    return canonical.dumps({"schema": MANIFEST_SCHEMA, "kind": "analysis-manifest", "files": listed})


def require_new(folder: Path) -> None:
    """Raise :class:`InputError` unless ``folder`` is not there, or is empty."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(str(folder), "is there already and is no folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(str(folder), "is there already and not empty; name a new folder")


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files`` and their manifest into a new folder, all or none."""
    require_new(folder)
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError(str(folder), f"cannot be made: {error.strerror}") from None
    try:
        for name, data in {**files, MANIFEST: manifest(files)}.items():
            write_file(temporary / name, data)
        temporary.chmod(0o755)
        os.rename(temporary, folder)  # takes the place of an empty folder, and of nothing else
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise InputError(str(folder), "was filled by somebody else meanwhile; name a new folder") from None
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
