"""Stacks whose parameters are all random: as made, norms are ones and zeros."""

import torch

from rllib_minestudio.models.vpt.layers import DownStack


def random_stack(channels_in: int, channels: int) -> DownStack:
    """A stack; the first of its network if it reads three channels, which are an image's."""
    torch.manual_seed(0)
    stack = DownStack(channels_in, channels, 1.0, is_first=channels_in == 3)
    for norm in (module for module in stack.modules() if isinstance(module, torch.nn.GroupNorm)):
        torch.nn.init.normal_(norm.weight, mean=1, std=0.3)
        torch.nn.init.normal_(norm.bias, std=0.3)
    if stack.firstconv.layer.bias is not None:
        torch.nn.init.normal_(stack.firstconv.layer.bias, std=0.3)
    return stack
