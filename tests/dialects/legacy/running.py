"""Runs functions as kernels of the legacy dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.rules.finding import Finding


def run(function: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
    """The run of ``function`` as an ``nki.jit`` kernel."""
    return nkitools.simulate(nki.jit(function), *arrays, **options)


def stored(compute: Any) -> Any:
    """A kernel that stores what ``compute`` makes of the loaded inputs."""

    def kernel(*arrays: Any) -> Any:
        tile = compute(*[nl.load(array) for array in arrays])
        result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    return kernel


def outputs(function: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
    """Return the result of ``function`` from a run without findings; many read a part of an argument alone (NK513)."""
    done = run(function, *arrays, **options)
    assert [each for each in done.findings if each.rule != "NK513"] == []
    return done.outputs


def refusal(function: Callable[..., Any], *arrays: Any, **options: Any) -> Finding:
    """The finding that ends the run of ``function``."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is the finding says
        run(function, *arrays, **options)
    finding = getattr(caught.value, "finding", None)
    if finding is None:
        raise caught.value
    assert isinstance(finding, Finding)
    return finding


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Numbers between -2 and 2."""
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)
