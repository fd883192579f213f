"""The undefined elements of results: those that are made of elements that were never written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import NamedTuple

_NOTHING: Mapping[str, Array] = MappingProxyType({})


class Undefined(NamedTuple):
    """The undefined elements of the results of a call, and the operands that make them so."""

    elements: Mapping[str, Array] = _NOTHING  # for some results, by parameter, a mask
    # Operands, each with its elements that were never written, and whether defined ones are mixed with these.
    sources: tuple[tuple[NkiTensor, Array, bool], ...] = ()

    def reshaped(self, shape: tuple[int, ...]) -> Undefined:
        """Return the same elements, counted in order, of results of another shape."""
        return self._replace(elements={result: mask.reshape(shape) for result, mask in self.elements.items()})

    def joined(self, other: Undefined) -> Undefined:
        """Return the elements that are undefined by either of two."""
        masks = dict(self.elements)
        for result, mask in other.elements.items():
            masks[result] = masks[result] | mask if result in masks else mask
        return Undefined(masks, (*self.sources, *other.sources))


NOTHING_UNDEFINED = Undefined()
