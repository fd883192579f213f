"""Choices of blocks: what fits by the block model, and what the compiler says of it."""

from __future__ import annotations

import functools
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402  (JAX decides whether this file is collected)
from jax.experimental import pallas as pl  # noqa: E402

import nkitools.pallas  # noqa: E402
from nkitools.pallas import compiled as compiled_module  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs" / "how-to"

needs_compiler = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is a compiler")


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without libtpu."""
    monkeypatch.setattr(compiled_module, "why_not", lambda: "libtpu is not installed")


def doubled(x: Any, *, rows: int) -> Any:
    """Doubles float32 [M, 1024] in blocks of ``rows`` whole rows, of which VMEM holds four: 4 KiB a row each."""
    if x.shape[0] % rows:
        raise ValueError(f"{rows} rows do not divide {x.shape[0]}")

    def kernel(x_block: Any, out_block: Any) -> None:
        out_block[...] = x_block[...] * 2

    block = pl.BlockSpec((rows, 1024), lambda i: (i, 0))
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // rows,),
        in_specs=[block],
        out_specs=block,
    )
    return call(x)


def with_rows(rows: int) -> Any:
    return functools.partial(doubled, rows=rows)


ARRAY = jax.ShapeDtypeStruct((4096, 1024), jnp.float32)
MIB = 1 << 20


def test_without_a_compiler_the_block_model_speaks(no_compiler: None) -> None:
    """1024 rows are 4 MiB, so four blocks fill the 16 MiB of a v5e; twice as many fit a v6e only."""
    table = nkitools.pallas.sweep(with_rows, ARRAY, blocks=[1024, 2048, 4096], chips=("v5e", "v6e"))
    assert [(each.block, each.chip) for each in table] == [
        *((1024, "v5e"), (1024, "v6e"), (2048, "v5e"), (2048, "v6e"), (4096, "v5e"), (4096, "v6e"))
    ]
    assert [each.vmem for each in table] == [size * MIB for size in (16, 16, 32, 32, 64, 64)]
    assert [each.vmem_limit for each in table] == [16 * MIB, 32 * MIB] * 3
    assert [each.fits for each in table] == [True, True, False, True, False, False]
    assert [each.accepted for each in table] == [None, None, False, None, False, False]
    assert table.accepted("v6e") == []


def test_the_table_without_a_compiler(no_compiler: None) -> None:
    """Refusals are numbered, equal ones share a number, and the last line says why no compiler was asked."""
    table = nkitools.pallas.sweep(with_rows, ARRAY, blocks=[1024, 2048, 3000], chips=("v5e", "v6e"))
    assert str(table).splitlines() == [
        "block  VMEM       v5e (16.00 MiB)  v6e (32.00 MiB)",
        "1024   16.00 MiB  fits             fits",
        "2048   32.00 MiB  PL103 [1]        fits",
        "3000   -          refused [2]      refused [2]",
        "[1] PL103 kernel `kernel` takes 32 MiB of blocks in vector memory; the limit on v5e is 16 MiB",
        "[2] ValueError: 3000 rows do not divide 4096",
        "The compiler was not asked: libtpu is not installed.",
    ]


def test_a_refused_block_is_a_record_too(no_compiler: None) -> None:
    """The function's own ValueError is the reason; nothing is known of its memory."""
    (attempt,) = nkitools.pallas.sweep(with_rows, ARRAY, blocks=[3000], chips="v5e")
    assert (attempt.vmem, attempt.compiled, attempt.fits, attempt.accepted) == (None, None, None, False)
    assert attempt.reason == "ValueError: 3000 rows do not divide 4096"


def test_what_jax_does_not_lower_is_not_accepted(no_compiler: None) -> None:
    """4 of 4096 rows break the block rule, which needs no compiler to be known."""
    (attempt,) = nkitools.pallas.sweep(with_rows, ARRAY, blocks=[4], chips="v5e")
    assert (attempt.fits, attempt.accepted, attempt.verdict()) == (True, False, "PL101")


@needs_compiler
def test_the_compiler_says_which_are_accepted() -> None:
    """What the compiler takes is listed by chip, and each attempt has what it made of the kernel."""
    table = nkitools.pallas.sweep(with_rows, ARRAY, blocks=[256, 2048], chips=("v5e", "v6e"))
    assert (table.accepted("v5e"), table.accepted("v6e")) == ([256], [256, 2048])
    assert [each.verdict() for each in table] == ["compiles", "compiles", "PL103", "compiles"]
    kernels = [each.compiled.kernels for each in table if each.compiled is not None]
    assert [[kernel.name for kernel in each] for each in kernels] == [["kernel"]] * 4


def test_a_mistake_in_the_function_passes_through() -> None:
    """Only a ValueError is a refusal of blocks; anything else is the author's to see."""
    with pytest.raises(TypeError, match="unexpected keyword"):
        nkitools.pallas.sweep(lambda rows: functools.partial(doubled, row=rows), ARRAY, blocks=[8])


def test_there_must_be_something_to_sweep() -> None:
    """No blocks, no Pallas call, no such chip: each is said."""
    with pytest.raises(ValueError, match="blocks is empty"):
        nkitools.pallas.sweep(with_rows, ARRAY, blocks=[])
    with pytest.raises(ValueError, match="the function for block 8 makes no Pallas call"):
        nkitools.pallas.sweep(lambda _: jnp.sin, ARRAY, blocks=[8])
    with pytest.raises(ValueError, match="chips has 'v9'"):
        nkitools.pallas.sweep(with_rows, ARRAY, blocks=[8], chips="v9")


@needs_compiler
def test_the_how_to_page_shows_what_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script of the page prints the table of the page."""
    monkeypatch.syspath_prepend(str(DOCS / "example"))
    runpy.run_path(str(DOCS / "example" / "product_blocks.py"))
    monkeypatch.delitem(sys.modules, "product")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", (DOCS / "pallas-kernels.md").read_text(), re.DOTALL | re.MULTILINE)
    assert capsys.readouterr().out == shown
