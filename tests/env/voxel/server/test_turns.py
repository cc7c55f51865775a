"""A hung call, and clients that do nothing, keep nobody else from playing."""

import threading

from rllib_minestudio.env.voxel.server.service import MAX_CONNECTIONS, Service
from rllib_minestudio.env.voxel.server.session import MissionServer
from tests.env.voxel.server.raw_client import RawClient, mission


class Hanging(MissionServer):
    """Hangs in its first step."""

    def __init__(self, log):
        super().__init__(log)
        self.stepping, self.released = threading.Event(), threading.Event()

    def step(self, step):
        self.stepping.set()
        self.released.wait()
        return super().step(step)


def serve(session, **options):
    lines = []
    service = Service(session, 0, lines.append, **options)
    threading.Thread(target=service.serve, daemon=True).start()
    return service, lines


def test_idle_clients_make_room():
    service, _ = serve(MissionServer(print))
    idle = [RawClient(service.port) for _ in range(3 * MAX_CONNECTIONS)]
    with RawClient(service.port) as client:
        assert client.begin(mission()) == 1
        for _ in range(2 * MAX_CONNECTIONS):  # the one that plays keeps its place
            idle.append(RawClient(service.port))
        assert len(client.peek().frame) == 64 * 64 * 3
    for one in idle:
        one.socket.close()
    service.close()


def test_a_hung_call_is_left_to_itself():
    session = Hanging(print)
    service, lines = serve(session, seconds_per_call=0.5)
    with RawClient(service.port) as hung:
        assert hung.begin(mission()) == 1
        hung.send(b"<StepClient0>forward 1</StepClient0 >")
        assert session.stepping.wait(60.0)
        with RawClient(service.port) as second:
            second.send(b"<Peek/>")
            assert second.is_closed()  # it waited as long as a call may take
        with RawClient(service.port) as third:
            assert third.begin(mission()) == 1
            assert len(third.peek().frame) == 64 * 64 * 3
        assert hung.is_closed()
    assert any("new engine" in line for line in lines)
    session.released.set()
    service.close()
