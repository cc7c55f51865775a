"""Starts Python processes of ours in a moment: forked from one that has everything imported.

Ray, PyTorch and this package take five seconds of the processor to import. The zygote imports them
once for all of pytest's workers, and forks for whoever asks:

    status, printed = run_python("-m", "rllib_minestudio.cli.main", "doctor", cwd=folder)

Each is a process of its own: arguments, environment, folder, output, signals and end are those
that `subprocess.Popen([sys.executable, ...])` would give it. What a test says about imports, or
about how an interpreter starts, needs `subprocess` itself.

Ray's workers are such processes, too, where `fork_ray_workers` was called before `ray.init`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import os
import pickle
import runpy
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Iterator, Mapping
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn
from unittest import mock

from filelock import FileLock

ROOT = Path(__file__).parents[1]
ADDRESS = "RLLIB_MINESTUDIO_ZYGOTE"
"""Names the zygote's socket, also for a raylet and what it starts."""
PROGRAM = "import sys; from tests.processes import serve; serve(sys.argv[1], int(sys.argv[2]))"
START_SECONDS = 600
"""For the zygote to import everything, and to compile what is not, on a busy machine."""
IMPORTED = (
    "ray.tune",
    "rllib_minestudio.algorithms.ppo",
    "rllib_minestudio.algorithms.bc",
    "rllib_minestudio.cli.main",
    "rllib_minestudio.env.agents.toolmaker",
    "rllib_minestudio.evaluation.report",
    "rllib_minestudio.experiments.evaluate_checkpoint",
    "rllib_minestudio.experiments.summary",
    "rllib_minestudio.experiments.run",
    "rllib_minestudio.experiments.train",
    # What Ray Tune and these import when they are used.
    "matplotlib.backends.backend_agg",
    "mpl_toolkits.mplot3d",
    "ray.air.integrations.comet",
    "ray.air.integrations.mlflow",
    "ray.air.integrations.wandb",
    "ray.dag.compiled_dag_node",
    "scipy.stats",
    "tensorboardX",
)
NOT_INHERITED = ("RAY_AUTH_MODE",)
"""`ray.init` leaves it in the process that called it; a command from a shell starts without it."""
NO_JOB = "ffffffff"
"""As Ray numbers a worker that any job may have."""
RAY_SETUP, RAY_WORKER = "setup_worker.py", "default_worker.py"
"""What a raylet starts; the former, for a `runtime_env`, would start an interpreter anew."""
RAY_AGENT, RUNTIME_ENV_AGENT = "/dashboard/agent.py", "/runtime_env/agent/main.py"
"""Two more, one of each for a node."""
NOT_FORKED = {"env_vars": {"RLLIB_MINESTUDIO_NOT_FORKED": "1"}}
"""`runtime_env` of an actor or task whose worker starts as Ray starts it."""


class Request(NamedTuple):
    """What a process is to be.

    Attributes:
        arguments: As for `python`.
        folder: Its working directory.
        environment: All of its variables.
        numbers: Under which it has the files that come beside the request.
        own_session: Whether it begins a session, and not a process group only.
        dies_with_requester: Whether it is killed when who asked for it is gone.
    """

    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    numbers: tuple[int, ...] = (0, 1, 2)
    own_session: bool = False
    dies_with_requester: bool = False


class Process:
    """A forked process: the part of `subprocess.Popen` that tests use."""

    def __init__(self, connection: socket.socket, stdin: IO[Any], stdout: IO[Any]) -> None:
        self._connection = connection
        self.stdin, self.stdout = stdin, stdout
        self.returncode: int | None = None
        self.pid = number(connection)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.stdout.close()
        self.wait()

    def poll(self) -> int | None:
        """The exit status, or minus the signal that ended it; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end.

        Raises:
            subprocess.TimeoutExpired: It still runs after `timeout` seconds.
        """
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = number(self._connection)
            self._connection.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """What is still printed until the end, and None, as errors are part of it."""
        self.stdin.close()
        with self.stdout:
            printed = self.stdout.read()
        self.wait(timeout)
        return printed, None

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def python(
    *arguments: Any,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    own_session: bool = False,
    stderr: int | None = None,
    text: bool = True,
) -> Process:
    """Start `python *arguments`: `-m module`, `-c code`, or a file, with what follows it.

    Args:
        arguments: Anything whose `str` is meant, such as a path.
        cwd: Its folder; this one's by default.
        env: Its environment; this process's by default.
        own_session: Make it the first of a session, and not of a group only, as a terminal does.
        stderr: An open file for its errors; by default they are mixed with what it prints.
        text: Whether `stdin` and `stdout` are text.

    Returns:
        The process; what it prints comes from its `stdout`.
    """
    environment = dict(os.environ if env is None else env)
    for name in NOT_INHERITED:
        environment.pop(name, None)
    environment[ADDRESS] = address()
    request = Request(
        tuple(map(str, arguments)), str(cwd or os.getcwd()), environment, own_session=own_session
    )
    (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
    errors = theirs_out if stderr is None else stderr
    connection = ask(address(), request, theirs_in, theirs_out, errors)
    os.close(theirs_in)
    os.close(theirs_out)
    mode = "" if text else "b"
    return Process(connection, open(ours_in, f"w{mode}"), open(ours_out, f"r{mode}"))


def run_python(*arguments: Any, **options: Any) -> tuple[int, str]:
    """Run `python *arguments` to its end; returns the exit status and what was printed."""
    with python(*arguments, **options) as process:
        printed, _ = process.communicate()
    return process.wait(), printed


def rllib(folder: Path, *arguments: Any, **options: Any) -> Process:
    """Start `rllib *arguments` in `folder`."""
    return python("-m", "rllib_minestudio.cli.main", *arguments, cwd=folder, **options)


def run_rllib(folder: Path, *arguments: Any) -> tuple[int, str]:
    """Run `rllib *arguments` in `folder` to its end; returns the exit status and the output."""
    return run_python("-m", "rllib_minestudio.cli.main", *arguments, cwd=folder)


def ask(path: str, request: Request, *streams: int) -> socket.socket:
    """Send a request; the answers are the process's number and, in the end, its status."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    message = pickle.dumps(request)
    socket.send_fds(connection, [struct.pack("i", len(message))], streams)
    connection.sendall(message)
    return connection


def number(connection: socket.socket) -> int:
    """Receive a number.

    Raises:
        EOFError: The other side has ended.
    """
    return int(struct.unpack("i", _receive(connection, 4))[0])


def _receive(connection: socket.socket, size: int) -> bytes:
    """Receive so many bytes, also if signals come in between."""
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError("The process that others are forked from, or who asked it, has ended.")
        received += part
    return received


@cache
def address() -> str:
    """The zygote's socket; the first who asks starts it, for all of pytest's workers."""
    if ADDRESS not in os.environ:
        owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        folder = Path(tempfile.gettempdir(), f"zygote-{os.getuid()}-{owner}")
        folder.mkdir(mode=0o700, exist_ok=True)
        with FileLock(folder / "lock"):
            if not (folder / "socket").exists():
                _start(folder, owner)
        os.environ[ADDRESS] = str(folder / "socket")
    return os.environ[ADDRESS]


def _start(folder: Path, owner: int) -> None:
    """Start the zygote, and wait until it listens."""
    path, log, stand_in = folder / "socket", folder / "log", folder / "python"
    program = (ROOT / "tests" / "forked_python.py").read_text()
    stand_in.write_text(f"#!{sys.executable} -S\n{program}")
    stand_in.chmod(0o700)
    with log.open("w") as output:
        zygote = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, path, str(owner)],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name not in NOT_INHERITED},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        if zygote.poll() is not None or time.monotonic() > deadline:
            zygote.kill()
            raise RuntimeError(f"There is no process to fork others from: {log.read_text()}")
        time.sleep(0.02)


def interpreter() -> str:
    """In place of `sys.executable`: a program whose processes are forked.

    They are no children of who starts it, which some programs make sure of.
    """
    return str(Path(address()).with_name("python"))


def fork_ray_workers() -> None:
    """Let the raylets that this process starts from now on have their workers forked."""
    from ray._private import services

    usual = services.start_raylet

    @wraps(usual)
    def start_raylet(*args: Any, **kwargs: Any) -> Any:
        with mock.patch.object(sys, "executable", interpreter()):
            return usual(*args, **kwargs)

    if not hasattr(usual, "__wrapped__"):
        services.start_raylet = start_raylet


def is_zygote(command_line: str) -> bool:
    """Whether a process is the one that others are forked from, or one of those."""
    return PROGRAM in command_line


def raylet_of(pid: int) -> str | None:
    """The process of the raylet that a process was forked for; None if it is no such worker."""
    if ADDRESS in os.environ and _note_of(pid).exists():
        return _note_of(pid).read_text()
    return None


def _note_of(worker: int) -> Path:
    return Path(os.environ[ADDRESS]).with_name(f"raylet-of-{worker}")


def serve(path: str, owner: int) -> None:
    """Be the zygote, until the process `owner` has ended."""
    _import_everything()
    zygote = _Zygote(path)
    os.environ[ADDRESS] = path
    fork_ray_workers()
    while Path(f"/proc/{owner}").exists():
        for connection, request, streams in zygote.requests():
            child = os.fork()
            if child == 0:
                zygote.forget()
                _end(_status_of(request, streams))
            zygote.adopt(child, connection, request)
            for stream in streams:
                os.close(stream)
    zygote.end()


def _import_everything() -> None:
    """Import what processes of ours do, and load the machine code of engine and networks."""
    from rllib_minestudio.experiments import ray_session

    ray_session.set_environment()  # Ray reads it when it is imported, as in a command
    # These two it never reads again. A worker ends when the process ends that the second names.
    os.environ |= {"RAY_JOB_ID": NO_JOB, "RAY_RAYLET_PID": str(os.getpid())}
    from ray._raylet import ActorClassID

    with mock.patch("ray.actor.ActorClassID") as of_classes:
        # Ray's own generator of ids stays untouched, or all that is forked would draw the same.
        of_classes.from_random = lambda: ActorClassID(os.urandom(ActorClassID.size()))
        for module in IMPORTED:
            import_module(module)
    import torch

    from rllib_minestudio.env.voxel import kernel_cache
    from rllib_minestudio.env.voxel.engine import VoxelEngine
    from rllib_minestudio.models.kernels.direct_calls import CODE as DIRECT
    from rllib_minestudio.models.kernels.winograd_calls import CODE as WINOGRAD

    _import_agents()
    torch.set_num_threads(1)  # threads do not outlive a fork
    compiling = threading.Thread(target=kernel_cache.warmup, args=(print,))  # by a child
    compiling.start()
    for code in (DIRECT, WINOGRAD):
        code.compile_once(print)
        _ = code.addresses
    compiling.join()
    engine = VoxelEngine(frame_size=(64, 36))
    engine.reset(0, "plains")
    engine.tick({})
    engine.render()
    _train_once()
    gc.collect()
    gc.freeze()  # or each child would copy much of the memory just to look through it for garbage


_OF_AGENTS: dict[str, types.ModuleType] = {}
"""Libraries that Ray brings along for one of its agents; for other processes they are not there."""


def _import_agents() -> None:
    """Import what Ray's agents do."""
    import_module("ray.dashboard.agent")
    from ray.dashboard.utils import DashboardAgentModule, get_all_modules

    get_all_modules(DashboardAgentModule)
    path, known = list(sys.path), set(sys.modules)
    agent = import_module("ray._private.runtime_env.agent.main")
    sys.path[:] = path
    for name in sys.modules.keys() - known:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if Path(file).is_relative_to(Path(str(agent.__file__)).parent):
            _OF_AGENTS[name] = sys.modules.pop(name)


def _train_once() -> None:
    """Have imported what env runners and learners import late, such as PyTorch's compiler."""
    import torch

    from tests.algorithms.conftest import quick_config
    from tests.correctness.harness import Harness

    harness = Harness(quick_config())
    fragments = harness.play()
    if not torch.cuda.is_available():  # with a device, gradients have threads
        harness.update(fragments)
    harness.close()


class _Zygote:
    """The zygote's side: takes requests, and tells who asked of the end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._children: dict[int, socket.socket] = {}
        self._ends, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}.new")
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._ends, selectors.EVENT_READ)
        os.rename(f"{path}.new", path)

    def requests(self) -> Iterator[tuple[socket.socket, Request, list[int]]]:
        """Wait for a second at most, and yield what was asked for since."""
        for key, _ in self._selector.select(timeout=1):
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                size, streams, _, _ = socket.recv_fds(connection, 4, 64)
                message = _receive(connection, struct.unpack("i", size)[0])
                yield connection, Request(*pickle.loads(message)), streams
            elif key.fileobj == self._ends:
                os.read(self._ends, 4096)
                self._tell_of_ends()
            elif self._children.get(key.data) is key.fileobj:  # or it was just told of the end
                self._selector.unregister(key.fileobj)  # who asked has ended
                _kill(key.data)

    def adopt(self, child: int, connection: socket.socket, request: Request) -> None:
        """Answer with the child's number, and remember who is to be told of its end."""
        if request.dies_with_requester:
            self._selector.register(connection, selectors.EVENT_READ, child)
        self._children[child] = connection
        _send(connection, child)

    def forget(self) -> None:
        """In a child: close everything of the zygote's, whose signals are not its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        self._listener.close()
        for connection in self._children.values():
            connection.close()
        os.close(self._ends)
        os.close(self._waker)

    def end(self) -> None:
        """End all children."""
        shutil.rmtree(Path(self._path).parent, ignore_errors=True)
        for child in self._children:
            _kill(child)

    def _tell_of_ends(self) -> None:
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return
            connection = self._children.pop(child)
            if connection in self._selector.get_map():
                self._selector.unregister(connection)
            _send(connection, os.waitstatus_to_exitcode(status))
            connection.close()


def _send(connection: socket.socket, value: int) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        connection.sendall(struct.pack("i", value))


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _status_of(request: Request, streams: list[int]) -> int:
    """Be the process that was asked for, until its program has ended."""
    try:
        _become(request, streams)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(status: int) -> NoReturn:
    """End as an interpreter does, but for freeing what it holds, which takes some time."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _become(request: Request, streams: list[int]) -> None:
    """Be the process that was asked for, but for its end."""
    import numpy as np
    import torch
    from ray._raylet import Config

    if request.own_session:
        os.setsid()
    else:
        os.setpgid(0, 0)  # whoever ends a group means this process's, and not the zygote's
    os.chdir(request.folder)
    streams = [fcntl.fcntl(stream, fcntl.F_DUPFD, 100) for stream in streams]  # out of the way
    for stream, number in zip(streams, request.numbers, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request.environment)
    Config.initialize("")  # Ray's options of C++ are variables, too
    np.random.seed()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    first, *others = request.arguments
    search = os.environ.get("PYTHONPATH", "")
    sys.path[1:1] = filter(None, search.split(os.pathsep))
    if first.endswith(RAY_SETUP):
        first, *others = _arguments_of_ray_worker(others)
    if first.endswith(RAY_WORKER):
        _note_of(os.getpid()).write_text(os.environ["RAY_RAYLET_PID"])
    elif first.endswith((RAY_AGENT, RUNTIME_ENV_AGENT)):
        os.environ["RAY_RAYLET_PID"] = str(os.getppid())  # an agent ends unless it is its parent's
        if first.endswith(RUNTIME_ENV_AGENT):
            sys.modules.update(_OF_AGENTS)
    if first == "-c":
        sys.path[0] = ""
        sys.argv = ["-c", *others[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(others[0], "<string>", "exec"), vars(main))
    elif first == "-m":
        sys.path[0] = request.folder
        sys.argv = list(others)
        sys.modules.pop(others[0], None)  # or Python warns that it is run a second time
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(first).parent)
        sys.argv = [first, *others]
        runpy.run_path(first, run_name="__main__")


def _arguments_of_ray_worker(arguments: list[str]) -> list[str]:
    """Do what Ray's setup_worker.py does before it starts an interpreter anew, with these."""
    from ray._private.runtime_env.context import RuntimeEnvContext
    from ray._private.utils import update_envs
    from ray._private.workers import setup_worker

    options, rest = setup_worker.parser.parse_known_args(arguments)
    context = RuntimeEnvContext.deserialize(options.serialized_runtime_env_context or "{}")
    update_envs(context.env_vars)
    return rest
