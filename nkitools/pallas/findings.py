"""Mistakes that end the tracing of a function, and the order of findings."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from nkitools.pallas import source_places
from nkitools.pallas.imports import jax_module
from nkitools.pallas.source_places import Place
from nkitools.rules.finding import Finding


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings sorted: errors first, then by rule; equal findings of several chips are one."""
    unique: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.rule, finding.file, finding.line), finding)
    return sorted(unique.values(), key=lambda each: (each.severity != "error", each.rule))


def captured_constants(error: BaseException) -> Finding | None:
    """PL301: a kernel uses an array from outside that is not among its operands."""
    text = str(error)
    if "captures constants" not in text and "captures non-scalar constants" not in text:
        return None
    found = source_places._FUNCTION_AT.search(text.partition(" captures")[0].rpartition("pallas_call ")[2])
    place = Place(found["file"], int(found["line"]), found["function"]) if found else source_places.of_error(error)
    return place.finding(
        "PL301",
        "the kernel uses an array of outside, which no TPU kernel can: " + " ".join(text.split())[:300],
        remedy="Pass the array as an input, with a block spec of its own.",
    )


def old_block_spec(error: BaseException) -> Finding | None:
    """PL301: a block spec has index map and block shape exchanged, in JAX's order until 2024."""
    if not isinstance(error, TypeError | AttributeError | ValueError):
        return None
    kind = jax_module("jax.experimental.pallas").BlockSpec
    for spec in _locals(error):
        function = getattr(spec, "block_shape", None) if isinstance(spec, kind) else None
        if callable(function):
            code = function.__code__
            return Place(code.co_filename, code.co_firstlineno, code.co_name).finding(
                "PL301",
                "pl.BlockSpec has a function where its block shape belongs: it takes (block_shape, index_map), and "
                "older versions of JAX took them the other way round",
                remedy="Write pl.BlockSpec((8, 128), lambda i: (i, 0)), the shape first.",
            )
    return None


def _locals(error: BaseException) -> Iterator[Any]:
    """Every value that a frame of the error's traceback holds, and those in its sequences."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in list(frame.f_locals.values()):
            yield from value if isinstance(value, tuple | list) else (value,)
