import os

import torch
from torch_neuronx.xla_impl import custom_op

HERE = os.path.dirname(os.path.abspath(__file__))
custom_op.load(
    name="scale",
    compute_srcs=[os.path.join(HERE, "scale.cpp")],
    shape_srcs=[os.path.join(HERE, "scale_shape.cpp")],
    multicore=True,
)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.factor = factor
        return torch.ops.my_ops.scale(values, factor)

    @staticmethod
    def backward(ctx, gradient):
        return torch.ops.my_ops.scale(gradient, ctx.factor), None
