"""Options of the environment: defaults, forms, and complaints."""

import pytest

from rllib_minestudio.env import CameraConfig, EnvOptions, MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError


def test_defaults_are_minestudios():
    options = EnvOptions.from_mapping({})
    assert options.engine == "voxel"
    assert options.obs_size == (128, 128)
    assert options.render_size == (640, 360)
    assert options.num_empty_frames == 20
    assert (options.sampling, options.gamma) == ("average", 2.0)
    assert options.camera_config == CameraConfig(2, 10, 10.0, "mu_law")


def test_yaml_forms(cow_task):
    cow_task["camera_config"] = {"camera_binsize": 1}
    cow_task["inventory"] = {0: {"type": "iron_sword", "quantity": 1}}
    options = EnvOptions.from_mapping(cow_task)
    assert options.obs_size == (128, 128)
    assert options.camera_config.n_camera_bins == 21


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"obs_sizes": [64, 64]}, r"unknown env option 'obs_sizes'\. Did you mean 'obs_size'"),
        ({"obs_size": 64}, r"obs_size must be \[width, height\]"),
        ({"obs_size": [64, 0]}, r"obs_size must be .* got \(64, 0\)"),
        ({"obs_size": [64.0, 64]}, "obs_size must be"),
        (
            {"obs_size": [4096, 4096]},
            r"obs_size must have at most 1,048,576 pixels",
        ),
        ({"render_size": [10**6, 10**6]}, "render_size must be"),
        ({"engine": "voxels"}, "Did you mean 'voxel'"),
        ({"action_type": "human"}, "action_type must be one of"),
        ({"render_mode": "human"}, "render_mode must be one of"),
        ({"sampling": "sample"}, "sampling must be one of 'average', 'samples'.* Did you mean"),
        ({"gamma": -0.1}, r"gamma must be a number from 0 to 16; got -0\.1\."),
        ({"gamma": "bright"}, "gamma must be a number"),
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        ({"num_empty_frames": 1.5}, "num_empty_frames must be"),
        ({"preferred_spawn_biome": 3}, "preferred_spawn_biome must be"),
        ({"camera_config": {"camera_mu": 0}}, "camera_mu must be a positive number"),
        ({"camera_config": {"mu": 10}}, "unknown field of camera_config 'mu'"),
        ({"camera_config": 11}, "must be a mapping or a CameraConfig"),
        ({"inventory": {41: {"type": "dirt"}}}, "slots from 0 to 40"),
        ({"inventory": {0: {"type": "dirt", "quantity": 0}}}, r"inventory\[0\]\.quantity"),
        ({"callbacks": "JudgeReset"}, "callbacks must be a list"),
        ({"callbacks": [{"JudgeReset": {"time_limit": -5}}]}, r"callbacks\[0\]: JudgeReset: time"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(InvalidOptionsError, match=message):
        MineStudioEnv.check_options(options)


def test_all_mistakes_are_reported_together():
    with pytest.raises(InvalidOptionsError) as caught:
        MineStudioEnv({"seed": "x", "enigne": "voxel"}, obs_size=[1, 1], callbacks=["Nope"])
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preferred_spawn_biome": "plans"}, "Did you mean 'plains'"),
        ({"inventory": {3: {"type": "iron_swrod"}}}, r"inventory\[3\].*Did you mean 'iron_sword'"),
    ],
)
def test_names_the_engine_does_not_know(options, message):
    with pytest.raises(InvalidOptionsError, match=message):
        MineStudioEnv(options)


def test_what_is_chosen_about_pictures_reaches_the_engine():
    frames = {}
    for sampling in ("average", "samples"):
        for gamma in (0.0, 2.0):
            env = MineStudioEnv(
                obs_size=[64, 64], sampling=sampling, gamma=gamma, num_empty_frames=1, seed=4
            )
            env.reset(seed=4)
            env.sim.env.execute_cmd("/time set 18000")
            obs, *_ = env.step(env.action_space.sample())
            frames[sampling, gamma] = obs["image"]
            env.close()
    assert frames["average", 0.0].mean() < frames["average", 2.0].mean()
    assert (frames["average", 2.0] != frames["samples", 2.0]).any()
