"""The real game as a backend, which callbacks know as `sim.env`."""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import struct
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from lxml import etree
from minestudio.simulator.minerl.env._singleagent import _SingleAgentEnv
from minestudio.simulator.minerl.herobraine.env_specs.human_survival_specs import HumanSurvival
from numpy.typing import NDArray

from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES, modern
from rllib_minestudio.env.backends.minecraft.process import (
    GameProcess,
    collect_orphans,
    turn_to_start,
)
from rllib_minestudio.env.backends.protocol import NO_SNAPSHOTS, KeySpace, RawObs, RawStep
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.errors import EngineError, InvalidOptionsError
from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.options import is_number
from rllib_minestudio.foundation.values import plain

# ------- missions and steps in MineStudio's protocol, encoded and decoded by MineStudio's own handl
# Missions and steps in MineStudio's protocol, encoded and decoded by MineStudio's own handlers.
# The package's `_SingleAgentEnv` writes the mission and the actions and reads the answers; its
# handling of connections and processes is overridden or never called.

_OK = struct.Struct("!I")
_STEP_REPLY = struct.Struct("!dbb")
_PEEK_REPLY = struct.Struct("!b")
_ASK_AGAIN_S = 0.1

_AGENT = "agent_0"


class MissionClient(_SingleAgentEnv):
    """The client of a game; each mission has its own connection.

    Attributes:
        frame_shape: (height, width, 3) of the game's frames.
    """

    def __init__(self, options: EnvOptions) -> None:
        """Describe the mission of all episodes, without connecting to a game."""
        inventory = {
            slot: {"type": stack["type"], "quantity": stack.get("quantity", 1)}
            for slot, stack in options.inventory.items()
        }
        super().__init__(
            env_spec=HumanSurvival(  # the ranges are MinecraftSim's
                fov_range=[70, 70],
                gamma_range=[2, 2],
                guiscale_range=[1, 1],
                cursor_size_range=[16.0, 16.0],
                frameskip=1,
                resolution=options.render_size,
                inventory=inventory,
                preferred_spawn_biome=options.preferred_spawn_biome,
            )
        )
        width, height = options.render_size
        self.frame_shape = (height, width, 3)
        self._connection: Connection | None = None

    def begin_mission(self, port: int, seed: int, timeout_s: float) -> tuple[dict, dict]:
        """Load a new world.

        Args:
            port: The game's port.
            seed: The world's seed.
            timeout_s: Seconds in which all of it has to be done.

        Returns:
            Observation and info of the moment before the first tick.

        Raises:
            EngineError: If the game fails or is too slow.
        """
        self.disconnect()
        deadline = time.monotonic() + timeout_s
        # Handlers keep what they drew at random for a mission, so each mission gets new ones.
        self.task.reset()
        self._setup_spaces()
        episode = str(uuid.uuid4())
        (mission,) = self._setup_agent_xmls(episode)
        self._connection = connection = Connection(port, timeout_s)
        connection.begin("loading a world", deadline - time.monotonic())
        connection.send(b"<Quit/>")
        connection.receive_struct(_OK)
        document = etree.tostring(mission)
        token = f"{self._get_token(0, episode)}:1:true:{seed}".encode()
        while True:
            connection.send(document, token)
            if connection.receive_struct(_OK)[0] == 1:
                break
            time.sleep(_ASK_AGAIN_S)  # it is still closing the last world
        return self._first_observation(connection)

    def play(self, action: Mapping[str, Any], timeout_s: float) -> tuple[dict, float, bool, dict]:
        """Play one tick.

        Args:
            action: Keys and `camera`, and optionally `chat`, `voxels` and `mobs`, as in MineStudio.
            timeout_s: Seconds that it may take.

        Returns:
            Observation, reward, whether the game reports the mission as over, info.

        Raises:
            EngineError: If the game fails, is too slow, or has no mission.
        """
        if self._connection is None:
            raise EngineError("The game has no world loaded.")
        connection = self._connection
        text = self._process_action(_AGENT, action)
        connection.begin("a step", timeout_s)
        connection.send(f"<StepClient0>{text}</StepClient0 >".encode())
        frame = self._receive_frame(connection)
        if frame is None:
            raise EngineError("The game sent no frame.")
        reward, done, _ = connection.receive_struct(_STEP_REPLY)
        if not math.isfinite(reward):
            raise EngineError(f"The game gave the reward {reward}: it must be finite.")
        observation, info = self._understand(frame, connection.receive())
        # Advances the world around the player; there is no answer.
        connection.send(b"<StepServer></StepServer>")
        return observation, reward, done == 1, info

    def disconnect(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _first_observation(self, connection: Connection) -> tuple[dict, dict]:
        """Ask for an observation until there is one."""
        while True:
            connection.send(b"<Peek/>")
            frame = self._receive_frame(connection)
            text = connection.receive()
            (done,) = connection.receive_struct(_PEEK_REPLY)
            if done:
                raise EngineError("The game says that the mission is over before it has begun.")
            if frame is not None:
                return self._understand(frame, text)
            time.sleep(_ASK_AGAIN_S)

    def _receive_frame(self, connection: Connection) -> np.ndarray | None:
        frame = np.empty(self.frame_shape, np.uint8)
        return frame if connection.receive_into(frame.reshape(-1)) else None

    def _understand(self, frame: np.ndarray, text: bytes) -> tuple[dict, dict]:
        """Read an answer with MineStudio's handlers; return plain observation and info."""
        try:
            seen, monitored = self._process_observation(_AGENT, frame.reshape(-1), text.decode())
            _refuse_nonsense({**seen["player_pos"], **monitored})
        except (ValueError, LookupError, TypeError, AssertionError, AttributeError) as error:
            raise EngineError(
                f"The game's info cannot be read ({type(error).__name__}: {error}): {text[:200]!r}"
            ) from error
        return plain_info(seen), plain_info(monitored)


def _refuse_nonsense(told: Mapping[str, Any]) -> None:
    """Check the numbers on which an agent, or the end of an episode, depends.

    Raises:
        ValueError: If a coordinate, an angle, the health or the food level is not finite.
    """
    for name in ("x", "y", "z", "pitch", "yaw", "health", "food_level"):
        value = told.get(name, 0.0)
        if not is_number(value):
            raise ValueError(f"{name} is {value!r}, which is not a finite number")


# ---------------------------------- messages to and from the game, each exchange under one deadline
# A message is its length, a big-endian uint32, followed by that many bytes.

_LENGTH = struct.Struct("!I")
_LARGEST_MESSAGE = 64 << 20
"""Bytes of the longest message accepted; a step may ask for a million blocks."""
_PROTOCOL = "0.37.0"
"""The protocol version that MineStudio's engine expects."""
_GOODBYE = b"<Disconnect/>"
_SECONDS_TO_SAY_GOODBYE = 1.0


class Connection:
    """A TCP connection to a game on this machine.

    MineStudio's own waits 120 s for every piece of a message, and takes a closed connection for an
    empty message.
    """

    def __init__(self, port: int, timeout_s: float) -> None:
        """Connect and send the greeting.

        Raises:
            EngineError: If nothing listens, or the greeting is not taken in time.
        """
        self._deadline = time.monotonic() + timeout_s
        self._waits_for = "connecting"
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        except OSError as error:
            raise EngineError(f"Nothing answers on the game's port {port}: {error}.") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._header = bytearray(_LENGTH.size)
        self.send(f"<MalmoEnv{_PROTOCOL}/>".encode())

    def begin(self, exchange: str, timeout_s: float) -> None:
        """Start the clock for an exchange, which errors call `exchange` (such as "a step")."""
        self._deadline = time.monotonic() + timeout_s
        self._waits_for = exchange

    def send(self, *messages: bytes) -> None:
        """Send messages.

        Raises:
            EngineError: If the game does not take them before the deadline, or is gone.
        """
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(b"".join(_LENGTH.pack(len(each)) + each for each in messages))
        except TimeoutError as error:
            raise self._too_late() from error
        except OSError as error:
            raise EngineError(f"The game is gone ({self._waits_for}): {error}.") from error

    def receive(self) -> bytes:
        """Receive a message of any length up to 64 MiB.

        Raises:
            EngineError: If it does not arrive before the deadline, is longer, or the game is gone.
        """
        length = self._length()
        if length > _LARGEST_MESSAGE:
            raise EngineError(f"The game announced a message of {length} bytes; that is too long.")
        message = bytearray(length)
        self._fill(memoryview(message))
        return bytes(message)

    def receive_into(self, array: NDArray[np.uint8]) -> bool:
        """Receive a message of exactly the array's length, or an empty one.

        Returns:
            Whether it was not empty.

        Raises:
            EngineError: As `receive`, or if it has another length.
        """
        length = self._length()
        if length not in (0, array.size):
            raise EngineError(
                f"The game sent a frame of {length} bytes instead of {array.size}: its window has "
                "another size than minecraft's render_size, or the connection is out of step."
            )
        if length:
            self._fill(array.data)
        return length > 0

    def receive_struct(self, layout: struct.Struct) -> tuple:
        """Receive a message of a fixed layout.

        Raises:
            EngineError: As `receive`, or if it has another length.
        """
        message = self.receive()
        if len(message) != layout.size:
            raise EngineError(
                f"The game answered {self._waits_for} with {len(message)} bytes instead of "
                f"{layout.size}."
            )
        return layout.unpack(message)

    def close(self) -> None:
        """Say goodbye and close; may be called twice."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(_SECONDS_TO_SAY_GOODBYE)
            self._socket.sendall(_LENGTH.pack(len(_GOODBYE)) + _GOODBYE)
        self._socket.close()

    def _length(self) -> int:
        self._fill(memoryview(self._header))
        return _LENGTH.unpack(self._header)[0]

    def _fill(self, view: memoryview) -> None:
        """Receive exactly as many bytes as the view has."""
        received = 0
        while received < len(view):
            try:
                self._socket.settimeout(self._left())
                count = self._socket.recv_into(view[received:])
            except TimeoutError as error:
                raise self._too_late() from error
            except OSError as error:
                raise EngineError(f"The game is gone ({self._waits_for}): {error}.") from error
            if count == 0:
                raise EngineError(f"The game has closed the connection ({self._waits_for}).")
            received += count

    def _left(self) -> float:
        """Return the seconds left, or raise TimeoutError."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _too_late(self) -> EngineError:
        return EngineError(f"The game has not answered in time ({self._waits_for}).")


# ---------------------------------------------------------------- MineStudio's info as plain Python
# No arrays, no default dictionaries, nothing unpicklable.

_OF_ARRAYS = ("equipped_items", "location_stats")
"""Entries that MineStudio's handlers return as 0-dimensional arrays; the rest is as in JSON."""


def plain_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the handlers' results as plain objects, which share nothing with them."""
    told = {}
    for key, value in info.items():
        if key in _OF_ARRAYS:
            value = plain(value)
        elif isinstance(value, defaultdict):  # statistics
            value = dict(value)
        told[key] = value
    return told


# ------------------------------------ the real game as a backend, which callbacks know as `sim.env`

_TURNS_PER_LAUNCH = 20
"""Launches and world loads of other processes to wait for before giving up."""

_logger = logging.getLogger(__name__)


class MinecraftBackend:
    """MineStudio's engine, launched by the first hard reset.

    Any failure of the game raises EngineError and ends all its processes; the next `reset` launches
    it again.
    """

    def __init__(self, options: EnvOptions) -> None:
        self._options = options
        self._minecraft = options.minecraft
        if collected := collect_orphans():
            _logger.warning("Ended %d games whose workers had died.", collected)
        self.action_space = KeySpace()
        self._session = MissionClient(options)
        self._process: GameProcess | None = None
        self._seed = options.seed
        self._episodes = 0
        self._pov = np.zeros(self._session.frame_shape, np.uint8)

    @property
    def process(self) -> GameProcess | None:
        """The running game, if there is one."""
        return self._process

    def begin_episode(self) -> bool:
        """Count an episode; after `restart_interval` of them, end the game and ask for a reset."""
        interval = self._minecraft.restart_interval
        is_due = bool(interval) and self._process is not None and self._episodes >= interval
        if is_due:
            self._end_process()
        self._episodes += 1
        return is_due

    def reset(self) -> RawObs:
        """Load a new world, in a new process if none is running."""
        options = self._minecraft
        patience = _TURNS_PER_LAUNCH * (options.launch_timeout_s + options.reset_timeout_s)
        with turn_to_start(options.starts_at_once, patience):
            if self._process is None or not self._process.is_alive:
                self._end_process()
                self._process = GameProcess(options, self._options.worker_index)
                self._episodes = 1
            try:
                raw_obs, _ = self._session.begin_mission(
                    self._process.port, self._seed, options.reset_timeout_s
                )
            except EngineError as error:
                raise self._failure(error) from error
        self._pov = raw_obs[POV]
        return raw_obs

    def snapshot(self) -> bytes:
        """Refuse, as Minecraft cannot save a game between two ticks."""
        raise InvalidOptionsError([NO_SNAPSHOTS])

    def restore(self, snapshot: bytes) -> None:
        """Refuse, as `snapshot` does."""
        raise InvalidOptionsError([NO_SNAPSHOTS])

    def step(self, action: Mapping[str, Any]) -> RawStep:
        """Play one tick; `drop` is not sent, as in MineStudio."""
        if command := action.get("chat"):
            action = {**action, "chat": modern(command)}
        try:
            raw_obs, reward, done, info = self._session.play(action, self._minecraft.step_timeout_s)
        except EngineError as error:
            raise self._failure(error) from error
        self._pov = raw_obs[POV]
        return raw_obs, reward, done or info.get("health", 1.0) <= 0.0, info

    def execute_cmd(self, command: str) -> RawStep:
        """Send a chat command; takes one tick without any key pressed."""
        return self.step({**self.action_space.no_op(), "chat": command})

    def noop_action(self) -> dict[str, Any]:
        """Return an action that does nothing."""
        return self.action_space.no_op()

    def seed(self, seed: int) -> None:
        """Set the seed of future worlds."""
        self._seed = seed

    def image(self, raw_obs: Mapping[str, Any]) -> np.ndarray:
        """Return a frame at the size of observations, scaled as MineStudio does."""
        return _scaled(raw_obs[POV], self._options.obs_size)

    def render(self, size: tuple[int, int]) -> np.ndarray:
        """Return the last frame at another size."""
        return _scaled(self._pov, size)

    def mobs_near(self, radius: float) -> list[dict[str, Any]]:
        """Return the mobs within `radius` blocks; takes one tick, in which the game lists them."""
        reach = int(radius) + 1
        box = [-reach, reach] * 3
        obs, _, _, info = self.step({**self.action_space.no_op(), "mobs": box})
        x, y, z = (obs["player_pos"][axis] for axis in "xyz")
        found = []
        for mob in info.get("mobs", []):
            offset = (mob["x"] - x, mob["y"] - y, mob["z"] - z)
            distance = float(np.linalg.norm(offset))
            if distance <= radius:
                found.append({"yaw": 0.0, "health": 0.0, **mob, "distance": distance})
        return sorted(found, key=lambda mob: mob["distance"])

    def item_names(self) -> list[str]:
        """Return the names of Minecraft's items."""
        return sorted(STACK_SIZES)

    def close(self) -> None:
        """End the game."""
        self._end_process()

    def _failure(self, error: EngineError) -> EngineError:
        """End the game, and return the error with the end of the game's output added."""
        words = self._process.last_words() if self._process is not None else ""
        self._end_process()
        return EngineError(f"{error} {words}".strip())

    def _end_process(self) -> None:
        self._session.disconnect()
        if self._process is not None:
            self._process.kill()
            self._process = None


def _scaled(frame: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return a copy of a frame, scaled to (width, height): callbacks may draw on it."""
    height, width = frame.shape[:2]
    if (width, height) == size:
        return np.array(frame, order="C")
    return cv2.resize(frame, dsize=size, interpolation=cv2.INTER_LINEAR)
