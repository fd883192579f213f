"""Steps that are several instructions, or take their operands elsewhere than in SBUF."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.fuzz.kernel_text import Symbol, ncc, nisa, nl

RECIPES: dict[str, Callable[[Issue], None]] = {}


class Issue:
    """A step that is written down: its operands as tensors of the kernel, made where they are first asked for."""

    def __init__(self, step: dict[str, Any], tiles: dict[str, Symbol], arrays: dict[str, Symbol]) -> None:
        self.step, self.tiles, self.arrays = step, tiles, arrays
        self.results: dict[str, Symbol] = {}

    def __getitem__(self, key: str) -> Any:
        part = self.step[key]
        if isinstance(part, dict) and "array" in part:
            return _in_dims(self.arrays[key] if part.get("hbm") else self.loaded(self.arrays[key]), part)
        return self.operand(part)

    def operand(self, part: Any) -> Any:
        """Return a view of a tile, or a result of its own; a number as it is."""
        if not isinstance(part, dict):
            return part
        if "tile" in part:
            return view_of(self.tiles[part["tile"]], part)
        if part["name"] not in self.results:
            self.results[part["name"]] = self._made(part)
        return _in_dims(self.results[part["name"]], part)

    def _made(self, part: dict[str, Any]) -> Any:
        made = nl.ndarray(tuple(part["shape"]), dtype=getattr(nl, part["new"]), buffer=nl.sbuf)
        if "fill" in part:
            nisa.memset(dst=made, value=part["fill"])
        if not part.get("hbm"):
            return made
        outside = self.outside(made.shape, made.dtype)
        if "fill" in part:
            nisa.dma_copy(dst=outside, src=made)
        return outside

    def loaded(self, array: Any) -> Any:
        """Return an array in SBUF."""
        tile = self.tile(array.shape, array.dtype)
        nisa.dma_copy(dst=tile, src=array)
        return tile

    def tile(self, shape: Any, dtype: Any, memory: Any = nl.sbuf) -> Any:
        """Return a new tile."""
        return nl.ndarray(tuple(shape), dtype=dtype, buffer=memory)

    def outside(self, shape: Any, dtype: Any) -> Any:
        """Return a new tensor in HBM."""
        return self.tile(shape, dtype, nl.private_hbm)

    def sent(self, key: str = "src") -> Any:
        """Return the copy of an operand in HBM."""
        source = self[key]
        outside = self.outside(source.shape, source.dtype)
        nisa.dma_copy(dst=outside, src=source)
        return outside


def _in_dims(tensor: Symbol, part: dict[str, Any]) -> Symbol:
    return tensor.reshape((tensor.shape[0], *part["dims"])) if "dims" in part else tensor


def view_of(tile: Symbol, part: dict[str, Any]) -> Symbol:
    """Return a view of a tile as it is written in NKI."""
    return formed(tile, part, (part["rows"],))


def formed(tensor: Symbol, part: dict[str, Any], rows: tuple[list[int], ...]) -> Symbol:
    """Return a view of a tensor, of these rows, or of none where it has but one dimension."""
    counts, before = [bottom - top for top, bottom in rows], len(rows)
    if "pattern" in part:
        width = tensor.shape[-1]
        first = [[width, count] for count in counts]
        return tensor.ap([*first, *part["pattern"]["pairs"]],
                         offset=sum(width * top for top, _ in rows) + part["pattern"]["start"])  # fmt: skip
    view = tensor[(*(slice(*each) for each in rows), slice(*part["columns"]))]
    for name, given in part.get("form", []):
        if name == "reshape":
            view = view.reshape((*counts, *given))
        elif name == "permute":
            view = view.permute((*range(before), *(dim + before for dim in given)))
        elif name == "broadcast":
            view = view.broadcast(given[0] + before, given[1])
        else:
            whole = [slice(0, count) for count in counts]
            view = view[(*whole, *(slice(*each) if isinstance(each, list) else each for each in given))]
    return view


def recipe(function: Callable[[Issue], None]) -> Callable[[Issue], None]:
    """Add a recipe by its name."""
    RECIPES[function.__name__] = function
    return function


# --- the Tensor Engine -----------------------------------------------------------------------------------------------


@recipe
def nc_transpose(issue: Issue) -> None:
    data = issue["data"]
    turned = issue.tile((math.prod(data.shape[1:]), data.shape[0]), data.dtype, nl.psum)
    nisa.nc_transpose(dst=turned, data=data, engine=nisa.engine.tensor)
    nisa.tensor_copy(dst=issue["dst"], src=turned)


@recipe
def nc_matmul(issue: Issue) -> None:
    product = issue.tile(issue["dst"].shape, nl.float32, nl.psum)
    for accumulate in issue.step["accumulate"]:
        nisa.nc_matmul(dst=product, stationary=issue["stationary"], moving=issue["moving"], accumulate=accumulate)
    nisa.tensor_copy(dst=issue["dst"], src=product)


@recipe
def nc_matmul_mx(issue: Issue) -> None:
    product = issue.tile(issue["dst"].shape, nl.float32, nl.psum)
    names = ("stationary", "moving", "stationary_scale", "moving_scale")
    nisa.nc_matmul_mx(dst=product, **{name: issue[name] for name in names})
    nisa.tensor_copy(dst=issue["dst"], src=product)


# --- indirect moves --------------------------------------------------------------------------------------------------


def _by_index(issue: Issue, tensor: Any) -> Any:
    rows, columns = len(issue.step["indices"]["array"]), math.prod(tensor.shape[1:])
    return tensor.ap([[columns, rows], [1, columns]], vector_offset=issue["indices"], indirect_dim=0)


def _mode(issue: Issue) -> Any:
    return nisa.oob_mode.skip if issue.step["skips"] else nisa.oob_mode.error


def _linear(issue: Issue, tensor: Symbol) -> Symbol:
    return formed(tensor.reshape((math.prod(tensor.shape),)), issue.step["view"], ())


@recipe
def dma_load(issue: Issue) -> None:
    nisa.dma_copy(dst=issue["dst"], src=_linear(issue, issue["src"]))


@recipe
def dma_store(issue: Issue) -> None:
    nisa.dma_copy(dst=issue["dst"], src=issue["table"])
    nisa.dma_copy(dst=_linear(issue, issue["dst"]), src=issue["src"])


@recipe
def dma_gather(issue: Issue) -> None:
    nisa.dma_copy(dst=issue["dst"], src=_by_index(issue, issue["table"]), oob_mode=_mode(issue))


@recipe
def dma_scatter(issue: Issue) -> None:
    dst = issue["dst"]
    nisa.dma_copy(dst=dst, src=issue["table"])
    rows = _by_index(issue, dst)
    if issue.step["adds"]:
        nisa.dma_compute(dst=rows, srcs=[rows, issue["src"]], reduce_op=nl.add, oob_mode=_mode(issue))
    else:
        nisa.dma_copy(dst=rows, src=issue["src"], oob_mode=_mode(issue))


@recipe
def dma_gather_add(issue: Issue) -> None:
    dst = issue["dst"]
    nisa.dma_compute(dst=dst, srcs=[dst, _by_index(issue, issue["table"])], reduce_op=nl.add)


@recipe
def dma_compute(issue: Issue) -> None:
    srcs = [issue.operand(each) for each in issue.step["srcs"]]
    nisa.dma_compute(dst=issue["dst"], srcs=srcs, reduce_op=nl.add)


@recipe
def dma_at_offset(issue: Issue) -> None:
    dst, at, source = issue["dst"], issue.step["at"], issue["table"]
    register = nisa.register_alloc(None if isinstance(at, dict) else at)
    if isinstance(at, dict):
        nisa.register_load(register, issue["at"])
    rows, columns = dst.shape[0], math.prod(dst.shape[1:])
    nisa.dma_copy(dst=dst, src=source.ap([[columns, rows], [1, columns]], scalar_offset=register, indirect_dim=0))


# --- random numbers: each law leaves zeros, or ones ------------------------------------------------------------------


def _is_same(issue: Issue, one: Any, other: Any) -> None:
    nisa.tensor_tensor(dst=issue["dst"], data1=one, data2=other, op=nl.not_equal)


@recipe
def rng_of_seed(issue: Issue) -> None:
    dst, dtype = issue["dst"], getattr(nl, issue.step["dtype"])
    seed = issue.tile((1, 1), nl.int32)
    nisa.memset(dst=seed, value=issue.step["seed"])
    wide, narrow, lowest = (issue.tile(dst.shape, each) for each in (nl.uint32, dtype, nl.uint32))
    for drawn in (wide, narrow):
        nisa.set_rng_seed(src_seeds=seed)
        nisa.rng(dst=drawn, engine=nisa.engine.vector)
    mask = 2 ** (8 * {"uint8": 1, "uint16": 2, "uint32": 4}[issue.step["dtype"]]) - 1
    nisa.tensor_scalar(dst=lowest, data=wide, op0=nl.bitwise_and, operand0=mask)
    kept = issue.tile(dst.shape, dtype)
    nisa.tensor_copy(dst=kept, src=narrow)
    _is_same(issue, lowest, kept)


@recipe
def rng_of_state(issue: Issue) -> None:
    dst, words, engine = issue["dst"], issue["words"], getattr(nisa.engine, issue.step["engine"])
    first, second = (issue.tile(dst.shape, nl.uint32) for _ in range(2))
    for drawn in (first, second):
        nisa.rand_set_state(src_seeds=words, engine=engine)
        nisa.rand_get_state(dst=issue["states"], engine=engine)
        nisa.rng(dst=drawn, engine=engine)
    _is_same(issue, first, second)


@recipe
def rand2(issue: Issue) -> None:
    dst, low, high = issue["dst"], issue.step["low"], issue.step["high"]
    nisa.rand2(dst=dst, min=low, max=high)
    inside = issue.tile(dst.shape, nl.float32)
    nisa.tensor_scalar(dst=inside, data=dst, op0=nl.less_equal, operand0=high)
    nisa.tensor_scalar(dst=dst, data=dst, op0=nl.greater_equal, operand0=low)
    nisa.tensor_tensor(dst=dst, data1=dst, data2=inside, op=nl.logical_and)


@recipe
def dropout_of_some(issue: Issue) -> None:
    dst, data = issue["dst"], issue["data"]
    left, is_zero = issue.tile(data.shape, data.dtype), issue.tile(data.shape, nl.float32)
    nisa.dropout(dst=left, data=data, prob=issue.step["prob"])
    nisa.tensor_scalar(dst=is_zero, data=left, op0=nl.equal, operand0=0.0)
    nisa.tensor_tensor(dst=dst, data1=left, data2=data, op=nl.equal)
    nisa.tensor_tensor(dst=dst, data1=dst, data2=is_zero, op=nl.logical_or)


# --- registers -------------------------------------------------------------------------------------------------------


@recipe
def register_store(issue: Issue) -> None:
    first, second = nisa.register_alloc(issue.step["value"]), nisa.register_alloc()
    nisa.register_move(second, first)
    nisa.register_store(dst=issue["dst"], src=second)


@recipe
def register_load(issue: Issue) -> None:
    register = nisa.register_alloc()
    nisa.register_load(register, issue["src"])
    nisa.register_store(dst=issue["dst"], src=register)


@recipe
def scalar_store(issue: Issue) -> None:
    nisa.scalar_store(dst=issue["dst"], value=nisa.scalar_load(issue["src"]))


@recipe
def device_loop(issue: Issue) -> None:
    dst, register = issue["dst"], nisa.register_alloc()
    nisa.register_load(register, issue["count"])

    def turn(_: Any) -> None:
        nisa.tensor_scalar(dst=dst, data=dst, op0=nl.add, operand0=issue.step["operand"])

    nl.fori_loop(0, register, turn)


@recipe
def while_loop(issue: Issue) -> None:
    dst, count, register = issue["dst"], issue["count"], nisa.register_alloc()
    nisa.register_load(register, count)

    def turn(condition: Any) -> Any:
        nisa.tensor_scalar(dst=dst, data=dst, op0=nl.add, operand0=issue.step["operand"])
        nisa.tensor_scalar(dst=count, data=count, op0=nl.subtract, operand0=1)
        nisa.register_load(condition, count)
        return condition

    nl.while_loop(register, turn)


# --- cores and ranks -------------------------------------------------------------------------------------------------


@recipe
def sendrecv(issue: Issue) -> None:
    peer = 1 - nl.program_id(0)
    nisa.sendrecv(src=issue["src"], dst=issue["dst"], send_to_rank=peer, recv_from_rank=peer, pipe_id=0)


@recipe
def sendrecv_compute(issue: Issue) -> None:
    peer, op = 1 - nl.program_id(0), getattr(nl, issue.step["reduce_op"])
    nisa.sendrecv_compute(issue["src"], issue["dst"], send_to_rank=peer, recv_from_rank=peer, reduce_op=op)


@recipe
def core_barrier(issue: Issue) -> None:
    source, core = issue["src"], nl.program_id(0)
    shared = nl.ndarray((2, *source.shape), dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=shared[core], src=source)
    nisa.core_barrier(data=shared, cores=(0, 1))
    nisa.dma_copy(dst=issue["dst"], src=shared[1 - core])


def _group(issue: Issue) -> Any:
    return ncc.ReplicaGroup(issue.step["groups"])


@recipe
def all_reduce(issue: Issue) -> None:
    ncc.all_reduce([issue.sent()], [issue["dst"]], _group(issue), getattr(nl, issue.step["op"]))


@recipe
def all_gather(issue: Issue) -> None:
    ncc.all_gather([issue.sent()], [issue["dst"]], _group(issue), 0)


@recipe
def reduce_scatter(issue: Issue) -> None:
    ncc.reduce_scatter([issue.sent()], [issue["dst"]], _group(issue), 0, getattr(nl, issue.step["op"]))


@recipe
def all_to_all(issue: Issue) -> None:
    ncc.all_to_all([issue.sent()], [issue["dst"]], _group(issue), 0)


@recipe
def collective_permute(issue: Issue) -> None:
    ncc.collective_permute([issue.sent()], [issue["dst"]], [tuple(pair) for pair in issue.step["pairs"]])


@recipe
def collective_permute_implicit(issue: Issue) -> None:
    ncc.collective_permute_implicit([[issue.sent()]], [[issue["dst"]]], _group(issue))


@recipe
def collective_permute_implicit_reduce(issue: Issue) -> None:
    sources, op = ([[issue.sent(name)]] for name in ("src", "src1")), getattr(nl, issue.step["op"])
    ncc.collective_permute_implicit_reduce(*sources, [[issue["dst"]]], _group(issue), op)


@recipe
def rank_id(issue: Issue) -> None:
    dst, after = issue["dst"], ncc.collective_permute_implicit_current_processing_rank_id
    nisa.register_store(dst=dst[0:1, 0:1], src=ncc.rank_id())
    nisa.register_store(dst=dst[0:1, 1:2], src=after(issue.step["iteration"], _group(issue)))
