"""A small actor that may die or hang at any moment, and is then replaced by a new, empty one.

The training loop keeps two such actors beside itself: one that tells env runners of new weights
(`weights.py`) and the replay buffer. Neither owns anything that could not be told it again, so the
answer to every failure is the same: end it, start another, count it, say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rllib_minestudio.algorithms.training_loop.failures import DIED, HUNG, FailureBudget

ANSWER_WITHIN_S = 10.0
"""A service that has not answered for so long hangs; its methods take milliseconds."""

START_WITHIN_S = 60.0
"""How long its process may take to start; longer on a busy machine than anything it does later."""


class Service:
    """A handle on an actor without state of its own worth keeping.

    Args:
        failures: Its budget, which also names it.
        actor_class: A plain class, which becomes an actor on this node.
        arguments: Of the class's constructor, by name.
        on_replaced: Called after a replacement, to tell the new actor what it has to know.
        answer_within_s: How long a call may take before the actor counts as hung.
    """

    def __init__(
        self,
        failures: FailureBudget,
        actor_class: type,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_replaced: Callable[[], None] = lambda: None,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        """Start the actor."""
        self.failures = failures
        self.answer_within_s = answer_within_s
        self._actor_class = actor_class
        self._arguments = dict(arguments or {})
        self._on_replaced = on_replaced
        self._has_answered = False
        self._sent: list[ray.ObjectRef] = []
        self.actor = self._start()

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method without waiting; whatever goes wrong comes out at the next `call`."""
        self._sent.append(getattr(self.actor, method).remote(*arguments))

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method and wait for what it returns, replacing the actor until one answers.

        Raises:
            PartLostError: If the replacements fail as well, too often within an hour.
        """
        while True:
            try:
                call = getattr(self.actor, method).remote(*arguments)
                timeout = self.answer_within_s if self._has_answered else START_WITHIN_S
                *_, answer = ray.get([*self._sent, call], timeout=timeout)
                self._sent.clear()
                self._has_answered = True
                return answer
            except GetTimeoutError:
                self._replace(HUNG)
            except RayActorError:
                self._replace(DIED)

    def stop(self) -> None:
        """End the actor."""
        ray.kill(self.actor)

    def _start(self) -> Any:
        # On the driver's node, whose loss ends the run anyway; beside Tune's placement group,
        # because it takes no CPU.
        node = ray.get_runtime_context().get_node_id()
        return (
            ray.remote(self._actor_class)
            .options(
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False),
            )
            .remote(**self._arguments)
        )

    def _replace(self, cause: str) -> None:
        self.failures.note(
            cause, f"The {self.failures.part} actor {cause}; another takes its place."
        )
        ray.kill(self.actor)
        self._has_answered = False
        self._sent.clear()
        self.actor = self._start()
        self._on_replaced()
