"""An absurd reward is told with the episode that paid it, counted, and clipped on demand."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from rllib_minestudio.algorithms.learner.batch import sequences_of
from rllib_minestudio.algorithms.learner.gradient_step import Peers
from rllib_minestudio.algorithms.learner.value_targets import EXTREME, RewardScale
from rllib_minestudio.errors import NonFiniteLossError
from tests.algorithms.learner.test_learner import Rounds
from tests.algorithms.learner.test_targets import make_fragment
from tests.algorithms.toy_envs import AttackOnRed
from tests.correctness.harness import config_of


class PaysTooMuch(AttackOnRed):
    """Pays `absurd` in step 3 of the environment's episode `absurd_in`; -1: of every one."""

    def __init__(self, config=None):
        super().__init__(config)
        self._absurd, self._in = config["absurd"], config["absurd_in"]
        self._is_it = getattr(config, "vector_index", 0) == 2
        self._episode = -1

    def reset(self, **arguments):
        self._episode += 1
        return super().reset(**arguments)

    def step(self, action):
        obs, reward, *rest = super().step(action)
        if self._t == 3 and (self._in == -1 or (self._is_it and self._episode == self._in)):
            reward = self._absurd
        return obs, reward, *rest


@pytest.fixture
def make():
    """Two episodes make a fragment, and a fragment of each environment an iteration."""
    made = []

    def make(absurd, absurd_in=2, **training):
        env_config = {"absurd": absurd, "absurd_in": absurd_in, "length": 8}
        made.append(Rounds(config_of(PaysTooMuch, env_config, **training)))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


def deviation(harness):
    return float(harness.learner.policy.value_head.normalizer.mean_and_std()[1])


def test_one_absurd_reward_is_told_with_its_episode_and_counted(make, caplog):
    harness = make(1e9)
    with caplog.at_level(logging.WARNING):
        metrics = [harness.iterate() for _ in range(4)]
    assert [m["extreme_rewards"] for m in metrics] == [0, 1, 0, 0]
    assert sum(m["clipped_rewards"] for m in metrics) == 0
    (told,) = [record.getMessage() for record in caplog.records if "reward" in record.getMessage()]
    assert "Environment 0-2 " in told and "reward of 1e+09 in its episode 2" in told
    assert "are of the size of 1." in told and "reward_clip" in told
    assert deviation(harness) > 1e5, "nothing was clipped"


@pytest.mark.parametrize("clip", [1.0, 20.0])
def test_it_is_clipped_on_demand(make, clip):
    harness, sane = make(1e9, reward_clip=clip), make(1.0, reward_clip=clip)
    clipped = [harness.iterate()["clipped_rewards"] for _ in range(4)]
    for _ in range(4):
        sane.iterate()
    assert clipped == [0, 1, 0, 0]
    assert deviation(harness) <= 1.0 + clip * deviation(sane)


@pytest.mark.parametrize("absurd", [1e30, -1e25])
def test_what_cannot_be_squared_costs_its_fragment_only(make, absurd):
    harness = make(absurd)
    metrics = [harness.iterate() for _ in range(4)]
    assert [m["dropped_nonfinite"] for m in metrics] == [0, 1, 0, 0]
    assert all(math.isfinite(m["policy_loss"]) for m in metrics)
    assert deviation(harness) < 10


def test_an_end_by_such_rewards_names_them(make):
    harness = make(1e30, absurd_in=-1, max_nonfinite_minibatches=2)
    with pytest.raises(NonFiniteLossError, match=r"Environment 0-\d .* paid a reward of 1e\+30"):
        harness.iterate()
        harness.iterate()


# ---------------------------------------------------------------- the scale


def judged(scale, *rewards):
    """Four steps pay each of the rewards."""
    fragments = [make_fragment(0, 0.0, -1.0, env_id=f"0-{i}") for i in range(len(rewards))]
    for fragment, reward in zip(fragments, rewards, strict=True):
        fragment.reward[:] = reward
    return scale.judge(sequences_of(fragments, 1))


def test_a_step_is_told_with_the_number_of_its_episode():
    """A fragment's number is that of the episode it begins in, also where fragments are joined."""
    batch = sequences_of([make_fragment(0, 0.0, -1.0, index=i) for i in range(2)], 2)
    batch.episode[:] = [[4, 6]]
    batch.first[:] = [[True, False, True, False, False, True, True, False]]
    assert [batch.episode_of(0, t) for t in range(8)] == [4, 4, 5, 5, 6, 7, 8, 8]


@pytest.mark.parametrize("usual", [1e-3, 1.0, 1e4])
def test_the_scale_is_that_of_the_rewards_there_are(usual):
    """Also in the first batch, in which nothing is known."""
    for batches in (0, 30):
        for factor, extreme in ((0.9, 0), (1.1, 4)):
            scale = RewardScale(None, Peers(1))
            for _ in range(batches):
                assert judged(scale, usual, -usual, 0.0).extreme == 0
            assert judged(scale, usual, usual, factor * EXTREME * usual).extreme == extreme


def test_what_is_clipped_keeps_its_sign():
    scale = RewardScale(2.0, Peers(1))
    for _ in range(30):
        judged(scale, 1.0, -1.0)
    reward = judged(scale, 50.0, -50.0, 1.5).reward_bt
    assert reward == pytest.approx(np.repeat([[2.0], [-2.0], [1.5]], reward.shape[1], 1), rel=0.1)


def test_rare_rewards_are_not_extreme():
    scale = RewardScale(None, Peers(1))
    for _ in range(1000):
        assert judged(scale, 0.0, 0.0).extreme == 0
    assert judged(scale, 0.0, 50.0).extreme == 0


def test_the_scale_follows_when_rewards_grow_for_good():
    scale = RewardScale(None, Peers(1))
    for _ in range(30):
        judged(scale, 1.0)
    extreme = [judged(scale, 1e4).extreme for _ in range(200)]
    assert extreme[0] == 4 and extreme[-1] == 0


def test_what_is_not_finite_leaves_no_trace():
    scale = RewardScale(2.0, Peers(1))
    judged(scale, 1.0)
    before = scale.get_state()
    rewards = judged(scale, np.nan, np.inf, 0.0)
    assert scale.get_state() == before
    assert (rewards.extreme, rewards.clipped) == (0, 0)


def test_it_goes_on_from_a_checkpoint():
    scale, other = RewardScale(None, Peers(1)), RewardScale(None, Peers(1))
    for _ in range(30):
        judged(scale, 1e-3)
    other.set_state(scale.get_state())
    assert judged(other, 1.0).extreme == judged(scale, 1.0).extreme == 4
