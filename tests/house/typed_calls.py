"""Calls as an editor and mypy see them: not run, but checked with the package.

A ``type: ignore`` that is not needed is an error, so each one says that a wrong call is found.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import nkitools
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue.instruction import NkiInstruction
from nkitools.typing import DevicePrints, Outputs, Print, RunKernel


def instructions(dst: NkiTensor, x: NkiTensor) -> None:
    """Call instructions: the parameters are those of the definition, without its guards."""
    assert_type(nisa.tensor_tensor(dst, x, x, nl.add), NkiInstruction)
    assert_type(nisa.activation(dst=dst, op=nl.exp, data=x, scale=0.5, name="exponential"), NkiInstruction)
    nisa.tensor_tensor(dst, x, 3.0, nl.add)  # type: ignore[arg-type]
    nisa.tensor_tensor(dst, x, x, "add")  # type: ignore[arg-type]
    nisa.tensor_tensor(dst, x, x, nl.add, mask=None)  # type: ignore[call-arg]
    nisa.tensor_tensor(dst, x)  # type: ignore[call-arg]
    nisa.tensor_reduce(dst, nl.add, x, axis="free")  # type: ignore[arg-type]


def language(x: NkiTensor) -> None:
    """Call functions of the language."""
    assert_type(nl.softmax(x, axis=-1), NkiTensor)
    nl.softmax(x, axis="free")  # type: ignore[arg-type]


def fixtures(run_kernel: RunKernel, prints: DevicePrints, x: NDArray[np.float32]) -> None:
    """Annotate fixtures, and use what they give as NumPy does."""
    outputs = run_kernel(abs, x)
    assert_type(outputs.shape, tuple[int, ...])
    np.testing.assert_allclose(outputs, 2 * x, rtol=1e-6)
    first, second = outputs
    np.testing.assert_array_equal(first - second, outputs.astype(np.float32))
    assert_type(run_kernel.run.outputs, Outputs)
    assert_type(prints[0], Print)
    np.testing.assert_array_equal(outputs[:, None][x > 0], outputs["sums"])
    outputs.shape = (2,)  # type: ignore[misc]
    nkitools.simulat(abs, x)  # type: ignore[attr-defined]
