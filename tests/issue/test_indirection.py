"""Instructions on views with tensor indirection: as on the gathered columns, and as scattered by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.issue.indirection import ABILITIES
from nkitools.rules.finding import Finding
from tests.isa.issued import empty, handed_out, inside, placed, tile
from tests.isa.oracles import sample

P, FREE = 32, 24
OFFSETS = [5, 0, 23, 7, 7, 11, *range(1, 15)]  # 20 of them: the second turn of the snake is not full
TARGETS = [*range(19, 3, -1), 0, 1, 23, 22]  # as many, each its own
N = len(OFFSETS)
X = sample((P, FREE), seed=1, low=0.5, high=2)
BEFORE = sample((P, FREE), seed=2)
BIAS = sample((P, 1), seed=3)
OTHER = sample((P, N), seed=4)


def snake(offsets: list[int], partitions: int, group: int) -> np.ndarray:
    """The index of offsets, the same for each group of partitions."""
    index = np.zeros((partitions, -(-len(offsets) // group)), np.int32)
    for i, offset in enumerate(offsets):
        index[i % group :: group, i // group] = offset
    return index


def put(values: Any, memory: str = "sbuf", dtype: Any = None) -> Any:
    """A tensor that holds these values, inside a running kernel."""
    return placed(tile(np.asarray(values), memory, dtype))


@dataclass(frozen=True)
class Form:
    """How to call an instruction with one input ``x`` of 20 columns; ``width`` is what it makes of them.

    ``no_psum``: the rule that refuses a scatter into PSUM.
    """

    issue: Callable[[Any, Any], Any]
    width: int = N
    no_psum: str = ""


FORMS = {
    "activate2": Form(lambda dst, x: nisa.activate2(dst, nl.exp, x, 0.5, 0.25, nl.multiply, nl.add), no_psum="NK201"),
    "activation": Form(lambda dst, x: nisa.activation(dst, nl.exp, x, bias=put(BIAS), scale=0.5), no_psum="NK201"),
    "activation_reduce": Form(
        lambda dst, x: nisa.activation_reduce(dst, nl.exp, x, nl.add, placed(empty((P, 1))), bias=put(BIAS)),
        no_psum="NK201",
    ),
    "exponential": Form(lambda dst, x: nisa.exponential(dst, x, max_value=put(BIAS))),
    "tensor_copy": Form(nisa.tensor_copy),
    "tensor_copy on the Scalar Engine": Form(
        lambda dst, x: nisa.tensor_copy(dst, x, engine=nisa.engine.scalar), no_psum="NK201"
    ),
    "tensor_reduce": Form(lambda dst, x: nisa.tensor_reduce(dst, nl.add, x, axis=1), width=1),
    "tensor_scalar": Form(lambda dst, x: nisa.tensor_scalar(dst, x, nl.multiply, 3.0, op1=nl.add, operand1=put(BIAS))),
    "tensor_scalar on the GpSimd Engine": Form(lambda dst, x: nisa.tensor_scalar(dst, x, nl.rsqrt, 0)),
    "tensor_scalar_cumulative": Form(
        lambda dst, x: nisa.tensor_scalar_cumulative(dst, x, nl.multiply, nl.add, imm0=2.0, imm1=1.0)
    ),
    "tensor_scalar_reduce": Form(
        lambda dst, x: nisa.tensor_scalar_reduce(dst, x, nl.multiply, 2.0, nl.add, placed(empty((P, 1))))
    ),
    "tensor_tensor": Form(lambda dst, x: nisa.tensor_tensor(dst, x, put(OTHER), nl.subtract)),
    "tensor_tensor on the GpSimd Engine": Form(
        lambda dst, x: nisa.tensor_tensor(dst, x, put(OTHER), nl.add, engine=nisa.engine.gpsimd), no_psum="NK206"
    ),
}
EVERY = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def plainly(form: Form) -> np.ndarray:
    """What the instruction makes of the columns, gathered by NumPy."""

    def body() -> np.ndarray:
        dst = placed(empty((P, form.width)))
        form.issue(dst, put(X[:, OFFSETS]))
        return np.array(dst.array)

    result: np.ndarray = inside(body, chip="trn3")
    return result


@EVERY
def test_an_input_is_gathered(form: Form) -> None:
    """The same result as from the gathered columns, from SBUF and twice over (the plan is kept)."""

    def body() -> list[np.ndarray]:
        results = []
        for offsets in (OFFSETS, OFFSETS[::-1], OFFSETS):
            dst = placed(empty((P, form.width)))
            form.issue(dst, put(X).indirect(put(snake(offsets, P, 16)), N))
            results.append(np.array(dst.array))
        return results

    first, reverse, again = inside(body, chip="trn3")
    np.testing.assert_array_equal(first, plainly(form))
    np.testing.assert_array_equal(again, first)
    assert form.width == 1 or not np.array_equal(reverse, first)


@EVERY
@pytest.mark.parametrize("memory", ["sbuf", "psum"])
def test_an_output_is_scattered(form: Form, memory: str) -> None:
    """The columns that the index names change, the others stay; the index of the input is its own."""
    targets = TARGETS[: form.width]

    def body() -> np.ndarray:
        dst = put(BEFORE, memory)
        form.issue(dst.indirect(put(snake(targets, P, 16)), form.width), put(X).indirect(put(snake(OFFSETS, P, 16)), N))
        return np.array(dst.array)

    if memory == "psum" and form.no_psum:
        assert refusal(body).rule == form.no_psum
        return
    expected = BEFORE.copy()
    expected[:, targets] = plainly(form)
    np.testing.assert_array_equal(inside(body, chip="trn3"), expected)


def test_every_instruction_that_may_is_tried() -> None:
    """The forms above, and those with tests of their own, below and in test_microscaling_matmul."""
    elsewhere = {"nc_matmul", "nc_matmul_mx", "tensor_copy_predicated"}
    assert {name.split()[0] for name in FORMS} | elsewhere == set(ABILITIES)


def test_a_predicate_is_gathered_and_chooses_what_is_scattered() -> None:
    """Only where it is true; of an unwritten tensor only those elements are written then."""
    predicate = (np.arange(P)[:, None] + np.arange(FREE)) % 3 == 0
    source = sample((P, N), seed=5)

    def body() -> tuple[np.ndarray, np.ndarray]:
        dst = placed(empty((P, FREE)))
        nisa.tensor_copy_predicated(
            dst.indirect(put(snake(TARGETS, P, 16)), N),
            put(source),
            put(predicate.astype(np.uint8)).indirect(put(snake(OFFSETS, P, 16)), N),
        )
        missing = dst.unwritten()
        assert missing is not None
        return np.array(dst.array), missing

    chosen = predicate[:, OFFSETS]
    values, missing = inside(body, chip="trn3")
    expected = np.zeros((P, FREE), np.bool_)
    expected[:, TARGETS] = chosen
    np.testing.assert_array_equal(~missing, expected)
    np.testing.assert_array_equal(values[:, TARGETS][chosen], source[chosen])


# --- the Tensor Engine -----------------------------------------------------------------------------------------------

LEFT = np.arange(32 * 40).reshape(32, 40) % 7 - 3.0
RIGHT = np.arange(32 * 48).reshape(32, 48) % 5 - 2.0
ROWS = [*range(39, 3, -1)]  # more than 32: a second turn
COLUMNS = [*range(0, 40, 2), *range(1, 40, 2)]


def floats(values: Any, dtype: Any = nl.bfloat16) -> Any:
    """A tile of small numbers that bfloat16 holds."""
    return put(np.asarray(values).astype(dtype.dtype), dtype=dtype)


def test_a_matmul_gathers_both_operands() -> None:
    """With one turn of the snake over 32 partitions."""

    def body() -> np.ndarray:
        dst = placed(empty((len(ROWS), len(COLUMNS)), memory="psum"))
        nisa.nc_matmul(
            dst,
            floats(LEFT).indirect(put(snake(ROWS, 32, 32)), len(ROWS)),
            floats(RIGHT).indirect(put(snake(COLUMNS, 32, 32)), len(COLUMNS)),
        )
        return np.array(dst.array)

    np.testing.assert_array_equal(inside(body, chip="trn3"), LEFT[:, ROWS].T @ RIGHT[:, COLUMNS])


def test_a_matmul_scatters_and_adds() -> None:
    """The first one writes, the second one adds to what is written, column by column."""
    second = [*range(8, 40)]

    def body() -> np.ndarray:
        dst = placed(empty((40, 48), memory="psum"))
        for targets in (COLUMNS[:32], second):
            index = put(np.array(targets, np.int32)[np.arange(40) % 32][:, None])
            nisa.nc_matmul(dst.indirect(index, 32), floats(LEFT), floats(RIGHT[:, :32]))
        return np.array(dst.array)

    product = LEFT.T @ RIGHT[:, :32]
    expected = np.zeros((40, 48))
    for targets in (COLUMNS[:32], second):
        expected[:, targets] += product
    written = sorted({*COLUMNS[:32], *second})
    np.testing.assert_array_equal(inside(body, chip="trn3")[:, written], expected[:, written])


# --- what is refused -------------------------------------------------------------------------------------------------


def refusal(body: Callable[[], Any], chip: str = "trn3") -> Finding:
    """The one finding of an instruction that is refused."""
    with pytest.raises(nkitools.KernelError) as raised:
        inside(body, chip=chip)
    finding: Finding = raised.value.finding
    return finding


def gathered(values: Any = X, memory: str = "sbuf", dtype: Any = None) -> Any:
    """A view of the first 16 columns."""
    return put(values, memory, dtype).indirect(put(np.arange(P, dtype=np.int32)[:, None] % 16), 16)


def fresh(columns: int = 16, memory: str = "sbuf", dtype: Any = nl.float32) -> Any:
    """A destination."""
    return placed(empty((P, columns), dtype, memory))


def copy_to_scalar_psum() -> None:
    """A scatter of the Scalar Engine into PSUM."""
    nisa.tensor_copy(gathered(X, "psum"), put(X[:, :16]), engine=nisa.engine.scalar)


def integers() -> Any:
    """An int32 tile of the same form."""
    return np.ones((P, FREE), np.int32)


WORD = nl.int32
REFUSED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "data2": (
        "NK609",
        "`data2` takes no tensor indirection",
        lambda: nisa.tensor_tensor(fresh(), put(X[:, :16]), gathered(), nl.add),
    ),
    "reduce_res": (
        "NK609",
        "`reduce_res` takes no",
        lambda: nisa.activation_reduce(fresh(), nl.exp, put(X[:, :16]), nl.add, gathered()),
    ),
    "the source of a predicated copy": (
        "NK609",
        "`src` takes no",
        lambda: nisa.tensor_copy_predicated(fresh(), gathered(), put(np.ones((P, 16), np.uint8))),
    ),
    "an instruction without it": ("NK609", "`dst` takes no", lambda: nisa.memset(gathered(), 0)),
    "a DMA": ("NK609", "`src` takes no", lambda: nisa.dma_copy(fresh(), gathered())),
    "a copy on the GpSimd Engine": (
        "NK206",
        "runs on engine vector or scalar",
        lambda: nisa.tensor_copy(fresh(), gathered(), engine=nisa.engine.gpsimd),
    ),
    "the Scalar Engine into PSUM": ("NK201", "does not scatter into PSUM", copy_to_scalar_psum),
    "address arithmetic": (
        "NK301",
        "takes no tensor indirection",
        lambda: nisa.tensor_scalar(fresh(dtype=WORD), gathered(integers()), nl.add, put(integers()[:, :1])),
    ),
    "a transposed moving": (
        "NK609",
        "`moving` takes no",
        lambda: nisa.nc_matmul(
            placed(empty((16, 16), nl.bfloat16, "psum")),
            floats(X[:, :16]),
            gathered(X.astype(nl.bfloat16.dtype), dtype=nl.bfloat16),
            is_transpose=True,
        ),
    ),
    "a tile of the array": (
        "NK609",
        "`tile_position`=(0, 0) only",
        lambda: nisa.nc_matmul(
            placed(empty((16, 16), memory="psum")),
            floats(X[:, :16]),
            gathered(X.astype(nl.bfloat16.dtype), dtype=nl.bfloat16),
            tile_position=(32, 0),
            tile_size=(32, 32),
        ),
    ),
    "float32 in a matmul": (
        "NK301",
        "`moving`",
        lambda: nisa.nc_matmul(placed(empty((16, 16), memory="psum")), put(X[:, :16]), gathered()),
    ),
}


@pytest.mark.parametrize(("rule", "text", "body"), REFUSED.values(), ids=REFUSED)
def test_what_takes_no_indirection(rule: str, text: str, body: Callable[[], Any]) -> None:
    """Named by operand, engine or form."""
    finding = refusal(body)
    assert (finding.rule, text in finding.message) == (rule, True), finding.text()


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_earlier_chips_lack_it(chip: str) -> None:
    """NK606 before NeuronCore-v4."""
    finding = refusal(lambda: nisa.tensor_copy(fresh(), gathered()), chip=chip)
    assert (finding.rule, "came with NeuronCore-v4" in finding.message) == ("NK606", True)


def test_unwritten_columns_are_reported() -> None:
    """NK401, and only where they are read."""

    def body(last: int) -> Any:
        tensor, sums = placed(empty((16, 8))), placed(empty((16, 1)))
        nisa.memset(tensor[:, 0:4], 1)
        index = put(np.array([0, 1, last, *[0] * 13], np.int32)[:, None])
        nisa.tensor_reduce(sums, nl.add, tensor.indirect(index, 3), 1)
        return handed_out(sums)

    nkitools.simulate(lambda: body(3), chip="trn3")
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(lambda: body(4), chip="trn3")
    finding = raised.value.finding
    assert (finding.rule, "16 of 48 elements" in finding.message) == ("NK401", True)


def test_additions_to_one_column_are_reported() -> None:
    """NK505: a matmul that accumulates into a column that the index names twice."""

    def body() -> None:
        dst = placed(empty((32, 8), memory="psum"))
        nisa.nc_matmul(dst, floats(LEFT[:, :32]), floats(RIGHT[:, :8]))
        index = put(np.array([0, 1, 1, *[0] * 29], np.int32)[:, None])
        nisa.nc_matmul(dst.indirect(index, 3), floats(LEFT[:, :32]), floats(RIGHT[:, :3]))

    finding = refusal(body)
    assert (finding.rule, "offsets 1 and 2" in finding.message) == ("NK505", True)


# --- where operands begin --------------------------------------------------------------------------------------------


def at(partition: int, byte: int, columns: int, memory: Any = nl.sbuf, dtype: Any = nl.float32) -> Any:
    """A manually allocated tile of ones (of an index: of zeros)."""
    tensor = nl.ndarray((16, columns), dtype, memory, address=(partition, byte))
    nisa.memset(tensor, 0 if dtype == nl.int32 else 1)
    return tensor


def copied(src: tuple[int, int], dst: tuple[int, int], memory: Any = nl.sbuf) -> None:
    """A copy whose operands and their indices begin at these partitions."""
    source = at(src[0], 0, 16, memory).indirect(at(src[1], 4096, 1, dtype=nl.int32))
    target = at(dst[0], 1024, 16).indirect(at(dst[1], 4352, 1, dtype=nl.int32))
    nisa.tensor_copy(target, source)


@pytest.mark.parametrize(
    ("src", "dst", "memory"), [((32, 32), (64, 32), nl.sbuf), ((0, 0), (32, 0), nl.sbuf), ((64, 64), (0, 64), nl.psum)]
)
def test_placements_that_fit(src: tuple[int, int], dst: tuple[int, int], memory: Any) -> None:
    """The input begins with its index, and so does the index of the output; the output itself is free."""
    inside(lambda: copied(src, dst, memory), chip="trn3")


@pytest.mark.parametrize(
    ("src", "dst", "memory", "text"),
    [
        ((32, 0), (32, 32), nl.sbuf, "the index of `src`"),
        ((32, 32), (32, 0), nl.sbuf, "the index of `dst`"),
        ((32, 32), (32, 64), nl.psum, "the index of `src`"),
    ],
)
def test_placements_that_do_not_fit(src: tuple[int, int], dst: tuple[int, int], memory: Any, text: str) -> None:
    """NK108 names both and where they begin."""
    finding = refusal(lambda: copied(src, dst, memory))
    assert (finding.rule, text in finding.message) == ("NK108", True), finding.text()


def test_an_index_begins_at_a_quadrant() -> None:
    """NK108 of an index that is lined up with nothing else: that of an output whose input lies in PSUM."""

    def body() -> None:
        index = nl.ndarray((32, 1), nl.int32, address=(0, 4096))
        nisa.memset(index, 0)
        nisa.tensor_copy(at(0, 0, 4).indirect(index[16:32], 16), at(0, 0, 16, nl.psum))

    finding = refusal(body)
    assert (finding.rule, "the index of `dst`" in finding.message) == ("NK108", True), finding.text()
    assert "begins at partition 16" in finding.message
