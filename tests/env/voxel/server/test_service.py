"""The wire protocol over a real socket, and the game behind it."""

import json
import socket
import struct
import time

import numpy as np
import pytest

from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.env.voxel.game.statistics import STATISTICS
from rllib_minestudio.env.voxel.server import service as service_module
from rllib_minestudio.env.voxel.server.service import LARGEST_MESSAGE, MAX_CONNECTIONS
from rllib_minestudio.env.voxel.server.session import MissionServer
from tests.env.voxel.server.raw_client import RawClient, image, mission, serving


@pytest.fixture(scope="module")
def service():
    with serving() as running:
        yield running


@pytest.fixture
def client(service):
    with RawClient(service.port) as connected:
        yield connected


def actions(count, seed=0):
    """Random actions as the protocol and as the engine have them."""
    random = np.random.default_rng(seed)
    keys = ("forward", "left", "back", "right", "jump", "sneak", "sprint", "attack", "use")
    keys += ("inventory", "hotbar.1", "hotbar.6")
    for _ in range(count):
        action = {key: int(random.random() < 0.3) for key in keys}
        action["camera"] = tuple(random.normal(0, 15, 2).tolist())
        lines = [f"{key} {action[key]}" for key in keys]
        yield [*lines, "pickItem 0", "camera {} {}".format(*action["camera"])], action


def test_the_game_is_the_embedded_backends_bit_by_bit(client):
    options = EnvOptions.from_mapping(
        {
            "obs_size": (96, 64),
            "preferred_spawn_biome": "plains",
            "inventory": {0: {"type": "iron_sword"}, 5: {"type": "dirt", "quantity": 12}},
        }
    )
    backend = VoxelBackend(options)
    backend.seed(7)
    stacks = {0: ("iron_sword", 1), 5: ("minecraft:dirt", 12)}
    assert client.begin(mission(96, 64, "plains", stacks), seed=7) == 1
    first = client.peek()
    np.testing.assert_array_equal(image(first.frame, 96, 64), backend.reset()["pov"])
    commands = {3: "/summon cow ~2 ~ ~", 50: "/time set 13000", 60: "/kill"}
    for tick, (lines, action) in enumerate(actions(120)):
        if tick in commands:
            seen = client.step(f"chat {commands[tick]}")
            obs, _, done, info = backend.execute_cmd(commands[tick])
        else:
            seen = client.step(*lines)
            obs, _, done, info = backend.step(action)
        np.testing.assert_array_equal(image(seen.frame, 96, 64), obs["pov"])
        assert seen.done == done
        info |= obs
        for group in STATISTICS:
            assert seen.info[group] == info[group]
        position = {"x": seen.info["xpos"], "y": seen.info["ypos"], "z": seen.info["zpos"]}
        position |= {"pitch": seen.info["pitch"], "yaw": seen.info["yaw"]}
        assert position == info["player_pos"]
        inventory = {stack.pop("slot_id"): stack for stack in seen.info["inventory"]}
        assert inventory == info["inventory"]
        equipped = {place: json.loads(item) for place, item in seen.info["equipped_items"].items()}
        assert equipped == info["equipped_items"]
        assert seen.info["health"] == info["health"]
        assert seen.info["isGuiOpen"] == info["isGuiOpen"]


def test_a_log_becomes_planks_over_the_wire(client):
    client.begin(mission(inventory={0: ("oak_log", 2)}), seed=1)
    assert not client.peek().info["isGuiOpen"]
    assert client.step("inventory 1").info["isGuiOpen"]
    for camera in ("camera 10.05 -10.8", "camera -18.6 13.5", "camera 1.5 8.4"):
        client.step(camera)
        client.step("attack 1")
        seen = client.step()
    assert seen.info["craft_item"] == {"oak_planks": 4}
    client.step("inventory 1")
    seen = client.step()
    assert not seen.info["isGuiOpen"]
    assert seen.info["inventory"][0] == {"slot_id": 0, "type": "oak_log", "quantity": 1}


def test_missions_without_a_seed_go_on_where_the_last_seed_leads(client):
    def places():
        client.begin(seed=3)
        for _ in range(2):
            client.begin(seed=None)
            yield client.peek().info["yaw"]

    first, again = list(places()), list(places())
    assert first == again
    assert len(set(first)) == 2


def test_a_dead_player_is_done_once_and_for_all(client):
    client.begin()
    client.step("chat /tp @p ~ 120 ~")
    deaths = [client.step("forward 1") for _ in range(100)]
    first = next(tick for tick, seen in enumerate(deaths) if seen.done)
    assert all(seen.done for seen in deaths[first:])
    assert deaths[-1].info == deaths[first].info
    client.begin()
    assert not client.step().done


def test_who_falls_out_of_the_world_dies_and_everything_is_told_until_then(client):
    client.begin(seed=1)
    client.step("chat /tp @p ~ -40 ~")
    fall = [client.step("camera 9 5", "voxels -1,1,-1,1,-1,1") for _ in range(100)]
    assert fall[-1].done and fall[-1].info["health"] == 0.0
    assert all(seen.done == (seen.info["health"] == 0.0) for seen in fall)
    assert fall[-1].info["ypos"] < -64.0
    assert {block["type"] for block in fall[-1].info["voxels"]} == {"air"}
    client.begin(seed=1)
    seen = client.step()
    assert not seen.done and seen.info["ypos"] > 60.0


def test_blocks_and_mobs_come_on_request(client):
    client.begin(seed=1)
    assert "voxels" not in client.step("voxels 0,0,0,0,0,0").info
    client.step("chat /setblock ~1 ~2 ~ obsidian")
    client.step("chat /summon sheep ~3 ~ ~")
    seen = client.step("voxels -1,1,-1,2,-1,1", "mobs -5,5,-5,5,-5,5").info
    assert len(seen["voxels"]) == 3 * 4 * 3
    (obsidian,) = (block for block in seen["voxels"] if block["type"] == "obsidian")
    x, y, z = (int(seen[name] // 1) for name in ("xpos", "ypos", "zpos"))
    assert (obsidian["x"], obsidian["y"], obsidian["z"]) == (x + 1, y + 2, z)
    assert [mob["name"] for mob in seen["mobs"]] == ["sheep"]
    assert client.step("mobs -1,1,-1,1,-1,1").info["mobs"] == []


def test_what_the_engine_does_not_know_is_left_out_with_a_warning(service, client):
    client.begin(mission(biome="mushroom_fields", inventory={0: ("brass", 1), 99: ("dirt", 1)}))
    stacks = [stack for stack in client.peek().info["inventory"] if stack["type"] != "none"]
    assert stacks == []
    client.step("chat /locate village")
    client.step("chat /locate village")
    warnings = [line for line in service.lines if line.startswith("WARN ")]
    for word in ("mushroom_fields", "brass", "slot 99", "/locate village"):
        assert len([warning for warning in warnings if word in warning]) == 1


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"<Peek/>", "without a mission"),
        (b"<StepClient0>forward 1</StepClient0 >", "without a mission"),
        (b"<StepClient0>forward 1", "malformed step"),
        (b"<StepClient0>\xff\xfe</StepClient0 >", "UTF-8"),
        (b"<StepClient0>fly 1</StepClient0 >", "unknown line"),
        (b"<StepClient0>camera nan 0</StepClient0 >", "needs a number"),
        (b"<StepClient0>voxels -50,50,-50,50,-50,50</StepClient0 >", "32768 blocks"),
        (b"<StepClient0>voxels 5,-5,0,1,0,1</StepClient0 >", "in order"),
        (b"<Reboot/>", "unknown message"),
        (b"", "unknown message"),
        (b"<MissionInit><Width>64</Width>", "not XML"),
        (b"<MissionInit><Width>64</Width><Height>x</Height></MissionInit>", "whole number"),
        (mission(100_000, 100_000), "16 to 4096"),
    ],
)
def test_a_malformed_message_costs_its_sender_the_connection_only(
    service, client, payload, complaint
):
    assert client.ask(b"<Quit/>") == 1
    client.send(payload)
    assert client.is_closed()
    assert complaint in service.lines[-1]
    with RawClient(service.port) as next_client:
        assert next_client.begin() == 1
        assert not next_client.step("forward 1").done


def test_a_length_is_believed_only_as_far_as_allowed(service):
    with RawClient(service.port) as client:
        client.socket.sendall(struct.pack("!I", LARGEST_MESSAGE + 1))
        assert client.is_closed()
    with RawClient(service.port, hello=None) as client:
        client.socket.sendall(struct.pack("!I", 2**32 - 1))
        assert client.is_closed()
    with RawClient(service.port, hello=b"GET / HTTP/1.1") as client:
        assert client.is_closed()
    assert "greeting" in service.lines[-1]


def test_a_client_that_stops_in_the_middle_is_dropped(service, monkeypatch):
    monkeypatch.setattr(service_module, "_SECONDS_PER_MESSAGE", 0.2)
    with RawClient(service.port) as half:
        half.socket.sendall(struct.pack("!I", 100) + b"<StepClient0>")
        assert half.is_closed()
    monkeypatch.setattr(service_module, "_SECONDS_TO_HELLO", 0.2)
    with RawClient(service.port, hello=None) as silent:
        assert silent.is_closed()
    assert service.lines[-1] == "ERROR closed a connection that was too slow"


def test_one_byte_at_a_time_does_not_buy_time(service, monkeypatch):
    monkeypatch.setattr(service_module, "_SECONDS_PER_MESSAGE", 0.3)
    with RawClient(service.port) as client:
        start = time.monotonic()
        with pytest.raises(ConnectionError):
            for byte in struct.pack("!I", 1000) + bytes(1000):
                client.socket.sendall(bytes([byte]))
                time.sleep(0.05)
        assert time.monotonic() - start < 20.0  # of the 50 that all bytes take


def test_connections_are_limited_and_given_back(service):
    clients = [RawClient(service.port) for _ in range(MAX_CONNECTIONS)]
    for client in clients:
        assert client.ask(b"<Quit/>") == 1
    with RawClient(service.port) as refused:
        assert refused.is_closed()
    for client in clients:
        client.send(b"<Disconnect/>")
        assert client.is_closed()
    with RawClient(service.port) as client:
        assert client.begin() == 1


def test_an_engine_that_fails_takes_only_the_mission_with_it():
    class Failing(MissionServer):
        def step(self, step):
            raise RuntimeError("out of luck")

    lines = []
    with serving(Failing(lines.append)) as service:
        with RawClient(service.port) as client:
            client.begin()
            client.send(b"<StepClient0></StepClient0 >")
            assert client.is_closed()
        assert service.lines[-1] == "ERROR the engine failed: RuntimeError: out of luck"
        with RawClient(service.port) as client:
            assert client.begin() == 1
            assert len(client.peek().frame) == 64 * 64 * 3


def test_it_listens_on_this_machine_only(service):
    assert service._listener.getsockname()[0] == "127.0.0.1"


def test_find_tells_the_port(service, client):
    assert client.ask(b"<Find>uid:1:0</Find>") == service.port


def test_a_taken_port_is_replaced():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        lines = []
        service = service_module.Service(
            MissionServer(lines.append), taken.getsockname()[1], lines.append
        )
        try:
            assert service.port != taken.getsockname()[1]
            assert "taking a free one" in lines[-1]
        finally:
            service.close()
