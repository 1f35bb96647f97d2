"""Inputs of golden cases: drawn once, rounded to few decimals so that a person can read them, stored with the outputs."""

import numpy as np
import torch

torch.set_num_threads(1)  # the order of sums does not depend on the machine's cores


class Draw:
    """Random inputs from one seed. The stored file is the truth: nothing outside redraws them."""

    def __init__(self, seed):
        self.seed = seed
        self.generator = np.random.Generator(np.random.PCG64(seed))

    def normal(self, *shape, scale=1.0, mean=0.0, decimals=3):
        """float64 tensor of N(mean, scale^2), rounded to `decimals`."""
        return torch.from_numpy(np.round(self.generator.normal(mean, scale, size=shape), decimals))

    def integers(self, low, high, *shape):
        """int64 tensor, uniform in [low, high)."""
        return torch.from_numpy(self.generator.integers(low, high, size=shape))


def leaves(*tensors):
    """Marks inputs whose gradient is wanted."""
    return [tensor.requires_grad_(True) for tensor in tensors]


def gradients(output, upstream, *inputs):
    """d sum(output * upstream) / d input by PyTorch autograd, one tensor per input."""
    return torch.autograd.grad(output, inputs, grad_outputs=upstream)
