"""Mistakes that are published for teaching: each gives one finding that says what is wrong, in both dialects."""

from __future__ import annotations

from typing import Any

import pytest

LEGACY = """\
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl


@nki.jit
"""
MODERN = "@nki.jit\n"

ROWS_256 = "inputs = (np.ones((256, 64), np.float32),)\n"

CASES = {
    # The tile size of a first tiled kernel is doubled: "the partition size is at most 128".
    "legacy, 256 partitions": (
        LEGACY
        + """
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:256, 0:64]
    tile = nl.load(x[i_p, i_f])  # NK101
    nl.store(out[i_p, i_f], nl.exp(tile))
    return out


""".lstrip()
        + ROWS_256,
        "has 256 rows for partitions; a NeuronCore has 128",
    ),
    "modern, 256 partitions": (
        MODERN
        + """
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)  # NK101
    result = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=result)
    return out


""".lstrip()
        + ROWS_256,
        "tensor `tile` (SBUF, float32 [256, 64]), has 256 partitions; a NeuronCore has 128",
    ),
    "modern, 256 partitions of which half are used": (
        MODERN
        + """
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)  # NK101
    nisa.dma_copy(dst=out, src=tile[0:128, :])
    return out


""".lstrip()
        + ROWS_256,
        "tensor `tile` (SBUF, float32 [256, 64]), has 256 partitions; a NeuronCore has 128",
    ),
    # The kernel is right for 128 rows; given 256 it returns garbage in the other half and says nothing.
    "legacy, an input of twice the rows": (
        LEGACY
        + """
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # NK403
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f])
    nl.store(out[i_p, i_f], nl.exp(tile))
    return out


""".lstrip()
        + ROWS_256,
        "`out[128:256, 0:64]` never written",
    ),
    "modern, an input of twice the rows": (
        MODERN
        + """
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # NK403
    tile = nl.load(x[0:128, :])
    nl.store(out[0:128, :], nl.exp(tile))
    return out


""".lstrip()
        + ROWS_256,
        "`out[128:256, 0:64]` never written",
    ),
    # "Why should we have different offsets?"
    "legacy, three tensors at one address": (
        LEGACY
        + """
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    second = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    total = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    first[...] = nl.load(x)
    second[...] = nl.load(x)
    total[...] = nl.add(first, second)  # NK204
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
""".lstrip(),
        "tensor `first` (SBUF, float32 [128, 64]) is read at partitions 0..127, bytes 0..255 of SBUF",
    ),
    "modern, three tensors at one address": (
        MODERN
        + """
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    second = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    total = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    nisa.dma_copy(dst=first, src=x)
    nisa.dma_copy(dst=second, src=x)
    nisa.tensor_tensor(dst=total, data1=first, data2=second, op=nl.add)  # NK204
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32),)
""".lstrip(),
        "tensor `first` (SBUF, float32 [128, 64]) is read at partitions 0..127, bytes 0..255 of SBUF",
    ),
    # Over the taps of a convolution; AWS's maintainers: use += or a sequential range.
    "legacy, a sum that is written out in an affine range": (
        LEGACY
        + """
def kernel(image, taps):
    out = nl.ndarray((64, 62), dtype=image.dtype, buffer=nl.shared_hbm)
    tile, weights = nl.load(image), nl.load(taps)
    conv_result = nl.zeros((64, 62), dtype=image.dtype)
    for i in nl.affine_range(3):
        conv_result[...] = conv_result + tile[:, i : i + 62] * weights[:, i : i + 1]  # NK501
    nl.store(out, conv_result)
    return out


inputs = (np.ones((64, 64), np.float32), np.ones((64, 3), np.float32))
""".lstrip(),
        "iterations i=0 and i=1 of the nl.affine_range",
    ),
}


@pytest.mark.parametrize(("source", "text"), CASES.values(), ids=CASES)
def test_it_is_one_finding_that_says_what_is_wrong(source: str, text: str, play_example: Any) -> None:
    """At the marked line, of the marked rule, and nothing else of any weight."""
    (line, rule) = next(
        (number, code.split("# ")[1]) for number, code in enumerate(source.splitlines(), start=1) if "  # NK" in code
    )
    (found,) = [each for each in play_example(source, "report").findings if each.severity != "hint"]
    assert (found.rule, found.line) == (rule, line)
    assert text in found.message
    raised = play_example(source, "error").error
    assert raised is not None
    assert (raised.finding.rule, raised.finding.line) == (rule, line)
