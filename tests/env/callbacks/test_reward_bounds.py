"""What is known of a task's returns before it is played."""

import pytest

from rllib_minestudio.env.callbacks.builder import highest_return


def rule(reward, times, identity="kill", **others):
    return {
        "event": "kill_entity",
        "objects": ["cow"],
        "reward": reward,
        "max_reward_times": times,
        "identity": identity,
        **others,
    }


def rewards(*rules):
    return {"Rewards": {"reward_cfg": list(rules)}}


TWO_TASKS = [
    {"Task": {"task_cfg": [{"name": "cows"}, {"name": "sheep"}]}},
    rewards(rule(1.0, 10, "a", task="cows"), rule(2.0, 20, "b", task="sheep"), rule(0.5, 4, "c")),
]


@pytest.mark.parametrize(
    ("callbacks", "highest"),
    [
        ([rewards(rule(1.0, 30)), {"JudgeReset": 600}], 30.0),
        ([rewards(rule(1.0, 30), rule(2.5, 4, "other"))], 40.0),
        ([rewards(rule(1.0, 30), rule(-5.0, 4, "harm"))], 30.0),  # harm can be avoided
        ([rewards(rule(1.0, 30), rule(2.0, 4))], 60.0),  # one identity: one limit, the larger
        ([rewards(rule(1.0, 3)), rewards(rule(1.0, 5))], 5.0),  # the last one replaces the reward
        (TWO_TASKS, 42.0),
        ([], None),
        ([{"JudgeReset": 600}], None),
        ([rewards(rule(1.0, 3)), {"GateRewards": {}}], None),
        ([rewards(rule(1.0, 3)), {"Compose": {"callbacks": ["SpeedTest"]}}], None),
        ([rewards(rule(1.0, 3)), f"{__name__}.Doubles"], None),
        ([f"{__name__}.Doubles", rewards(rule(1.0, 3))], 3.0),
    ],
)
def test_the_limits_of_the_rewards_that_count(callbacks, highest):
    assert highest_return(callbacks) == highest


class Doubles:
    """A user's callback; the driver may not build it."""

    def __init__(self):
        raise AssertionError("built")

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        return obs, 2 * reward, terminated, truncated, info
