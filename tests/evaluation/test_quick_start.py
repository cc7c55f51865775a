"""The quick start of MineStudio's page on inference: run as it stands, but for what it imports.

`programs/inference_page.txt` is the page's program with the indentation that the page has lost. It
uses `VPTPolicy` without importing it, which a program needs put right.
"""

from pathlib import Path

import pytest

from tests.evaluation import minestudio_programs as programs

PAGE = Path(__file__).with_name("programs") / "inference_page.txt"
NUMBERS = {"num_workers": 1, "num_gpus": 0, "num_max_steps": programs.STEPS}


def quick_start():
    page = PAGE.read_text()
    program = programs.changed(page, **NUMBERS)
    return page, program.replace("import load_vpt_policy", "import load_vpt_policy, VPTPolicy")


def test_nothing_but_imports_weights_and_numbers_changes():
    page, program = quick_start()
    ours = "from rllib_minestudio.minestudio import"
    names = "EpisodePipeline, MineGenerator, InfoBaseFilter"
    made = "agent_generator = lambda: VPTPolicy.from_pretrained"
    published = "CraftJarvis/MineStudio_VPT.rl_from_early_game_2x"
    assert programs.differences(page, program) == [
        (f"from minestudio.inference import {names}", f"{ours} {names}"),
        ("from minestudio.models import load_vpt_policy", f"{ours} load_vpt_policy, VPTPolicy"),
        ("from minestudio.simulator import MinecraftSim", f"{ours} MinecraftSim"),
        (
            f'{made}("{published}") # generate the agent',
            f'{made}("{programs.WEIGHTS}") # generate the agent',
        ),
        (
            "num_max_steps = 12000, # provide the maximum number of steps",
            f"num_max_steps = {programs.STEPS}, # provide the maximum number of steps",
        ),
        (
            "num_workers = 8, # the number of workers",
            "num_workers = 1, # the number of workers",
        ),
        ("num_gpus = 0.25, # the number of gpus", "num_gpus = 0, # the number of gpus"),
    ]


@pytest.mark.slow
def test_the_page_plays_records_and_counts(tmp_path):
    _, program = quick_start()
    summary = programs.printed_summary(programs.run(program, tmp_path))
    assert list(summary)[:3] == ["num_yes", "num_episodes", "yes_rate"]
    assert (summary["num_yes"], summary["num_episodes"], summary["yes_rate"]) == (0, 2, 0.0)
    assert summary["failed_episodes"] == 0
    assert {episode["error"] for episode in summary["episodes"]} == {None}
    assert summary["config"]["env_config"]["preferred_spawn_biome"] == "forest"
    programs.check_recordings(tmp_path / "output", episodes=2)
