"""Calls as an editor and mypy see them: not run, but checked with the package.

A ``type: ignore`` that is not needed is an error, so each one says that a wrong call is found.
"""

from __future__ import annotations

from typing import assert_type

from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue.instruction import NkiInstruction


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
