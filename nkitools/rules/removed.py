"""Names that NKI has removed, and their replacements: pure data.

Source: NKI Migration Guides (SDK 2.32), the API references of NKI 0.6 and of SDK 2.26.
"""

_MEASURED = "Call the kernel itself; run_kernel and kernel_benchmark of the pytest plugin measure it on a device."
_INDEX = "Index with integers, slices, nl.ds(start, size) or .ap()."
_DTYPE = "Name the dtype itself: nl.float32, nl.bfloat16."
_DYNAMIC = "Use nisa.tensor_copy with .ap(scalar_offset=...)."
_GRID = "Launch with kernel[1] or kernel[2]."

NKI = {
    "FrameworkKernel": "Decorate the kernel with nki.jit; it takes the framework's tensors itself.",
    "baremetal": _MEASURED,
    "benchmark": _MEASURED,
    "errors": "Findings carry rule ids; `nkitools explain` takes the old err_... codes too.",
    "profile": _MEASURED,
    "simulate_kernel": "Call nki.simulate(kernel)(...).",
    "tensor": "Tensors are nki.language.NkiTensor.",
    "trace": "Decorate the kernel with nki.jit; what it calls needs no decorator.",
}
LANGUAGE = {
    "all_reduce": "Use nki.collectives.all_reduce between ranks, nisa.tensor_reduce within a tile.",
    "arange": _INDEX,
    "atomic_rmw": "Use nisa.dma_compute.",
    "bfp16": _DTYPE,
    "finfo": "Write the number itself.",
    "fp32": _DTYPE,
    "gemm_grid": _INDEX,
    "gemm_stationary_grid": _INDEX,
    "loop_reduce": "Accumulate into a tile that is made before the loop.",
    "mgrid": _INDEX,
    "nc": _GRID,
    "par_dim": "The partition dimension is dimension 0; keep a Python list of tiles for more.",
    "spmd_dim": _GRID,
    "static_cast": "Copy with a dtype: nl.copy(x, dtype=...).",
}
ISA = {
    "builtin_custom_op": "Write the operator as a kernel, or run it as a custom operator of the framework.",
    "fp32": "Write the number itself.",
    "tensor_copy_dynamic_dst": _DYNAMIC,
    "tensor_copy_dynamic_src": _DYNAMIC,
}
ARGUMENTS = {
    "mask": "Work on the slice that the mask left: end = min(start + 128, rows), tile[0 : end - start], x[start:end].",
    "platform_target": "Set NEURON_PLATFORM_TARGET_OVERRIDE, or pass chip= to nkitools.simulate, --nki-chip to pytest.",
}
FORMS = {
    "buffer='sbuf'": "Pass the memory itself: nl.sbuf, nl.psum, nl.hbm, nl.private_hbm, nl.shared_hbm.",
    "buffer=nki.compiler.sbuf.mod_alloc(...)": "Pass nl.ndarray(..., address=(partition, byte offset)), tile by tile.",
    "result = nisa.reciprocal(x)": "Instructions take their destination: nisa.reciprocal(dst=result, data=x).",
    "x + y": "Call nl.add(x, y).",
    "tile[...] = value": "Call nisa.tensor_copy(dst=tile, src=value); of a number nisa.memset(dst=tile, value=0).",
}

REPLACEMENTS: tuple[tuple[str, str], ...] = (
    *((f"nki.{name}", text) for name, text in NKI.items()),
    *((f"nl.{name}", text) for name, text in LANGUAGE.items()),
    *((f"nisa.{name}", text) for name, text in ISA.items()),
    *((f"{name}=", text) for name, text in ARGUMENTS.items()),
    *FORMS.items(),
)
