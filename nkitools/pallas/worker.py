"""A process that compiles for TPUs: it takes lowered programs and answers with plain values.

The compiler can end its process (it aborts at some kernels), so it never runs in the author's.
"""

from __future__ import annotations

import time
from typing import Any

from nkitools.pallas.device_axes import mesh_of, on_every_device
from nkitools.pallas.imports import jax_module
from nkitools.processes.requests import message_end


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
    """Answer until the other side is gone."""
    messages = message_end()
    try:
        jax_module()
        messages.send({"ready": True})
    except Exception as error:
        messages.send({"ready": False, "error": f"{type(error).__name__}: {error}"})
        return
    while True:
        try:
            question = messages.recv()
        except EOFError:
            return
        try:
            answer = compile_program(question)
        except Exception as error:
            answer = {"accepted": None, "error": f"{type(error).__name__}: {error}"}
        messages.send(answer)


if __name__ == "__main__":
    main()
