"""What can never be placed is refused before it waits for ever."""

import pytest

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.experiments.sections import resource_problems, unplaced


def problems(nodes, **options):
    config = MineStudioPPOConfig().update_from_dict(options)
    bundles = MineStudioPPO.default_resource_request(config.to_dict()).bundles
    return resource_problems(config, bundles, nodes, "this machine")


def test_what_fits_is_in_order():
    assert problems([{"CPU": 1}], num_env_runners=0) == []
    two = [{"CPU": 4, "GPU": 1}, {"CPU": 4, "GPU": 1}]
    options = {"num_learners": 1, "num_gpus_per_learner": 1, "num_env_runners": 4}
    assert problems(two, **options, num_gpus_per_env_runner=0.25) == []


def test_missing_gpus_are_named_with_the_options_that_ask_for_them():
    (problem,) = problems([{"CPU": 64, "GPU": 0}], num_learners=2, num_gpus_per_learner=1)
    assert problem.startswith("2 GPUs are asked for, and this machine has 0.")
    assert "num_learners=2, num_gpus_per_learner=1" in problem and "--address" in problem


def test_missing_cpus_count_on_a_cluster():
    (problem,) = problems([{"CPU": 2}, {"CPU": 2}], num_env_runners=8)
    assert problem.startswith("9 CPUs are asked for, and this machine has 4.")


def test_one_process_cannot_be_spread_over_machines():
    nodes = [{"CPU": 16, "GPU": 1}, {"CPU": 16, "GPU": 1}]
    (problem,) = problems(nodes, num_learners=1, num_gpus_per_learner=2)
    assert problem.startswith("one process asks for 2 GPUs, and no node has over 1.")


def test_enough_in_total_may_still_not_fit():
    nodes = [{"CPU": 3}, {"CPU": 3}, {"CPU": 1}]
    (problem,) = problems(nodes, num_env_runners=3, num_cpus_per_env_runner=2)
    assert "4 processes do not fit" in problem and "2 CPU finds no room" in problem


@pytest.mark.parametrize(
    ("bundles", "left"),
    [
        ([{"GPU": 0.25}] * 4, 0),
        ([{"GPU": 0.3}] * 4, 1),
        ([{"CPU": 1}, {"GPU": 1, "CPU": 1}], 0),
        ([{"accelerator": 1}], 1),
    ],
)
def test_bundles_are_placed_side_by_side(bundles, left):
    assert len(unplaced(bundles, [{"CPU": 2, "GPU": 1}])) == left
