"""What the tests of the example operators share: each library is built once, and out of the cache after that."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nkitools.customop import BuildError
from nkitools.customop.toolchain import find_compiler


@pytest.fixture(scope="session", autouse=True)
def _compiler() -> None:
    try:
        find_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def boxes_of(batch: int, count: int, seed: int) -> npt.NDArray[np.float32]:
    """Boxes (left, top, right, bottom) [batch, count, 4] in an image of 100 x 100, some of them without an area."""
    draw: Any = np.random.default_rng(seed)
    near = draw.uniform(0, 90, (batch, count, 2))
    size = draw.uniform(0, 30, (batch, count, 2)) * draw.integers(0, 4, (batch, count, 1)).clip(max=1)
    return np.concatenate([near, near + size], axis=-1).astype(np.float32)
