"""Names of the parts of nested observations, and the promise that their space makes."""

import gymnasium as gym
import numpy as np
import pytest

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import flattened, nested, parts_of, write_observation

SPACE = gym.spaces.Dict(
    image=gym.spaces.Box(0, 255, (4, 6, 3), np.uint8),
    before=gym.spaces.Dict(jump=gym.spaces.Discrete(2), camera=gym.spaces.Box(-1, 1, (2,))),
)


def test_parts_are_named_by_their_keys() -> None:
    """Nested keys are joined with dots, and keep shape and dtype."""
    parts = parts_of(SPACE)
    assert {name: (part.shape, part.dtype) for name, part in parts.items()} == {
        "before.camera": ((2,), np.float32),
        "before.jump": ((), np.int64),
        "image": ((4, 6, 3), np.uint8),
    }
    assert parts["before.camera"].zeros(5, 7).shape == (5, 7, 2)


def test_flat_and_nested_are_inverse() -> None:
    """What is flattened comes back."""
    obs = SPACE.sample()
    assert flattened(nested(flattened(obs))).keys() == parts_of(SPACE).keys()
    assert nested(flattened(obs))["before"]["camera"] is obs["before"]["camera"]


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (gym.spaces.Box(0, 1, (3,)), "Dict"),
        (gym.spaces.Dict(), "Dict"),
        (gym.spaces.Dict(word=gym.spaces.Text(5)), "'word'"),
        (gym.spaces.Dict({"a.b": gym.spaces.Discrete(2)}), "'a.b'"),
    ],
)
def test_other_spaces_are_refused(space: gym.Space, named: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(InvalidOptionsError, match=named):
        parts_of(space)


def test_a_dot_within_a_key_is_a_colon_in_the_name() -> None:
    """MineStudio has keys such as `hotbar.1`."""
    obs = {"before": {"hotbar.1": np.array(1), "jump": np.array(0)}}
    slots = {name: np.zeros_like(value) for name, value in flattened(obs).items()}
    assert list(slots) == ["before.hotbar:1", "before.jump"]
    assert nested(flattened(obs)) == obs
    write_observation(slots, obs)
    assert slots["before.hotbar:1"] == 1
    with pytest.raises(InvalidOptionsError, match="'a:b'"):
        flattened({"a:b": 1})


def test_observations_are_copied_if_they_keep_the_promise() -> None:
    """Neither a cast nor a broadcast, nor a part that is missing, passes."""
    slots = {name: part.zeros() for name, part in parts_of(SPACE).items()}
    obs = SPACE.sample()
    write_observation(slots, obs)
    for name, value in flattened(obs).items():
        np.testing.assert_array_equal(slots[name], value)
    for wrong in (
        {**obs, "image": obs["image"].astype(np.float32)},
        {**obs, "image": obs["image"][:1]},
        {"image": obs["image"], "before": {"jump": obs["before"]["jump"]}},
        {"image": obs["image"]},
    ):
        with pytest.raises(TypeError, match="promises"):
            write_observation(slots, wrong)
