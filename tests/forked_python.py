"""Stands for the interpreter where a program of ours starts one: the zygote forks it.

It lives as long as the process does that it stands for, and ends as that ended; if it is killed,
so is the process. It imports nothing that takes time. See `processes.py`.
"""

import os
import pickle
import select
import socket
import struct
import sys

NOT_FORKED = "RLLIB_MINESTUDIO_NOT_FORKED"
"""In what a raylet tells a worker whose `runtime_env` asks for an interpreter of its own."""


def main(arguments: list[str]) -> int:
    """Have the process forked, and wait for its end."""
    arguments = without_options(arguments)
    if any(NOT_FORKED in argument for argument in arguments):
        os.execv(sys.executable, [sys.executable, *arguments])
    files = open_files()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["RLLIB_MINESTUDIO_ZYGOTE"])
    request = (tuple(arguments), os.getcwd(), dict(os.environ), tuple(files), False, True)
    message = pickle.dumps(request)
    socket.send_fds(connection, [struct.pack("i", len(message))], files)
    connection.sendall(message)
    for file in files[3:]:
        os.close(file)
    connection.recv(4, socket.MSG_WAITALL)
    wait_for_it_or_the_parent(connection, os.getppid())
    status = connection.recv(4, socket.MSG_WAITALL)
    return abs(struct.unpack("i", status)[0]) if len(status) == 4 else 1


def wait_for_it_or_the_parent(connection: socket.socket, parent: int) -> None:
    """Wait until the process has ended; end with it as soon as who started this one is gone."""
    while not select.select([connection], [], [], 1.0)[0]:
        if os.getppid() != parent:
            sys.exit(1)


def without_options(arguments: list[str]) -> list[str]:
    """What is left when the interpreter has taken its options; -c and -m are none here."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] not in ("-c", "-m"):
        option = rest.pop(0)
        if option in ("-W", "-X"):
            rest.pop(0)
    return rest


def open_files() -> list[int]:
    """The standard streams, and what else was inherited."""
    others = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
    return [0, 1, 2, *(file for file in others if os.path.exists(f"/proc/self/fd/{file}"))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
