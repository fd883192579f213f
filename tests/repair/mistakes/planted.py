"""Mistakes in the mathematics of kernels: edits of the right ones, each with the line that is to be named.

They were chosen before anything was measured.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

RIGHT = Path(__file__).with_name("right_kernels.py")


@dataclass(frozen=True)
class Mistake:
    """An edit of a kernel.

    ``kernel``: its name. ``kind``: what is wrong. ``old`` and ``new``: the text, which stands once in the kernel.
    ``line``: a part of the wrong line's text, where that is another one than the first line of ``new``.
    """

    kernel: str
    kind: str
    old: str
    new: str
    line: str = ""

    def source(self) -> str:
        """Return the module's text with the mistake."""
        text = RIGHT.read_text(encoding="utf-8")
        start = text.index(f"def {self.kernel}(")
        stop = text.find("\ndef ", start + 1)
        body = text[start : stop if stop >= 0 else len(text)]
        assert body.count(self.old) == 1, (self.kernel, self.old, body.count(self.old))
        return text[:start] + body.replace(self.old, self.new) + text[start + len(body) :]

    def wrong_line(self) -> int:
        """Return the number of the line that is to be named."""
        text = self.source()
        at = text.index(self.line or self.new, text.index(f"def {self.kernel}("))
        return text.count("\n", 0, at) + 1

    def module(self, directory: Path) -> ModuleType:
        """Write the module with the mistake into a directory, and import it."""
        name = f"mistaken_{abs(hash((self.kernel, self.new))):x}"
        path = directory / f"{name}.py"
        path.write_text(self.source(), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[name]
        return module


AXIS, SCALE, RESCALE = "wrong axis", "stale scale", "missing rescale"
NEIGHBOUR, TAIL, SUM, TILE = "wrong neighbour", "lost tail", "lost sum", "wrong tile"

MISTAKES = (
    # --- product ---
    Mistake("product", TAIL, "range(0, depth, TILE)", "range(0, depth - depth % TILE, TILE)"),
    Mistake("product", TILE, "right[k : k + length,", "right[0:length,"),
    Mistake(
        "product",
        NEIGHBOUR,
        "left_t[k : k + length, m : m + TILE]",
        "left_t[k : k + length, rows - m - TILE : rows - m]",
    ),
    Mistake("product", TILE, "result[m : m + TILE, n : n + TILE]", "result[n : n + TILE, m : m + TILE]"),
    Mistake("product", SUM, "dst=total, stationary=a", "dst=total, accumulate=False, stationary=a"),
    Mistake(
        "product",
        AXIS,
        "b = nl.load(right[k : k + length, n : n + TILE])",
        "b = nl.load(right[n : n + length, k % columns : k % columns + TILE])",
    ),
    # --- product_through_sbuf ---
    Mistake(
        "product_through_sbuf",
        SUM,
        "nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)",
        "nisa.tensor_copy(dst=total, src=part)",
    ),
    Mistake("product_through_sbuf", TAIL, "range(0, depth, TILE)", "range(0, depth - TILE, TILE)"),
    Mistake(
        "product_through_sbuf",
        NEIGHBOUR,
        "a = nl.load(left_t[k : k + TILE, :])",
        "a = nl.load(left_t[max(k - TILE, 0) : max(k - TILE, 0) + TILE, :])",
    ),
    Mistake(
        "product_through_sbuf",
        SUM,
        "            part = psum(",
        "            nisa.memset(dst=total, value=0.0)\n            part = psum(",
        "    nisa.memset(dst=total, value=0.0)\n            part",
    ),
    # --- softmax ---
    Mistake("softmax", TAIL, "op=nl.add, data=powers, axis=1", "op=nl.add, data=powers[:, 0:256], axis=1"),
    Mistake(
        "softmax",
        SCALE,
        "nisa.reciprocal(dst=inverse, data=sums[:, i : i + 1])",
        "nisa.reciprocal(dst=inverse, data=sums[:, 0:1])",
    ),
    Mistake(
        "softmax",
        RESCALE,
        "data=powers, op0=nl.multiply, operand0=inverse",
        "data=powers, op0=nl.multiply, operand0=1.0",
    ),
    Mistake(
        "softmax", TILE, "tile = nl.load(logits[i * TILE : (i + 1) * TILE, :])", "tile = nl.load(logits[0:TILE, :])"
    ),
    Mistake("softmax", RESCALE, "op=nl.add, data=powers", "op=nl.add, data=tile"),
    # --- rms_norm ---
    Mistake(
        "rms_norm",
        SCALE,
        "data=tile, op0=nl.multiply, operand0=scales[:, i : i + 1]",
        "data=tile, op0=nl.multiply, operand0=scales[:, max(i - 1, 0) : max(i - 1, 0) + 1]",
    ),
    Mistake(
        "rms_norm",
        RESCALE,
        "nisa.tensor_tensor(dst=weighted, data1=scaled, data2=factors, op=nl.multiply)",
        "nisa.tensor_copy(dst=weighted, src=scaled)",
    ),
    Mistake(
        "rms_norm",
        AXIS,
        "nisa.tensor_reduce(dst=squares[:, i : i + 1], op=nl.add, data=square, axis=1)",
        "nisa.tensor_copy(dst=squares[:, i : i + 1], src=square[:, 0:1])",
    ),
    Mistake("rms_norm", RESCALE, "data1=tile, data2=tile", "data1=tile, data2=factors"),
    Mistake(
        "rms_norm",
        NEIGHBOUR,
        "data=squares[:, i : i + 1], op0",
        "data=squares[:, 0:1], op0",
        "nisa.tensor_scalar(\n            dst=mean",
    ),
    # --- shares ---
    Mistake("shares", AXIS, "inverse.expand_dim(2).broadcast(2, size)", "inverse.expand_dim(1).broadcast(1, heads)"),
    Mistake("shares", TAIL, "op=nl.add, data=tile, axis=2", "op=nl.add, data=tile[:, :, 0:8], axis=2"),
    Mistake(
        "shares",
        TILE,
        "dst=result[i * TILE : (i + 1) * TILE, :, :], src",
        "dst=result[rows - (i + 1) * TILE : rows - i * TILE, :, :], src",
    ),
    # --- stencil ---
    Mistake("stencil", NEIGHBOUR, "data=padded[:, 0:TILE]", "data=padded[:, 2 : TILE + 2]"),
    Mistake(
        "stencil", NEIGHBOUR, "min(start + TILE + 1, columns)", "min(start + TILE, columns)", "src=x[:, first:last]"
    ),
    Mistake("stencil", SCALE, "operand0=w[:, 0:1]", "operand0=w[:, 2:3]"),
    Mistake("stencil", TAIL, "src=x[:, first:last]", "src=x[:, 0 : last - first]"),
    # --- flash ---
    Mistake(
        "flash", RESCALE, "data=sums, op0=nl.multiply, operand0=factor", "data=sums, op0=nl.multiply, operand0=1.0"
    ),
    Mistake(
        "flash", RESCALE, "data=total, op0=nl.multiply, operand0=factor", "data=total, op0=nl.multiply, operand0=1.0"
    ),
    Mistake(
        "flash",
        SCALE,
        "data=scores, op0=nl.subtract, operand0=highest",
        "data=scores, op0=nl.subtract, operand0=before",
    ),
    Mistake("flash", TILE, "value[n * TILE : (n + 1) * TILE, :]", "value[0:TILE, :]"),
    Mistake(
        "flash",
        NEIGHBOUR,
        "key_t[:, n * TILE : (n + 1) * TILE]",
        "key_t[:, max(n - 1, 0) * TILE : (max(n - 1, 0) + 1) * TILE]",
    ),
    Mistake(
        "flash", RESCALE, "data=sums, op0=nl.multiply, operand0=inverse", "data=sums, op0=nl.multiply, operand0=1.0"
    ),
    Mistake(
        "flash",
        SUM,
        "nisa.tensor_reduce(dst=added, op=nl.add, data=weights, axis=1)",
        "nisa.tensor_copy(dst=added, src=weights[:, 0:1])",
    ),
    Mistake("flash", TAIL, "range(key_t.shape[1] // TILE)", "range(key_t.shape[1] // TILE - 1)"),
    # --- scaled_product ---
    Mistake(
        "scaled_product",
        SCALE,
        "data=part, op0=nl.multiply, operand0=scale[:, k : k + 1]",
        "data=part, op0=nl.multiply, operand0=scale[:, max(k - 1, 0) : max(k - 1, 0) + 1]",
    ),
    Mistake(
        "scaled_product",
        RESCALE,
        "data=part, op0=nl.multiply, operand0=scale[:, k : k + 1]",
        "data=part, op0=nl.multiply, operand0=1.0",
    ),
    Mistake("scaled_product", SCALE, "src=scales[:, k : k + 1]", "src=scales[:, 0:1]"),
    Mistake(
        "scaled_product",
        SUM,
        "nisa.tensor_tensor(dst=total, data1=total, data2=scaled, op=nl.add)",
        "nisa.tensor_copy(dst=total, src=scaled)",
    ),
    Mistake("scaled_product", RESCALE, "data1=total, data2=scaled", "data1=total, data2=part"),
    # --- turned ---
    Mistake("turned", TILE, "result[j : j + TILE, i : i + TILE]", "result[i : i + TILE, j : j + TILE]"),
    Mistake("turned", AXIS, "dst=copied, src=swapped", "dst=copied, src=tile"),
    Mistake("turned", TILE, "x[i : i + TILE, j : j + TILE]", "x[j : j + TILE, i : i + TILE]"),
    # --- running ---
    Mistake("running", NEIGHBOUR, "src=sums[:, TILE - 1 : TILE]", "src=sums[:, TILE - 2 : TILE - 1]"),
    Mistake("running", SCALE, "initial=carry", "initial=0.0"),
    Mistake("running", RESCALE, "op0=nl.multiply, operand0=d)", "op0=nl.multiply, operand0=1.0)"),
    Mistake("running", SUM, "dst=carry, src=sums[:, TILE - 1 : TILE]", "dst=carry, src=tile[:, TILE - 1 : TILE]"),
    # --- distances ---
    Mistake("distances", TAIL, "(columns + 127) // 128", "columns // 128"),
    Mistake("distances", SUM, "legacy_nl.add(total[row, 0], part)", "legacy_nl.copy(part)"),
    Mistake("distances", TILE, "centre[row, c * 128 + column]", "centre[row, column]"),
    Mistake(
        "distances",
        NEIGHBOUR,
        "legacy_nl.multiply(far, far, mask=inside)",
        "legacy_nl.multiply(far, tile, mask=inside)",
    ),
)
