"""The engine as a process: its ready lines, and that it never outlives what it runs for."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rllib_minestudio.env.voxel.server import launcher
from rllib_minestudio.env.voxel.server.__main__ import READY
from rllib_minestudio.errors import EngineError
from tests.env.voxel.server.raw_client import RawClient

SERVER = [sys.executable, "-m", "rllib_minestudio.env.voxel.server"]
PATIENCE = 60.0


def wait_until_ready(output):
    """Read the ready lines and return the port."""
    port = None
    for line in output:
        if "Start MalmoEnvServer on port " in line:
            port = int(line.rsplit(" ", 1)[1])
        if READY in line:
            return port
    raise AssertionError("the engine ended before it was ready")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_ends(pid):
    deadline = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


@pytest.fixture
def server():
    process = subprocess.Popen([*SERVER, "--port", "0"], stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_exit_ends_it(server):
    with RawClient(wait_until_ready(server.stdout)) as client:
        assert client.ask(b"<Exit>NOW</Exit>") == 1
    assert server.wait(PATIENCE) == 0


def test_a_signal_ends_it_while_a_client_is_there(server):
    with RawClient(wait_until_ready(server.stdout)) as client:
        client.begin()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0


def test_it_ends_when_nobody_reads_its_output(server):
    wait_until_ready(server.stdout)
    server.stdout.close()
    assert server.wait(PATIENCE) == 0


def test_an_impossible_port_is_refused():
    refused = subprocess.run(
        [*SERVER, "--port", "65536"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert refused.returncode == 2
    assert "must be from 0 to 65535; got '65536'" in refused.stderr


def start_script(directory, name, stdout):
    """Start the engine as MineStudio does: through a shell script that waits for it."""
    script = directory / name
    script.write_text("#!/bin/bash\nxvfb-run -a java -Xmx2G -jar x.jar --envPort=$1\n[ 0 -gt 0 ]\n")
    script.chmod(0o755)
    # A process in between stands for MineStudio's, so that it can be killed.
    program = (
        "import subprocess, sys, time\n"
        f"engine = subprocess.Popen([{str(script)!r}, '0'], stdout=open({str(stdout)!r}, 'w'))\n"
        "print(engine.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    environ = {**os.environ, **launcher.environment(directory)}
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environ
    )
    return owner, int(owner.stdout.readline())


def engine_below(script_pid):
    """The process that the shell script waits for."""
    with open(f"/proc/{script_pid}/task/{script_pid}/children") as file:
        (pid,) = file.read().split()
    return int(pid)


def wait_for_line(path, text):
    deadline = time.monotonic() + PATIENCE
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.05)


@pytest.mark.parametrize("victim", ["owner", "script"])
def test_it_does_not_outlive_minestudio_or_its_script(tmp_path, victim):
    launcher.install(tmp_path)
    output = tmp_path / "output"
    output.touch()
    owner, script_pid = start_script(tmp_path, "launchClient.sh", output)
    try:
        wait_for_line(output, READY)
        engine = engine_below(script_pid)
        assert is_running(engine)
        os.kill(owner.pid if victim == "owner" else script_pid, signal.SIGKILL)
        assert_ends(engine)
        assert_ends(script_pid)
    finally:
        owner.kill()
        owner.communicate()


def test_the_launcher_can_be_installed_again_and_is_recognised(tmp_path):
    assert not launcher.is_installed(tmp_path)
    first = launcher.install(tmp_path)
    assert launcher.install(tmp_path) == first
    assert launcher.is_installed(tmp_path)
    shown = subprocess.run(
        ["sh", "-c", f". '{first}'; echo $MINESTUDIO_DIR; command -v xvfb-run; java -version"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert shown.stdout.split() == [str(tmp_path), str(tmp_path / "engine/bin/xvfb-run")]
    assert "1.8.0-embedded" in shown.stderr


def test_the_launcher_starts_nothing_else(tmp_path):
    launcher.install(tmp_path)
    refused = subprocess.run(
        [tmp_path / "engine/bin/java", "-jar", "other.jar"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert refused.returncode == 127
    assert "only starts the embedded engine" in refused.stderr


def test_minestudios_own_engine_is_not_overwritten(tmp_path):
    jar = tmp_path / launcher.JAR
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"PK\x03\x04 the real one")
    with pytest.raises(EngineError, match="MineStudio's own engine is in"):
        launcher.install(tmp_path)
    assert jar.read_bytes().startswith(b"PK")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=str(tmp_path / "file")):
        launcher.install(tmp_path / "file")
