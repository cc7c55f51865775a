"""`rllib warmup`: compile the embedded engine's kernels ahead of time."""

from rllib_minestudio.cli.console import phase, stdout
from rllib_minestudio.env.voxel import jitcache


def warmup() -> int:
    """Compile what is not compiled yet; return the exit status."""
    if jitcache.is_warm():
        stdout.print("The kernels are compiled already.")
        return 0
    with phase("compiling kernels (once per machine)") as show:
        jitcache.warmup(show)
    return 0
