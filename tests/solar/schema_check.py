"""As much of JSON Schema as the IR's schema uses, read word for word: an independent witness of what it says."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, Any] = {
    "string": str, "array": list, "object": dict, "integer": int, "number": (int, float), "boolean": bool,
}  # fmt: skip
_WORDS = """$schema title type properties required additionalProperties items prefixItems minItems maxItems minimum enum
    const if then"""
_KNOWN = frozenset(_WORDS.split())


def problems(schema: dict[str, Any], value: Any, where: str = "$") -> list[str]:
    """Places at which ``value`` is not what ``schema`` says."""
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    found: list[str] = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        return [f"{where}: not of type {', '.join(types)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: none of the known")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: not {schema['const']!r}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where}: too small")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where}: of another length")
        first = schema.get("prefixItems", [])
        for position, item in enumerate(value):
            rule = first[position] if position < len(first) else schema.get("items", {})
            found += problems(rule, item, f"{where}[{position}]")
    if isinstance(value, dict):
        own = schema.get("properties", {})
        found += [f"{where}: no {key}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            rule = own.get(key, schema.get("additionalProperties", {}))
            found += [f"{where}.{key}: unknown"] if rule is False else problems(rule, item, f"{where}.{key}")
    if "if" in schema and not problems(schema["if"], value, where):
        found += problems(schema["then"], value, where)
    return found


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
