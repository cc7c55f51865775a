"""The tutorials work as they stand: their files are written, their commands run, in their order.

Only lengths differ: iterations, environments, steps and numbers of episodes.
"""

import re
import shlex

import pytest

from tests.docs.pages import DOCS, ROOT, blocks
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
    "model": [],
}
"""Command -> what is added to its arguments; the last of two options counts."""


def short(command, arguments):
    """The arguments, with less to do."""
    if any(argument.endswith("cow_from_prior.yaml") for argument in arguments):
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
        ("your_own_parts", ["results/walk/*/learning_curve.png"]),
        ("from_vpt", ["evaluations/prior/summary.json", "evaluations/*/comparison.json"]),
    ],
)
def test_the_tutorial_works_as_it_stands(name, left, tmp_path):
    page = (DOCS / f"{name}.md").read_text()
    write_files(page, tmp_path)
    typed = list(commands(page))
    assert len(typed) > 1
    for command, *arguments in typed:
        words = [in_folder(word, tmp_path) for word in arguments]
        status, output = run_rllib(tmp_path, command, *short(command, words))
        assert status == 0, f"rllib {command} {' '.join(words)}\n{output}"
        assert "Traceback" not in output
    for pattern in left:
        assert list(tmp_path.glob(pattern)), pattern
