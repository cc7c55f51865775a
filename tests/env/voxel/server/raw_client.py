"""A client of the wire protocol in a few lines, after MalmoEnv; and a service to talk to."""

import contextlib
import json
import socket
import struct
import threading
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.server.service import HOST, Service
from rllib_minestudio.env.voxel.server.session import MissionServer

HELLO = b"<MalmoEnv0.37.0/>"
TIMEOUT = 60.0


class Reply(NamedTuple):
    frame: bytes
    info: dict
    done: bool
    reward: float = 0.0


def mission(width=64, height=64, biome=None, inventory=None):
    """A MissionInit with what counts, in MineStudio's namespace and with its blanks."""
    stacks = "".join(
        f'<InventoryObject slot="{slot}" type="{item}" quantity="{quantity}"/>'
        for slot, (item, quantity) in (inventory or {}).items()
    )
    spawn = f"<PreferredSpawnBiome>{biome}</PreferredSpawnBiome>" if biome else ""
    return (
        '<MissionInit xmlns="http://ProjectMalmo.microsoft.com"><Mission><AgentSection>'
        f"<AgentStart><Inventory>{stacks}</Inventory>{spawn}</AgentStart><AgentHandlers>"
        f"<VideoProducer><Width>{width} </Width><Height>{height}</Height></VideoProducer>"
        "</AgentHandlers></AgentSection></Mission></MissionInit>"
    ).encode()


class RawClient:
    def __init__(self, port, hello=HELLO):
        self.socket = socket.create_connection((HOST, port), timeout=TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hello:
            self.send(hello)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, payload):
        self.socket.sendall(struct.pack("!I", len(payload)) + payload)

    def receive(self):
        header = self.socket.recv(4, socket.MSG_WAITALL)
        if not header:
            raise EOFError
        (length,) = struct.unpack("!I", header)
        payload = b""
        while len(payload) < length:
            payload += self.socket.recv(length - len(payload))
        return payload

    def is_closed(self):
        """Whether the server has closed the connection; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def ask(self, payload):
        self.send(payload)
        (answer,) = struct.unpack("!I", self.receive())
        return answer

    def begin(self, document=None, seed=0):
        assert self.ask(b"<Quit/>") == 1
        self.send(document or mission())
        return self.ask(b"uid:0:0:1:true" + (f":{seed}".encode() if seed is not None else b""))

    def peek(self):
        self.send(b"<Peek/>")
        frame, info, done = self.receive(), self.receive(), self.receive()
        return Reply(frame, json.loads(info), bool(done[0]))

    def step(self, *lines):
        self.send(b"<StepClient0>" + "\n".join(lines).encode() + b"</StepClient0 >")
        frame, facts, info = self.receive(), self.receive(), self.receive()
        self.send(b"<StepServer></StepServer>")
        reward, done, sent = struct.unpack("!dbb", facts)
        assert sent == 1
        return Reply(frame, json.loads(info), bool(done), reward)


def image(frame, width, height):
    """The picture of a frame: uint8 [height, width, 3], top row first."""
    return np.frombuffer(frame, np.uint8).reshape(height, width, 3)[::-1]


@contextlib.contextmanager
def serving(session=None):
    """A service in a thread of this process; yields it and the lines that it logged."""
    lines = []
    service = Service(session or MissionServer(lines.append), 0, lines.append)
    service.lines = lines
    thread = threading.Thread(target=service.serve)
    thread.start()
    try:
        yield service
    finally:
        service.close()
        thread.join(TIMEOUT)
        assert not thread.is_alive()
