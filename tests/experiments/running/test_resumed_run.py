"""What `--resume` says about where it goes on."""

from pathlib import Path
from types import SimpleNamespace

from rllib_minestudio.experiments.resume_trials import going_on, nothing_left

RUN = Path("results/cow/2026")


def saved(iteration, steps):
    result = {"num_env_steps_sampled_lifetime": steps}
    record = SimpleNamespace(iteration=iteration, result=result)
    return SimpleNamespace(folder=RUN / "trial" / "checkpoint_000012", record=record)


def test_one_trial_goes_on_from_its_checkpoint():
    assert going_on(RUN, [saved(120, 245_760)], trials=1) == (
        "going on from iteration 120, 245,760 steps: results/cow/2026/trial/checkpoint_000012"
    )


def test_of_a_search_the_furthest_is_named():
    line = going_on(RUN, [saved(3, 96), None, saved(5, 160)], trials=8)
    assert line == (
        "going on with 3 of 8 trials, 2 of them from a checkpoint, the furthest from iteration 5, "
        "160 steps: results/cow/2026"
    )


def test_without_a_checkpoint_it_begins_anew_and_at_the_end_there_is_nothing():
    assert "from the beginning: it has no checkpoint yet" in going_on(RUN, [None], trials=1)
    assert "from the beginning" in going_on(RUN, [], trials=1)
    assert nothing_left(RUN).startswith("nothing to resume: results/cow/2026 has reached its end")
