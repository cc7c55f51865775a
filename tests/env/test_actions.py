"""The action mapping against MineStudio's, and what users may pass as an action.

`golden/actions.npz` holds what MineStudio 1.1.6's CameraHierarchicalMapping(11) and
ActionTransformer(mu-law, maxval 10, binsize 2, mu 10) return: the keys of all 8641 button
tokens, whether each lets the camera turn, the angles of all 121 camera tokens, and the encoding
of 2000 random environment actions with conflicting keys and angles between the bins. It was
checked then that the full 8641 x 121 product is determined by these tables in both directions.
"""

from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.actions import (
    KEYS,
    ActionMapper,
    CameraConfig,
    check_env_action,
)
from rllib_minestudio.errors import InvalidActionError, InvalidOptionsError
from rllib_minestudio.foundation.names import INVENTORY_TOKEN, NUM_BUTTONS

GOLDEN = np.load(Path(__file__).parent / "golden" / "actions.npz")

NESTED: list = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.fixture(scope="module")
def mapper():
    return ActionMapper()


def keys_of(env_action):
    return [env_action[key] for key in KEYS]


def test_every_button_token_presses_minestudios_keys(mapper):
    golden_keys = np.unpackbits(GOLDEN["keys"], axis=1)[:, : len(KEYS)]
    golden_on = np.unpackbits(GOLDEN["camera_on"])[:NUM_BUTTONS]
    for buttons in range(NUM_BUTTONS):
        env_action = mapper.to_env(buttons, 0)
        assert keys_of(env_action) == golden_keys[buttons].tolist()
        expected = GOLDEN["camera_degrees"][0] if golden_on[buttons] else (0.0, 0.0)
        assert env_action["camera"].tolist() == list(expected)


@pytest.mark.parametrize("buttons", [0, 1, 8639, INVENTORY_TOKEN])
def test_every_camera_token_turns_as_minestudios(mapper, buttons):
    golden_on = np.unpackbits(GOLDEN["camera_on"])[buttons]
    for camera in range(mapper.n_camera_tokens):
        degrees = mapper.to_env(buttons, camera)["camera"]
        np.testing.assert_array_equal(degrees, GOLDEN["camera_degrees"][camera] * golden_on)


def test_tokens_survive_the_way_there_and_back(mapper):
    camera_on = np.unpackbits(GOLDEN["camera_on"])
    for buttons in range(NUM_BUTTONS - 1):
        camera = buttons % mapper.n_camera_tokens
        there_and_back = mapper.from_env(mapper.to_env(buttons, camera))
        if not camera_on[buttons]:
            assert there_and_back == (buttons, mapper.null_camera_token)
        elif camera == mapper.null_camera_token:
            assert there_and_back == (buttons - 1, camera)  # "camera" flag off: it did not turn
        else:
            assert there_and_back == (buttons, camera)
    opening = mapper.to_env(INVENTORY_TOKEN, 3)
    assert mapper.from_env(opening) == (INVENTORY_TOKEN, mapper.null_camera_token)


def test_any_env_action_is_encoded_as_by_minestudio(mapper):
    free_keys = np.unpackbits(GOLDEN["free_keys"], axis=1)[:, : len(KEYS)]
    for keys, camera, buttons, token in zip(
        free_keys.tolist(),
        GOLDEN["free_camera"],
        GOLDEN["free_buttons"],
        GOLDEN["free_camera_token"],
        strict=True,
    ):
        env_action = {**dict(zip(KEYS, keys, strict=True)), "camera": camera}
        assert mapper.from_env(env_action) == (buttons, token)


def test_null_actions_are_those_that_do_nothing(mapper):
    buttons, camera = np.divmod(np.arange(NUM_BUTTONS * 3), 3)
    camera += mapper.null_camera_token - 1
    actions = [mapper.to_env(*tokens) for tokens in zip(buttons, camera, strict=True)]
    nothing = [not any(np.any(value) for value in action.values()) for action in actions]
    assert mapper.is_null(buttons, camera).tolist() == nothing
    assert sum(nothing) == 4  # no key without the camera's flag, or with it and the view held still


@pytest.mark.parametrize(
    "wrap",
    [int, np.int64, np.array, lambda x: np.array([x]), lambda x: np.array([[x]]), lambda x: [x]],
)
def test_tokens_may_be_scalars_or_arrays_of_one(mapper, wrap):
    assert mapper.parse({"buttons": wrap(12), "camera": wrap(34)}) == (12, 34)
    assert mapper.parse((wrap(12), wrap(34))) == (12, 34)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"buttons": 8641, "camera": 0}, r"buttons must be in \[0, 8640\]; got 8641"),
        ({"buttons": 0, "camera": -1}, r"camera must be in \[0, 120\]; got -1"),
        ({"buttons": 1.5, "camera": 0}, "buttons must be one integer; got 1.5"),
        ({"buttons": np.zeros(2, int), "camera": 0}, "buttons must be one integer"),
        ({"buttons": 0}, "needs 'buttons' and 'camera'"),
        (7, "mapping or a"),
        ({"buttons": 10**30, "camera": 0}, r"buttons must be in \[0, 8640\]; got 10000"),
        ({"buttons": np.array([10**30]), "camera": 0}, r"buttons must be in \[0, 8640\]; got 1000"),
        ({"buttons": -(10**5000), "camera": 0}, "buttons must be in .* too large to be shown"),
        ((0, np.array([10**5000])), "camera must be in .* too large to be shown"),
        ((0, NESTED), "camera must be one integer; got <list too large to be shown>"),
        ({10**5000: 1}, "needs 'buttons' and 'camera'"),
        ("x" * 10**6, r"mapping or a .*x{200}\.\.\.\.$"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_wrong_agent_actions_are_named(mapper, action, message):
    with pytest.raises(InvalidActionError, match=message):
        mapper.parse(action)


def test_wrong_env_actions_are_named():
    with pytest.raises(InvalidActionError, match=r"'atack'.*Did you mean 'attack'"):
        check_env_action({"atack": 1})
    with pytest.raises(InvalidActionError, match=r"jump must be in \[0, 1\]"):
        check_env_action({"jump": 2})
    with pytest.raises(InvalidActionError, match=r"jump must be in \[0, 1\]; got 1000"):
        check_env_action({"jump": np.array([10**30])})
    with pytest.raises(InvalidActionError, match="Unknown key <int too large"):
        check_env_action({10**5000: 1})


@pytest.mark.parametrize(
    "camera",
    [[np.nan, 0.0], [10**400, 0], "north", {}, None, 1j, [[1], [1, 2]], NESTED, [0, 0, 0]],
    ids=lambda value: str(type(value)),
)
def test_a_camera_that_is_no_rotation_is_named(camera):
    with pytest.raises(InvalidActionError, match="camera must be two finite numbers") as refused:
        check_env_action({"camera": camera})
    assert len(str(refused.value)) < 500


def test_linear_bins_and_other_sizes():
    config = CameraConfig(camera_binsize=5, camera_maxval=20, camera_quantization_scheme="linear")
    mapper = ActionMapper(config)
    assert mapper.n_camera_tokens == 81
    assert mapper.to_env(1, 0)["camera"].tolist() == [-20.0, -20.0]
    assert mapper.from_env({"camera": (4.9, -100.0)}) == (1, 5 * 9)


def test_camera_config_reports_every_problem():
    with pytest.raises(InvalidOptionsError) as caught:
        CameraConfig(camera_binsize=0, camera_mu=-1, camera_quantization_scheme="mulaw")
    assert len(caught.value.problems) == 3
    assert "Did you mean 'mu_law'" in str(caught.value)
    with pytest.raises(InvalidOptionsError, match="multiple of camera_binsize=3"):
        CameraConfig(camera_binsize=3)
