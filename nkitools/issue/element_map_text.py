"""Element maps as text, as saved runs keep them: JSON, a rule as its class and its fields."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.issue import element_rules
from nkitools.issue.element_maps import Elements, From
from nkitools.issue.element_rules import Rule


def text_of(elements: Elements) -> str:
    """Return an element map as text."""
    made = [[result, [[*source, _plain_rule(rule)] for source, rule in sources]] for result, sources in elements.made]
    return json.dumps(made, separators=(",", ":"))


@lru_cache(1 << 12)
def elements_from(text: str) -> Elements:
    """Return the element map of a text from `text_of`. ValueError for other texts."""
    try:
        made = json.loads(text)
        return Elements(
            tuple(
                (result, tuple((From(operand, rank, core), _rule(rule)) for operand, rank, core, rule in sources))
                for result, sources in made
            )
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no element map: {text[:60]}") from error


def _plain_rule(rule: Rule) -> list[Any]:
    known = {each.name: _plain(getattr(rule, each.name)) for each in fields(rule)}  # type: ignore[arg-type]
    return [type(rule).__name__, {name: value for name, value in known.items() if value is not None}]


def _plain(value: Any) -> Any:
    if isinstance(value, Rule):
        return {"rule": _plain_rule(value)}
    if isinstance(value, np.ndarray):
        return {"shape": value.shape, "bits": np.packbits(value).tobytes().hex()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _rule(plain: Any) -> Rule:
    name, known = plain
    kind = getattr(element_rules, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Rule)):
        raise ValueError(f"{name} is no rule of elements")
    return kind(**{field: _value(value) for field, value in known.items()})


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_value(each) for each in plain)
    if not isinstance(plain, dict):
        return plain
    return _rule(plain["rule"]) if "rule" in plain else _mask(plain)


def _mask(plain: dict[str, Any]) -> Array:
    shape = tuple(plain["shape"])
    bits = np.frombuffer(bytes.fromhex(plain["bits"]), np.uint8)
    return np.unpackbits(bits, count=int(np.prod(shape))).view(np.bool_).reshape(shape)
