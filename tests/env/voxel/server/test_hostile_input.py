"""Arbitrary bytes: the readers refuse them with `ProtocolError`, the engine's process survives."""

import random
import resource
import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.server.session import (
    Mission,
    ProtocolError,
    StepRequest,
    read_mission,
    read_seed,
    read_step,
)
from tests.env.voxel.server.raw_client import RawClient, mission, serving

LINES = """forward 1|hotbar.1 0
attack -1|use True|inventory|jump nan|camera 0.0 -10.5|camera 1e400 0
camera inf nan|camera 1|chat /kill @e|chat /execute as @e at @s run summon cow|chat
voxels 0,0,0,0,0,0
voxels -7,7,-7,7,-7,7|voxels 7,-7,0,0,0,0|mobs -20,20,-5,5,-20,20|mobs a,b|pickItem 0|\t|é|"""
STEP_LIKE = st.lists(st.sampled_from(LINES.replace("\n", "|").split("|"))).map("\n".join)
TAGS = """<MissionInit>|</MissionInit>|<Width>|</Width>|<Height>|</Height>|64|x|&amp;|&unknown;|<|é
<InventoryObject slot='1' type='dirt'/>|<InventoryObject/>|<!DOCTYPE x>|<?xml version='1.0'?>"""
MISSION_LIKE = st.lists(st.sampled_from(TAGS.replace("\n", "|").split("|"))).map("".join)


def or_refused(read, text):
    try:
        return read(text)
    except ProtocolError:
        return None


@given(st.text() | STEP_LIKE)
def test_a_step_is_read_or_refused(text):
    step = or_refused(read_step, text)
    assert step is None or isinstance(step, StepRequest)


@given(st.binary() | MISSION_LIKE.map(str.encode))
def test_a_mission_is_read_or_refused(document):
    found = or_refused(read_mission, document)
    assert found is None or isinstance(found, Mission)


@given(st.binary() | st.from_regex(rb"u:0:0:1:true(:-?[0-9]{1,30})?", fullmatch=True))
def test_a_token_is_read_or_refused(token):
    seed = or_refused(read_seed, token)
    assert seed is None or -(2**63) <= seed < 2**63


def test_a_mission_may_not_declare_entities():
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha"}">' for i in range(9))
    document = f"<!DOCTYPE m [{laughs}]><MissionInit><Width>&l8;</Width></MissionInit>"
    with pytest.raises(ProtocolError, match="document type"):
        read_mission(document.encode())


def test_a_mission_may_be_deep_or_full_of_items():
    with pytest.raises(ProtocolError, match="not XML"):
        read_mission(b"<a>" * 100_000)
    items = b"<InventoryObject slot='1' type='dirt' quantity='1'/>" * 1001
    with pytest.raises(ProtocolError, match="1000 stacks"):
        read_mission(b"<MissionInit>" + items + b"</MissionInit>")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(step=STEP_LIKE)
def test_a_step_that_is_read_can_be_played(playing, step):
    service, client = playing
    client.send(b"<StepClient0>" + step.encode() + b"</StepClient0 >")
    if or_refused(read_step, step) is None:
        assert client.is_closed()
        playing[1] = RawClient(service.port)
        playing[1].begin()
    else:
        frame, _, _ = client.receive(), client.receive(), client.receive()
        assert len(frame) == 64 * 64 * 3
    assert not any("engine failed" in line for line in service.lines)


@pytest.fixture
def playing():
    with serving() as service:
        client = RawClient(service.port)
        client.begin()
        pair = [service, client]
        yield pair
        pair[1].socket.close()


def test_random_bytes_neither_end_the_service_nor_fill_its_memory():
    generator = random.Random(0)
    starts = [b"", b"<StepClient0>", b"<MissionInit", b"<Peek/>", b"<Quit/>", b"<Disconnect/>"]
    with serving() as service:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for attempt in range(300):
            with RawClient(
                service.port, hello=None if attempt % 3 == 0 else b"<MalmoEnv"
            ) as client:
                body = generator.choice(starts) + generator.randbytes(generator.randrange(200))
                length = generator.choice([len(body), len(body) + 5, 2**20, 2**31, 2**32 - 1, 0])
                try:
                    client.socket.sendall(struct.pack("!I", length) + body)
                    client.socket.shutdown(socket.SHUT_WR)
                    while client.socket.recv(4096):
                        pass
                except OSError:
                    pass  # reset: the service did not read all that was sent
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 50_000  # KiB; the lengths alone would have been 600 GB
        with RawClient(service.port) as client:
            assert client.begin(mission()) == 1
            assert len(client.peek().frame) == 64 * 64 * 3
