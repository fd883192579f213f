"""`depends_on` of what an instruction returns, and `nl.no_reorder`: no result changes, and wrong edges are findings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.nki_versions import WITH_REMOVED_NAMES

X = np.arange(1, 33, dtype=np.float32).reshape(8, 4)


def refusal(kernel: Any, *arrays: Any) -> nkitools.Finding:
    """The finding of a launch."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *arrays)
    return raised.value.finding


class TestHandles:
    """`depends_on` of what an instruction returns."""

    def test_it_returns_the_handle(self) -> None:
        """Several at once, or chained; an annotation and an isinstance have the class."""

        def kernel(x: Any) -> Any:
            tile = nl.load(x)
            a = nisa.tensor_copy(dst=tile, src=tile)
            b = nisa.memset(tile[:, 0:1], 1.0)
            c: nisa.NkiInstruction = nisa.memset(tile[:, 1:2], 2.0)
            assert c.depends_on(b, a) is c
            assert c.depends_on(b).depends_on(a) is c
            assert isinstance(c, nisa.NkiInstruction)
            return x

        assert nkitools.simulate(kernel, X).outputs is X

    @pytest.mark.parametrize("wrong", [None, "plus1", 3, [1]])
    def test_other_things_are_refused(self, wrong: Any) -> None:
        """NK609."""

        def kernel(x: Any) -> Any:
            nisa.tensor_copy(dst=(tile := nl.load(x)), src=tile).depends_on(wrong)

        finding = refusal(kernel, X)
        assert finding.rule == "NK609"
        assert finding.message.startswith("depends_on takes the handles of instructions, it is given ")

    @staticmethod
    def looped(loop: Any) -> Any:
        """A kernel that hands the handles before, in and after a loop on the device to a wish."""

        def with_wish(wish: Any) -> Any:
            @nki.jit
            def kernel(x: Any) -> Any:
                tile = nl.load(x)
                before = nisa.tensor_copy(dst=tile, src=tile)
                inside: list[Any] = []

                def body(i: Any) -> Any:
                    first = nisa.tensor_copy(dst=tile, src=tile)
                    inside[:] = [first, nisa.tensor_copy(dst=tile, src=tile)]
                    if wish == "in":
                        inside[1].depends_on(first, before)
                    return nisa.register_alloc(0)

                loop(body)
                after = nisa.tensor_copy(dst=tile, src=tile)
                if wish == "out":
                    after.depends_on(inside[0])
                if wish == "around":
                    after.depends_on(before)
                return x

            return kernel

        return with_wish

    @pytest.mark.parametrize(
        "loop",
        [
            lambda body: nl.fori_loop(0, 2, lambda i: (body(i), None)[1]),
            lambda body: nl.while_loop(nisa.register_alloc(1), body),
            pytest.param(lambda body: [body(i) for i in nl.dynamic_range(2)], marks=WITH_REMOVED_NAMES),
        ],
        ids=["fori_loop", "while_loop", "dynamic_range"],
    )
    def test_no_edge_leads_out_of_a_loop_on_the_device(self, loop: Any) -> None:
        """NK601: its wait would fire without the producer. From around the loop into it is possible."""
        make = self.looped(loop)
        assert make("in")(X) is X
        assert make("around")(X) is X
        finding = refusal(make("out"), X)
        assert finding.rule == "NK601"
        assert "was issued in a loop on the device that this instruction is not in" in finding.message

    def test_python_loops_do_not_count(self) -> None:
        """They are unrolled."""

        def kernel(x: Any) -> Any:
            tile, last = nl.load(x), None
            for _ in nl.affine_range(3):
                handle = nisa.tensor_copy(dst=tile, src=tile)
                if last is not None:
                    handle.depends_on(last)
                last = handle
            return x

        assert nkitools.simulate(kernel, X).outputs is X


@WITH_REMOVED_NAMES
def test_dynamic_loops_do_not_stand_inside_no_reorder() -> None:
    """NK601, also where a function that is called from inside has the loop; the block may stand in the loop."""

    def looped(tile: Any) -> None:
        nl.fori_loop(0, 2, lambda i: nisa.tensor_copy(dst=tile, src=tile) and None)

    def outside(x: Any) -> Any:
        tile = nl.load(x)
        with nl.no_reorder():
            looped(tile)
        return x

    def inside(x: Any) -> Any:
        tile = nl.load(x)
        for _ in nl.dynamic_range(2):
            with nl.no_reorder():
                nisa.tensor_copy(dst=tile, src=tile)
        return x

    assert refusal(nki.jit(outside), X).rule == "NK601"
    assert nki.jit(inside)(X) is X
