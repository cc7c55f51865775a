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
    """Compile the networks' convolutions if need be; return whether that was needed."""
    from rllib_minestudio.models.kernels import direct_calls, winograd_calls

    missing = [code for code in (direct_calls.CODE, winograd_calls.CODE) if not code.is_compiled()]
    if missing:
        with phase("compiling convolutions (once per machine)") as show:
            for code in missing:
                code.compile_once(lambda message: show(message.strip()))
    return bool(missing)
