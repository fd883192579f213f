"""The rules of Neuron custom C++ operators: TCM, cores, shapes and signatures."""

from nkitools.chip.generations import chips_with
from nkitools.rules.rule import Rule

_CHIPS = chips_with("custom_operators")
_REFERENCE = "Custom Operators API Reference Guide"
_GUIDE = "Neuron Custom C++ Operators Developer Guide"

RULES = [
    Rule(
        id="CO101",
        slug="tcm-budget",
        severity="error",
        reason=(
            "A core's operators have a pool of 16384 bytes of TCM, and each open stream takes 4096 of them. tcm_malloc "
            "returns null when it has not so much left, and whatever goes through that pointer is lost or overwrites "
            "something."
        ),
        source=f"{_REFERENCE}, TCM Accessor, TCM Management Functions (SDK 2.32)",
        remedy="Test what tcm_malloc returns, and take the data in chunks that fit, whatever the sizes of the tensors.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO102",
        slug="tcm-leak",
        severity="warning",
        reason=(
            "TCM that is not freed is missing from the pool for the rest of the kernel. The guide does not "
            "say whether it "
            "comes back with the next call; where it does not, a later tcm_malloc returns null."
        ),
        source=f"{_REFERENCE}, TCM Accessor, TCM Management Functions (SDK 2.32)",
        remedy="Call tcm_free for every block on every way out of the kernel.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO103",
        slug="crash",
        severity="error",
        reason=(
            "The kernel ends in a fault of the processor, an exception or a failed assertion, or it does "
            "not end: on the "
            "device each of these takes the model down with it."
        ),
        source=f"{_GUIDE}, Kernel Function (SDK 2.32)",
        remedy="Look at the line: the pointer, the index or the loop in it is wrong. debug=True has more to "
        "say of memory.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO104",
        slug="out-of-bounds",
        severity="error",
        reason=(
            "An access outside of its tensor or TCM block reads what happens to lie there, or overwrites "
            "it: the device "
            "checks neither offsets nor sizes."
        ),
        source=f"{_REFERENCE}, Class torch::TensorTcmAccessor (SDK 2.32)",
        remedy="Let the last piece be smaller: copy min(size, num_elem - offset) elements, and none where "
        "nothing is left.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO105",
        slug="core-overlap",
        severity="error",
        reason=(
            "Nothing orders the cores among themselves: an element that two of them write holds what the later one "
            "wrote, and which one that is changes from call to call."
        ),
        source=f"{_REFERENCE}, Using multiple GPSIMD cores, Return Value Handling (SDK 2.32)",
        remedy="Give each core a part of the output of its own: offset by get_cpu_id() times the elements of a part.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO106",
        slug="output-not-written",
        severity="error",
        reason="Elements of the output that no core wrote come back as whatever was in memory.",
        source=f"{_REFERENCE}, Writing Directly to Output Tensor; torch::empty (SDK 2.32)",
        remedy=(
            "Write every element: check each core's offset and size, and who takes the rest where the size "
            "is no multiple "
            "of the number of cores."
        ),
        chips=_CHIPS,
    ),
    Rule(
        id="CO107",
        slug="shape-function",
        severity="error",
        reason=(
            "The shape function tells the compiler, before there is any data, what the kernel returns: it has the "
            "kernel's parameters, uses their sizes alone, and says the shape and dtype that the kernel then returns."
        ),
        source=f"{_GUIDE}, Shape Function (SDK 2.32)",
        remedy="Let both compute the sizes in the same way, and give both the same dtype.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO108",
        slug="dst-tensor-missing",
        severity="error",
        reason=(
            "On several cores the value that a kernel returns is ignored: what was not written to the tensor of "
            "get_dst_tensor() is undefined."
        ),
        source=f"{_REFERENCE}, Using multiple GPSIMD cores, Return Value Handling (SDK 2.32)",
        remedy="Write to torch::Tensor t_out = get_dst_tensor(); or build the library without multicore=True.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO109",
        slug="accessor-in-multicore",
        severity="error",
        reason="Element and stream accessors race in multicore mode and give wrong results; TCM accessors "
        "alone work there.",
        source=f"{_REFERENCE}, Tensor Accessors, Streaming Accessors, Library Limitations (SDK 2.32)",
        remedy="Use tcm_accessor(), or build the library without multicore=True.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO110",
        slug="custom-op-dtype",
        severity="error",
        reason=(
            "Tensors are of kFloat, kBFloat16, kHalf, kInt, kChar, kShort or kByte, and the type of an "
            "accessor or of an "
            "operation is that of its tensor: nothing is converted on the way."
        ),
        source=f"{_REFERENCE}, Tensor Factory Functions, Class torch::Tensor, Tensor Operation Functions (SDK 2.32)",
        remedy="Give accessors the tensor's own scalar type, and convert arrays before the call.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO111",
        slug="dimension-limit",
        severity="error",
        reason=(
            "A tensor that is passed in or returned has up to 8 dimensions of up to 65535 elements, or up "
            "to 4 of up to "
            "4294967295. One without elements has nothing to compute."
        ),
        source=f"{_REFERENCE}, Library Limitations (SDK 2.32)",
        remedy="Reshape the tensor before the call: flat dimensions may be larger, and ones of size 1 can go.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO112",
        slug="custom-op-signature",
        severity="error",
        reason=(
            "A kernel takes torch::Tensor, torch::Scalar and double, and returns one torch::Tensor. The "
            "tensor library on "
            "the device is a port of a part of torch: what the reference guide does not list may be missing there "
            "(a warning)."
        ),
        source=f"{_GUIDE}, Kernel Function; {_REFERENCE}, Tensor Library (SDK 2.32)",
        remedy="Keep to the types and functions of the reference guide.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO113",
        slug="stream-use",
        severity="error",
        reason=(
            "A stream keeps data in TCM and does not look at the tensor again: one that goes past the end or is used "
            "after close() is undefined, and so is what other accessors of the same tensor see while it is open for "
            "writing. The tensor's coherence policy says whether that is an error."
        ),
        source=f"{_REFERENCE}, Streaming Accessors, Coherence (SDK 2.32)",
        remedy="Count the elements, and close a stream before the tensor is used in another way.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO114",
        slug="stack-size",
        severity="warning",
        reason=(
            "Without a stack size the stack lies in local memory, where more than about 8 KB risk an "
            "overflow; with one "
            "it can have up to 400 KB. What is counted here is the host's stack, whose pointers are larger."
        ),
        source=f"{_GUIDE}, Performance Guidance (SDK 2.32)",
        remedy="Pass extra_cflags=['-DSTACK_SIZE=20000'] for a stack of 20000 bytes, or keep large buffers in TCM.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO115",
        slug="print-core",
        severity="error",
        reason="printf is supported in single-core mode and on core 0.",
        source=f"{_REFERENCE}, printf(), Limitations (SDK 2.32)",
        remedy="Print under if (get_cpu_id() == 0).",
        chips=_CHIPS,
    ),
    Rule(
        id="CO116",
        slug="tcm-bad-free",
        severity="error",
        reason="tcm_free of a pointer that tcm_malloc did not return, or that is free already, is undefined.",
        source=f"{_REFERENCE}, TCM Management Functions (SDK 2.32)",
        remedy="Free each block once, by the pointer that tcm_malloc returned.",
        chips=_CHIPS,
    ),
    Rule(
        id="CO117",
        slug="custom-op-shape",
        severity="error",
        reason=(
            "An accessor has as many dimensions as its tensor, and the operands of a tensor operation have one shape: "
            "nothing is broadcast."
        ),
        source=f"{_REFERENCE}, Tensor Operation Functions, Class torch::Tensor (SDK 2.32)",
        remedy="Compare sizes() first, or give the operator tensors of the shapes that it is written for.",
        chips=_CHIPS,
    ),
]
