"""The tutorials work as they stand: their files are written, their commands run, in their order.

Only lengths differ: iterations, environments, steps and numbers of episodes.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch

from rllib_minestudio.experiments.experiment_file import load_experiments
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.docs.pages import DOCS, ROOT, blocks
from tests.docs.snippets import example
from tests.models.vpt.checkpoints import hugging_face, openai
from tests.processes import run_rllib

SHORT_TIME_LIMIT = "JudgeReset.time_limit=20"
SHORTER = {
    "train": [
        *("--stop", "training_iteration=2"),
        *("--set", "num_envs_per_env_runner=2"),
        *("--set", "fragments_per_iteration=4"),
        *("--set", "decorrelation_steps=0"),
        *("--set", "summary={random_policy_episodes: 1, video_episodes: 0}"),
        *("--set", "checkpoint_config={save_interval: 1}"),
    ],
    "play": [],
    "evaluate": ["--episodes", "2"],
    "benchmark": ["--episodes", "1", "--steps", "20", "--no-videos"],
    "record": ["--episodes", "1"],
    "model": [],
}
"""Command -> what is added to its arguments; the last of two options counts."""


def short(command, arguments):
    """The arguments, with less to do."""
    if command != "benchmark" and any(word.endswith("cow_from_prior.yaml") for word in arguments):
        arguments = [*arguments, "--set", f"env_config.callbacks.5.{SHORT_TIME_LIMIT}"]
    return [*arguments, *SHORTER[command]]


def write_files(page, folder):
    """Write the blocks that begin with the name of a file."""
    for language in ("yaml", "python"):
        for block in blocks(page, language):
            if name := re.match(r"# (\w+\.(?:yaml|py))\n", block):
                text = re.sub(r"time_limit: \d+", "time_limit: 20", block)
                (folder / name[1]).write_text(text)
    (folder / "tuned_examples").symlink_to(ROOT / "tuned_examples")


def commands(page):
    """What the page tells to type, as lists of words after `rllib`."""
    for block in blocks(page, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "rllib":
                yield words[1:]


def in_folder(word, folder):
    """A word with RUN and TRIAL replaced by the folders that there are."""
    if "RUN/TRIAL" not in word:
        return word
    (found,) = folder.glob(word.replace("RUN/TRIAL", "*/MineStudioPPO_*"))
    return str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("first_task", ["plays/hunter/episode-00000/video.mp4", "out/summary.html"]),
        ("callbacks", ["results/walk/*/learning_curve.png"]),
        ("from_vpt", ["evaluations/prior/summary.json", "evaluations/*/comparison.json"]),
    ],
)
def test_the_tutorial_works_as_it_stands(name, left, tmp_path):
    page = (DOCS / f"{name}.md").read_text()
    if name == "from_vpt":  # on two CPU cores, as the page says
        page = page.replace(VPT, "package:hunter_nano").replace("cow_from_vpt", "cow_from_prior")
    write_files(page, tmp_path)
    walk(page, tmp_path)
    for pattern in left:
        assert list(tmp_path.glob(pattern)), pattern


def walk(page, folder, shorter=short):
    """Type a page's commands; all of them succeed."""
    typed = list(commands(page))
    assert len(typed) > 1
    for command, *arguments in typed:
        words = shorter(command, [in_folder(word, folder) for word in arguments])
        status, output = run_rllib(folder, command, *words)
        assert status == 0, f"rllib {command} {' '.join(words)}\n{output}"
        assert "Traceback" not in output


# -------------------------------------------------------- from VPT's weights, at their real size

VPT = "foundation-model-1x.model"
"""The weights in docs/from_vpt.md."""

UPDATES = 3
SHORT_1X = {
    "train": [
        *("--set", "num_envs_per_env_runner=2"),
        *("--stop", f"training_iteration={UPDATES + 1}"),
        *("--set", "rollout_fragment_length=8"),
        *("--set", "context_length=8"),
        *("--set", "fragments_per_iteration=2"),
        *("--set", "gradient_accumulation=2"),
        *("--set", "decorrelation_steps=0"),
        *("--set", "summary={random_policy_episodes: 0, video_episodes: 0}"),
        *("--set", f"checkpoint_config={{save_interval: {UPDATES + 1}}}"),
        # Every iteration updates the policy. A random value head's errors are advantages of full
        # size; without rewards, one that starts from zero would leave the policy alone.
        *("--set", "vf_warmup_iterations=0"),
        *("--set", "zero_init_value_head=false"),
    ],
    "play": ["--max-steps", "4"],
    "evaluate": ["--episodes", "2", "--envs", "2", "--max-steps", "4"],
    "benchmark": ["--episodes", "1", "--envs", "1", "--steps", "4", "--no-videos"],
    "record": ["--episodes", "1", "--workers", "1"],
    "model": [],
}


def short_1x(command, arguments):
    """The arguments, with as little to do as shows that they work."""
    if command != "benchmark" and any(word.endswith("cow_from_vpt.yaml") for word in arguments):
        arguments = [*arguments, "--set", "env_config.callbacks.5.JudgeReset.time_limit=4"]
    if command == "train":
        arguments = [*arguments, "--set", f"lr={first_rate():g}"]
    return [*arguments, *SHORT_1X[command]]


def first_rate():
    """The learning rate of cow_from_vpt.yaml at the policy's first update, after the warmup."""
    (experiment,) = load_experiments(example("cow_from_vpt"))
    config = experiment.config
    fragment = config["rollout_fragment_length"]
    steps = config["vf_warmup_iterations"] * config["fragments_per_iteration"] * fragment
    (_, least), (end, most) = config["lr"]
    assert steps < end
    return least + (most - least) * steps / end


def random_weights():
    """VPT 1x with heads as sharp as those of a trained policy: 12 nats of entropy, of 14."""
    torch.manual_seed(0)
    network = VPTNetwork(VPTConfig.from_options({"preset": "1x"}))
    with torch.no_grad():
        for head in network.pi_head.values():
            head.linear_layer.weight *= 300
    return network


def as_openai_has_them(folder):
    """Write a `.model` and a `.weights` under the names in the page."""
    for path in openai(random_weights(), folder):
        path.rename(Path(folder, VPT).with_suffix(path.suffix))
    return VPT


def as_minestudio_has_them(folder):
    """Write a folder as MineStudio publishes them."""
    return hugging_face(random_weights(), folder / "foundation_model_1x").name


@pytest.mark.slow
@pytest.mark.parametrize("write", [as_openai_has_them, as_minestudio_has_them])
def test_the_page_for_vpts_weights_works_with_1x(write, tmp_path):
    page = (DOCS / "from_vpt.md").read_text().replace(VPT, write(tmp_path))
    (tmp_path / "tuned_examples").symlink_to(ROOT / "tuned_examples")
    walk(page, tmp_path, short_1x)
    (results,) = tmp_path.glob("results/cow_from_vpt/*/*/result.json")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    kls = [row["learners"]["default_policy"]["kl_to_prior"] for row in rows]
    assert len(kls) == UPDATES + 1 and kls[0] == pytest.approx(0, abs=1e-3)
    assert 0.005 < max(kls[1:]) < 0.5, "the policy learns, and keeps what it knows"
    assert list(tmp_path.glob("exported/model.safetensors"))
