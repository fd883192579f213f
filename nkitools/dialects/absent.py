"""Names that a dialect documents or that kernels use, and that this version does not model: refused by name (NK607)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding, NotModelled, not_modelled

_REMEDY = "Use the instructions that `nkitools rules` and the README list, or a newer version of nkitools."


class NotModelledAttribute(NotModelled, AttributeError):
    """A missing name of a module that stands in for AWS's: an AttributeError too, so that hasattr works."""


def missing(module: str, name: str, documented: frozenset[str]) -> Any:
    """What ``module.name`` is where the dialect has no such thing: a refusal on use, or an AttributeError with NK607."""
    if name in documented:
        return _placeholder(f"{module}.{name}")
    rule = RULES["NK607"]
    finding = Finding(
        rule.id,
        rule.slug,
        rule.severity,
        f"{module} has no `{name}`: neither AWS's documentation nor nkitools knows that name",
        "<import>",
        0,
        _REMEDY,
    )
    raise NotModelledAttribute(finding)


def _placeholder(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        not_modelled(f"{name} is documented, but this version of nkitools does not model it yet", remedy=_REMEDY)

    refused.__name__ = refused.__qualname__ = name.rsplit(".", 1)[-1]
    refused.__doc__ = f"{name}: documented by AWS, not modelled in this version (NK607)."
    return refused
