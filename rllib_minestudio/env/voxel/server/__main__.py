"""`python -m rllib_minestudio.env.voxel.server`: the embedded engine as a separate process."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Sequence

from rllib_minestudio.env.voxel.server.launcher import OwnerProcess
from rllib_minestudio.env.voxel.server.service import Service
from rllib_minestudio.env.voxel.server.session import MissionServer

READY = "CLIENT enter state: DORMANT"
"""MineStudio waits for this line, and for the one with the port before it."""
PORT_LINE = "***** Start MalmoEnvServer on port {port}"
LARGEST_PORT = 65535

_DESCRIPTION = """\
Serve the embedded engine with MineStudio's wire protocol, on this machine only.

MineStudio's own package starts it once `rllib engine install --embedded` has been run.
Started by hand, it serves to explore the protocol. It ends when its parent process does,
when nobody reads its output any more, on SIGTERM, and when a client asks it to.
"""


def log(line: str) -> None:
    """Print a line for the process that started the engine."""
    with contextlib.suppress(OSError):  # nobody reads: `OwnerProcess` will notice
        print(line, flush=True)


def _port(text: str) -> int:
    """Read a port number, or raise an error whose message argparse shows."""
    if not text.isdecimal() or int(text) > LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"must be from 0 to {LARGEST_PORT}; got {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the end, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m rllib_minestudio.env.voxel.server",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port", type=_port, default=0, help="port, or a free one if it is taken (default: any)"
    )
    parser.add_argument(
        "--owner",
        type=int,
        metavar="PID",
        help="also end when this process does, the parent's parent",
    )
    options = parser.parse_args(arguments)
    owner = OwnerProcess(options.owner)
    service = Service(MissionServer(log), options.port, log)
    return run(service, owner)


def run(service: Service, owner: OwnerProcess) -> int:
    """Announce the service, and serve until the owner is gone or a signal arrives."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.close())

    def follow_owner() -> None:
        owner.wait()
        service.close()

    threading.Thread(target=follow_owner, daemon=True).start()
    log(PORT_LINE.format(port=service.port))
    log(READY)
    service.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
