"""`rllib warmup`: compile the embedded engine's kernels ahead of time."""

from rllib_minestudio.cli.console import phase, stdout
from rllib_minestudio.env.voxel import jitcache


def compile_kernels() -> None:
    """Compile what is not compiled yet on this machine, showing that it takes a while."""
    if not jitcache.is_warm():
        with phase("compiling kernels (once per machine)") as show:
            jitcache.warmup(lambda message: show(message.strip()))


def warmup() -> int:
    """Compile the kernels, or say that they are compiled; return the exit status."""
    if jitcache.is_warm():
        stdout.print("The kernels are compiled already.")
    compile_kernels()
    return 0
