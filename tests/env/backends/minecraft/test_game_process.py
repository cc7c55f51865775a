"""One game's processes and files: all of them are gone when it is, and when its owner is."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

from rllib_minestudio.env.backends.minecraft import process
from rllib_minestudio.env.backends.minecraft.process import (
    GameProcess,
    MinecraftOptions,
    collect_orphans,
    command,
)
from rllib_minestudio.errors import EngineError

OWNER = """
import json, sys, time
from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions
from rllib_minestudio.env.backends.minecraft.process import GameProcess
game = GameProcess(MinecraftOptions(**json.loads(sys.argv[1])), 0)
print(game.pid, flush=True)
time.sleep(100)
"""


def options(engine, **others):
    return MinecraftOptions(**{**engine.options["minecraft"], **others})


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs():
    return list((process.node_directory() / "runs").iterdir())


def is_group(leader):
    """Whether a process of the group lives; a zombie waits for the system's first process."""
    listing = subprocess.run(["ps", "-eo", "pgid,stat"], capture_output=True, text=True)
    rows = (line.split() for line in listing.stdout.splitlines()[1:])
    return any(int(group) == leader and not state.startswith("Z") for group, state in rows)


def owner_of_a_game(engine):
    import json

    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, json.dumps(engine.options["minecraft"])],
        stdout=subprocess.PIPE,
    )
    return process, int(process.stdout.readline())


def test_nothing_is_left_after_kill(engine):
    handles = len(os.listdir("/proc/self/fd"))
    game = GameProcess(options(engine), 0)
    assert game.is_alive and is_group(game.pid) and len(runs()) == 1
    assert game.pid == os.getpgid(engine.launches[0]) != os.getpgid(0)
    game.kill()
    game.kill()
    assert not game.is_alive and not is_group(game.pid)
    assert runs() == []
    assert len(os.listdir("/proc/self/fd")) == handles
    assert list(process.abandoned()) == []


def test_children_that_ignore_sigterm_are_killed_too(engine):
    child = engine.directory / "child"
    launcher = engine.directory / "engine" / "bin" / "xvfb-run"
    launcher.write_text(f"#!/bin/sh\ntrap '' TERM\nsleep 1000 & echo $! > {child}\nshift\n\"$@\"\n")
    game = GameProcess(options(engine), 0)
    pid = int(child.read_text())
    assert os.getpgid(pid) == game.pid
    game.kill()
    assert not is_group(game.pid)


@pytest.mark.parametrize("supervised", [True, False])
def test_a_game_does_not_outlive_its_owner(engine, supervised):
    owner, leader = owner_of_a_game(engine)
    if not supervised:
        # Whoever kills the owner may take the supervisor along, as a job scheduler would.
        os.kill(leader, signal.SIGKILL)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    if supervised:
        wait_until(lambda: not is_group(leader))
        assert runs() == []
    assert collect_orphans() == 1
    assert not is_group(leader)
    assert runs() == []
    assert collect_orphans() == 0


def test_games_of_the_living_are_no_orphans(engine):
    owner, leader = owner_of_a_game(engine)
    assert collect_orphans() == 0
    assert is_group(leader)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: not is_group(leader))


def test_a_number_that_belongs_to_another_process_by_now_is_left_alone(engine):
    lock = process.claim_port(options(engine).first_port, 0)
    lock.write({"group": os.getpid(), "started": 1.0, "run_dir": "/etc"})
    lock.release()
    assert collect_orphans() == 1
    assert os.path.isdir("/etc")


def test_two_games_get_two_ports(engine):
    first, second = GameProcess(options(engine), 0), GameProcess(options(engine), 0)
    assert first.port != second.port
    first.kill()
    second.kill()


def test_a_game_that_takes_another_port_is_refused(engine):
    launcher = engine.directory / "engine" / "bin" / "xvfb-run"
    launcher.write_text(
        "#!/bin/sh\necho '***** Start MalmoEnvServer on port 1'\n"
        "echo 'CLIENT enter state: DORMANT'\nexec sleep 1000\n"
    )
    with pytest.raises(EngineError, match="listens on port 1 instead of"):
        GameProcess(options(engine), 0)
    assert runs() == []


def test_the_games_own_words_are_in_the_error(engine):
    launcher = engine.directory / "engine" / "bin" / "xvfb-run"
    launcher.write_text("#!/bin/sh\necho at org.lwjgl.opengl.Display.'<clinit>'; sleep 1000\n")
    with pytest.raises(EngineError, match="it found no screen"):
        GameProcess(options(engine), 0)
    launcher.write_text("#!/bin/sh\necho Could not reserve enough space for object heap; exit 1\n")
    with pytest.raises(EngineError, match=r"ended before it was ready.*\n.*Could not reserve"):
        GameProcess(options(engine), 0)
    assert runs() == []


def test_the_command_is_minestudios(engine):
    jar = engine.directory / "engine" / "build" / "libs" / "mcprec-6.13.jar"
    game = ["java", "-Xmx3G", "-jar", str(jar), "--envPort=9001"]
    given = {"java_memory": "3G"}
    assert command(options(engine, **given), 9001) == ["xvfb-run", "-a", *game]
    gpu = options(engine, **given, display="virtualgl", device="/dev/dri/card0")
    assert command(gpu, 9001) == ["vglrun", "-d", "/dev/dri/card0", *game]
    assert command(options(engine, **given, display="existing"), 9001) == game
