"""The embedded engine's server with faults, for tests: start it in the place of the real one.

    launcher.install(directory, start=[sys.executable, ".../tests/server/faulty_engine.py"])

Environment variables, read at start:
    ENGINE_FAULTS        JSON list of {"at", "kind", "count", "seconds", "launches"}
    ENGINE_FAULTS_STATE  file to which each start adds a line; needed for "launches"

`at` is launch, mission, peek, step or exit; `kind` one of
    die           the process ends at once
    hang          the game never answers; the process lives on
    freeze        the process stops (SIGSTOP), as a Java virtual machine that swaps
    slow          takes `seconds` longer
    done          reports the player's death            (peek, step)
    short_frame long_frame garbage_json no_health       (peek, step)
`count` such events go well first (default 0; all later ones are faulty); `launches` says in which
starts of the engine, from 0, the fault is there (default: all).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from rllib_minestudio.env.voxel.server.__main__ import log, run
from rllib_minestudio.env.voxel.server.launcher import OwnerProcess
from rllib_minestudio.env.voxel.server.service import Service
from rllib_minestudio.env.voxel.server.session import MissionServer

FOR_EVER = 10**6


def this_launch():
    """The number of this start, from 0."""
    state = os.environ.get("ENGINE_FAULTS_STATE")
    if not state:
        return 0
    with open(state, "a") as file:
        file.write(f"{os.getpid()}\n")
    return Path(state).read_text().split().index(str(os.getpid()))


class Faults:
    def __init__(self):
        launch = this_launch()
        planned = json.loads(os.environ.get("ENGINE_FAULTS", "[]"))
        self.planned = [f for f in planned if launch in f.get("launches", [launch])]
        self.events = {}

    def kind(self, event):
        """Note an event; do what can be done here, and return the kind of its fault, or None."""
        number = self.events[event] = self.events.get(event, -1) + 1
        for fault in self.planned:
            if fault["at"] == event and number >= fault.get("count", 0):
                self.act(fault["kind"], fault.get("seconds", 0.2))
                return fault["kind"]
        return None

    def act(self, kind, seconds):
        if kind == "die":
            os._exit(1)
        elif kind == "hang":
            time.sleep(FOR_EVER)
        elif kind == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(FOR_EVER)  # this thread may run on for a moment, and would answer
        elif kind == "slow":
            time.sleep(seconds)

    def spoil(self, event, seen):
        kind = self.kind(event)
        if kind == "done":
            return seen._replace(done=True)
        if kind == "short_frame":
            return seen._replace(frame=seen.frame[:-7])
        if kind == "long_frame":
            return seen._replace(frame=seen.frame + b"1234567")
        if kind == "garbage_json":
            return seen._replace(info=b'{"inventory": [')
        if kind == "no_health":
            info = {**json.loads(seen.info), "health": float("nan")}
            return seen._replace(info=json.dumps(info).encode())
        return seen


class FaultySession:
    def __init__(self, session, faults):
        self.session, self.faults = session, faults

    @property
    def is_playing(self):
        return self.session.is_playing

    def begin(self, mission, seed):
        self.faults.kind("mission")
        self.session.begin(mission, seed)

    def observe(self):
        return self.faults.spoil("peek", self.session.observe())

    def step(self, step):
        return self.faults.spoil("step", self.session.step(step))

    def quit(self):
        self.session.quit()


class FaultyService(Service):
    def __init__(self, session, port, faults):
        self.faults = faults
        super().__init__(session, port, log)

    def _answer(self, connection, message):
        if message.startswith(b"<Exit"):
            self.faults.kind("exit")
        return super()._answer(connection, message)


def main(arguments):
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    owner = OwnerProcess(int(options["--owner"]) if "--owner" in options else None)
    faults = Faults()
    faults.kind("launch")
    session = FaultySession(MissionServer(log), faults)
    return run(FaultyService(session, int(options["--port"]), faults), owner)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
