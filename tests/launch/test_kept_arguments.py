"""The caller's arrays stay as they were, unless the kernel is told to change them; AWS's own ways in change them."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.launch.kept_arguments import Guard
from tests.history.test_races import line_of


@nki.jit
def swapped(x: Any) -> Any:
    """Twice an array, with the operands of the first copy swapped."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(tile, 0)
    nisa.dma_copy(x, tile)  # swapped
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def appended(cache: Any, row: Any, at: int = 3) -> Any:
    """A row put into a cache; twice the row."""
    out = nl.ndarray(row.shape, dtype=row.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(row.shape, dtype=row.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=row)
    nisa.dma_copy(dst=cache[at : at + 1, :], src=tile)  # into the cache
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def returning_its_argument(x: Any) -> Any:
    """An array, three times itself, that is returned."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=3.0)
    nisa.dma_copy(dst=x, src=tile)
    return x


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def caches() -> tuple[Any, Any]:
    return np.zeros((8, 4), np.float32), ones(1, 4)


def test_a_changed_argument_is_a_hint_and_stays() -> None:
    """The hint is at the line that writes, and names the swapped operands where the source held nothing."""
    x = ones(4, 8)
    run = nkitools.simulate(swapped, x)
    np.testing.assert_array_equal(x, ones(4, 8))
    np.testing.assert_array_equal(run.outputs, 0 * ones(4, 8))
    (found,) = run.findings
    assert (found.rule, found.severity, found.line) == ("NK409", "hint", line_of(swapped, "# swapped"))
    assert found.remedy == "The operands are swapped: dma_copy(dst, src). The destination comes first."
    cache, row = caches()
    (found,) = nkitools.simulate(appended, cache, row).findings
    assert (found.line, "mutates=('cache',)" in found.remedy) == (line_of(appended, "# into the cache"), True)
    np.testing.assert_array_equal(cache, np.zeros((8, 4)))


def test_a_source_that_was_never_written_is_told_to_be_swapped() -> None:
    """NK401 does not ask for a memset there."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(x, tile)
        return x

    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, ones(4, 8))
    assert (raised.value.finding.rule, raised.value.finding.remedy) == (
        "NK401",
        "The operands are swapped: dma_copy(dst, src). The destination comes first.",
    )


@pytest.mark.parametrize("form", [lambda x: x, lambda x: x[:, ::2], lambda x: x.T, lambda x: x[::-1]])
def test_whatever_its_strides_an_array_stays(form: Any) -> None:
    """What the kernel returns of it is an array of its own."""
    base = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = form(base)
    run = nkitools.simulate(returning_its_argument, x)
    assert run.findings == []
    np.testing.assert_array_equal(base, np.arange(64, dtype=np.float32).reshape(8, 8))
    np.testing.assert_array_equal(run.outputs, 3 * x)
    assert not np.shares_memory(run.outputs, base)


def test_what_mutates_names_is_updated() -> None:
    """By the parameter's name; one that the kernel has not is refused."""
    cache, row = caches()
    assert nkitools.simulate(appended, cache, row, mutates="cache").findings == []
    np.testing.assert_array_equal(cache.sum(axis=1), [0, 0, 0, 4, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="mutates: appended has no parameter cash; it has cache, row, at"):
        nkitools.simulate(appended, cache, row, mutates=("cash",))


@pytest.mark.parametrize("way", [lambda *args: swapped(*args), lambda *args: nki.simulate(swapped)(*args)])
def test_the_ways_of_aws_update_in_place(way: Any) -> None:
    """Silently, as AWS does."""
    x = ones(4, 8)
    way(x)
    np.testing.assert_array_equal(x, 0 * ones(4, 8))


def test_arguments_that_share_memory_share_it_while_they_are_changed() -> None:
    """What is written through one is read through the other; afterwards both are as before."""

    def kernel(x: Any, y: Any) -> Any:
        out = nl.ndarray(y.shape, dtype=y.dtype, buffer=nl.shared_hbm)
        for tensor in (x, y):
            tile = nl.load(tensor)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=tensor, src=tile)
        nisa.dma_copy(dst=out, src=y)
        return out

    base = ones(6, 4)
    run = nkitools.simulate(kernel, base[:4], base[2:])
    np.testing.assert_array_equal(run.outputs, [[4] * 4] * 2 + [[2] * 4] * 2)
    np.testing.assert_array_equal(base, ones(6, 4))
    assert [each.rule for each in run.findings] == ["NK409", "NK409"]


def test_a_view_that_was_made_before_can_be_written() -> None:
    """Views, slices and scatters of a kept argument are written as others are."""

    def kernel(x: Any, rows: Any) -> Any:
        first, second = x[0:2, :], x[2:4, :]
        tile, index = nl.load(x[4:6, :]), nl.load(rows)
        for _ in range(2):
            for view in (first, second):
                nisa.dma_copy(dst=view, src=tile)
        nisa.dma_copy(dst=x.ap([[4, 2], [1, 4]], vector_offset=index, indirect_dim=0), src=tile)
        return x

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    run = nkitools.simulate(kernel, x, np.array([[7], [6]], np.int32), rules="report")
    np.testing.assert_array_equal(x, np.arange(32).reshape(8, 4))
    np.testing.assert_array_equal(run.outputs[[0, 1, 2, 3, 7, 6]], np.tile(x[4:6], (3, 1)))


def test_an_array_stays_where_the_kernel_ends_with_an_error() -> None:
    """An exception of the kernel leaves nothing half written."""

    def kernel(x: Any) -> Any:
        nisa.dma_copy(dst=x[0:2], src=x[2:4])
        raise KeyError("x")

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    with pytest.raises(KeyError):
        nkitools.simulate(kernel, x)
    np.testing.assert_array_equal(x, np.arange(32).reshape(8, 4))


def test_ranks_keep_their_arguments() -> None:
    """Each rank its own."""

    def kernel(x: Any, value: Any) -> Any:
        tile = nl.ndarray((2, 3), x.dtype, buffer=nl.sbuf)
        nisa.memset(tile, float(value))
        nisa.dma_copy(dst=x, src=tile)
        return x

    table = np.zeros((2, 2, 3), np.float32)
    run = nkitools.simulate(kernel, (table[0], 1), (table[1], 2), ranks=2)
    assert [each.max() for each in run.outputs] == [1, 2]
    assert not table.any()


def test_nothing_is_copied_that_is_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is made before the first write, and once."""
    opened: list[Any] = []
    original = Guard.open
    monkeypatch.setattr(Guard, "open", lambda self, storage: (opened.append(storage.name), original(self, storage)))

    def kernel(x: Any, y: Any) -> Any:
        for row in range(4):
            nisa.dma_copy(dst=y[row : row + 1], src=x[row : row + 1])
        return y

    x, y = ones(4, 8), np.zeros((4, 8), np.float32)
    run = nkitools.simulate(kernel, x, y)
    assert set(opened) == {"y"}
    np.testing.assert_array_equal(run.outputs, x)
    assert not y.any()


def test_torch_tensors_stay() -> None:
    """A CPU tensor is used in place, too."""
    torch = pytest.importorskip("torch")
    x = torch.ones(4, 8)
    run = nkitools.simulate(returning_its_argument, x)
    assert x.sum() == 32
    assert torch.equal(run.outputs, 3 * torch.ones(4, 8))


def test_run_kernel_fails_at_a_changed_argument(run_kernel: Any) -> None:
    """With its line; an argument that is to change is compared with what the reference left, and updated."""
    x = ones(4, 8)
    with pytest.raises(nkitools.KernelError, match="NK409"):
        run_kernel(swapped, x, reference=lambda x: 2 * x)
    np.testing.assert_array_equal(x, ones(4, 8))
    cache, row = caches()

    def right(cache: Any, row: Any) -> Any:
        cache[3] = row
        return 2 * row

    run_kernel(appended, cache, row, reference=right, mutates=("cache",))
    np.testing.assert_array_equal(cache.sum(axis=1), [0, 0, 0, 4, 0, 0, 0, 0])
    with pytest.raises(AssertionError, match=r"cache: 4 of 32 elements differ"):
        run_kernel(appended, cache, row, 5, reference=lambda cache, row, at: 2 * row, mutates="cache")
    with pytest.raises(nkitools.KernelError, match="NK409"):
        run_kernel(appended, cache, 2 * row)


def test_an_argument_that_is_changed_alone_is_something_to_compare(run_kernel: Any) -> None:
    """A kernel that returns nothing, and changes what it is told to."""

    def filled(x: Any) -> None:
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(tile, 7)
        nisa.dma_copy(dst=x, src=tile)

    def right(x: Any) -> None:
        x[...] = 7

    x = ones(4, 8)
    run_kernel(filled, x, reference=right, mutates="x")
    np.testing.assert_array_equal(x, 7 * ones(4, 8))
    with pytest.raises(AssertionError, match=r"x\[0, 0\] is 7.0, expected 1.0"):
        run_kernel(filled, ones(4, 8), reference=lambda x: None, mutates="x")


def put(cache: Any, row: Any) -> Any:
    """What `appended` computes and leaves."""
    cache[3] = row
    return 2 * row


def test_a_sweep_fails_at_a_changed_argument() -> None:
    """NK409 is its finding; told so, it compares the argument."""
    space = {"seed": [0]}

    def arguments(seed: int) -> Any:
        return caches()

    def outcome(reference: Any, **more: Any) -> str:
        from nkitools.sweeps.checked_call import Case
        from nkitools.sweeps.sweep import checked_call

        call = checked_call(appended, space, arguments, reference, **more)
        found = call(Case({"seed": 0}, "trn2"))
        return str(found["outcome"]) + "".join(f" {each['rule']}" for each in found["findings"])

    assert outcome(put) == "finding NK409"
    assert outcome(put, mutates="cache") == "pass"
    assert outcome(lambda cache, row: 2 * row, mutates="cache") == "wrong"


# --- a part of an argument is returned -------------------------------------------------------------------------------


def written_in(rows: Any) -> Any:
    """Write fives into a part of x, which ``rows`` picks, at the line that the tests name."""

    def write(x: Any) -> None:
        tile = nl.ndarray(rows(x).shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(tile, 5)
        nisa.dma_copy(dst=rows(x), src=tile)  # outside

    return write


def partly(first: Any, second: Any, result: Any) -> Any:
    """Return a kernel that writes two parts of its argument, and returns a part or several."""
    one, other = written_in(first), written_in(second)

    def kernel(x: Any) -> Any:
        one(x)
        other(x)
        return result(x)

    return kernel


ROWS, ROW_5 = (lambda x: x[0:2]), (lambda x: x[5:6])
OUTSIDE = {
    "rows beside the returned ones": (ROWS, ROW_5, ROWS, [5, 0]),
    "written before": (ROW_5, ROWS, ROWS, [5, 0]),
    "more rows than the returned ones": (ROWS, lambda x: x[1:4], ROWS, [2, 0]),
    "columns": (lambda x: x[:, 0:1], lambda x: x[0:8, 2:3], lambda x: x[:, 0:2], [0, 2]),
    "between two parts": (ROWS, ROW_5, lambda x: (x[0:5], x[6:8]), [5, 0]),
    "a strided part": (lambda x: x[0:1], lambda x: x[1:2], lambda x: x[0:8:2], [1, 0]),
    "in a dictionary": (ROWS, ROW_5, lambda x: {"head": x[0:2]}, [5, 0]),
    "another shape": (ROWS, ROW_5, lambda x: x[0:2].reshape((1, 8)), [5, 0]),
}
WITHIN = {
    "the returned rows": (ROWS, ROWS, ROWS),
    "a larger part": (ROWS, ROW_5, lambda x: x[0:6]),
    "two parts": (ROWS, ROW_5, lambda x: (x[5:8], x[0:3])),
    "all of it": (ROWS, ROW_5, lambda x: x),
    "all of it in another shape": (ROWS, ROW_5, lambda x: x.reshape((4, 8))),
    "all of it beside a part": (ROWS, ROW_5, lambda x: (x[0:2], x)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("case", OUTSIDE)
def test_a_returned_part_excuses_no_writes_outside_of_it(case: str, dtype: Any) -> None:
    """The finding stands at the line that stores there, names the first such element, and says what to do."""
    first, second, result, element = OUTSIDE[case]
    kernel = partly(first, second, result)
    x = np.zeros((8, 4), dtype)
    (found,) = (each for each in nkitools.simulate(kernel, x).findings if each.rule == "NK409")
    assert (found.severity, found.line) == ("hint", line_of(written_in, "# outside"))
    assert f"at {element}, outside of the part that it returns" in found.message
    assert "return all of it too, or name it: mutates=('x',)" in found.remedy
    assert not x.any()
    assert "NK409" not in {each.rule for each in nkitools.simulate(kernel, x, mutates="x").findings}


@pytest.mark.parametrize("case", WITHIN)
def test_writes_within_what_is_returned_are_results(case: str) -> None:
    """Nothing is reported, and the caller's array stays."""
    x = np.zeros((8, 4), np.float32)
    assert not [each for each in nkitools.simulate(partly(*WITHIN[case]), x).findings if each.rule == "NK409"]
    assert not x.any()


def test_the_storing_line_is_the_one_that_stores_outside() -> None:
    """Of two lines that write into an argument, the one that stays within what is returned is not named."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((2, 4), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(tile, 5)
        nisa.dma_copy(dst=x[0:2], src=tile)
        nisa.dma_copy(dst=x[4:6], src=tile)  # astray
        return x[0:2]

    (found,) = nkitools.simulate(kernel, ones(8, 4)).findings
    assert (found.rule, found.line) == ("NK409", line_of(kernel, "# astray"))


def test_the_same_bits_outside_are_no_change() -> None:
    """An element that gets its own value again holds what it held."""
    assert not nkitools.simulate(partly(ROWS, ROW_5, ROWS), 5 * ones(8, 4)).findings


def test_a_part_is_no_excuse_in_tests_and_sweeps(run_kernel: Any) -> None:
    """Both fail."""
    from nkitools.sweeps.checked_call import Case
    from nkitools.sweeps.sweep import checked_call

    kernel = partly(ROWS, ROW_5, ROWS)
    with pytest.raises(nkitools.KernelError, match="NK409"):
        run_kernel(kernel, ones(8, 4), reference=lambda x: 5 * ones(2, 4))
    call = checked_call(kernel, {"seed": [0]}, lambda seed: (ones(8, 4),), lambda x: 5 * x[:2])
    found = call(Case({"seed": 0}, "trn2"))
    assert (found["outcome"], [each["rule"] for each in found["findings"]]) == ("finding", ["NK409"])
    kernel = partly(ROWS, ROWS, ROWS)
    call = checked_call(kernel, {"seed": [0]}, lambda seed: (ones(8, 4),), lambda x: 5 * x[:2])
    assert call(Case({"seed": 0}, "trn2"))["outcome"] == "pass"
