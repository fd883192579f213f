"""``nki.typing``: annotations of kernel parameters (NKI 0.3 migration guide; no reference page documents it)."""

from __future__ import annotations

from types import UnionType
from typing import Any, TypeAlias, Union

Annotation: TypeAlias = "TensorAnnotation | type | UnionType | None"  # of a parameter, beside `|`


class TensorAnnotation:
    """``nt.tensor[128, 512]`` declares the shape that a parameter must have; bare, it declares a tensor.

    A launch compares the shape where all sizes are integers (NK609). What else may stand in the brackets
    (``nt.mutable``, a dtype) says nothing that the simulator needs: every input may be written.
    """

    def __init__(self, name: str, sizes: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.sizes = sizes

    @property
    def declared_shape(self) -> tuple[int, ...] | None:
        """The shape that an argument must have; None if the annotation has none."""
        whole = self.sizes and all(isinstance(size, int) and not isinstance(size, bool) for size in self.sizes)
        return self.sizes if whole else None

    def __getitem__(self, sizes: int | tuple[int, ...]) -> TensorAnnotation:
        return TensorAnnotation(self.name, sizes if isinstance(sizes, tuple) else (sizes,))

    def __or__(self, other: Annotation) -> Any:
        return Union[self, other]  # noqa: UP007 - with `|` it would ask itself again

    def __ror__(self, other: Annotation) -> Any:
        return Union[other, self]  # noqa: UP007

    def __repr__(self) -> str:
        return f"nki.typing.{self.name}{list(self.sizes) if self.sizes else ''}"


tensor = TensorAnnotation("tensor")
mutable_tensor = TensorAnnotation("mutable_tensor")
mutable = TensorAnnotation("mutable")
scalar = TensorAnnotation("scalar")

__all__ = ["mutable", "mutable_tensor", "scalar", "tensor"]
