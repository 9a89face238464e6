"""What all contracts share: frozen, closed, versioned records whose errors name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from solbench.errors import InputError

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
DIGEST = r"^blake3:[0-9a-f]{64}$"


class Value(BaseModel):
    """A frozen value object; unknown fields are errors, numbers must be finite, no silent conversion of types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True, serialize_by_alias=True, strict=False
    )

    @classmethod
    def load(cls, value: Any, where: str) -> Self:
        """Validate ``value``; :class:`InputError` names ``where`` and the field of the first broken rule."""
        if not isinstance(value, Mapping):
            raise InputError(where, "must be a mapping of fields")
        try:
            return cls.model_validate(dict(value))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
            message = first["msg"].removeprefix("Value error, ")
            raise InputError(f"{where}: {field}" if field else where, f"{message}{more}") from None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON value with every field, defaults and nulls included."""
        return self.model_dump(mode="json")


class Descriptor(Value):
    """Reference to an artifact, as in :class:`solbench.store.Descriptor`."""

    kind: str
    digest: str
    size: int
