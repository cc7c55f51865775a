"""The player's motion beside prismarine-physics, an independent simulation of Minecraft 1.16.5.

The package is driven and corrected as Java's client is (play.js says how). Neither side has Java's
table of sines, its pushing out of blocks, or its omission of motions below 0.0003 blocks.

Needs node and npm; the packages are downloaded once, beside this file (about 440 MB).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, FAMILY_OF, block_of
from tests.env.voxel.arena import FLOOR, state
from tests.env.voxel.oracle.scenarios import (
    GROUND,
    Box,
    Scenario,
    named,
    random_ones,
    random_shapes,
)

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
TOLERANCE = 1e-4
"""Blocks, along each axis, at every tick."""
NAMED = named()
RANDOM = random_ones(courses=80, players=5, seed=1)
AMONG_SHAPES = random_shapes(courses=80, players=5, seed=2)
ALL = NAMED + RANDOM + AMONG_SHAPES
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
INSTALL_SECONDS = 60


def install() -> None:
    """Downloads the packages of package-lock.json unless they are there; skips if that fails."""
    lock, installed = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime > lock.stat().st_mtime:
        return
    try:
        done = subprocess.run(
            INSTALL, cwd=HERE, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(INSTALL)} took more than {INSTALL_SECONDS} s")
    if done.returncode:
        pytest.skip(f"{' '.join(INSTALL)} failed: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def theirs() -> dict[str, np.ndarray]:
    """What prismarine-physics makes of each scenario, float64 [ticks, 5]."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("needs node and npm")
    install()
    played = subprocess.run(
        ["node", "play.js"],
        cwd=HERE,
        input=json.dumps([asdict(s) | {"boxes": GROUND + s.boxes} for s in ALL]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not played.returncode, played.stderr
    traces = json.loads(played.stdout)
    return {s.name: np.array(trace) for s, trace in zip(ALL, traces, strict=True)}


def _stored(written: str) -> int:
    """The block of our world for one written as in commands; what follows or is refused is left."""
    name, _, properties = written.rstrip("]").partition("[")
    kind = BLOCK_ID[name]
    stored = FAMILY_OF[kind].stored
    pairs = (pair.split("=") for pair in properties.split(",") if pair)
    return block_of(kind, {key: value for key, value in pairs if key in stored})


class Ours:
    """Our engine, which plays one scenario after the other on the same ground."""

    def __init__(self) -> None:
        self.engine = VoxelEngine(frame_size=(32, 32))
        self.engine.reset(1, "plains")
        self.engine.execute(f"/tp @p 0 {FLOOR} 0")
        self.engine.execute("/kill @e[type=!player]")
        self._place(GROUND)
        self._boxes: list[Box] = []

    def _place(self, boxes: list[Box]) -> None:
        fill = state(self.engine).world.fill
        for x0, y0, z0, x1, y1, z1, block in boxes:
            fill((x0, x1 + 1), (y0, y1 + 1), (z0, z1 + 1), _stored(block))

    def _build(self, boxes: list[Box]) -> None:
        """Puts boxes on the ground in place of those of the last scenario."""
        if boxes != self._boxes:
            ground = FLOOR - 1
            self._place(
                [[*box[:-1], "stone" if box[1] == ground else "air"] for box in self._boxes]
            )
            self._place(boxes)
            self._boxes = boxes

    def play(self, scenario: Scenario) -> np.ndarray:
        """What happens in a scenario, float64 [ticks, 5] like play.js."""
        self._build(scenario.boxes)
        player = self.engine.player
        player.revive()
        player.records["keys"] = 0
        self.engine.execute(f"/tp @p ~ ~ ~ {scenario.yaw} 0")
        player.position[:] = scenario.start
        trace = []
        for action in scenario.actions:
            self.engine.tick(action)
            trace.append([*player.position, player.sprinting, player.on_ground])
        return np.array(trace)


@pytest.fixture(scope="module")
def ours() -> Ours:
    return Ours()


def deviation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Largest difference of a coordinate by tick, in blocks."""
    return np.abs(one[:, :3] - other[:, :3]).max(1)


@pytest.mark.parametrize("scenario", NAMED, ids=lambda scenario: scenario.name)
def test_each_rule_moves_the_player_alike(scenario, ours, theirs):
    trace, expected = ours.play(scenario), theirs[scenario.name]
    for tick in np.flatnonzero(deviation(trace, expected) > TOLERANCE)[:1]:
        pytest.fail(
            f"tick {tick}, {scenario.actions[tick]}: {trace[tick]} instead of {expected[tick]}"
            f" (x, y, z, sprinting, on the ground), after {trace[max(tick - 1, 0)]}"
        )


@pytest.mark.parametrize("players", (RANDOM, AMONG_SHAPES), ids=("cubes", "shapes"))
def test_98_percent_of_random_players_go_alike(players, ours, theirs):
    others = [
        scenario.name
        for scenario in players
        if deviation(ours.play(scenario), theirs[scenario.name]).max() > TOLERANCE
    ]
    assert len(others) <= 0.02 * len(players), others


def test_random_players_do_what_is_worth_comparing(theirs):
    traces = [theirs[scenario.name] for scenario in RANDOM]
    ways = [np.hypot(*np.diff(trace[:, [0, 2]], axis=0).T).sum() for trace in traces]
    assert np.median(ways) > 6.0
    assert np.mean([trace[:, 3].any() for trace in traces]) > 0.3, "sprint"
    assert np.mean([(trace[:, 1] > FLOOR + 0.9).any() for trace in traces]) > 0.1, "climb"
    assert np.mean([(trace[:, 1] < FLOOR - 0.5).any() for trace in traces]) > 0.05, "fall"
