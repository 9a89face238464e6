"""Safetensors files beside a problem: found, and their headers held against the declared shape and dtype.

Only the header is read here, without PyTorch; the layout is that of the safetensors format: a little-endian 64-bit
length, a JSON object (key -> dtype, shape, data_offsets), the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.corpus.exchange.folders import MAX_TENSOR_FILE_BYTES
from solbench.errors import InputError, IntegrityError, UnsupportedError
from solbench.model.definition import TensorSpec, resolve_shape

MAX_HEADER_BYTES = 8 * 2**20
_LFS = b"version https://git-lfs"
_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip


def stored_file(base: Path, path: str, where: str) -> Path:
    """The file ``path`` (plain, below ``base``); :class:`UnsupportedError` if it was never fetched."""
    file = base
    for part in path.split("/"):
        file = file / part
        if file.is_symlink():
            raise InputError(where, f"{path!r} leads through a symbolic link")
    if not file.exists():
        raise UnsupportedError(f"{path!r} is not there; fetch it")
    if not file.is_file():
        raise InputError(where, f"{path!r} is not a regular file")
    if file.stat().st_size > MAX_TENSOR_FILE_BYTES:
        raise InputError(where, f"{path!r} is longer than {MAX_TENSOR_FILE_BYTES} bytes")
    return file


def check_tensor(file: Path, key: str, spec: TensorSpec, axes: Mapping[str, int], where: str) -> None:
    """Refuse a file that does not hold ``key`` with the declared dtype and shape."""
    if spec.dtype not in _DTYPES:
        raise UnsupportedError(f"dtype {spec.dtype} cannot be read from a safetensors file")
    entry = _header(file, where).get(key)
    if not isinstance(entry, Mapping):
        raise InputError(where, f"{file.name} has no tensor {key!r}")
    declared = {"dtype": _DTYPES[spec.dtype], "shape": list(resolve_shape(spec, dict(axes)))}
    stored = {name: entry.get(name) for name in declared}
    if stored != declared:
        raise InputError(where, f"{file.name} holds {_show(stored)}, declared is {_show(declared)}")


def _show(form: Mapping[str, Any]) -> str:
    return f"{form['dtype']} {form['shape']}"


def _header(file: Path, where: str) -> Mapping[str, Any]:
    with file.open("rb") as stream:
        start = stream.read(len(_LFS))
        if start == _LFS:
            raise UnsupportedError(f"{file.name} is a Git LFS pointer; fetch the file")
        length = int.from_bytes(start[:8], "little")
        if len(start) < 8 or length > min(MAX_HEADER_BYTES, file.stat().st_size - 8):
            raise InputError(where, f"{file.name} is not a safetensors file")
        stream.seek(8)
        data = stream.read(length)
    try:
        header = canonical.parse(data, file.name)
    except IntegrityError as error:
        raise InputError(where, f"header of {error}") from None
    if not isinstance(header, Mapping):
        raise InputError(where, f"{file.name} is not a safetensors file")
    return header
