"""Noticing at every step, at next to no cost, that a network's weights have changed.

There is no one mark of that in PyTorch:

==============================================  ==================================
what happens to a parameter                     how it shows
==============================================  ==================================
it is written in place                          its version counter
``parameter.data = ...``                        its address
it or its module is replaced, as                modules report what is registered
``load_state_dict(..., assign=True)`` does      in them
a fused optimizer writes it                     optimizers report their steps
==============================================  ==================================

The two reports go to hooks of the whole process, so that a step of acting pays nothing for them.
"""

from __future__ import annotations

import weakref
from operator import attrgetter
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

_version = attrgetter("_version")


class WeightWatch:
    """Tells whether a network's weights have changed since they were last looked at.

    Writes through ``parameter.data`` are the exception, of which PyTorch itself knows nothing:
    whoever makes them calls ``torch.autograd.graph.increment_version`` on the parameters.
    """

    def __init__(self, network: nn.Module) -> None:
        """Begins with the weights as they are."""
        self._network = network
        self.look()
        own = weakref.ref(self)  # hooks that held the object itself would keep it for ever

        def note_step(optimizer: Optimizer, *_: Any) -> None:
            if (watch := own()) is not None:
                watch._note_step(optimizer)

        def note_registration(module: nn.Module, *_: Any) -> None:
            if (watch := own()) is not None:
                watch._is_reported |= id(module) in watch._module_ids

        for hook in (
            register_optimizer_step_post_hook(note_step),
            register_module_parameter_registration_hook(note_registration),
            register_module_module_registration_hook(note_registration),
        ):
            weakref.finalize(self, hook.remove)

    def look(self) -> None:
        """Takes the weights as they are for known; to be called before they are read."""
        self._is_reported = False
        self._module_ids = frozenset(map(id, self._network.modules()))
        self._weights = list(self._network.parameters())
        # Kept, so that no new numbers can come to lie at the address of the old ones.
        self._numbers = [weight.detach() for weight in self._weights]
        self._addresses = list(map(Tensor.data_ptr, self._weights))
        self._versions = list(map(_version, self._weights))

    @property
    def has_changed(self) -> bool:
        """Whether the weights may be others than those last looked at."""
        return (
            self._is_reported
            or list(map(Tensor.data_ptr, self._weights)) != self._addresses
            or list(map(_version, self._weights)) != self._versions
        )

    def _note_step(self, optimizer: Optimizer) -> None:
        own = set(map(id, self._weights))
        stepped = (weight for group in optimizer.param_groups for weight in group["params"])
        self._is_reported |= any(id(weight) in own for weight in stepped)
