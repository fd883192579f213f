"""A mixture of experts: each token goes through k of many gated MLPs, those that a router chooses; modern NKI dialect.

Which expert has how many tokens is known to the device alone, while loops and shapes are fixed when the kernel is
compiled. So tokens are sorted by expert into blocks of 128 slots (Gale et al., MegaBlocks, 2022): an expert fills as
many blocks as it needs, only its last one in part, and however the tokens fall, the number of blocks has one bound. A
block loads the weights of its expert by an index that is read on the device, and no token is dropped.
"""

import nki
import nki.isa as nisa
import nki.language as nl

BLOCK = 128  # slots of a block: the partitions of a tile
SHIFT = 7  # BLOCK is 2**SHIFT
AT_ONCE = 8  # values that nisa.max8 finds


def _tiles(stop, size):
    """(start, length) of each tile of ``range(stop)``; the last one may be shorter."""
    return [(start, min(size, stop - start)) for start in range(0, stop, size)]


def _new(rows, columns, dtype=nl.float32):
    """A tile in SBUF."""
    return nl.ndarray((rows, columns), dtype=dtype, buffer=nl.sbuf)


def _turned(tile):
    """A tile [rows, columns] as a list of tiles [up to 128 columns, rows]."""
    parts = []
    for start, width in _tiles(tile.shape[1], nl.tile_size.pmax):
        swapped = nl.ndarray((width, tile.shape[0]), dtype=tile.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=swapped, data=tile[:, start : start + width])
        parts.append(nl.copy(swapped))
    return parts


def _product(stationary, moving):
    """``stationary.T @ moving`` in PSUM, of two matrices as lists of tiles of their rows."""
    product = nl.ndarray((stationary[0].shape[1], moving[0].shape[1]), dtype=nl.float32, buffer=nl.psum)
    for left, right in zip(stationary, moving):
        nisa.nc_matmul(dst=product, stationary=left, moving=right)
    return product


# --- routing ---------------------------------------------------------------------------------------------------------


def _choices(tokens, router, k):
    """The weights of the k experts of each token [rows, k], and of each choice a matrix [rows, experts] with a one.

    The softmax over all experts, divided by its sum over the k best, is the softmax of the k best logits.
    """
    rows = tokens.shape[0]
    logits = nl.copy(_product(_turned(tokens), router))
    experts = logits.shape[1]
    best, where = _new(rows, AT_ONCE), _new(rows, AT_ONCE, nl.uint32)
    nisa.max8(dst=best, src=logits)
    nisa.nc_find_index8(dst=where, data=logits, vals=best)

    weights, lowest, total = _new(rows, k), _new(rows, 1), _new(rows, 1)
    nisa.tensor_scalar(dst=lowest, data=best[:, 0:1], op0=nl.multiply, operand0=-1.0)
    nisa.activation(
        dst=weights,
        op=nl.exp,
        data=best[:, :k],
        bias=lowest,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=weights, data=weights, op0=nl.multiply, operand0=total)

    numbers, places = _new(rows, experts), _new(rows, AT_ONCE)
    nisa.iota(dst=numbers, pattern=[[1, experts]])
    nisa.tensor_copy(dst=places, src=where)
    chosen = []
    for choice in range(k):
        one = _new(rows, experts)
        nisa.tensor_scalar(dst=one, data=numbers, op0=nl.equal, operand0=places[:, choice : choice + 1])
        chosen.append(one)
    return weights, chosen


def _ranks(chosen, before):
    """How many tokens before it each token of a tile has at each expert; ``before`` [128, experts] goes on by the tile.

    Adding up over partitions is a product: with ones above the diagonal it stops before the token, with ones
    everywhere it gives every partition the sum of all.
    """
    rows, experts = chosen[0].shape
    routed = _new(rows, experts, nl.bfloat16)
    nisa.tensor_copy(dst=routed, src=chosen[0])
    for one in chosen[1:]:
        nisa.tensor_tensor(dst=routed, data1=routed, data2=one, op=nl.add)
    everywhere = nl.ones((rows, BLOCK), dtype=nl.bfloat16, buffer=nl.sbuf)
    above = _new(rows, rows, nl.bfloat16)
    nisa.affine_select(
        dst=above,
        pattern=[[1, rows]],
        offset=-1,
        channel_multiplier=-1,
        on_true_tile=everywhere[:, :rows],
        on_false_value=0.0,
        cmp_op=nl.greater_equal,
    )
    ranks = _new(rows, experts)
    nisa.tensor_tensor(dst=ranks, data1=_product([above], [routed]), data2=before[:rows, :], op=nl.add)
    nisa.tensor_tensor(dst=before, data1=before, data2=_product([everywhere], [routed]), op=nl.add)
    return ranks


def _blocks_of_experts(counts):
    """The first slot of each expert and the block where the next expert begins, in every row as ``counts`` are."""
    rows, experts = counts.shape
    whole, blocks = _new(rows, experts, nl.int32), _new(rows, experts)
    nisa.tensor_scalar(dst=whole, data=counts, op0=nl.add, operand0=float(BLOCK - 1))
    nisa.tensor_scalar(dst=whole, data=whole, op0=nl.right_shift, operand0=SHIFT)
    nisa.tensor_copy(dst=blocks, src=whole)
    ones = nl.ones((rows, experts), dtype=nl.float32, buffer=nl.sbuf)
    ends, first_slots = _new(rows, experts), _new(rows, experts)
    nisa.tensor_tensor_scan(dst=ends, data0=ones, data1=blocks, initial=0.0, op0=nl.multiply, op1=nl.add)
    nisa.tensor_tensor(dst=first_slots, data1=ends, data2=blocks, op=nl.subtract)
    nisa.tensor_scalar(dst=first_slots, data=first_slots, op0=nl.multiply, operand0=float(BLOCK))
    return first_slots, ends


def _experts_of_blocks(ends, blocks):
    """The expert of each block, int32 [1, blocks]: how many experts end before it. A block unused has the last one."""
    experts = ends.shape[1]
    result = _new(1, blocks, nl.int32)
    for first, count in _tiles(blocks, BLOCK):
        block, ended, number = _new(count, 1), _new(count, experts), _new(count, 1)
        nisa.iota(dst=block, pattern=[[0, 1]], offset=first, channel_multiplier=1)
        nisa.tensor_scalar_reduce(
            dst=ended, data=ends[:count, :], op0=nl.less_equal, operand0=block, reduce_op=nl.add, reduce_res=number
        )
        nisa.tensor_scalar(dst=number, data=number, op0=nl.minimum, operand0=float(experts - 1))
        row = nl.ndarray((1, count), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=row, data=number)
        nisa.tensor_copy(dst=result[:, first : first + count], src=row)
    return result


def _slots(chosen, ranks, first_slots):
    """The slot of each token at the experts of its choices, int32 [rows, k]."""
    rows, experts = ranks.shape
    places, result = _new(rows, experts), _new(rows, len(chosen), nl.int32)
    nisa.tensor_tensor(dst=places, data1=ranks, data2=first_slots[:rows, :], op=nl.add)
    for choice, one in enumerate(chosen):
        place = _new(rows, experts)
        nisa.tensor_tensor(dst=place, data1=places, data2=one, op=nl.multiply)
        nisa.tensor_reduce(dst=result[:, choice : choice + 1], op=nl.add, data=place, axis=1)
    return result


def _route(tokens, router, k, blocks):
    """Where every token goes.

    Returns the weights [rows, k] and slots [rows, k] of each tile of tokens, the expert of each block [1, blocks], and
    in HBM the token of each slot [blocks * 128, 1], which is ``len(tokens)`` where the slot is empty.
    """
    count, experts = tokens.shape[0], router.shape[1]
    matrix = [nl.load(router[start : start + rows, :]) for start, rows in _tiles(router.shape[0], BLOCK)]
    before = nl.zeros((BLOCK, experts), dtype=nl.float32, buffer=nl.sbuf)
    weights, chosen, ranks = [], [], []
    for start, rows in _tiles(count, BLOCK):
        weight, choices = _choices(nl.load(tokens[start : start + rows, :]), matrix, k)
        weights.append(weight)
        chosen.append(choices)
        ranks.append(_ranks(choices, before))

    first_slots, ends = _blocks_of_experts(before)
    residents = nl.ndarray((blocks * BLOCK, 1), dtype=nl.int32, buffer=nl.private_hbm)
    empty = nl.full((BLOCK, blocks), count, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=residents.reshape((BLOCK, blocks)), src=empty)
    slots = []
    for (start, rows), choices, rank in zip(_tiles(count, BLOCK), chosen, ranks):
        slot, number = _slots(choices, rank, first_slots), _new(rows, 1, nl.int32)
        nisa.iota(dst=number, pattern=[[0, 1]], offset=start, channel_multiplier=1)
        for choice in range(k):
            nisa.dma_copy(dst=residents.vector_select(0, slot[:, choice : choice + 1]), src=number)
        slots.append(slot)
    return weights, slots, _experts_of_blocks(ends, blocks), residents


# --- experts ---------------------------------------------------------------------------------------------------------


def _columns_of(weights, expert, start, width):
    """Some columns of one expert's matrix, as a list of tiles of its rows; ``expert`` [1, 1] is read on the device."""
    matrix = weights.select(0, expert)
    return [
        nl.load(matrix[first : first + rows, start : start + width]) for first, rows in _tiles(matrix.shape[0], BLOCK)
    ]


def _expert(tokens, expert, gate, up, down, result):
    """``result = (silu(tokens @ gate) * (tokens @ up)) @ down`` of one block and one expert; result in HBM."""
    turned = _turned(tokens)
    inner = []
    for start, width in _tiles(gate.shape[2], BLOCK):
        opening, value = _new(width, BLOCK), _new(width, BLOCK, tokens.dtype)
        nisa.activation(dst=opening, op=nl.silu, data=_product(_columns_of(gate, expert, start, width), turned))
        product = _product(_columns_of(up, expert, start, width), turned)
        nisa.tensor_tensor(dst=value, data1=opening, data2=product, op=nl.multiply)
        inner.append(value)
    for start, width in _tiles(down.shape[2], nl.tile_size.psum_bank_fmax):
        evicted = _new(BLOCK, width, result.dtype)
        nisa.tensor_copy(dst=evicted, src=_product(inner, _columns_of(down, expert, start, width)))
        nisa.dma_copy(dst=result[:, start : start + width], src=evicted)


def _combine(outputs, slots, weights, dtype):
    """The sum of the outputs of each token's experts times their weights, in SBUF."""
    rows, k = weights.shape
    total = nl.zeros((rows, outputs.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    for choice in range(k):
        column = slice(choice, choice + 1)
        output = _new(rows, outputs.shape[1], outputs.dtype)
        nisa.dma_copy(dst=output, src=outputs.vector_select(0, slots[:, column]))
        nisa.scalar_tensor_tensor(
            dst=total, data=output, op0=nl.multiply, operand0=weights[:, column], op1=nl.add, operand1=total
        )
    return nl.copy(total, dtype=dtype)


@nki.jit
def moe(tokens, router, gate, up, down, k):
    """For each token the sum over its k experts of weight times ``(silu(token @ gate) * (token @ up)) @ down``.

    tokens: [tokens, hidden]; router: [hidden, experts]; gate, up: [experts, hidden, inner]; down: [experts, inner,
    hidden]; all float32 or all bfloat16; 8 to 512 experts, k up to 8. The k largest of the router's logits choose the
    experts, and their softmax is the weights. Returns tokens' shape and dtype.

    On two cores, ``moe[2](...)``, each routes all tokens, computes every other block, and sums up half of the tokens.
    """
    (count, hidden), experts = tokens.shape, router.shape[1]
    assert AT_ONCE <= experts <= nl.tile_size.psum_bank_fmax, "there must be 8 to 512 experts"
    assert 1 <= k <= AT_ONCE, "k must be 1 to 8"
    program, programs = nl.program_id(0), nl.num_programs(0)
    blocks = (count * k + experts * (BLOCK - 1)) // BLOCK  # no routing needs more
    result = nl.ndarray((count, hidden), dtype=tokens.dtype, buffer=nl.shared_hbm)
    outputs = nl.ndarray((blocks * BLOCK, hidden), dtype=tokens.dtype, buffer=nl.shared_hbm)

    weights, slots, expert, residents = _route(tokens, router, k, blocks)
    for block in range(program, blocks, programs):
        here = nl.ds(block * BLOCK, BLOCK)
        tile = nl.zeros((BLOCK, hidden), dtype=tokens.dtype, buffer=nl.sbuf)
        source = tokens.vector_select(0, nl.load(residents[here, :]))
        nisa.dma_copy(dst=tile, src=source, oob_mode=nisa.oob_mode.skip)
        _expert(tile, expert[:, block : block + 1], gate, up, down, outputs[here, :])

    if programs > 1:
        nisa.core_barrier(data=outputs, cores=(0, 1))  # a token's experts may have been the other core's
    tiles = _tiles(count, BLOCK)
    for index in range(program, len(tiles), programs):
        start, rows = tiles[index]
        nisa.dma_copy(
            dst=result[start : start + rows, :], src=_combine(outputs, slots[index], weights[index], tokens.dtype)
        )
    return result
