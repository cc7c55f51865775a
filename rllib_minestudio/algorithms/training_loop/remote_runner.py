"""A remote env runner as the driver sees it: the calls under way there, and whether it is lost."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import ray


@dataclass
class RolloutCall:
    """References to the results of one call.

    `void` if it was sent before the weights were rolled back: what it brings is of no use.
    """

    report: ray.ObjectRef
    fragments: list[ray.ObjectRef]
    void: bool = False


@dataclass
class RemoteRunner:
    """What is known of a remote env runner.

    Attributes:
        index: As RLlib counts them, from 1.
        actor: Its handle.
        calls: Under way, oldest first.
        since: When the oldest began, or when the runner was lost.
        returning: While it is lost: a call it will answer when it is back.
        pinged: When that call was made; those made before Ray has started it fail at once.
        instance_id: As its last report said.
        starts: How often Ray had started it anew when that last changed.
        losses: How often it was seen to be lost, or ended, since then.
    """

    index: int
    actor: Any
    calls: deque[RolloutCall] = field(default_factory=deque)
    since: float = 0.0
    returning: ray.ObjectRef | None = None
    pinged: float = 0.0
    instance_id: str = ""
    starts: int = 0
    losses: int = 0

    @property
    def is_well(self) -> bool:
        """Whether it is not lost."""
        return self.returning is None

    def note_call(self, call: RolloutCall) -> None:
        """Note a call that was made."""
        if not self.calls:
            self.since = time.monotonic()
        self.calls.append(call)

    def ping(self) -> None:
        """Call it, so that it shows when it is back."""
        self.returning = self.actor.ping.remote()
        self.pinged = time.monotonic()

    def end(self) -> None:
        """End its process, for Ray to start another."""
        ray.kill(self.actor, no_restart=False)

    def take_unseen_losses(self) -> int:
        """How often it was lost without being seen to be, since this was last asked."""
        starts = _starts(self.actor)
        unseen = starts - self.starts - self.losses
        self.starts, self.losses = starts, 0
        return unseen


def _starts(actor: Any) -> int:
    """How often Ray has started an actor anew.

    Ray's control service counts it. (`ray.util.state` would ask the dashboard, which need not run.)
    """
    return int(ray._private.state.actors(actor._actor_id.hex())["NumRestarts"])
