"""Random programs of what every NKI version has, on numbers: what one version computes, another one computes too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.record.random_modern import FAR, ModernProgram
from tests.record.random_programs import TILES, C, Instruction, P, Touched, a_slice, length_of

OPERATORS = ("add", "subtract", "multiply", "maximum", "minimum", "greater")


class CommonProgram(ModernProgram):
    """A program without what came with NKI 0.7; its kernel returns what its tiles hold at last."""

    sums = 0.0
    engines = ({},)

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernel is called with: small numbers, and no integer of 64 bits."""
        _, *others, long = super().arguments()
        numbers = np.random.default_rng(self.value).integers(-4, 5, (P, C)).astype(np.float32)
        return numbers, *others, long.astype(np.int32)

    def kernel(self, *given: Any) -> Any:
        """Issue the program."""
        tensors = self.made(*given)
        for each in self.program:
            each.issue(tensors)
        out = nl.ndarray((2, P, C), nl.float32, buffer=nl.shared_hbm)
        for number, name in enumerate("ab"):
            nisa.dma_copy(dst=out[number], src=tensors[name])
        return tensors["scratch"], out

    def made_since_0_7(self) -> dict[str, Any]:
        """Return tensors under these names that need no address."""
        return {name: nl.ndarray((P, C), nl.float32, buffer=nl.private_hbm) for name in FAR}

    def _begin(self) -> None:
        """Write every tensor: what nothing has written holds whatever is there."""
        for name in (*TILES, *FAR, "scratch"):
            self.transfer(name, "x")
        for name in ("psum", "bank", "beside"):
            self.program.append(Instruction(partial(_cleared, name), Touched()))
        self.load_indices()

    def _kinds(self) -> list[Callable[[], Any]]:
        return [
            *self.plain_kinds(),
            self.fused,
            self.activated,
            self.scaled,
            self.with_numbers,
            self.averaged,
            self.eight,
            self.statistics,
            self.counted_loop,
            self.loop_by_condition,
            self.by_functions,
        ]

    def _parts(self) -> tuple[tuple[str, Any], tuple[str, Any]]:
        """Return two tiles by their names and as many columns of each."""
        first = slice(0, P), a_slice(self.random, C)
        second = slice(0, P), a_slice(self.random, C, length=length_of(first[1]))
        return (self.tile(), first), (self.tile(), second)

    def scaled(self) -> Instruction:
        """An activation with scale, bias and the sum of its results."""
        (dst, to), (src, of) = self._parts()
        name, scale = self.random.choice(("exp", "tanh", "square", "sigmoid")), self.random.choice((0.25, -0.5))

        def issue(t: dict[str, Any]) -> None:
            options = {"bias": t["b"][:, 3:4], "scale": scale, "reduce_op": nl.add, "reduce_res": t["low"][:, 0:1]}
            nisa.activation(
                t[dst][to], getattr(nl, name), t[src][of], reduce_cmd=nisa.reduce_cmd.reset_reduce, **options
            )

        return Instruction(issue, Touched())

    def with_numbers(self) -> Instruction:
        """Two operators with numbers or columns, and a reduction of the results along the columns."""
        (dst, to), (src, of) = self._parts()
        first, second, reducer = self.random.choice(OPERATORS), self.random.choice(OPERATORS), "add"
        reduces = self.random.random() < 0.5

        def issue(t: dict[str, Any]) -> None:
            result, data, op = t[dst][to], t[src][of], getattr(nl, first)
            if reduces:
                nisa.tensor_scalar_reduce(result, data, op, 0.5, getattr(nl, reducer), reduce_res=t["high"][:, 1:2])
            else:
                nisa.tensor_scalar(result, data, op, t["a"][:, 2:3], op1=getattr(nl, second), operand1=2.0)

        return Instruction(issue, Touched())

    def averaged(self) -> Instruction:
        """A row that takes the mean, the sum or the largest of all partitions."""
        (dst, to), (src, of) = self._parts()
        name = self.random.choice(("average", "add", "max"))

        def issue(t: dict[str, Any]) -> None:
            nisa.tensor_partition_reduce(t[dst][0:1, to[1]], getattr(nl, name), t[src][of])

        return Instruction(issue, Touched())

    def eight(self) -> Instruction:
        """The 8 largest of 3 dimensions."""
        dst, src, first = self.tile(), self.tile(), self.random.randrange(9)

        def issue(t: dict[str, Any]) -> None:
            nisa.max8(t[dst][:, first : first + 8], t[src].reshape((P, 2, C // 2)))

        return Instruction(issue, Touched())

    def statistics(self) -> Instruction:
        """Mean and variance of columns, by way of the statistics of their even and odd elements."""
        (dst, _), (src, of) = self._parts()

        def issue(t: dict[str, Any]) -> None:
            found = nl.ndarray((P, 6), nl.float32, buffer=nl.sbuf)
            nisa.bn_stats(found, t[src][of])
            nisa.bn_aggr(t[dst][:, 6:8], found)

        return Instruction(issue, Touched())

    def counted_loop(self) -> Instruction:
        """A loop up to the register, whose counter chooses a column."""
        dst, src, more = self.tile(), self.tile(), self.random.randrange(3)

        def issue(t: dict[str, Any]) -> None:
            def body(i: Any) -> None:
                nisa.tensor_copy(t[dst][:, nl.ds(i, 1)], t[src][:, nl.ds(i, 1)])

            nl.fori_loop(0, t["register"] + more, body)
            nl.fori_loop(more, more + 2, body)

        return Instruction(issue, Touched())

    def loop_by_condition(self) -> Instruction:
        """A loop that counts a register down, and moves the columns of a tile in each turn."""
        dst, src = "a", "b"

        def issue(t: dict[str, Any]) -> None:
            left = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
            nisa.memset(left, 3)
            start = nisa.register_alloc()
            nisa.register_load(start, left)

            def body(_: Any) -> Any:
                nisa.tensor_tensor(t[dst], t[dst], t[src], nl.minimum)
                nisa.tensor_scalar(left, left, nl.subtract, 1)
                condition = nisa.register_alloc()
                nisa.register_load(condition, left)
                return condition

            nl.while_loop(start, body)

        return Instruction(issue, Touched())

    def by_functions(self) -> Instruction:
        """A softmax and a sum by the functions of nki.language."""
        (dst, to), (src, of) = self._parts()

        def issue(t: dict[str, Any]) -> None:
            chosen = nl.copy(t[src][of])
            nisa.tensor_copy(t[dst][to], nl.add(nl.softmax(chosen, axis=-1), nl.sum(chosen, axis=1, keepdims=True)))

        return Instruction(issue, Touched())


def _cleared(name: str, t: dict[str, Any]) -> None:
    nisa.memset(t[name], 1.0)
