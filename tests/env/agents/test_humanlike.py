"""The human-like hunter hunts nearly as well, within a player's limits."""

from dataclasses import replace

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents import HumanlikeHunter, HumanLimits
from rllib_minestudio.env.agents.hunter import HumanHand

AHEAD = {"name": "cow", "x": 0.0, "y": 0.0, "z": 6.0, "health": 10.0}
BEHIND = {**AHEAD, "z": -6.0}
ASIDE = {**AHEAD, "x": -5.0}
STANDING = {"x": 0.0, "y": 0.0, "z": 0.0, "yaw": 0.0, "pitch": 0.0}
STEADY = HumanLimits(reaction_ticks=(4, 4), pause_rate=0.0, turn_noise=0.0)


@pytest.mark.slow
def test_it_kills_eight_of_ten_cows_on_average(cow_task):
    env = MineStudioEnv(cow_task, obs_size=[64, 64])
    kills = []
    for seed in range(5):
        hunter = HumanlikeHunter(["cow"], seed=seed)
        env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(hunter.act(env))
            total += reward
            ended = terminated or truncated
        kills.append(total)
    assert np.mean(kills) >= 8, kills


def test_it_does_not_know_of_what_is_behind_it():
    hunter = HumanlikeHunter(["cow"], seed=0, limits=STEADY)
    searching = [hunter.keys(STANDING, [BEHIND]) for _ in range(10)]
    nothing = HumanlikeHunter(["cow"], seed=0, limits=STEADY)
    assert searching == [nothing.keys(STANDING, []) for _ in range(10)]


def test_it_turns_towards_an_animal_only_after_its_reaction_time():
    hunter = HumanlikeHunter(["cow"], seed=0, limits=STEADY)
    for _ in range(6):
        hunter.keys(STANDING, [AHEAD])
    turns = [hunter.keys(STANDING, [ASIDE])["camera"][1] for _ in range(8)]
    assert all(abs(turn) < 0.1 for turn in turns[:4])
    assert all(turn > 0.5 for turn in turns[4:])


def test_its_turning_speed_changes_smoothly():
    hunter = HumanlikeHunter(["cow"], seed=0, limits=STEADY)
    turns = np.array([hunter.keys(STANDING, [ASIDE])["camera"] for _ in range(30)])
    changes = np.abs(np.diff(turns, axis=0, prepend=0.0))
    assert changes.max() <= STEADY.turn_acceleration + 1e-9
    assert np.abs(turns).max() <= 10.0


def test_it_rests_about_as_often_as_it_should():
    limits = HumanLimits(pause_rate=0.05, pause_ticks=(5, 5), reaction_ticks=(0, 0))
    hunter = HumanlikeHunter(["cow"], seed=0, limits=limits)
    idle = sum("forward" not in hunter.keys(STANDING, [AHEAD]) for _ in range(2000))
    expected = 2000 * 5 / (5 + 1 / 0.05)
    assert idle == pytest.approx(expected, rel=0.3)


def test_one_seed_is_one_way_to_play():
    first, second = (HumanlikeHunter(["cow"], seed=5) for _ in range(2))
    assert [first.keys(STANDING, [ASIDE]) for _ in range(50)] == [
        second.keys(STANDING, [ASIDE]) for _ in range(50)
    ]


def test_a_hand_goes_astray_as_often_as_it_should_and_only_while_it_moves():
    limits = replace(STEADY, twitch_rate=0.2, twitch_degrees=4.0)
    hand = HumanHand(limits, np.random.default_rng(0))
    assert not any(np.any(hand.turn(np.zeros(2))) for _ in range(200))
    for _ in range(10):  # until it has the speed that is wanted
        hand.turn(np.ones(2))
    astray = np.array([hand.turn(np.ones(2)) for _ in range(2000)]) - 1.0
    astray = astray[np.any(astray != 0.0, axis=1)]
    assert len(astray) == pytest.approx(400, rel=0.15)
    np.testing.assert_allclose(astray.std(axis=0), 4.0, rtol=0.15)
