"""The command itself: its address, and what is left when it is killed."""

from __future__ import annotations

import json
import signal
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.recordings import find_recordings
from tests.processes import rllib
from tests.watch.conftest import wait_until, write_task


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "There is no 'nowhere'"),
        (["package:hunter_nano"], "rllib watch TASK --agent package:hunter_nano"),
        (["cow", "--port", "65536"], "must be a port, from 0 to 65535"),
        (["cow", "--set", "lr=1"], "--set lr: only options of the environment"),
        (["cow", "--compare", "nowhere"], "There is no 'nowhere'"),
    ],
)
def test_mistakes_are_told_before_anything_is_served(words, told, capsys):
    assert main(["watch", *words]) == BAD_INPUT
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_kept_outlives_a_server_that_is_killed(tmp_path):
    (tmp_path / "played").mkdir()
    process = rllib(tmp_path, "watch", write_task(tmp_path))
    address = next(line for line in process.stdout if line.startswith("watch: ")).split()[1]
    at = urlsplit(address)
    socket = f"ws://{at.netloc}{at.path}socket"
    with connect(socket, origin=f"http://{at.netloc}", max_size=None) as tab:
        listed = json.loads(tab.recv(timeout=60))["catalogue"]["entries"]
        key = next(entry["key"] for entry in listed if entry["kind"] == "play")

        def tell(**message):
            tab.send(json.dumps(message))

        tell(open={"entries": [key], "seed": 1})
        for name in ("first", "second"):
            tell(step=5)
            tell(keep={"agent": name})
            tell(restart=2)
        tell(step=5)  # this one is not kept
        tell(seek=0)
        wait_until(lambda: len(list(find_recordings(tmp_path / "played"))) == 2)
        process.send_signal(signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            while True:
                tab.recv(timeout=20)
    process.wait()
    kept = list(find_recordings(tmp_path / "played"))
    assert [(found.meta["policy"]["agent"], len(found)) for found in kept] == [
        ("first", 5),
        ("second", 5),
    ]
    assert all(len(list(found.frames())) == 6 for found in kept)
