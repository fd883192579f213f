"""Nucleus (top-p) sampling of the next token from logits, in the modern NKI dialect.

The likeliest tokens that together have the probability p are kept (Holtzman et al., 2019), and one of them is drawn.
Vector instructions find eight values at a time, in order; so the nucleus is looked for among the 64 likeliest.
"""

import nki
import nki.isa as nisa
import nki.language as nl

AT_ONCE = 8  # values that one instruction finds
CANDIDATES = 64
FOUND = -3.4028234663852886e38  # the lowest float32, put where a value was found


def _column(height):
    return nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)


def _sorted(logits):
    """The largest values of each row of a tile, in descending order, and their columns; the tile is used up."""
    height = logits.shape[0]
    best = nl.ndarray((height, CANDIDATES), dtype=nl.float32, buffer=nl.sbuf)
    where = nl.ndarray((height, CANDIDATES), dtype=nl.uint32, buffer=nl.sbuf)
    for start in range(0, CANDIDATES, AT_ONCE):
        eight = nl.ds(start, AT_ONCE)
        nisa.max8(dst=best[:, eight], src=logits)
        nisa.nc_find_index8(dst=where[:, eight], data=logits, vals=best[:, eight])
        if start + AT_ONCE < CANDIDATES:
            nisa.nc_match_replace8(dst=logits, data=logits, vals=best[:, eight], imm=FOUND)
    return best, where


def _running_sums(values):
    """The sum of each element and all to its left, with ones to be multiplied by what was so far."""
    ones, sums = (nl.ndarray(values.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    nisa.memset(dst=ones, value=1.0)
    nisa.tensor_tensor_scan(dst=sums, data0=ones, data1=values, initial=0.0, op0=nl.multiply, op1=nl.add)
    return sums


@nki.jit
def top_p(logits, drawn, p):
    """Draw a token of each row from its nucleus: the likeliest tokens up to the one with which they reach ``p``.

    logits: float32 [rows, vocabulary], finite, 64 to 16384 columns, any number of rows; drawn: float32 [rows, 1],
    uniform in [0, 1); p: above 0, up to 1. Returns uint32 [rows, 1], the tokens, and float32 [rows, 64], the
    probabilities of the likeliest tokens in descending order, 0 where a token is not kept.
    """
    rows, vocabulary = logits.shape
    assert CANDIDATES <= vocabulary <= 16384, f"a vocabulary must have {CANDIDATES} to 16384 tokens"
    pmax = nl.tile_size.pmax
    tokens = nl.ndarray((rows, 1), dtype=nl.uint32, buffer=nl.shared_hbm)
    probabilities = nl.ndarray((rows, CANDIDATES), dtype=nl.float32, buffer=nl.shared_hbm)

    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        tile = nl.load(logits[start : start + height, :])
        lowered, total = _column(height), _column(height)
        nisa.tensor_reduce(dst=lowered, op=nl.maximum, data=tile, axis=1, negate=True)
        weights = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=weights,
            op=nl.exp,
            data=tile,
            bias=lowered,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=total, data=total)
        best, where = _sorted(tile)
        nisa.activation(dst=best, op=nl.exp, data=best, bias=lowered)
        nisa.tensor_scalar(dst=best, data=best, op0=nl.multiply, operand0=total)

        # A token is kept where those before it have less than p.
        before = nl.subtract(_running_sums(best), best)
        kept = nl.multiply(best, nl.less(before, p, dtype=nl.float32))
        mass = _column(height)
        nisa.tensor_reduce(dst=mass, op=nl.add, data=kept, axis=1)
        nisa.reciprocal(dst=mass, data=mass)
        nisa.tensor_scalar(dst=kept, data=kept, op0=nl.multiply, operand0=mass)
        nl.device_print("kept", kept)
        nisa.dma_copy(dst=probabilities[start : start + height, :], src=kept)

        # Of the kept tokens the drawn one is the last that begins at or below the number: those before it have less.
        number = nl.load(drawn[start : start + height, :])
        begun = nl.ndarray(kept.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=begun[:, 0:1], value=1.0)
        ends = _running_sums(kept)[:, : CANDIDATES - 1]
        nisa.tensor_scalar(dst=begun[:, 1:], data=ends, op0=nl.less_equal, operand0=number)
        candidates = nl.multiply(begun, nl.greater(kept, 0.0, dtype=nl.float32))
        is_drawn = nl.copy(candidates)
        nisa.tensor_tensor(
            dst=is_drawn[:, : CANDIDATES - 1],
            data1=candidates[:, : CANDIDATES - 1],
            data2=candidates[:, 1:],
            op=nl.subtract,
        )
        chosen = nl.multiply(is_drawn, where)
        token = nl.ndarray((height, 1), dtype=nl.uint32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=token, op=nl.maximum, data=chosen, axis=1)
        nisa.dma_copy(dst=tokens[start : start + height, :], src=token)
    return tokens, probabilities
