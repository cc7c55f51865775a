"""Runs `rllib` in processes that are forked from one that has everything imported.

Each is a process of its own, with its own Ray, its own folder and an end of its own; but it does
not spend six seconds of the processor on importing Ray and torch, as a command from a shell does.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `rllib` in `folder` to its end; returns the exit status and what was printed."""
    server = _server()
    with tempfile.NamedTemporaryFile() as output:
        pickle.dump((str(folder), arguments, _environment(), output.name), server.stdin)
        server.stdin.flush()
        status = pickle.load(server.stdout)
        return status, Path(output.name).read_text()


@cache
def _server() -> subprocess.Popen[bytes]:
    """Start the process that has everything imported; it ends with this one."""
    search = [str(ROOT), os.environ.get("PYTHONPATH")]
    return subprocess.Popen(
        [sys.executable, "-c", "from tests.cli.forked import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**_environment(), "PYTHONPATH": os.pathsep.join(filter(None, search))},
    )


def _environment() -> dict[str, str]:
    """This process's environment, without what Ray adds when it is started here.

    `ray.init` sets RAY_AUTH_MODE=token. A server whose Ray was imported before sends no token, and
    the Ray that it starts would refuse it.
    """
    return {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"}


def serve() -> None:
    """Fork for each request on standard input, and write exit statuses until there are no more."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from rllib_minestudio.experiments.running import ray_session

    ray_session.set_environment()  # Ray reads it when it is imported, as in a command
    import_module("ray.tune")
    import_module("rllib_minestudio.algorithms.algorithm")
    import_module("rllib_minestudio.algorithms.cloning")
    gc.collect()
    gc.freeze()  # or each child would copy much of the memory just to look through it for garbage
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        child = os.fork()
        if child == 0:
            _become(*request)
        _, status = os.waitpid(child, 0)
        pickle.dump(os.waitstatus_to_exitcode(status), replies)
        replies.flush()


def _become(folder: str, arguments: list[str], environment: dict[str, str], output: str) -> None:
    """Be the command, and end as it does."""
    from rllib_minestudio.cli.main import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), stream)
    sys.argv = ["rllib", *arguments]
    sys.path.insert(0, folder)  # as `python -m` does
    raise SystemExit(main(list(arguments)))
