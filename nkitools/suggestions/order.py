"""The order of turns and sums: NK501, NK503, NK506, NK512."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.edits.source import replaced
from nkitools.suggestions.memory import keyword_given
from nkitools.suggestions.site import Site, Suggestion, given

_RANGES = frozenset({"affine_range", "range", "sequential_range", "static_range"})


def one_after_the_other(site: Site) -> Iterator[Suggestion]:
    """NK501: loop over nl.sequential_range."""
    loops = [each for each in ast.walk(site.scope.node) if isinstance(each, ast.For)]
    for loop in loops:
        steered = loop.iter
        if loop.lineno != site.whole_fact("loop_line") or not isinstance(steered, ast.Call):
            continue
        if isinstance(steered.func, ast.Attribute) and steered.func.attr == "affine_range":
            name = f"{site.text(steered.func.value)}.sequential_range"
            yield Suggestion(f"Loop over {name}", (replaced(steered.func, name),))


def first_overwrites(site: Site) -> Iterator[Suggestion]:
    """NK503, NK506, NK512: let the first matmul of a sum overwrite, by the counter that its operands depend on."""
    call = site.call
    if call is None or not site.qualified(call).startswith("nki.isa.nc_matmul") or site.is_legacy:
        return
    destination, operands = given(call, "dst", 0), (given(call, "stationary", 1), given(call, "moving", 2))
    for loop in reversed(site.loops):
        if not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
            continue
        counter, (first, steps) = loop.target.id, _first(loop.iter)
        summed = any(each is not None and _depends(site, each, counter, loop) for each in operands)
        apart = destination is not None and _depends(site, destination, counter, loop)
        if steps in _RANGES and summed and not apart:
            yield keyword_given(site, call, "accumulate", f"({counter} > {first})")
            return


def _first(steered: ast.Call) -> tuple[str, str]:
    """Return the first value of a range, and the range's name."""
    name = steered.func.attr if isinstance(steered.func, ast.Attribute) else getattr(steered.func, "id", "")
    return (ast.unparse(steered.args[0]) if len(steered.args) > 1 else "0"), name


def _depends(site: Site, node: ast.expr, counter: str, loop: ast.For, depth: int = 0) -> bool:
    """Return whether an expression is another one in each turn of a loop: by its counter, or by a name bound in it."""
    for each in ast.walk(node):
        if not isinstance(each, ast.Name):
            continue
        if each.id == counter:
            return True
        values = site.scope.variables.get(each.id, [])
        own = [value for value in values if value is not None and loop.lineno <= value.lineno <= (loop.end_lineno or 0)]
        if depth < 4 and any(
            _depends(site, value, counter, loop, depth + 1) or isinstance(value, ast.Call) for value in own
        ):
            return True
    return any(_written(site, each.id, counter, loop) for each in ast.walk(node) if isinstance(each, ast.Name))


def _written(site: Site, name: str, counter: str, loop: ast.For) -> bool:
    """Return whether a loop fills a tile by an instruction that depends on the counter: dma_copy(dst=name, ...)."""
    for each in site.inside(loop.body):
        if isinstance(each, ast.Call) and site.qualified(each).startswith("nki.isa.dma_copy"):
            target = given(each, "dst", 0)
            named = isinstance(target, ast.Name) and target.id == name
            if named and any(isinstance(part, ast.Name) and part.id == counter for part in ast.walk(each)):
                return True
    return False
