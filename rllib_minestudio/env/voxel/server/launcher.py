"""The files that make MineStudio start the embedded engine instead of Java.

MineStudio looks for `$MINESTUDIO_DIR/engine/build/libs/mcprec-6.13.jar` and starts it with
`xvfb-run -a java -Xmx2G -jar JAR --envPort=PORT`, or `vglrun -d DEVICE java ...` for rendering on a
GPU. All three commands come from PATH, so a folder with commands of these names, first in PATH, is
enough, and MineStudio's own files stay unchanged. What MineStudio needs to run with current
packages is supplied when Python starts (`startup`, on PYTHONPATH).
"""

from __future__ import annotations

import os
import select
import shlex
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rllib_minestudio.errors import EngineError
from rllib_minestudio.foundation.files import write_whole

DIRECTORY_VARIABLE = "MINESTUDIO_DIR"
JAR = Path("engine/build/libs/mcprec-6.13.jar")
"""Path of MineStudio's engine in its directory."""
COMMANDS = Path("engine/bin")
"""Folder of the commands that start the embedded engine, in MineStudio's directory."""
ACTIVATE = Path("engine/embedded.sh")
"""Script to source in a shell, whose MineStudio then uses the embedded engine."""

STARTUP = Path(__file__).parent / "startup"
"""The folder for PYTHONPATH."""

_MODULE = "rllib_minestudio.env.voxel.server"
_MARK = "rllib_minestudio's embedded engine stands in for this file.\n"
_JAR_TEXT = (
    _MARK
    + "MineStudio only checks that it exists. Remove the folder `engine` to install MineStudio's "
    "own engine here.\n"
)

_COMMAND_TEXT = """\
#!/bin/sh
# Written by `rllib engine install --embedded`: starts the embedded engine for MineStudio, which
# runs "xvfb-run -a java ... --envPort=PORT", "vglrun -d DEVICE java ...", or "java ..." alone.
for word in "$@"; do
    case "$word" in
        --envPort=*) port=${word#--envPort=} ;;
        -version)
            echo 'openjdk version "1.8.0-embedded"' >&2
            exit 0 ;;
    esac
done
if [ -z "$port" ]; then
    echo "$0: this command only starts the embedded engine for MineStudio." >&2
    echo "It is in PATH because of engine/embedded.sh; use another shell for other programs." >&2
    exit 127
fi
# MineStudio's launch script waits for the engine even when MineStudio itself has been killed.
if [ "$(cat "/proc/$PPID/comm" 2>/dev/null)" = launchClient.sh ]; then
    owner=$(cut -d ' ' -f 4 "/proc/$PPID/stat")
fi
exec {start} --port "$port" ${owner:+--owner "$owner"}
"""

_ACTIVATE_TEXT = """\
# Written by `rllib engine install --embedded`. Usage: . {file}
export {variable}={directory}
export PATH={commands}:"$PATH"
export PYTHONPATH={startup}"${{PYTHONPATH:+:$PYTHONPATH}}"
"""


def default_directory() -> Path:
    """Return MineStudio's directory: `$MINESTUDIO_DIR`, or its default in the temporary folder."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or Path(tempfile.gettempdir()) / "MineStudio")


def is_installed(directory: Path) -> bool:
    """Whether the embedded engine is installed in MineStudio's `directory`."""
    jar = directory / JAR
    try:
        with jar.open("rb") as file:
            return file.read(len(_MARK)) == _MARK.encode()
    except OSError:
        return False


def install(directory: Path, start: Sequence[str] | None = None) -> Path:
    """Install the embedded engine in MineStudio's `directory`; may be repeated.

    Args:
        directory: MineStudio's directory; created if it does not exist.
        start: The command that starts the engine; by default this Python with this package.

    Returns:
        The file to source in a shell.

    Raises:
        EngineError: If MineStudio's own engine is there, or the folder cannot be written.
    """
    directory = directory.expanduser().absolute()
    jar, activate, commands = (directory / part for part in (JAR, ACTIVATE, COMMANDS))
    if jar.exists() and not is_installed(directory):
        raise EngineError(
            f"MineStudio's own engine is in {directory / 'engine'}. Choose another folder with "
            f"--dir, or remove that one."
        )
    command = _COMMAND_TEXT.replace("{start}", shlex.join(start or (sys.executable, "-m", _MODULE)))
    try:
        for name in ("java", "xvfb-run", "vglrun"):
            file = commands / name
            write_whole(file, command)
            file.chmod(0o755)
        write_whole(
            activate,
            _ACTIVATE_TEXT.format(
                file=shlex.quote(str(activate)),
                variable=DIRECTORY_VARIABLE,
                directory=shlex.quote(str(directory)),
                commands=shlex.quote(str(commands)),
                startup=shlex.quote(str(STARTUP)),
            ),
        )
        write_whole(jar, _JAR_TEXT)  # last: with a jar but no commands, MineStudio would start Java
    except OSError as error:
        raise EngineError(f"The engine cannot be installed in {directory}: {error}.") from error
    return activate


def environment(directory: Path) -> dict[str, str]:
    """Return environment variables that make MineStudio use `directory`'s embedded engine."""
    directory = directory.expanduser().absolute()
    path = os.environ.get("PATH", os.defpath)
    python_path = filter(None, (str(STARTUP), os.environ.get("PYTHONPATH")))
    return {
        DIRECTORY_VARIABLE: str(directory),
        "PATH": f"{directory / COMMANDS}{os.pathsep}{path}",
        "PYTHONPATH": os.pathsep.join(python_path),
    }


# --------------------------------------------- the owner process, which the engine must not outlive

_SECONDS_BETWEEN_LOOKS = 0.5
_STDOUT = 1


class OwnerProcess:
    """The process that this one runs for.

    MineStudio starts a shell script, which starts this process, and reads its output through a
    pipe. If MineStudio is killed with SIGKILL, the script waits for this process forever.
    """

    def __init__(self, pid: int | None) -> None:
        """Remember the parent process and the pipe's reader.

        Args:
            pid: The owner, if it is the parent's parent and not the parent.
        """
        self._parent = os.getppid()
        self._grandparent = pid
        self._readers: select.poll | None = None
        if stat.S_ISFIFO(os.fstat(_STDOUT).st_mode):
            self._readers = select.poll()
            self._readers.register(_STDOUT, 0)  # errors only: the reading end was closed

    def is_gone(self) -> bool:
        """Whether nobody reads the output any more, or the parent or owner has ended."""
        if self._readers is not None and self._readers.poll(0):
            return True
        if os.getppid() != self._parent:
            return True
        return self._grandparent is not None and _parent_of(self._parent) not in (
            self._grandparent,
            None,
        )

    def wait(self) -> None:
        """Return once the owner is gone."""
        while not self.is_gone():
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if it cannot be read (no /proc)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[1])
