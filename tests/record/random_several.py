"""Random programs on two cores that exchange tiles, and on ranks that meet in collectives."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.record.random_modern import C, ModernProgram, P
from tests.record.random_programs import Instruction, Touched, a_slice, length_of

RANKS = 2


class CoresProgram:
    """A program on each of two cores, which share HBM and now and then exchange columns of tiles."""

    chip = ModernProgram.chip

    def __init__(self, seed: int) -> None:
        first = ModernProgram(2 * seed, 0)
        self.memory = first.memory
        self.cores = (first, ModernProgram(2 * seed + 1, 0, beside=first))
        for core in self.cores:
            core.scratch = nl.shared_hbm
        random = first.random
        for turn in range(3):
            for core in self.cores:
                for _ in range(random.randrange(5)):
                    core.draw()
            self._exchange(turn)

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernel is called with."""
        return self.cores[0].arguments()

    def kernel(self, *given: Any) -> Any:
        """Issue the program of the core."""
        return self.cores[nl.program_id(0)].kernel(*given)

    def _exchange(self, turn: int) -> None:
        """Let each core send columns of one tile, and receive or reduce into columns of another one."""
        random = self.cores[0].random
        sent, reduces = (slice(0, P), a_slice(random, C)), random.random() < 0.3
        parts = [sent, (slice(0, P), a_slice(random, C, length=length_of(sent[1])))]
        touched = [
            Touched([core.bytes["a"][mine]], [core.bytes["b"][theirs]], tensor="b")
            for core, mine, theirs in zip(self.cores, parts, parts[::-1], strict=True)
        ]
        for number, (core, mine, theirs) in enumerate(zip(self.cores, parts, parts[::-1], strict=True)):
            other = 1 - number
            touched[number].others = [touched[other]]

            def issue(t: dict[str, Any], mine: Any = mine, theirs: Any = theirs, other: int = other) -> None:
                if reduces:
                    nisa.sendrecv_compute(t["a"][mine], t["b"][theirs], other, other, nl.add)
                else:
                    nisa.sendrecv(t["a"][mine], t["b"][theirs], send_to_rank=other, recv_from_rank=other, pipe_id=turn)

            core.program.append(Instruction(issue, touched[number]))


class RanksProgram:
    """A program on each of two ranks, whose memories are their own, and collectives of both."""

    chip = ModernProgram.chip

    def __init__(self, seed: int) -> None:
        self.ranks = [ModernProgram(RANKS * seed, 0)]
        self.memory = self.ranks[0].memory
        for rank in range(1, RANKS):
            self.ranks.append(_on_memory_of(self.ranks[0], RANKS * seed + rank))
        for each in self.ranks:
            each.bytes["every"] = self.memory.take(RANKS * P, C, 4)
            each.bytes["counts"] = self.memory.take(1, 3, RANKS, 4)
        random = self.ranks[0].random
        for _ in range(3):
            self._apart()
            random.choice((self._gather, self._reduce, self._permute, self._variable, self._variable))()

    def arguments(self) -> list[tuple[Any, ...]]:
        """Return what the kernel is called with on each rank: the rank comes last."""
        return [(*each.arguments(), rank) for rank, each in enumerate(self.ranks)]

    def kernel(self, *given: Any) -> Any:
        """Issue the program of the rank."""
        program = self.ranks[given[-1]]
        tensors = program.made(*given[:-1])
        tensors["every"] = nl.ndarray((RANKS * P, C), nl.float32, buffer=nl.private_hbm)
        tensors["counts"] = nl.ndarray((1, 3, RANKS), nl.uint32, buffer=nl.sbuf)
        for each in program.program:
            each.issue(tensors)
        return tensors["scratch"]

    def _meet(self, dst: str, part: Any, issue: Any, senders: Any) -> None:
        touched = [Touched([each.bytes["scratch"]], [each.bytes[dst][part]], tensor=dst) for each in self.ranks]
        for rank, each in enumerate(self.ranks):
            touched[rank].others = [touched[other] for other in senders(rank)]
            if not touched[rank].others:
                touched[rank].writes = []
            each.program.append(Instruction(issue, touched[rank]))

    def _apart(self) -> None:
        """Let each rank issue some instructions of its own."""
        random = self.ranks[0].random
        for each in self.ranks:
            for _ in range(random.randrange(5)):
                each.draw()

    def _variable(self) -> None:
        """Each rank sends element 1 to both, where it begins a slot: at once, or in halves with others in between."""
        group, random = ncc.ReplicaGroup([list(range(RANKS))]), self.ranks[0].random
        name, in_halves = random.choice(("all_to_all_v", "all_gather_v")), random.random() < 0.7

        def operands(t: dict[str, Any]) -> tuple[Any, ...]:
            return [t["scratch"]], [t["every"]], group, t["counts"]

        def prepare(t: dict[str, Any]) -> None:
            t["prepared"] = getattr(ncc, f"{name}_prepare")(*operands(t), recv_counts_known=True)

        def move(t: dict[str, Any]) -> None:
            if in_halves:
                getattr(ncc, f"{name}_trigger")(t["prepared"])
            else:
                getattr(ncc, name)(*operands(t), recv_counts_known=True)

        counted = [Touched(writes=[each.bytes["counts"]], tensor="counts") for each in self.ranks]
        prepared = [Touched([self._metadata(each, name)]) for each in self.ranks]
        for number, each in enumerate(self.ranks):
            each.program.append(Instruction(lambda t: nisa.memset(t["counts"], 1), counted[number]))
            if in_halves:
                each.program.append(Instruction(prepare, prepared[number]))
        if in_halves:
            self._apart()
        flat = [(each.bytes["scratch"].reshape(-1, 4), each.bytes["every"].reshape(-1, 4)) for each in self.ranks]
        moved = [Touched([src[1]], [dst[:: P * C]], tensor="every") for src, dst in flat]
        for rank, each in enumerate(self.ranks):
            moved[rank].others = [moved[other] for other in self._others(rank)]
            if in_halves:
                moved[rank].others.append(prepared[rank])
            else:
                moved[rank].reads += prepared[rank].reads
            each.program.append(Instruction(move, moved[rank]))

    @staticmethod
    def _metadata(rank: ModernProgram, name: str) -> Any:
        """Return the counts and starts that a collective reads: all_gather_v has one of each."""
        counts = rank.bytes["counts"][:, :2]
        return counts if name == "all_to_all_v" else counts[:, :, :1]

    def _others(self, rank: int) -> list[int]:
        return [other for other in range(RANKS) if other != rank]

    def _gather(self) -> None:
        def issue(t: dict[str, Any]) -> None:
            ncc.all_gather([t["scratch"]], [t["every"]], ncc.ReplicaGroup([list(range(RANKS))]), collective_dim=0)

        self._meet("every", slice(None), issue, self._others)

    def _reduce(self) -> None:
        first = self.ranks[0].random.randrange(2) * P
        part = slice(first, first + P)

        def issue(t: dict[str, Any]) -> None:
            ncc.all_reduce([t["scratch"]], [t["every"][part]], ncc.ReplicaGroup([list(range(RANKS))]), op=nl.add)

        self._meet("every", part, issue, self._others)

    def _permute(self) -> None:
        """Rank 0 sends, and receives nothing; rank 1 receives, and sends nothing."""
        part = slice(0, P)

        def issue(t: dict[str, Any]) -> None:
            ncc.collective_permute([t["scratch"]], [t["every"][part]], source_target_pairs=[(0, 1)])

        touched = [
            Touched([self.ranks[0].bytes["scratch"]], tensor="every"),
            Touched([], [self.ranks[1].bytes["every"][part]], tensor="every"),
        ]
        touched[1].others = [touched[0]]
        for each, mine in zip(self.ranks, touched, strict=True):
            each.program.append(Instruction(issue, mine))


def _on_memory_of(first: ModernProgram, seed: int) -> ModernProgram:
    """Return a program whose bytes are numbered behind those of another one."""
    program = ModernProgram(seed, 0, beside=first)
    program.bytes = program._tensors()
    program.program = []
    program._begin()
    return program
