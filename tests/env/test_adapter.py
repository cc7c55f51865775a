"""Any environment's observations and actions, as policies see them and as it takes them."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.adapter import AdaptedEnv, SpaceAdapter, adapted
from rllib_minestudio.errors import InvalidOptionsError

VECTOR = spaces.Box(-1.0, 1.0, (2,), np.float32)

ACTIONS = [
    (spaces.Discrete(3), {"action": 3}),
    (spaces.Discrete(3, start=-1), {"action": 3}),
    (spaces.MultiDiscrete([4]), {"action": 4}),
    (spaces.MultiDiscrete([3, 2]), {"action_0": 3, "action_1": 2}),
    (spaces.MultiDiscrete([[3, 2], [4, 5]], start=[[0, 1], [2, -3]]), None),
    (spaces.MultiBinary(2), {"action_0": 2, "action_1": 2}),
    (spaces.MultiBinary([2, 2]), None),
    (
        spaces.Dict(
            way=spaces.Discrete(3, start=1),
            keys=spaces.MultiDiscrete([2, 4]),
            jump=spaces.MultiBinary(1),
        ),
        {"way": 3, "keys_0": 2, "keys_1": 4, "jump": 2},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("space", "heads"), ACTIONS, ids=lambda case: str(case)[:30])
def test_every_action_has_one_tuple_of_tokens_alone_or_in_a_batch(space, heads):
    adapter = SpaceAdapter(VECTOR, space)
    counts = {name: int(inner.n) for name, inner in adapter.action_space.items()}
    assert heads is None or counts == heads
    names = list(counts)
    grid = np.stack(np.meshgrid(*map(np.arange, counts.values()), indexing="ij"), -1)
    tokens = grid.reshape(-1, len(names))
    batch = adapter.action({name: tokens[:, i] for i, name in enumerate(names)})
    seen = set()
    for row, values in enumerate(tokens):
        action = adapter.action({name: values[i] for i, name in enumerate(names)})
        assert space.contains(action)
        seen.add(spaces.flatten(space, action).tobytes())
        of_batch = (
            {key: v[row] for key, v in batch.items()} if isinstance(batch, dict) else batch[row]
        )
        assert space.contains(of_batch) and repr(of_batch) == repr(action)
    assert len(seen) == len(tokens), "no two tuples mean the same"


@pytest.mark.parametrize(
    "space",
    [VECTOR, spaces.Discrete(5, start=2), spaces.MultiDiscrete([3, 4]), spaces.MultiBinary(3)],
    ids=lambda space: type(space).__name__,
)
def test_an_observation_without_a_name_gets_one_and_keeps_its_dtype(space):
    adapter = SpaceAdapter(space, spaces.Discrete(2))
    seen = adapter.observation(space.sample())
    assert set(seen) == {"observation"} and seen["observation"].dtype == space.dtype
    assert adapter.observation_space["observation"] == space


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        (VECTOR, spaces.Box(-1, 1, (1,)), r"DiscretizeAction; got Box\(-1.0, 1.0, \(1,\)"),
        (VECTOR, spaces.Tuple([spaces.Discrete(2)]), r"must be Discrete.*got Tuple"),
        (VECTOR, spaces.Text(4), r"must be Discrete.*got Text"),
        (VECTOR, spaces.Dict(arm=spaces.Dict(up=spaces.Discrete(2))), r"'arm' of .* not nested"),
        (VECTOR, spaces.Dict(arm=spaces.Box(-1, 1, (1,))), r"'arm' of the .*DiscretizeAction"),
        (VECTOR, spaces.Dict(), "must have an entry"),
        (
            VECTOR,
            spaces.Dict(a=spaces.MultiDiscrete([2, 2]), a_0=spaces.Discrete(2)),
            "a_0 would each be two heads",
        ),
        (spaces.Tuple([VECTOR]), spaces.Discrete(2), r"observation space .*FlattenObservation"),
        (spaces.Text(9), spaces.Discrete(2), r"observation space .*got Text"),
        (spaces.Graph(VECTOR, None), spaces.Discrete(2), r"observation space .*got Graph"),
        (spaces.Sequence(VECTOR), spaces.Discrete(2), r"observation space .*got Sequence"),
        (None, spaces.Discrete(2), r"observation space .*got None"),
    ],
    ids=lambda case: str(case)[:25],
)  # fmt: skip
def test_what_cannot_be_translated_is_refused_by_its_space(observation, action, message):
    with pytest.raises(InvalidOptionsError, match=message):
        SpaceAdapter(observation, action)


def test_all_problems_of_both_spaces_are_told_at_once():
    with pytest.raises(InvalidOptionsError) as caught:
        SpaceAdapter(spaces.Text(3), spaces.Dict(a=spaces.Text(3), b=spaces.Text(3)))
    assert len(caught.value.problems) == 3


def test_environments_that_have_the_form_are_left_alone():
    env = MineStudioEnv(obs_size=(64, 64), action_type="env")
    assert adapted(env) is env
    env.close()

    class Named(gym.Env):
        observation_space = spaces.Dict(image=spaces.Box(0, 255, (8, 8, 3), np.uint8))
        action_space = spaces.Dict(buttons=spaces.MultiDiscrete([5]), jump=spaces.Discrete(2))

    named = Named()
    assert adapted(named) is named
    assert isinstance(adapted(gym.make("CartPole-v1")), AdaptedEnv)


def test_what_is_no_environment_is_refused():
    with pytest.raises(InvalidOptionsError, match=r"a SyncVectorEnv.*num_envs_per_env_runner"):
        adapted(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"))
