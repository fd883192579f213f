"""Packets of a trace that Perfetto (ui.perfetto.dev) opens: TrackEvent by the published protobuf classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nkitools.record.instruction_record import InstructionRecord
    from nkitools.record.prints.device_print import Print

ENGINE_TRACKS = {
    "tensor": "Tensor Engine",
    "vector": "Vector Engine",
    "scalar": "Scalar Engine",
    "gpsimd": "GpSimd Engine",
    "dma": "DMA queues",
    "sync": "Sync Engine",
}
_SEQUENCE = 1


def _protocol() -> Any:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a timeline needs the package perfetto: pip install 'nkitools[perfetto]'", name=error.name
        ) from error
    return perfetto_trace_pb2


class Packets:
    """The packets of a trace. ModuleNotFoundError, with the package to install, without ``perfetto``."""

    def __init__(self) -> None:
        self.protocol = _protocol()
        self.trace = self.protocol.Trace()
        kinds = self.protocol.TrackEvent
        self.begin, self.end = kinds.TYPE_SLICE_BEGIN, kinds.TYPE_SLICE_END
        self.instant, self.counter = kinds.TYPE_INSTANT, kinds.TYPE_COUNTER
        self._tracks = 0

    def written(self) -> bytes:
        """Return all of them, as bytes."""
        return bytes(self.trace.SerializeToString())

    def track(self, name: str, parent: int = 0, rank: int = 0, description: str = "") -> int:
        """Return the id of a new track below ``parent``, ``rank``-th among its siblings."""
        descriptor = self._descriptor(name, parent, description)
        descriptor.child_ordering = self.protocol.TrackDescriptor.EXPLICIT
        descriptor.sibling_order_rank = rank
        return self._tracks

    def process(self, name: str, number: int, description: str = "") -> int:
        """Return the id of a new track that is a process."""
        descriptor = self._descriptor("", 0, description)
        descriptor.process.pid = number
        descriptor.process.process_name = name
        return self._tracks

    def counter_track(self, name: str, parent: int, unit: str) -> int:
        """Return the id of a new track of numbers."""
        self._descriptor(name, parent, "").counter.unit_name = unit
        return self._tracks

    def _descriptor(self, name: str, parent: int, description: str) -> Any:
        self._tracks += 1
        descriptor = self.trace.packet.add(trusted_packet_sequence_id=_SEQUENCE).track_descriptor
        descriptor.uuid = self._tracks
        if name:
            descriptor.name = name
        if parent:
            descriptor.parent_uuid = parent
        if description:
            descriptor.description = description
        return descriptor

    def add_print(self, one: Print, nanoseconds: int, track: int) -> None:
        """Add a device print with its line and its value."""
        event = self.event(self.instant, nanoseconds, track, one.prefix)
        annotate(event, "at", f"{one.file}:{one.line}")
        annotate(event, "value", one.text())

    def event(self, kind: int, nanoseconds: int, track: int, name: str = "") -> Any:
        """Return a new event on a track."""
        packet = self.trace.packet.add(trusted_packet_sequence_id=_SEQUENCE, timestamp=nanoseconds)
        event = packet.track_event
        event.type = kind
        event.track_uuid = track
        if name:
            event.name = name
        return event


def annotate(event: Any, name: str, value: str | int) -> None:
    """Add a name and a value to an event."""
    annotation = event.debug_annotations.add(name=name)
    if isinstance(value, int):
        annotation.int_value = value
    else:
        annotation.string_value = value


def describe(event: Any, one: InstructionRecord, position: int) -> None:
    """Add line, operands, loop counters and position of its instruction to an event."""
    if one.file:
        event.source_location.file_name = one.file
        event.source_location.line_number = one.line
    annotate(event, "at", f"{one.file}:{one.line}")
    for what, written in (("writes", True), ("reads", False)):
        told = [
            f"{each.tensor or 'unnamed'} ({each.memory}, {each.dtype} {list(each.shape)})"
            for each in one.operands
            if each.written is written
        ]
        for number, text in enumerate(told):
            annotate(event, what if len(told) == 1 else f"{what} {number}", text)
    if one.loops:
        annotate(event, "loops", ", ".join(f"{name}={value}" for name, value in one.loops.items()))
    annotate(event, "instruction", position)
