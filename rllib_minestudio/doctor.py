"""The checks of `rllib doctor`, each of which tests one thing by using it, and their runner.

`python -m rllib_minestudio.doctor NAME` runs one check and prints its result as JSON. The doctor
runs each check in its own process, so that a driver that hangs or a library that crashes is
reported and stops nothing else.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import netrc
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from rllib_minestudio.checkpoints.record import DISTRIBUTION
from rllib_minestudio.foundation.processes import die_with

TRAINING, MINECRAFT, SERVICES = "training", "real Minecraft", "services"
"""Groups of checks: needed by every run, needed by `engine: minecraft`, and optional."""

_OLDEST_PYTHON = (3, 10)
_FRAME = (128, 128)
_TICKS = 200
_SECONDS_FOR_NETWORK = 5.0
_HUB = "https://huggingface.co"
_WANDB = "https://api.wandb.ai"
_OBJECT_STORE_BYTES = 80 * 2**20


class Health(NamedTuple):
    """The result of a check.

    Attributes:
        ok: Whether it passed.
        detail: What the check found.
        fix: What to do about it; empty if there is nothing to do.
    """

    ok: bool
    detail: str
    fix: str = ""


class Check(NamedTuple):
    """One line of the doctor's table.

    Attributes:
        name: What is checked.
        group: One of `TRAINING`, `MINECRAFT`, `SERVICES`.
        seconds: Time limit, after which the check counts as hanging.
        look: Runs the check.
        needed: Whether its group does not work without it.
    """

    name: str
    group: str
    seconds: float
    look: Callable[[], Health]
    needed: bool = True


def python() -> Health:
    """Check the version of Python."""
    detail = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return Health(False, detail, "Install Python 3.10 or newer.")
    return Health(True, detail)


def requirements() -> Health:
    """Check that the required packages are installed in the required versions."""
    from packaging.requirements import Requirement

    wrong = []
    for line in importlib.metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is not {requirement.specifier}")
    if wrong:
        fix = f"{sys.executable} -m pip install -c constraints.txt -e ."
        return Health(False, "; ".join(wrong), fix)
    return Health(True, "all packages in the versions that setup.cfg asks for")


def torch() -> Health:
    """Check PyTorch by multiplying matrices."""
    import torch

    product = torch.eye(64) @ torch.ones(64, 1)
    if float(product.sum()) != 64.0:
        return Health(False, f"{torch.__version__} multiplies wrongly", "Reinstall PyTorch.")
    return Health(True, f"{torch.__version__}, {torch.get_num_threads()} threads")


def threads() -> Health:
    """Check how torch's threads wait for each other, which matters for speed on a busy machine."""
    import torch

    from rllib_minestudio.foundation.processes import machine_cpus, openmp_library, thread_problem

    count, cores = torch.get_num_threads(), machine_cpus()
    problem = thread_problem(os.environ, count, cores)
    if problem:
        return Health(False, *problem.rsplit(": ", 1))
    policy = os.environ["OMP_WAIT_POLICY"]
    library = openmp_library() or "no OpenMP library"
    return Health(True, f"{count} on {cores} cores, {library}, OMP_WAIT_POLICY={policy}")


def cuda() -> Health:
    """Check CUDA by computing on the first GPU."""
    import torch

    if torch.version.cuda is None:
        fix = "Only needed for a GPU: install a CUDA build of torch, see https://pytorch.org."
        return Health(False, "PyTorch is a build without CUDA", fix)
    if not torch.cuda.is_available():
        fix = "See nvidia-smi; in a container, start it with --gpus all. Only needed for a GPU."
        return Health(False, f"built for CUDA {torch.version.cuda}, but there is no GPU", fix)
    torch.ones(64, 64, device="cuda").sum().item()
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Health(True, f"CUDA {torch.version.cuda}: {', '.join(names)}")


def ray() -> Health:
    """Check Ray by starting it on this machine and running a task."""
    import ray

    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        object_store_memory=_OBJECT_STORE_BYTES,
        log_to_driver=False,
    )
    answer = ray.get(ray.remote(_in_a_worker).remote())
    ray.shutdown()
    if answer == os.getpid():
        return Health(False, "a task ran in the driver's own process", "Reinstall Ray.")
    free = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    return Health(True, f"{ray.__version__}, /dev/shm has {free / 2**30:.1f} GiB free")


def _in_a_worker() -> int:
    return os.getpid()


def kernel_cache() -> Health:
    """Check whether the kernels of the embedded engine are compiled."""
    from rllib_minestudio.env.voxel import kernel_cache, kernels

    folder = kernels.CACHE_FOLDER
    if kernel_cache.is_warm():
        return Health(True, str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        fix = f"Set {kernels.CACHE_VARIABLE} to a folder that can be written, on a local disk."
        return Health(False, f"cannot be written: {error}", fix)
    return Health(False, f"not compiled yet in {folder}", "rllib warmup")


def embedded_engine() -> Health:
    """Check the embedded engine by playing and inspecting the frame."""
    from rllib_minestudio.env.voxel.engine import VoxelEngine

    engine = VoxelEngine(frame_size=_FRAME)
    engine.reset(0, "plains")
    start = time.monotonic()
    for _ in range(_TICKS):
        engine.tick({"forward": 1})
        frame = engine.render()
    rate = _TICKS / (time.monotonic() - start)
    if frame.std() < 1.0:
        return Health(False, "the frame is empty", "Please report it.")
    return Health(True, f"{rate:,.0f} steps/s at {_FRAME[0]}x{_FRAME[1]}")


def minestudio() -> Health:
    """Check the `minestudio` package by importing its simulator."""
    from rllib_minestudio.env.backends.minecraft import prerequisites

    finding = prerequisites.package()
    if not finding.ok:
        return Health(*finding[1:])
    with tempfile.TemporaryDirectory() as folder:
        prerequisites.import_minestudio(Path(folder))  # its import opens a database there
    return Health(True, importlib.metadata.version("minestudio"))


def _finding(name: str) -> Callable[[], Health]:
    """Return a check that the `minecraft` backend runs too, by its name in `prerequisites`."""

    def look() -> Health:
        from rllib_minestudio.env.backends.minecraft import prerequisites
        from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions

        return Health(*getattr(prerequisites, name)(MinecraftOptions())[1:])

    return look


def gpu_rendering() -> Health:
    """Check VirtualGL by asking it for its OpenGL renderer."""
    fix = "Install VirtualGL (https://virtualgl.org); without it Minecraft is drawn by the CPU."
    program, glxinfo = shutil.which("vglrun"), shutil.which("glxinfo")
    if program is None:
        return Health(False, "no program 'vglrun' in PATH", fix)
    if glxinfo is None:
        return Health(False, "'vglrun' is installed, not 'glxinfo'", "apt-get install mesa-utils")
    shown = subprocess.run(
        [program, "-d", "egl", glxinfo, "-B"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    for line in shown.stdout.splitlines():
        if "OpenGL renderer" in line:
            renderer = line.partition(":")[2].strip()
            return Health("llvmpipe" not in renderer, renderer, "That is the CPU. " + fix)
    complaint = (shown.stderr.strip().splitlines() or ["no answer"])[-1]
    return Health(False, f"vglrun fails: {complaint}", "See docs/minecraft.md.")


def downloads() -> Health:
    """Check that the Hugging Face Hub, the source of weights and MineStudio's engine, answers."""
    address = os.environ.get("HF_ENDPOINT", _HUB)
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS_FOR_NETWORK):
            pass
    except urllib.error.HTTPError:
        pass  # any answer shows that it can be reached
    except OSError as error:
        fix = "Use local files as weights; set HTTPS_PROXY or HF_ENDPOINT if there is a proxy."
        return Health(False, f"{address} cannot be reached: {error}", fix)
    return Health(True, f"{address} answers")


def wandb_login() -> Health:
    """Check that Weights & Biases is installed and logged in to, without prompting."""
    if find_spec("wandb") is None:
        fix = "pip install 'rllib_minestudio[wandb]'. Only for W&B."
        return Health(False, "wandb is not installed", fix)
    if os.environ.get("WANDB_MODE") in ("offline", "disabled"):
        return Health(True, f"not needed: WANDB_MODE={os.environ['WANDB_MODE']}")
    if os.environ.get("WANDB_API_KEY"):
        return Health(True, "WANDB_API_KEY is set")
    host = urlsplit(os.environ.get("WANDB_BASE_URL", _WANDB)).hostname or ""
    try:
        if netrc.netrc().authenticators(host):
            return Health(True, f"logged in to {host}")
    except (OSError, netrc.NetrcParseError):
        pass  # no netrc file, or one that cannot be parsed
    return Health(False, "not logged in", "wandb login, or WANDB_MODE=offline. Only for W&B.")


CHECKS: tuple[Check, ...] = (
    Check("Python", TRAINING, 20, python),
    Check("packages", TRAINING, 20, requirements),
    Check("PyTorch", TRAINING, 60, torch),
    Check("threads", TRAINING, 60, threads, needed=False),
    Check("CUDA", TRAINING, 60, cuda, needed=False),
    Check("Ray", TRAINING, 90, ray),
    Check("kernel cache", TRAINING, 30, kernel_cache, needed=False),
    Check("embedded engine", TRAINING, 180, embedded_engine),
    Check("MineStudio", MINECRAFT, 60, minestudio),
    Check("Java 8", MINECRAFT, 30, _finding("java")),
    Check("engine jar", MINECRAFT, 20, _finding("jar")),
    Check("display", MINECRAFT, 20, _finding("display")),
    Check("GPU rendering", MINECRAFT, 30, gpu_rendering, needed=False),
    Check("downloads", SERVICES, 20, downloads, needed=False),
    Check("W&B login", SERVICES, 20, wandb_login, needed=False),
)
"""In the order of the table."""


# ------------------------------------ running checks, each in its own process and with a time limit

_AT_ONCE = 4
_INTERRUPTIBLE_S = 0.2
"""A wait without end is not interrupted by a signal that another thread receives."""


class Diagnosis(NamedTuple):
    """A check, its result, and how long it took in seconds."""

    check: Check
    health: Health
    seconds: float


def is_needed(check: Check, groups: set[str]) -> bool:
    """Return whether any of these groups does not work unless the check passes."""
    return check.needed and check.group in groups


def diagnose(checks: tuple[Check, ...]) -> list[Diagnosis]:
    """Run checks, several at a time, and return their results in the same order.

    If this is interrupted, what still runs is killed.
    """
    started = _Started()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            runs = [pool.submit(_run, check, started) for check in checks]
            while wait(runs, timeout=_INTERRUPTIBLE_S).not_done:
                pass
            return [run.result() for run in runs]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            started.end()
            raise


class _Started:
    """The processes of checks, all of which can be ended, together with any that is to come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._is_over = False

    def start(self, check: Check) -> subprocess.Popen[str]:
        """Start a check."""
        with self._lock:
            if self._is_over:
                raise RuntimeError("The checks were interrupted.")
            process = subprocess.Popen(
                [sys.executable, "-m", "rllib_minestudio.doctor", check.name, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._processes.append(process)
            return process

    def end(self) -> None:
        """Kill what runs, and start nothing more."""
        with self._lock:
            self._is_over = True
            for process in self._processes:
                _kill_group(process)


def _run(check: Check, started: _Started) -> Diagnosis:
    """Run a check in its own process, which is killed with its children if it hangs."""
    start = time.monotonic()
    process = started.start(check)
    try:
        output, errors = process.communicate(timeout=check.seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        health = Health(False, f"no answer within {check.seconds:g} s", "Try again; it may hang.")
    else:
        health = _read(process.returncode, output, errors)
    return Diagnosis(check, health, time.monotonic() - start)


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill(process: subprocess.Popen[str]) -> None:
    _kill_group(process)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:  # closed unread: a grandchild may hold it open
            pipe.close()


def _read(status: int, output: str, errors: str) -> Health:
    """Read a check's output; for one that crashed, report the last line of its stderr."""
    lines = output.strip().splitlines()
    if status == 0 and lines:
        return Health(**json.loads(lines[-1]))
    complaint = (errors.strip().splitlines() or [f"it ended with status {status}"])[-1]
    return Health(False, complaint, "Reinstall it, or see the message.")


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    (check,) = (check for check in CHECKS if check.name == sys.argv[1])
    print(json.dumps(check.look()._asdict()))
