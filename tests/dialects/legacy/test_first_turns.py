"""Loops that AWS's compiler traces once: every turn works with the Python numbers of the first one."""

from __future__ import annotations

import ast
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from nkitools.dialects.legacy.kernels.carried_names import carried
from nkitools.typing import SourceChanged
from tests.dialects.legacy.running import outputs, random, run

X = random(8, 12)


def frozen(function: Any, *arrays: Any, **options: Any) -> Any:
    """Return the results of a run whose findings are warnings of NK622: a number that the first turn decides."""
    done = run(function, *arrays, **options)
    found = [each for each in done.findings if each.rule != "NK513"]
    assert {(each.rule, each.severity) for each in found} == {("NK622", "warning")}
    assert all("for Python and stays" in each.message for each in found)
    return done.outputs


def halved(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = 8
    for i in nl.affine_range(3):
        width = width // 2
        columns = nl.ds(4 * i, 4)
        nl.store(out[:, columns], nl.multiply(nl.load(x[:, columns]), float(width)))
    assert width == 4
    return out


def halved_in_sequence(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = 8
    for i in nl.sequential_range(3):
        width //= 2
        columns = nl.ds(4 * i, 4)
        nl.store(out[:, columns], nl.multiply(nl.load(x[:, columns]), float(width)))
    return out


def halved_unrolled(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = 8
    for i in nl.static_range(3):
        width = width // 2
        columns = nl.ds(4 * i, 4)
        nl.store(out[:, columns], nl.multiply(nl.load(x[:, columns]), float(width)))
    return out


def test_a_number_changes_once() -> None:
    """``width // 2`` is 4 in every turn of an affine or sequential loop, with NK622 at the line that binds it;
    static_range, which unrolls, halves on.
    """
    np.testing.assert_array_equal(frozen(halved, X), 4 * X)
    np.testing.assert_array_equal(frozen(halved_in_sequence, X), 4 * X)
    np.testing.assert_array_equal(outputs(halved_unrolled, X), X * np.repeat([4, 2, 1], 4).astype(np.float32))


def test_the_frozen_number_is_named_where_it_is_bound() -> None:
    """Once a loop, with Python's value and the first turn's."""
    (finding,) = run(halved, X).findings
    assert finding.line == halved.__code__.co_firstlineno + 4
    assert finding.message.startswith("`width` is 4 for Python and stays 8")


def test_the_authors_function_stays_as_it_is() -> None:
    """The rewritten source is the run's alone, also where the run ends in an error; outside Python counts as ever."""
    code = halved.__code__
    frozen(halved, X)
    assert halved.__code__ is code
    with pytest.raises(IndexError):
        run(halved, X[:, :8])
    assert halved.__code__ is code
    count = 0
    for _ in range(3):
        count = count + 1
    assert count == 3


def counted(x: Any, out: Any, turns: int) -> int:
    """Store ``x`` plus a number that nested loops count; return the number."""
    number = 0
    for i in nl.sequential_range(turns):
        for j in nl.affine_range(2):
            columns = nl.ds(4 * i + 2 * j, 2)
            nl.store(out[:, columns], nl.add(nl.load(x[:, columns]), float(number)))
            number += 1
    return number


def test_functions_that_the_kernel_calls_are_traced_too() -> None:
    """A helper with nested loops counts to 1, and adds 0 in every turn of both."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        assert counted(x, out, 3) == 1
        return out

    np.testing.assert_array_equal(frozen(kernel, X), X)


def test_what_each_turn_makes_anew_is_its_own() -> None:
    """A number that the body binds before it reads it depends on the counter, as ever, under conditions too."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(3):
            start = 4 * i
            if start:
                shift = start - 4
                assert shift >= 0
            else:
                shift = 8
            start = start + 0
            nl.store(out[:, start : start + 4], nl.load(x[:, shift : shift + 4]))
        return out

    np.testing.assert_array_equal(outputs(kernel, X), np.roll(X, 4, axis=1))


def test_a_number_of_the_turn_before_is_that_of_the_first_turn() -> None:
    """``last = i`` at the end of a body is not seen by the next turn; names that get their value late are none yet."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        last = 7
        for i in nl.sequential_range(3):
            if i > 5:
                print(late)  # noqa: F821 - bound below, never read
            columns = nl.ds(4 * i, 4)
            nl.store(out[:, columns], nl.add(nl.load(x[:, columns]), float(last)))
            last = i
            late = i
        assert (last, late) == (2, 2)
        return out

    np.testing.assert_array_equal(frozen(kernel, X), X + np.float32(7))


def test_what_is_no_number_keeps_its_value_with_a_warning() -> None:
    """NK622 once, at the line that binds a tile anew; assignment into the tile is right."""

    def rebound(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((8, 4), dtype=x.dtype)
        for i in nl.sequential_range(3):
            columns = nl.ds(4 * i, 4)
            total = nl.add(total, nl.load(x[:, columns]))
            nl.store(out[:, columns], total)
        return out

    done = run(rebound, X)
    first = rebound.__code__.co_firstlineno
    assert [(each.rule, each.severity, each.line) for each in done.findings] == [("NK622", "warning", first + 5)]
    sums = X.reshape(8, 3, 4).cumsum(axis=1, dtype=np.float32).reshape(8, 12)
    np.testing.assert_allclose(done.outputs, sums, rtol=1e-5, atol=1e-6)

    def assigned(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((8, 4), dtype=x.dtype)
        for i in nl.sequential_range(3):
            columns = nl.ds(4 * i, 4)
            total[...] = nl.add(total, nl.load(x[:, columns]))
            nl.store(out[:, columns], total)
        return out

    np.testing.assert_allclose(outputs(assigned, X), sums, rtol=1e-5, atol=1e-6)


def test_a_name_bound_under_the_condition_under_which_it_is_read_is_the_turns_own() -> None:
    """A tile that ``if pool == 2`` makes anew in each turn is carried on by no ``if pool == 2`` behind it."""

    def kernel(x: Any, pool: int) -> Any:
        out = nl.ndarray((8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(3):
            if pool == 2:
                tile = nl.load(x[:, nl.ds(4 * i, 4)])
            if pool == 2:
                tile = nl.max(tile.reshape((8, 2, 2)), axis=2)
                nl.store(out[:, nl.ds(2 * i, 2)], tile)
        return out

    done = run(kernel, X, 2)
    assert "NK622" not in [each.rule for each in done.findings]
    np.testing.assert_array_equal(done.outputs, X.reshape(8, 6, 2).max(axis=2))


@pytest.mark.parametrize("between", ["pool = pool + 0", "pass"])
@pytest.mark.parametrize("second", ["if pool:", "if pool != 2:", "if True:"])
def test_a_name_read_under_another_condition_is_carried_on(between: str, second: str) -> None:
    """Where the second condition is another one, or reads a name bound anew, the earlier turn's value may be read."""
    text = f"for i in r:\n  if pool:\n    tile = 1\n  {between}\n  {second}\n    print(tile)\n"
    loop = ast.parse(text).body[0]
    assert isinstance(loop, ast.For)
    same = between == "pass" and second == "if pool:"
    assert ("tile" in carried(loop)) is not same


@pytest.mark.parametrize(
    ("before", "condition", "is_carried"),
    [
        ("", "pool == 1", False),
        ("tile = 0", "pool == 1", True),
        ("", "i == 0", True),
        ("flags = [0]", "flags", True),
        ("", "pool == 1 or turns == 2", True),
    ],
)
def test_branches_of_a_condition_that_no_loop_changes(before: str, condition: str, is_carried: bool) -> None:
    """Each turn takes the branch of the first one, and reads what it has bound itself; without a value before."""
    text = f"""
def kernel(x, pool):
    turns = 0
    {before}
    for i in r:
        turns += 1
        if {condition}:
            tile = 1
        elif pool == 2:
            tile = 2
        flags.append(tile)
"""
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    (loop,) = (each for each in function.body if isinstance(each, ast.For))
    assert ("tile" in carried(loop, function)) is is_carried
    assert "tile" in carried(loop)


def test_a_parameter_may_be_what_a_turn_reads() -> None:
    """It has a value before the first turn."""
    (function,) = ast.parse("def kernel(pool, tile):\n for i in r:\n  if pool:\n   tile = 1\n  print(tile)\n").body
    assert isinstance(function, ast.FunctionDef)
    assert carried(function.body[0], function) == {"tile": 4}  # type: ignore[arg-type]


def read_by_counter(x: Any, out: Any) -> None:
    tiles = [nl.load(x[:, 0:4])]
    for i in nl.affine_range(3):
        tiles.append(nl.add(tiles[i], 1.0))
        nl.store(out[:, nl.ds(4 * i, 4)], tiles[-1])


def read_behind(x: Any, out: Any) -> None:
    tiles = []
    for i in nl.affine_range(3):
        tiles.append(nl.load(x[:, nl.ds(4 * i, 4)]))
    for i in nl.static_range(3):
        nl.store(out[:, nl.ds(4 * i, 4)], tiles[i])


def by_name(x: Any, out: Any) -> None:
    tiles = {"sum": nl.load(x[:, 0:4])}
    for i in nl.sequential_range(3):
        tiles["sum"] = nl.add(tiles["sum"], 1.0)
        nl.store(out[:, nl.ds(4 * i, 4)], tiles["sum"])


def counting(x: Any, out: Any) -> None:
    turns = [0]
    for i in nl.affine_range(3):
        turns[0] += 1
        nl.store(out[:, nl.ds(4 * i, 4)], nl.load(x[:, nl.ds(4 * i, 4)]))


def read_in_the_same_turn(x: Any, out: Any) -> None:
    tiles, slots = [], [None]
    for i in nl.affine_range(3):
        tiles.append(nl.load(x[:, nl.ds(4 * i, 4)]))
        slots[0] = tiles[-1]
        nl.store(out[:, nl.ds(4 * i, 4)], slots[0])


def made_in_the_turn(x: Any, out: Any) -> None:
    for i in nl.affine_range(3):
        tiles = []
        for j in nl.static_range(2):
            tiles.append(nl.load(x[:, nl.ds(4 * i + 2 * j, 2)]))
        for j in nl.static_range(2):
            nl.store(out[:, nl.ds(4 * i + 2 * j, 2)], tiles[j])


def summed_in_place(x: Any, out: Any) -> None:
    sums = [nl.zeros((8, 4), dtype=x.dtype, buffer=nl.psum)]
    for _ in nl.affine_range(3):
        sums[0] += nl.matmul(nl.load(x[:, 0:8]), nl.load(x[:, 0:4]), transpose_x=True)
    for i in nl.static_range(3):
        nl.store(out[:, nl.ds(4 * i, 4)], sums[0])


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (read_by_counter, 3),
        (read_behind, 3),
        (by_name, 3),
        (counting, 3),
        (read_in_the_same_turn, 0),
        (made_in_the_turn, 0),
        (summed_in_place, 0),
    ],
)
def test_a_list_that_a_turn_leaves_to_others(body: Any, line: int) -> None:
    """NK622 once, at the line that changes it, where a later turn or the code behind the loop reads it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        body(x, out)
        return out

    done = run(kernel, X)
    found = [(each.severity, each.line) for each in done.findings if each.rule == "NK622"]
    assert found == ([("warning", body.__code__.co_firstlineno + line)] if line else [])


def test_programs_of_a_grid_and_simulate_kernel_see_the_same() -> None:
    """The number is that of the first turn in each program, and in AWS's own way in."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows = nl.ds(4 * nl.program_id(0), 4)
        shift = 1
        for i in nl.affine_range(3):
            shift = 2 * shift
            columns = nl.ds(4 * i, 4)
            nl.store(out[rows, columns], nl.add(nl.load(x[rows, columns]), float(shift)))
        return out

    np.testing.assert_array_equal(frozen(kernel, X, grid=(2,)), X + np.float32(2))
    np.testing.assert_array_equal(nki.simulate_kernel(nki.jit(kernel)[2], X), X + np.float32(2))


SOURCE = """
import neuronxcc.nki.language as nl


def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = 8
    for i in nl.affine_range(3):
        width = width // 2
        columns = nl.ds(4 * i, 4)
        nl.store(out[:, columns], nl.multiply(nl.load(x[:, columns]), float(width)))
    return out
"""


def test_a_file_that_has_changed_since_is_not_run(tmp_path: Any) -> None:
    """The code that was imported runs, whatever stands in its file by now."""
    file = tmp_path / "kernels.py"
    names: dict[str, Any] = {"__name__": "kernels"}
    file.write_text(SOURCE)
    exec(compile(SOURCE, str(file), "exec"), names)
    np.testing.assert_array_equal(frozen(names["kernel"], X), 4 * X)
    file.write_text(SOURCE.replace("width = 8", "width = 1024"))
    np.testing.assert_array_equal(frozen(names["kernel"], X), 4 * X)


@pytest.mark.parametrize(
    ("old", "new"), [("8", "9"), ("multiply", "subtract"), ("4 * i, 4", "4, 4 * i"), ("\n\n", "\n")]
)
def test_a_file_that_has_changed_before_the_first_run_is_not_run(tmp_path: Any, old: str, new: str) -> None:
    """The code runs as Python has it, turn by turn, and a warning names the function and its file."""
    file = tmp_path / "kernels.py"
    names: dict[str, Any] = {"__name__": "kernels"}
    exec(compile(SOURCE, str(file), "exec"), names)
    file.write_text(SOURCE.replace(old, new))
    with pytest.warns(SourceChanged, match=r"^`kernel` runs as it was imported; .*kernels\.py no longer holds it so"):
        found = outputs(names["kernel"], X)
    np.testing.assert_array_equal(found, X * np.repeat([4, 2, 1], 4).astype(np.float32))
