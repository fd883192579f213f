"""``nki.typing``: annotations of kernel parameters; undocumented, but public kernels import it."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing


class _Annotation:
    """An annotation that may be subscripted with sizes and a dtype; it promises nothing to the simulator."""

    def __init__(self, name: str, sizes: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.sizes = sizes

    def __getitem__(self, sizes: Any) -> _Annotation:
        return _Annotation(self.name, sizes if isinstance(sizes, tuple) else (sizes,))

    def __repr__(self) -> str:
        return f"nki.typing.{self.name}{list(self.sizes) if self.sizes else ''}"


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
scalar = _Annotation("scalar")

__all__ = ["mutable_tensor", "scalar", "tensor"]


def __getattr__(name: str) -> Any:
    return missing("nki.typing", name, frozenset())
