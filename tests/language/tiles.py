"""What a function of nki.language computes on arrays that become tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from tests.isa.issued import Tile, inside, placed, tile


def computed(function: Any, *operands: Any, chip: str = "trn2", rules: str = "error", **kwargs: Any) -> Any:
    """The values and dtype of a function's result in SBUF; arrays become tiles in SBUF, numbers stay what they are."""

    def body() -> tuple[np.ndarray, Any]:
        as_tiles = [tile(each) if isinstance(each, np.ndarray) else each for each in operands]
        result = function(*[placed(each) if isinstance(each, Tile) else each for each in as_tiles], **kwargs)
        assert result.buffer.name == "sbuf"
        return np.array(result.array), result.dtype

    return inside(body, chip=chip, rules=rules)


def values(function: Any, *operands: Any, **kwargs: Any) -> Any:
    """The values alone."""
    return computed(function, *operands, **kwargs)[0]


def refused(function: Any, *operands: Any, **kwargs: Any) -> Any:
    """The finding of a refused call."""
    with pytest.raises(nkitools.KernelError) as caught:
        computed(function, *operands, **kwargs)
    return caught.value.finding


def issued(function: Any, *operands: Any, chip: str = "trn2", **kwargs: Any) -> list[tuple[str, str]]:
    """The name and engine of each instruction that a function issues, on tiles in SBUF."""

    def kernel() -> None:
        function(*[placed(tile(each)) if isinstance(each, np.ndarray) else each for each in operands], **kwargs)

    return [(each.name, each.engine) for each in nkitools.simulate(kernel, chip=chip).instructions]
