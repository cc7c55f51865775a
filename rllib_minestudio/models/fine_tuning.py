"""Which parts of a pretrained policy learn, how fast, and an averaged copy for evaluation.

Parameters are selected by shell patterns on their state dict names (`docs/vpt.md` lists them)::

    net.img_process.*                   the image encoder
    net.recurrent_layer.blocks.[01].*   the two lower transformer blocks
    *.norm.*                            norms before convolutions and linear layers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.foundation.options import broken_rule

HEADS_ONLY = ("net.img_process.*", "net.recurrent_layer.*", "net.lastlayer.*", "net.final_ln.*")
"""Freezes everything between image and heads: only the action and value heads learn."""


def matching(network: nn.Module, pattern: str) -> list[str]:
    """Return the names of the parameters that match a shell pattern.

    Raises:
        InvalidOptionsError: There are none.
    """
    names = [name for name, _ in network.named_parameters()]
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise InvalidOptionsError(
            f"pattern {pattern!r} picks no parameter of the model.{did_you_mean(pattern, names)} "
            f"Names look like {names[0]!r}; * stands for anything."
        )
    return found


def freeze(network: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Freeze the parameters that match any of the patterns.

    Args:
        network: A `VPTNetwork`.
        patterns: Shell patterns.

    Returns:
        The names of the frozen parameters.

    Raises:
        InvalidOptionsError: A pattern matches nothing, or nothing is left to learn.
    """
    if not isinstance(patterns, list | tuple) or not all(isinstance(p, str) for p in patterns):
        rule = "must be a list of shell patterns, such as ['net.img_process.*']"
        raise InvalidOptionsError(broken_rule("freeze", patterns, rule))
    frozen = {name for pattern in patterns for name in matching(network, pattern)}
    parameters = dict(network.named_parameters())
    if frozen and frozen == set(parameters):
        raise InvalidOptionsError(
            f"freeze is {list(patterns)!r}, which leaves nothing to learn; leave out a pattern."
        )
    for name in frozen:
        parameters[name].requires_grad_(False)
    return [name for name in parameters if name in frozen]


def parameter_groups(
    network: nn.Module, factors: Mapping[str, float], **options: Any
) -> list[dict[str, Any]]:
    """Group the learning parameters by learning rate.

    Args:
        network: A `VPTNetwork`.
        factors: Shell patterns to factors on the learning rate. The first match counts, and
            parameters without a match have factor 1.
        options: Added to every group, such as `weight_decay`.

    Returns:
        Groups of named parameters for a torch optimizer, each with an `lr_factor`, by which the
        caller must multiply every learning rate that it sets. Without factors there is one group,
        in the network's order.

    Raises:
        InvalidOptionsError: A pattern matches nothing, or a factor is not a positive number.
    """
    for pattern, factor in factors.items():
        matching(network, pattern)
        is_number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
        if not is_number or factor <= 0:
            raise InvalidOptionsError(
                broken_rule(
                    f"the learning rate factor of {pattern!r}", factor, "must be a positive number"
                )
                + " To stop parameters from learning, freeze them."
            )
    groups: dict[float, list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            fitting = (factor for pattern, factor in factors.items() if fnmatchcase(name, pattern))
            groups.setdefault(float(next(fitting, 1.0)), []).append((name, parameter))
    return [
        {"params": parameters, "lr_factor": factor, **options}
        for factor, parameters in groups.items()
    ]


class WeightAverage:
    """Exponential moving average of a network's weights, for evaluation.

    After every optimizer step, average = d * average + (1 - d) * weights. The decay d grows from
    1/2 to its final value, so that the random start is soon forgotten. Buffers (value statistics)
    are averages already and are copied.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        """Start from the present weights.

        Raises:
            InvalidOptionsError: `decay` is not between 0 and 1.
        """
        if isinstance(decay, bool) or not isinstance(decay, (int, float)) or not 0 <= decay < 1:
            raise InvalidOptionsError(
                broken_rule(
                    "the decay of the weight average", decay, "must be at least 0 and below 1"
                )
            )
        self._decay = decay
        self._updates = 0
        self._names = frozenset(name for name, _ in network.named_parameters())
        self._average = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Add the weights after an optimizer step."""
        self._updates += 1
        decay = min(self._decay, self._updates / (self._updates + 1))
        for name, tensor in network.state_dict().items():
            if name in self._names:
                self._average[name].lerp_(tensor, 1 - decay)
            else:
                self._average[name].copy_(tensor)

    def weights(self) -> Mapping[str, Tensor]:
        """Return the averaged state dict; load it into a network to evaluate."""
        return self._average

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"updates": self._updates, "average": dict(self._average)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from a checkpoint."""
        self._updates = state["updates"]
        for name, tensor in self._average.items():
            tensor.copy_(state["average"][name])
