"""What a learner's checkpoint holds beside RLlib's own: the prior and the averaged weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rllib_minestudio.algorithms.learner.averaging import AveragedModule
from rllib_minestudio.algorithms.learner.prior import Prior

COMPONENT_PRIOR = "prior"
PRIOR_VERSION = "prior_version"
COMPONENT_WEIGHT_AVERAGE = "weight_average"
AVERAGED_UPDATES = "averaged_updates"


class ExtraState:
    """Adds to a learner's state, and takes back from it.

    Args:
        prior: To be saved because no file holds its weights, or None.
        averaged: The averaged module, or None.
    """

    def __init__(self, prior: Prior | None, averaged: AveragedModule | None) -> None:
        """Keep both."""
        self._prior = prior
        self._averaged = averaged

    def add_to(self, state: dict[str, Any], wanted: Callable[[str], bool]) -> None:
        """Add the components for which `wanted` is true."""
        if self._prior is not None and wanted(COMPONENT_PRIOR):
            state[COMPONENT_PRIOR] = self._prior.module.get_state()
            state[PRIOR_VERSION] = self._prior.version
        if self._averaged is not None:
            state[AVERAGED_UPDATES] = self._averaged.updates
            if wanted(COMPONENT_WEIGHT_AVERAGE):
                state[COMPONENT_WEIGHT_AVERAGE] = self._averaged.module.get_state()

    def components(self) -> list[tuple[str, Any]]:
        """Those that a checkpoint keeps in folders of their own."""
        if self._averaged is None:
            return []
        return [(COMPONENT_WEIGHT_AVERAGE, self._averaged.module)]

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `add_to` added."""
        if self._prior is not None and COMPONENT_PRIOR in state:
            self._prior.set_state(state[COMPONENT_PRIOR], version=state[PRIOR_VERSION])
        if self._averaged is not None and AVERAGED_UPDATES in state:
            self._averaged.restore(state[AVERAGED_UPDATES], state.get(COMPONENT_WEIGHT_AVERAGE))
