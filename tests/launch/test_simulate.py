"""`nkitools.simulate`: what it takes, what it gives back, and what the rule levels do."""

from __future__ import annotations

import contextlib
import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.launch.kernels import doubled, failing, halves, impossible, scaled

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def plain(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


def test_a_run_tells_what_happened() -> None:
    """Outputs, the kernel's name, the chip, and each instruction at the author's line."""
    run = nkitools.simulate(doubled, X, chip="trn1")
    np.testing.assert_array_equal(run.outputs, X + X)
    assert (run.kernel, run.target, run.chip, run.error) == ("doubled", "builtin", "trn1", None)
    assert run.findings == []
    assert [each.name for each in run.instructions] == ["dma_copy", "tensor_tensor", "dma_copy"]
    assert {each.file for each in run.instructions} == {inspect.getsourcefile(doubled.function)}


def test_arguments_go_to_the_kernel_by_position_and_by_name() -> None:
    """Numbers, names and keyword-only parameters arrive as they were given."""
    np.testing.assert_array_equal(nkitools.simulate(scaled, X, 3.0, offset=1.0).outputs, X * 3 + 1)
    np.testing.assert_array_equal(nkitools.simulate(scaled, factor=4.0, x=X).outputs, X * 4)


def test_a_plain_function_is_a_kernel_of_the_modern_dialect() -> None:
    """Nothing need be decorated."""
    run = nkitools.simulate(plain, X)
    np.testing.assert_array_equal(run.outputs, X)
    assert run.kernel == "plain"


def test_a_callable_object_is_named_by_its_class() -> None:
    """It has no name of its own."""

    class Copier:
        def __call__(self, x: Any) -> Any:
            return plain(x)

    run = nkitools.simulate(Copier(), X)
    np.testing.assert_array_equal(run.outputs, X)
    assert run.kernel == "Copier"


def test_a_parameter_of_the_kernel_may_be_called_kernel() -> None:
    """Convolutions have one; only `grid`, `chip`, `ranks` and `rules` are simulate's own."""

    def convolve(x: Any, kernel: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), nl.load(kernel)))
        return out

    np.testing.assert_array_equal(nkitools.simulate(convolve, X, kernel=X).outputs, X * X)


@pytest.mark.parametrize(
    ("arguments", "keywords", "said"),
    [
        ((), {}, "doubled: missing a required argument: 'x'"),
        ((X, X), {}, "doubled: too many positional arguments"),
        ((X,), {"y": X}, "doubled: got an unexpected keyword argument 'y'"),
    ],
)
def test_a_wrong_call_is_refused_with_the_call_form(arguments: Any, keywords: Any, said: str) -> None:
    """NK609 at the line of the call; its remedy is the kernel's signature."""
    with pytest.raises(TypeError) as raised:
        nkitools.simulate(doubled, *arguments, **keywords)
    finding = raised.value.finding  # type: ignore[attr-defined]
    assert (finding.rule, finding.message, finding.remedy) == ("NK609", said, "The kernel's call form is doubled(x).")
    assert finding.file == __file__
    assert raised.value.__context__ is None


def test_what_is_no_kernel_is_refused() -> None:
    """TypeError tells how to call simulate; a builtin without a signature is NK609."""
    with pytest.raises(TypeError, match=r"kernel: simulate needs a kernel or a function, it is given ndarray"):
        nkitools.simulate(X, doubled)
    with pytest.raises(nkitools.KernelError, match="has no signature") as raised:
        nkitools.simulate(type, X)
    assert raised.value.finding.rule == "NK609"


@pytest.mark.parametrize(
    ("keywords", "kind", "said"),
    [
        ({"chip": "trn9"}, ValueError, r"chip: 'trn9' is not a chip"),
        ({"chip": 3}, TypeError, r"chip: must be one of trn1"),
        ({"rules": "loud"}, ValueError, r"rules: must be one of error, strict, report, off, it is 'loud'"),
        ({"grid": "two"}, TypeError, r"grid: must be an integer or integers, it has 'two'"),
        ({"grid": 2.0}, TypeError, r"grid: must be an integer or integers, it has 2\.0"),
        ({"grid": 0}, ValueError, r"grid: sizes must be at least 1, they are \[0\]"),
    ],
)
def test_a_wrong_keyword_is_named(keywords: Any, kind: type[Exception], said: str) -> None:
    """Which keyword, what it must be, what it is."""
    with pytest.raises(kind, match=said):
        nkitools.simulate(doubled, X, **keywords)


@pytest.mark.parametrize("kernel", [halves, halves.function])
@pytest.mark.parametrize("grid", [3, (2, 2)])
def test_a_modern_grid_is_an_lnc_degree(kernel: Any, grid: Any) -> None:
    """NK613 also where the grid comes through simulate, for kernels and plain functions."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, X, grid=grid)
    assert raised.value.finding.rule == "NK613"
    assert raised.value.finding.file == __file__


@pytest.mark.parametrize(("chip", "partition_bytes"), [("trn1", 192), ("gen4", 256)])
def test_the_chip_is_the_one_asked_for(chip: str, partition_bytes: int) -> None:
    """The kernel sees its sizes."""
    seen: list[int] = []

    def kernel(x: Any) -> Any:
        seen.append(nl.tile_size.sbuf_size_bytes // 128 // 1024)
        return x

    nkitools.simulate(kernel, X, chip=chip)
    assert seen == [partition_bytes]


class TestLevels:
    """What `rules=` does."""

    def test_error_raises_the_first_finding(self) -> None:
        """The finding travels in the exception, and the run that failed has it too."""
        with nkitools.collect_runs() as runs, pytest.raises(AssertionError, match="256 partitions") as raised:
            nkitools.simulate(failing, X)
        assert isinstance(raised.value, nkitools.KernelError)
        assert runs[0].error is raised.value
        assert runs[0].findings == [raised.value.finding]
        assert runs[0].outputs is None

    def test_report_goes_on_where_there_is_a_result(self) -> None:
        """256 partitions can be filled, if not on a chip."""
        run = nkitools.simulate(failing, X, rules="report")
        assert [finding.rule for finding in run.findings] == ["NK101"]
        np.testing.assert_array_equal(run.outputs, X)
        assert run.error is None

    def test_report_goes_on_without_an_instruction_that_has_none(self) -> None:
        """What it would have written is NaN, and nobody complains of that again; later mistakes are found as well."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
            tile, sums = nl.load(x), nl.ndarray((4, 4), dtype=nl.float32)
            for _ in range(2):
                nisa.tensor_tensor(dst=sums, data1=tile, data2=tile[:, 0:3], op=nl.add)
            nisa.tensor_copy(dst=nl.ndarray((4, 4), dtype=nl.int32), src=sums)
            nisa.dma_copy(dst=out, src=sums)
            nisa.dma_copy(dst=out[0:2], src=tile)
            return out

        run = nkitools.simulate(kernel, np.ones((4, 4), np.float32), rules="report")
        told = [(each.rule, each.line - kernel.__code__.co_firstlineno, each.count) for each in run.findings]
        assert told == [("NK109", 4, 2), ("NK109", 7, 1)]
        assert np.isnan(run.outputs).all()
        assert run.error is None

    def test_report_ends_the_run_where_nothing_can_be_made_of_it(self) -> None:
        """No exception: the findings say why the outputs are None."""
        run = nkitools.simulate(lambda x: x[0:9], X, rules="report")
        assert [finding.rule for finding in run.findings] == ["NK402"]
        assert run.outputs is None
        assert run.error is None

    def test_off_runs_bare(self) -> None:
        """No findings; what cannot be computed is raised all the same."""
        run = nkitools.simulate(failing, X, rules="off")
        np.testing.assert_array_equal(run.outputs, X)
        assert run.findings == []
        with pytest.raises(nkitools.KernelError):
            nkitools.simulate(impossible, X, rules="off")

    @pytest.mark.parametrize("level", ["error", "report", "off"])
    def test_what_is_not_modelled_is_raised_at_every_level(self, level: str) -> None:
        """A guess would be worse than a refusal; the run has the finding, too."""

        def kernel(x: Any) -> Any:
            import_module("nki.compiler.kernel_builder").compile_kernel(x)
            return x

        with (
            nkitools.collect_runs() as runs,
            pytest.raises(nkitools.NotModelled, match=r"kernel_builder\.compile_kernel") as raised,
        ):
            nkitools.simulate(kernel, X, rules=level)
        assert runs[0].findings == [raised.value.finding]

    def test_the_level_comes_from_the_options_where_it_is_not_given(self) -> None:
        """`--nki-rules` and NKITOOLS_RULES speak for AWS's ways in and for tests."""
        with options.override(rules="off"):
            np.testing.assert_array_equal(failing(X), X)
            with pytest.raises(nkitools.KernelError):
                nkitools.simulate(failing, X, rules="error")

    def test_an_author_who_catches_a_finding_goes_on(self) -> None:
        """It is an exception like others; the run keeps the finding."""

        def kernel(x: Any) -> Any:
            with contextlib.suppress(AssertionError):
                nisa.memset(nl.ndarray((256, 4), dtype=x.dtype), 1.0)
            return plain(x)

        run = nkitools.simulate(kernel, X)
        np.testing.assert_array_equal(run.outputs, X)
        assert [finding.rule for finding in run.findings] == ["NK101"]
