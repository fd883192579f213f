"""The compact reference of a dialect, for an agent's context: limits of a chip, call forms, what kernels may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nkitools.facts import options, versions
from nkitools.facts.generations import FIELDS, generation_of
from nkitools.serve.instruction_cards import Card, card, names

_MODERN = """\
import nki, nki.isa as nisa, nki.language as nl; @nki.jit makes a function a kernel.
- Arguments are tensors in HBM. Results: nl.ndarray(shape, dtype=..., buffer=nl.shared_hbm), written and returned.
- A tile is [partitions, elements], at most 128 partitions. Make it with nl.ndarray(..., buffer=nl.sbuf or nl.psum).
- nisa functions write into dst=. Load by nisa.dma_copy or nl.load, compute in SBUF, multiply into PSUM in float32,
  copy out of PSUM with nisa.tensor_copy, store by nisa.dma_copy or nl.store.
- Sums over K: accumulate=(k > 0), so that the first nisa.nc_matmul overwrites. dst = stationary.T @ moving.
- Index by integers, slices and nl.ds(start, size). Nothing is clamped: end the last tile with min(end, size).
- No Python operators on tensors: nl.add, nl.multiply, nisa.tensor_tensor, nisa.tensor_scalar. No if on elements.
- One partition does not serve the others: load a row with row.broadcast(0, 128). A column [128, 1] broadcasts along
  the free dimension in nisa.tensor_scalar and nisa.activation.
- Python's for and range unroll; nl.fori_loop turns on the device."""
_LEGACY = """\
import neuronxcc.nki as nki, neuronxcc.nki.language as nl, neuronxcc.nki.isa as nisa; @nki.jit makes a kernel.
- Arguments are tensors in HBM. Results: nl.ndarray(shape, dtype=..., buffer=nl.shared_hbm), nl.store to it, return it.
- A tile is [partitions, elements], at most 128 partitions; calls return tiles: y = nl.exp(nl.load(x[i_p, i_f])).
- Index with nl.arange(n)[:, None] and nl.arange(m)[None, :] or nl.mgrid. mask= leaves out what lies beyond:
  mask=(i_p < n) & (i_f < m), comparisons of affine expressions joined by &.
- nl.affine_range: turns may run at once; nl.sequential_range: one after the other. Sums: psum += nl.matmul(...).
- A tensor made in a loop's body is gone after it. Arguments are immutable but for nt.mutable_tensor."""


def guide(chip: str, *, legacy: bool = False) -> str:
    """Return the reference of the modern or the legacy dialect for a chip, under the NKI version that holds."""
    version = "SDK 2.26" if legacy else f"NKI {options.language().name}"
    base = "neuronxcc.nki" if legacy else "nki"
    lines = [f"# {base} for {chip} ({version}), by nkitools", "", _LEGACY if legacy else _MODERN, "", "## Limits", ""]
    table = generation_of(chip)
    wanted = (
        name for name in FIELDS if "fmax" in name or name.endswith(("partitions", "partition_bytes", "bank_bytes"))
    )
    lines += [", ".join(f"{name} {getattr(table, name)}" for name in wanted)]
    for module, short in ((f"{base}.isa", "nisa"), (f"{base}.language", "nl")):
        lines += ["", f"## {short}", "", *_entries(module)]
    return "\n".join(lines) + "\n"


def _entries(module: str) -> Iterator[str]:
    language = options.language()
    known = {} if module.startswith("neuronxcc") else versions.names_of(module)
    for name in names(module):
        found, row = card(name), known.get(name.rpartition(".")[2])
        if found is not None and "(" in found.call and (row is None or row.is_in(language)):
            yield f"- {_call(found)}: {_what(found)}"


def _call(found: Card) -> str:
    """Return the call form without the parameters that are alike everywhere."""
    text = re.sub(r", name=None|, engine=nisa\.engine\.unknown|, \*\*kwargs|, mask=None", "", found.call)
    return text.partition(".")[2]


def _what(found: Card) -> str:
    text = found.sentence
    return text if len(text) <= 110 else text[:107].rsplit(" ", 1)[0] + " …"
