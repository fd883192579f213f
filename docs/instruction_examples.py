"""Examples for the pages of instructions that neither a call of the strategies nor a rule's example shows.

Each is a kernel and its arguments; the imports are those of `HEADER`.
"""

from __future__ import annotations

HEADER = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


"""


def _kernel(signature: str, body: str, inputs: str, ending: str = "") -> str:
    lines = [f"    {line}" if line else "" for line in body.strip().splitlines()]
    return "\n".join(
        [f"{HEADER}@nki.jit", f"def kernel({signature}):", *lines, "", "", *ending.splitlines(), inputs, ""]
    )


_STORED = """
out = nl.ndarray(dst.shape, dtype=dst.dtype, buffer=nl.shared_hbm)
nl.store(out, dst)
return out
"""
_RANDOM = "random = np.random.default_rng(0)"
_ROWS = f"{_RANDOM}\ninputs = (random.standard_normal((8, 16), np.float32),)"
_MX = """\
packed, scales = [], []
for x in (left, right):
    packed.append(nl.ndarray((32, x.shape[1] // 4), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf))
    scales.append(nl.ndarray((32, x.shape[1] // 4), dtype=nl.float8_e8m0fnu, buffer=nl.sbuf))
    nisa.quantize_mx(dst=packed[-1], src=nl.load(x), dst_scale=scales[-1])
total = nl.ndarray((packed[0].shape[1], packed[1].shape[1]), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul_mx(
    dst=total, stationary=packed[0], moving=packed[1], stationary_scale=scales[0], moving_scale=scales[1]
)
dst = nl.copy(total)"""
_BFLOAT16 = f"{_RANDOM}\nleft, right = (random.standard_normal((32, 64)).astype(nl.bfloat16) for _ in range(2))"
_SWAPPED = """\
core = nl.program_id(0)
mine = nl.load(x[8 * core : 8 * core + 8])
dst = nl.ndarray(mine.shape, dtype=mine.dtype, buffer=nl.sbuf)
{call}
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
nl.store(out[8 * core : 8 * core + 8], dst)
return out
"""
_TWO_CORES = "kernel = kernel[2]  # on two cores"
_BOTH = f"{_RANDOM}\ninputs = (random.standard_normal((16, 16), np.float32),)"
_INTEGER = "inputs = (np.array([[3]], np.int32),)"

EXAMPLES = {
    "activate2": _kernel(
        "x",
        "dst = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "nisa.activate2(dst=dst, op=nl.exp, data=nl.load(x), imm0=0.5, imm1=1.0, op0=nl.multiply, op1=nl.subtract)"
        + _STORED,
        _ROWS,
    ),
    "nc_match_replace8": _kernel(
        "x",
        "tile = nl.load(x)\n"
        "largest = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.sbuf)\n"
        "nisa.max8(dst=largest, src=tile)\n"
        "dst = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "nisa.nc_match_replace8(dst=dst, data=tile, vals=largest, imm=0.0)" + _STORED,
        _ROWS,
    ),
    "nc_matmul_mx": _kernel("left, right", _MX + _STORED, f"{_BFLOAT16}\ninputs = (left, right)"),
    "nc_n_gather": _kernel(
        "x, indices",
        "dst = nl.ndarray(indices.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "nisa.nc_n_gather(dst=dst, data=nl.load(x), indices=nl.load(indices))" + _STORED,
        f"{_RANDOM}\n"
        "inputs = (random.standard_normal((8, 16), np.float32), random.integers(0, 16, (8, 4)).astype(np.uint32))",
    ),
    "quantize_mx": _kernel("left, right", _MX + _STORED, f"{_BFLOAT16}\ninputs = (left, right)"),
    "rand2": _kernel(
        "",
        "dst = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)\nnisa.rand2(dst=dst, min=-1.0, max=1.0)" + _STORED,
        "inputs = ()",
    ),
    "rand_get_state": _kernel(
        "",
        "dst = nl.ndarray((8, 6), dtype=nl.uint32, buffer=nl.sbuf)\nnisa.rand_get_state(dst=dst)" + _STORED,
        "inputs = ()",
    ),
    "rand_set_state": _kernel(
        "seeds",
        "nisa.rand_set_state(src_seeds=nl.load(seeds))\n"
        "dst = nl.ndarray((8, 16), dtype=nl.uint32, buffer=nl.sbuf)\n"
        "nisa.rng(dst=dst, engine=nisa.engine.gpsimd)" + _STORED,
        f"{_RANDOM}\ninputs = (random.integers(0, 2**32, (8, 6), np.uint32),)",
    ),
    "range_select": _kernel(
        "x, first, end",
        "dst = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "largest = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)\n"
        "nisa.range_select(\n    dst=dst,\n    on_true_tile=nl.load(x),\n    comp_op0=nl.greater_equal,\n"
        "    comp_op1=nl.less,\n    bound0=nl.load(first),\n    bound1=nl.load(end),\n    reduce_res=largest,\n)"
        + _STORED,
        f"{_RANDOM}\n"
        "bounds = [np.full((8, 1), each, np.float32) for each in (2, 9)]\n"
        "inputs = (random.standard_normal((8, 16), np.float32), *bounds)",
    ),
    "register_alloc": _kernel(
        "count",
        "turns = nisa.register_alloc(nl.load(count))\n"
        "dst = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)\n"
        "nisa.memset(dst=dst, value=0.0)\n\n\n"
        "def body(turn):\n    nisa.tensor_scalar(dst=dst, data=dst, op0=nl.add, operand0=1.0)\n\n\n"
        "nl.fori_loop(0, turns, body)" + _STORED,
        _INTEGER,
    ),
    "register_move": _kernel(
        "count",
        "kept = nisa.register_alloc(0)\n"
        "nisa.register_move(kept, nisa.register_alloc(nl.load(count)))\n"
        "dst = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
        "nisa.register_store(dst, kept)" + _STORED,
        _INTEGER,
    ),
    "rng": _kernel(
        "", "dst = nl.ndarray((8, 16), dtype=nl.uint32, buffer=nl.sbuf)\nnisa.rng(dst=dst)" + _STORED, "inputs = ()"
    ),
    "scalar_load": _kernel(
        "number, table",
        "row = nisa.scalar_load(number)\n"
        "dst = nl.ndarray((1, table.shape[1]), dtype=table.dtype, buffer=nl.sbuf)\n"
        "nisa.dma_copy(dst=dst, src=table[nl.ds(row, 1)])" + _STORED,
        f"{_RANDOM}\ninputs = (np.array([[3]], np.int32), random.standard_normal((8, 16), np.float32))",
    ),
    "sendrecv": _kernel(
        "x",
        _SWAPPED.format(
            call="nisa.sendrecv(src=mine, dst=dst, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)"
        ),
        _BOTH,
        _TWO_CORES,
    ),
    "sendrecv_compute": _kernel(
        "x",
        _SWAPPED.format(
            call="nisa.sendrecv_compute(\n"
            "    src=mine, dst=dst, send_to_rank=1 - core, recv_from_rank=1 - core, reduce_op=nl.add\n)"
        ),
        _BOTH,
        _TWO_CORES,
    ),
    "sequence_bounds": _kernel(
        "ids",
        "dst = nl.ndarray((1, 2, ids.shape[1]), dtype=nl.int32, buffer=nl.sbuf)\n"
        "nisa.sequence_bounds(dst=dst, segment_ids=nl.load(ids))" + _STORED,
        "inputs = (np.array([[1, 1, 2, 2, 2, 0]], np.int32),)",
    ),
    "set_rng_seed": _kernel(
        "seed",
        "nisa.set_rng_seed(src_seeds=nl.load(seed))\n"
        "dst = nl.ndarray((8, 16), dtype=nl.uint32, buffer=nl.sbuf)\n"
        "nisa.rng(dst=dst)" + _STORED,
        "inputs = (np.array([[3]], np.uint32),)",
    ),
    "topk": _kernel(
        "x",
        "dst = nl.ndarray((16, 8), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "indices = nl.ndarray((16, 8), dtype=nl.uint32, buffer=nl.sbuf)\n"
        "nisa.topk(val_dst=dst, idx_dst=indices, src=nl.load(x), n=256)\n"
        "out = nl.ndarray((16, 1), dtype=dst.dtype, buffer=nl.shared_hbm)\n"
        "nl.store(out, dst[:, 0:1])  # the 8 largest stand in the first 8 partitions\n"
        "return out",
        f"{_RANDOM}\ninputs = (random.standard_normal((16, 16)).astype(nl.bfloat16),)",
    ),
}
EXAMPLES["register_store"] = EXAMPLES["register_move"]
EXAMPLES["scalar_store"] = _kernel(
    "number",
    "dst = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
    "nisa.scalar_store(dst, nisa.scalar_load(number) + 1)" + _STORED,
    _INTEGER,
)
