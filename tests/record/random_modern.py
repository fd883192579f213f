"""Random programs of the modern dialect, over every kind of view that it has."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.record.random_changed import ChangedInstructions
from tests.record.random_grids import TILE, GridInstructions
from tests.record.random_programs import HBM, TILES, C, Instruction, Memory, P, Touched, a_slice, length_of, like
from tests.record.random_scalars import ScalarInstructions

ROWS, COLUMNS = (9, 3, 3, 30), (1, 5, 2, 5, 12, 0)
GIVEN = ("x", "predicate", "rows", "columns", "at", "long")
# Tensors that share bytes of SBUF: where each begins.
FAR = {"far": 512, "farther": 1100}  # the same of HBM
ADDRESSES = {"low": (0, 0), "middle": (0, 24), "high": (0, 48), "shifted": (32, 0)}


class ModernProgram(GridInstructions, ScalarInstructions, ChangedInstructions):
    """A program on one core: `kernel`, its `arguments`, and the `steps` that it takes."""

    chip = "trn3"

    def __init__(self, seed: int, length: int = 14, *, beside: ModernProgram | None = None) -> None:
        """Draw a program; ``beside``: the one on the other core, which has the same HBM."""
        self.random = Random(seed)
        self.memory = Memory() if beside is None else beside.memory
        self.scratch = nl.private_hbm
        self.bytes = self._tensors()
        if beside is not None:
            self.bytes |= {name: beside.bytes[name] for name in (*GIVEN, "scratch")}
        self.value = self.random.randrange(0, 4) if beside is None else beside.value
        self.program: list[Instruction] = []
        self._begin()
        for _ in range(length):
            self.draw()
        self.steps = [each.touched for each in self.program]

    def _tensors(self) -> dict[str, Any]:
        memory = self.memory
        found = {name: memory.take(P, C, 4, given=True) for name in ("x", "predicate")}
        found |= {
            "rows": memory.take(len(ROWS), 1, 4, given=True),
            "columns": memory.take(P, 1, 2, given=True),
            "at": memory.take(1, 1, 4, given=True),
            "long": memory.take(1, 1, 8, given=True),
        }
        found |= {name: memory.take(P, C, 4) for name in ("scratch", "a", "b", "psum", "mask", "held", "held in PSUM")}
        found |= {"index": memory.take(len(ROWS), 1, 4), "offsets": memory.take(P, 1, 2), "register": memory.take(1)}
        found["scalar"] = memory.take(1, 1, 4)
        physical = memory.take(2 * P, 112)
        for name, (partition, byte) in ADDRESSES.items():
            found[name] = physical[partition : partition + P, byte : byte + 4 * C].reshape(P, C, 4)
        row = memory.take(FAR["farther"] + 4 * P * C)
        for name, byte in FAR.items():
            found[name] = row[byte : byte + 4 * P * C].reshape(P, C, 4)
        banks = memory.take(P, 96)
        found |= {"bank": banks[:, :64].reshape(P, C, 4), "beside": banks[:, 32:96].reshape(P, C, 4)}
        return found

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernel is called with."""
        columns = np.zeros((P, 1), np.uint16)
        columns[: len(COLUMNS), 0] = COLUMNS
        columns[16 : 16 + len(COLUMNS), 0] = COLUMNS
        chosen = np.random.default_rng(0).integers(0, 2, (P, C)).astype(np.uint32)
        rows, at = np.array(ROWS, np.int32)[:, None], np.array([[self.value]], np.int32)
        return np.zeros((P, C), np.float32), chosen, rows, columns, at, at.astype(np.int64)

    def kernel(self, *given: Any) -> Any:
        """Issue the program."""
        tensors = self.made(*given)
        for each in self.program:
            each.issue(tensors)
        return tensors["scratch"]

    def made(self, *given: Any) -> dict[str, Any]:
        """Return all tensors by their names."""
        found = dict(zip(GIVEN, given, strict=True))
        found["scratch"] = nl.ndarray((P, C), nl.float32, buffer=self.scratch)
        found |= {name: nl.ndarray((P, C), nl.float32, buffer=nl.sbuf) for name in ("a", "b")}
        found["psum"] = nl.ndarray((P, C), nl.float32, buffer=nl.psum)
        found["mask"] = nl.ndarray((P, C), nl.uint32, buffer=nl.sbuf)
        found["index"] = nl.ndarray((len(ROWS), 1), nl.int32, buffer=nl.sbuf)
        found["offsets"] = nl.ndarray((P, 1), nl.uint16, buffer=nl.sbuf)
        found["scalar"] = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
        found["register"] = nisa.register_alloc()
        for name, address in ADDRESSES.items():
            found[name] = nl.ndarray((P, C), nl.float32, buffer=nl.sbuf, address=address)
        for name, byte in (("bank", 0), ("beside", 32)):
            found[name] = nl.ndarray((P, C), nl.float32, buffer=nl.psum, address=(0, byte))
        return found | self.made_since_0_7()

    def made_since_0_7(self) -> dict[str, Any]:
        """Return the tensors and grids that an older NKI does not have."""
        found = {
            name: nl.ndarray((P, C), nl.float32, buffer=nl.private_hbm, address=(byte,)) for name, byte in FAR.items()
        }
        found["held"] = nl.alloc_tiles(tile_shape=TILE, element_shape=(P, C), buffer=nl.sbuf, dtype=nl.float32)
        found["held in PSUM"] = nl.alloc_blocks(
            tile_shape=(16, 4), block_shape=(1, 2), element_shape=(P, C), buffer=nl.psum, dtype=nl.float32
        )
        return found

    def _begin(self) -> None:
        """Load what indices, predicates and scalars are made of."""
        self.load_indices()
        self.program += [self.load_scalar(), self.load_long_scalar()]

    def load_indices(self) -> None:
        """Load what indices and predicates are made of, and the register."""
        for dst, src in (("mask", "predicate"), ("index", "rows"), ("offsets", "columns"), ("scalar", "at")):
            self.transfer(dst, src)
        self.program.append(self.load_register())

    def transfer(self, dst: str, src: str) -> None:
        """Append a DMA of whole tensors."""

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=t[dst], src=t[src])

        self.program.append(Instruction(issue, Touched([self.bytes[src]], [self.bytes[dst]])))

    # --- instructions -----------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Take one kind of instruction at random."""
        kind = self.random.choice(self._kinds())
        made = kind()
        for each in made if isinstance(made, list) else [made]:
            each.kind = kind.__name__
            self.program.append(each)

    def _kinds(self) -> list[Callable[[], Any]]:
        return [*self.plain_kinds(), *self.grid_kinds(), *self.scalar_kinds(), *self.changed_kinds()]

    def plain_kinds(self) -> list[Callable[[], Instruction]]:
        """Return what makes an instruction each that every NKI version has."""
        return [
            self.copy,
            self.copy,
            self.copy,
            self.fill,
            self.add,
            self.add,
            self.matmul,
            self.predicated,
            self.gather,
            self.scatter,
            self.gather_columns,
            self.scatter_columns,
            self.at_register,
            self.at_scalar,
            self.load_register,
            self.store_register,
            self.shuffle,
            self.reshaped,
            self.transposed,
            self.halves,
        ]

    def tile(self) -> str:
        """Return the name of a tile in SBUF."""
        return self.random.choice(TILES)

    def copy(self) -> Instruction:
        """A DMA between slices with steps, of HBM and SBUF."""
        dst, src = self.random.choice((*TILES, "scratch", *FAR)), self.random.choice((*TILES, *HBM, *FAR))
        to = (a_slice(self.random, P), a_slice(self.random, C))
        of = like(self.random, to, (P, C))
        touched = Touched([self.bytes[src][of]], [self.bytes[dst][to]], tensor=dst)
        return Instruction(lambda t: nisa.dma_copy(dst=t[dst][to], src=t[src][of]), touched)

    def fill(self) -> Instruction:
        """A memset of some columns."""
        dst, to = self.tile(), (slice(0, P), a_slice(self.random, C))
        touched = Touched([], [self.bytes[dst][to]], tensor=dst)
        return Instruction(lambda t: nisa.memset(dst=t[dst][to], value=0.0), touched)

    def add(self) -> Instruction:
        """An element-wise instruction on columns of tiles, PSUM among them, whose operands may be one tile."""
        dst, first, second = (self.random.choice((*TILES, "psum", "bank", "beside")) for _ in range(3))
        to = (slice(0, P), a_slice(self.random, C))
        of, other = ((slice(0, P), a_slice(self.random, C, length=length_of(to[1]))) for _ in range(2))
        if {"psum", "bank", "beside"}.issuperset((first, second)):
            second = "a"

        def issue(t: dict[str, Any]) -> None:
            nisa.tensor_tensor(dst=t[dst][to], data1=t[first][of], data2=t[second][other], op=nl.add)

        touched = Touched([self.bytes[first][of], self.bytes[second][other]], [self.bytes[dst][to]], tensor=dst)
        return Instruction(issue, touched)

    def matmul(self) -> Instruction:
        """A matmul that overwrites PSUM, or adds to what matmuls and others have written there."""
        dst, first, second = self.random.choice(("psum", "bank", "beside")), self.tile(), self.tile()
        accumulate = self.random.choice((None, False))
        width, height = length_of(a_slice(self.random, C)), length_of(a_slice(self.random, C))
        to = (slice(0, width), slice(0, height))
        of, other = (slice(0, P), slice(0, width)), (slice(0, P), a_slice(self.random, C, length=height))

        def issue(t: dict[str, Any]) -> None:
            nisa.nc_matmul(dst=t[dst][to], stationary=t[first][of], moving=t[second][other], accumulate=accumulate)

        written = self.bytes[dst][to]
        touched = Touched([self.bytes[first][of], self.bytes[second][other]], [written], tensor=dst)
        if accumulate is None:
            touched.adds = [written]
        return Instruction(issue, touched)

    def predicated(self) -> Instruction:
        """A copy under a predicate of data, which may write every element."""
        dst, src, part = self.tile(), self.tile(), (slice(0, P), a_slice(self.random, C))

        def issue(t: dict[str, Any]) -> None:
            nisa.tensor_copy_predicated(dst=t[dst][part], src=t[src][part], predicate=t["mask"][part])

        reads = [self.bytes[src][part], self.bytes["mask"][part]]
        return Instruction(issue, Touched(reads, may_write=[self.bytes[dst][part]], tensor=dst))

    def gather(self) -> Instruction:
        """Rows of HBM that an index in SBUF names."""
        dst, src, part = self.tile(), self.random.choice(HBM), a_slice(self.random, C)
        to = (slice(0, len(ROWS)), slice(0, length_of(part)))

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=t[dst][to], src=t[src][:, part].vector_select(0, t["index"]))

        reads = [self.bytes[src][list(ROWS), part], self.bytes["index"]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][to]], tensor=dst))

    def scatter(self) -> Instruction:
        """Rows of HBM that an index in SBUF names, one of them twice."""
        src, part = self.tile(), a_slice(self.random, C)
        of = (slice(0, len(ROWS)), slice(0, length_of(part)))

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=t["scratch"][:, part].vector_select(0, t["index"]), src=t[src][of])

        reads = [self.bytes[src][of], self.bytes["index"]]
        written = [self.bytes["scratch"][list(ROWS), part]]
        return Instruction(issue, Touched(reads, written, tensor="scratch"))

    def gather_columns(self) -> Instruction:
        """Columns of a tile that an index names, for all partitions alike."""
        dst, src = self.random.choice(("a", "low")), self.random.choice(("b", "high"))
        count = self.random.randrange(1, len(COLUMNS) + 1)
        to = (slice(0, P), slice(0, count))

        def issue(t: dict[str, Any]) -> None:
            nisa.tensor_copy(dst=t[dst][to], src=t[src].indirect(t["offsets"], count), engine=nisa.engine.vector)

        reads = [self.bytes[src][:, list(COLUMNS[:count])], self.bytes["offsets"]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][to]], tensor=dst))

    def scatter_columns(self) -> Instruction:
        """The other way round."""
        dst, src = self.random.choice(("a", "low")), self.random.choice(("b", "high"))
        count = self.random.randrange(1, len(COLUMNS) + 1)
        of = (slice(0, P), slice(0, count))

        def issue(t: dict[str, Any]) -> None:
            nisa.tensor_copy(dst=t[dst].indirect(t["offsets"], count), src=t[src][of], engine=nisa.engine.vector)

        written = [self.bytes[dst][:, list(COLUMNS[:count])]]
        return Instruction(issue, Touched([self.bytes[src][of], self.bytes["offsets"]], written, tensor=dst))

    def load_register(self) -> Instruction:
        """A register gets what a tensor holds."""
        self.loaded = Touched([self.bytes["scalar"]], [self.bytes["register"]], tensor="register")
        return Instruction(lambda t: nisa.register_load(t["register"], t["scalar"]), self.loaded)

    def store_register(self) -> Instruction:
        """A tensor gets what a register holds."""
        touched = Touched([self.bytes["register"]], [self.bytes["scalar"]], tensor="scalar")
        return Instruction(lambda t: nisa.register_store(t["scalar"], t["register"]), touched)

    def at_register(self) -> Instruction:
        """A copy of the columns that begin where a register says, or a sum of it and a number."""
        dst, src, more = self.tile(), self.tile(), self.random.choice((None, 2))
        width = self.random.randrange(1, 9)
        to, first = (slice(0, P), slice(0, width)), self.value + (more or 0)

        def issue(t: dict[str, Any]) -> None:
            start = t["register"] if more is None else t["register"] + more
            nisa.tensor_copy(dst=t[dst][to], src=t[src][:, nl.ds(start, width)])

        reads = [self.bytes[src][:, first : first + width]]
        touched = Touched(reads, [self.bytes[dst][to]], tensor=dst)
        if more is None:
            touched.reads.append(self.bytes["register"])
        else:  # a register of its own, which was made of the other one
            touched.others = [self.loaded]
        return Instruction(issue, touched)

    def at_scalar(self) -> Instruction:
        """A copy of the column that an element of SBUF names."""
        dst, src = self.tile(), self.random.choice(HBM)

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=t[dst][:, 0:1], src=t[src].select(1, t["scalar"]).reshape((P, 1)))

        reads = [self.bytes[src][:, self.value : self.value + 1], self.bytes["scalar"]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][:, 0:1]], tensor=dst))

    def shuffle(self) -> Instruction:
        """Some partitions of a tile to some of another one, which the plan names."""
        dst, src = self.random.choice(("a", "low")), self.random.choice(("b", "high"))
        mask = [self.random.choice((255, self.random.randrange(P))) for _ in range(P)]
        mask[0] = 7
        part = (slice(0, P), a_slice(self.random, C))
        written = [row for row, of in enumerate(mask) if of != 255]
        read = [of for of in mask if of != 255]

        def issue(t: dict[str, Any]) -> None:
            nisa.nc_stream_shuffle(dst=t[dst][part], src=t[src][part], shuffle_mask=mask)

        reads = [self.bytes[src][:, part[1]][read]]
        return Instruction(issue, Touched(reads, [self.bytes[dst][:, part[1]][written]], tensor=dst))

    def reshaped(self) -> Instruction:
        """Views with more dimensions, permuted, of which a part is copied."""
        dst, src = self.tile(), self.random.choice((*TILES, *HBM))
        outer, inner = self.random.randrange(4), a_slice(self.random, 4)

        def issue(t: dict[str, Any]) -> None:
            view = t[src].reshape((P, 4, 4)).permute((0, 2, 1))
            nisa.dma_copy(dst=t[dst].reshape((P, 4, 4))[:, outer, inner], src=view[:, outer, inner])

        reads = [self.bytes[src].reshape(P, 4, 4, 4).transpose(0, 2, 1, 3)[:, outer, inner]]
        return Instruction(issue, Touched(reads, [self.bytes[dst].reshape(P, 4, 4, 4)[:, outer, inner]], tensor=dst))

    def transposed(self) -> Instruction:
        """Rows of HBM seen through an access pattern that runs across them."""
        dst, first, count = self.tile(), self.random.randrange(8), self.random.randrange(1, 9)
        src = self.random.choice(HBM)

        def issue(t: dict[str, Any]) -> None:
            pattern = t[src].ap([[C, P - 1], [3, count]], offset=first)
            nisa.dma_copy(dst=t[dst][0 : P - 1, 0:count], src=pattern)

        flat = self.bytes[src].reshape(-1, 4)
        rows = first + C * np.arange(P - 1)[:, None] + 3 * np.arange(count)
        return Instruction(issue, Touched([flat[rows]], [self.bytes[dst][0 : P - 1, 0:count]], tensor=dst))

    def halves(self) -> Instruction:
        """A tile seen as elements of half the size, of which every other one is written."""
        dst, src = self.tile(), self.tile()
        part = (slice(0, P), a_slice(self.random, 2 * C))

        def issue(t: dict[str, Any]) -> None:
            nisa.dma_copy(dst=t[dst].view(nl.bfloat16)[part], src=t[src].view(nl.bfloat16)[part])

        reads = [self.bytes[src].reshape(P, 2 * C, 2)[part]]
        return Instruction(issue, Touched(reads, [self.bytes[dst].reshape(P, 2 * C, 2)[part]], tensor=dst))
