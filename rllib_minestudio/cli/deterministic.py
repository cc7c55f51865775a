"""What `--deterministic` costs."""

from __future__ import annotations

from rllib_minestudio.console import stderr

WARNING = (
    "warning: --deterministic takes the most probable action of every step. VPT is trained to be "
    "sampled: what it does now and then, such as an attack, may never be the most probable thing "
    "to do. How much that costs depends on the policy: on the cow task one fell from 7.1 cows per "
    "episode to 0.25, while package:hunter_nano keeps its 8. Leave the option out to measure what "
    "training measured."
)


def warn_if_deterministic(deterministic: bool) -> None:
    """Say what the option costs, if it is given."""
    if deterministic:
        stderr.print(WARNING, style="yellow", markup=False)
