"""Compiles what is not compiled yet on this machine, and shows that it takes a while."""

from rllib_minestudio.console import phase


def compile_kernels() -> bool:
    """Compile the embedded engine if need be; return whether that was needed."""
    from rllib_minestudio.env.voxel import kernel_cache

    if kernel_cache.is_warm():
        return False
    with phase("compiling kernels (once per machine)") as show:
        kernel_cache.warmup(lambda message: show(message.strip()))
    return True


def compile_convolutions() -> bool:
    """Compile the convolutions of large networks if need be; return whether that was needed."""
    from rllib_minestudio.models.vpt.winograd import compiled

    if compiled.are_compiled():
        return False
    with phase("compiling convolutions (once per machine)") as show:
        compiled.compile_once(lambda message: show(message.strip()))
    return True
