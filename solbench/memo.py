"""A memo of stage results: what has been computed once from the same inputs by the same code is not computed again.

DVC deletes a stage's outs before it runs, so this lives beside the store, in ``.solbench/memo``. Deleting it changes
nothing but time: an entry that is missing, torn or altered counts as absent.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blake3 import blake3

from solbench import canonical


@dataclass(frozen=True)
class Memo:
    """Maps a key (see :func:`key`) to a JSON value."""

    root: Path

    def get(self, key: str) -> Any | None:
        """The value, or None where there is no whole entry."""
        body = self.get_bytes(key)
        return None if body is None else json.loads(body)

    def get_bytes(self, key: str) -> bytes | None:
        """The bytes that :meth:`put_bytes` was given, or None where there is no whole entry."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        checksum, _, body = data.partition(b"\n")
        return body if blake3(body).hexdigest().encode() == checksum else None

    def put(self, key: str, value: Any) -> None:
        """Write the entry whole or not at all."""
        self.put_bytes(key, canonical.written(value).encode())

    def put_bytes(self, key: str, body: bytes) -> None:
        """As :meth:`put`, of bytes as they are."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".put-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(blake3(body).hexdigest().encode() + b"\n")
            file.write(body)
        os.replace(temporary, path)

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / key[2:]


def key(function: str, code: str, inputs: Any) -> str:
    """Identity of one computation: which function, the digest of its code and tools, and its inputs' digests."""
    return canonical.derived_key("memo", {"function": function, "code": code, "inputs": inputs})


def code_digest(roots: Iterable[Path], tools: Iterable[str]) -> str:
    """Digest of every ``.py`` and ``.yaml`` file below ``roots``, and of the named tool versions."""
    digest = blake3()
    for tool in tools:
        digest.update(tool.encode() + b"\0")
    for root in roots:
        files = [root] if root.is_file() else sorted([*root.rglob("*.py"), *root.rglob("*.yaml")])
        for file in files:
            digest.update(f"{root.name}/{file.relative_to(root)}".encode() + b"\0")
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()
