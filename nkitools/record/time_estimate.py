"""The answer of `Run.estimate`, which the room of timing makes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from nkitools.record.offers import answer
from nkitools.rules.shown_text import preformatted


@dataclass(frozen=True, kw_only=True)
class EngineUse:
    """The work of one engine of one core."""

    core: int
    engine: str
    busy_us: float
    share: float  # of the estimated latency


@dataclass(frozen=True, kw_only=True)
class PathLine:
    """A line of the author's on the critical path."""

    file: str
    line: int
    instruction: str
    engine: str
    us: float  # of the path, its waits with it
    share: float  # of the latency
    waits_for: str  # what it waited for the longest: its engine, or the instruction of a line


@dataclass(frozen=True, kw_only=True)
class TensorTraffic:
    """The traffic of one tensor in HBM, or of the tensors of one name that spill from SBUF."""

    tensor: str  # its name, '' for none
    nbytes: int  # of the tensor
    read_bytes: int
    written_bytes: int
    spilled: bool = False  # a tensor in SBUF, which the compiler is foreseen to move to HBM and back

    @property
    def loads(self) -> float:
        """Return the number of times that the tensor is read, on average over its bytes."""
        return self.read_bytes / self.nbytes if self.nbytes else 0.0


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """The place of a run under the roofs of its chip."""

    flops: int  # of matmuls: two for each product
    hbm_bytes: int  # read and written
    intensity: float  # flops for each of these bytes
    roof: str  # "compute" or "memory", the one that bounds a kernel of this intensity
    share: float  # of the speed that this roof allows


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The distance from the latency to a bound of it, and the line that it is made of the most."""

    bound: str  # its name, see `Estimate.named_bounds`
    us: float  # how much shorter the latency would be at that bound
    share: float  # the same, of the latency
    file: str  # of the author; '' where no line is meant
    line: int  # in that file, 0 for none


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A hint about speed with its price."""

    rule: str  # its id, of NK701 to NK710
    file: str  # of the author
    line: int  # in that file
    message: str  # what is slow there
    remedy: str  # what to write instead
    us: float  # how much shorter the estimate would be at most
    share: float  # the same, of the latency


@dataclass(frozen=True, kw_only=True)
class OfKernel:
    """The estimate of one kernel on one chip, of any kind of kernel."""

    kernel: str
    chip: str

    derived: ClassVar[tuple[str, ...]] = ()  # properties that stand in JSON beside the fields

    def as_plain(self) -> dict[str, Any]:
        """Return the estimate as dictionaries, lists, texts and numbers."""
        return {**asdict(self), **{name: getattr(self, name) for name in self.derived}}


@dataclass(frozen=True, kw_only=True, repr=False)
class Estimate(OfKernel):
    """The estimated time of one run, see `nkitools.timing`."""

    latency_us: float
    lower_us: float  # eight of ten kernels that no fit has used lie between this
    upper_us: float  # and that
    busiest_us: float  # the busiest engine alone
    serial_us: float  # the instructions one after the other
    named_bounds: dict[str, float]  # microseconds that the latency cannot be below, by what bounds it
    gaps: tuple[Gap, ...]  # from the latency to three of them, the largest first
    loaded_bytes: int  # of all loads from HBM that the kernel asks for
    left_out_bytes: int  # of those that the compiler is assumed to leave out: they are in SBUF since an earlier load
    spill_us: float  # the part of the latency that the tensors cost that spill from SBUF (NK202)
    launch_us: float  # the part of the latency before the first instruction and after the last one
    instructions: int
    engines: tuple[EngineUse, ...]
    traffic: tuple[TensorTraffic, ...]  # from and to HBM, the largest first; what spills has rows of its own
    roofline: Roofline
    critical_path: tuple[PathLine, ...]  # the lines that the latency is made of, the largest share first
    advice: tuple[Advice, ...]  # hints that would save a twentieth of the latency or more, the largest first
    is_calibrated: bool  # whether latencies of this generation are published
    how_good: str  # the errors of the model in a sentence
    assumed: str  # the choices of the compiler that are assumed

    @property
    def spilled_bytes(self) -> int:
        """Return the bytes that move between SBUF and HBM because the tensors do not fit in SBUF."""
        return sum(each.read_bytes + each.written_bytes for each in self.traffic if each.spilled)

    def as_plain(self) -> dict[str, Any]:
        """Return the estimate as dictionaries, lists, texts and numbers."""
        plain = super().as_plain()
        for each, tensor in zip(plain["traffic"], self.traffic, strict=True):
            each["loads"] = tensor.loads
        plain["spilled_bytes"] = self.spilled_bytes
        return plain

    def __repr__(self) -> str:
        between = f"{self.lower_us:.4g} to {self.upper_us:.4g}"
        return f"<Estimate of {self.kernel} on {self.chip}: {self.latency_us:.4g} us ({between})>"

    def __str__(self) -> str:
        """Return the page that `nkitools estimate` prints."""
        return str(answer("estimate_text", self))

    def _repr_html_(self) -> str:
        """Return that page for a notebook that shows the last value of a cell."""
        return preformatted(str(self))
