"""A process that compiles for TPUs: it reads lowered programs from its standard input and answers what became of them.

The compiler can end its process (it aborts at some kernels), so it never runs in the author's. Messages are pickles,
each after its length in eight bytes; they hold plain values only.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from typing import Any, BinaryIO

from nkitools.pallas.device_axes import mesh_of, on_every_device
from nkitools.pallas.imports import jax_module


def write(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Send one message."""
    data = pickle.dumps(message)
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def read(stream: BinaryIO) -> Any:
    """Receive one message; EOFError where the other side is gone."""
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError("the other process has ended")
    return pickle.loads(stream.read(int.from_bytes(header, "big")))


def compile_program(program: dict[str, Any]) -> dict[str, Any]:
    """Compile one lowered program for one topology: seconds and sizes, or the compiler's error."""
    from dataclasses import replace

    jax, export = jax_module(), jax_module("jax.export")
    topologies = jax_module("jax.experimental.topologies")
    topology = topologies.get_topology_desc(program["topology"], platform="tpu", chips_per_host_bounds=[1, 1, 1])
    mesh = mesh_of(topology.devices, program["axes"])
    shardings = jax_module("jax.sharding")
    if program["axes"]:
        sharding = shardings.NamedSharding(mesh, shardings.PartitionSpec())
    else:
        sharding = shardings.SingleDeviceSharding(topology.devices[0])
    inputs = [_aval(shape, dtype) for shape, dtype in program["inputs"]]
    outputs = [_aval(shape, dtype) for shape, dtype in program["outputs"]]
    # An exported function of the same form, whose code is then that of the program: the public way to make one again
    # needs a package more.
    zeros = jax_module("jax.numpy").zeros
    form = export.export(
        on_every_device(lambda *_: [zeros(each.shape, each.dtype) for each in outputs], mesh), platforms=["tpu"]
    )(*inputs)
    exported = replace(form, mlir_module_serialized=program["code"], module_kept_var_idx=tuple(program["kept"]))
    placed = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding) for each in inputs]
    began = time.perf_counter()
    try:
        # Without inputs nothing but the outputs says where the program is to run.
        jitted = jax.jit(exported.call) if placed else jax.jit(exported.call, out_shardings=sharding)
        compiled = jitted.lower(*placed).compile()
    except Exception as error:  # whatever the compiler says goes back to who asked
        return {"accepted": False, "seconds": time.perf_counter() - began, "error": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - began
    analysis = compiled.memory_analysis()
    size = int(getattr(analysis, "generated_code_size_in_bytes", 0))
    return {"accepted": True, "seconds": seconds, "code_bytes": size}


def _aval(shape: tuple[int, ...], dtype: str) -> Any:
    return jax_module().ShapeDtypeStruct(tuple(shape), jax_module("jax.numpy").dtype(dtype))


def main() -> None:
    """Answer until the other side closes the stream."""
    # The compiler may write to the standard output; the messages keep that stream to themselves.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    try:
        jax_module()
        write(answers, {"ready": True})
    except Exception as error:
        write(answers, {"ready": False, "error": f"{type(error).__name__}: {error}"})
        return
    while True:
        try:
            question = read(questions)
        except EOFError:
            return
        try:
            answer = compile_program(question)
        except Exception as error:
            answer = {"accepted": None, "error": f"{type(error).__name__}: {error}"}
        write(answers, answer)


if __name__ == "__main__":
    main()
