"""`rllib data` counts recordings, names what cannot be read, and shows what a policy is taught."""

import re
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.cli.main import main
from rllib_minestudio.recordings.video import read_video
from tests.recordings.contractor_files import played, tick, write

DATASET = Path(__file__).parents[1] / "recordings" / "minestudio_dataset"


@pytest.fixture
def people(tmp_path):
    """Two recordings, the second of them cut off, and one without its video."""
    folder = tmp_path / "people" / "9.0"
    write(folder, "whole", played(40))
    write(folder, "short", played(40, seed=1), frames=25)
    write(folder, "lost", played(4)).with_suffix(".mp4").unlink()
    return folder


def test_info_counts_and_measures(people, capsys):
    assert main(["data", "info", str(people.parent)]) == 0
    told = capsys.readouterr().out
    assert "2 episodes, 0.0 hours, 65 frames (contractor; versions 9.0). 1 recording" in told
    assert re.search(r"lost\.jsonl: .*has no lost\.mp4 beside it", told)
    assert "null actions" in told and "forward" in told
    found = re.search(r"nothing: (\S+) nats per step \(buttons (\S+), camera (\S+)\)", told)
    loss, buttons, camera = map(float, found.groups())
    assert loss == pytest.approx(buttons + camera, abs=0.02) and 0 < loss < 13.86


def test_info_knows_the_loss_of_a_policy_that_sees_nothing(tmp_path, capsys):
    write(tmp_path, "NAME", [tick("w")] * 5 + [tick("s", dx=10.0)] * 5)
    assert main(["data", "info", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert f"{2 * np.log(2):.2f} nats per step (buttons 0.69, camera 0.69)" in told
    assert "null actions 0.0%, camera turning 50.0%" in told
    assert "pressed: back 50.0%, forward 50.0%" in told or "forward 50.0%, back 50.0%" in told


@pytest.mark.parametrize("frames", [[], ["--frames"]])
def test_check_names_everything_that_is_wrong(people, capsys, frames):
    assert main(["data", "check", str(people), *frames]) == 1
    told = capsys.readouterr().out
    assert re.search(r"lost\.jsonl.*has no lost\.mp4", told)
    assert re.search(r"short\.jsonl: 15 lines have no frame", told)
    assert "3 recordings: 1 cannot be read, 1 can be read in part or deserve a look" in told
    assert "whole" not in told


def test_check_is_content_with_a_dataset(capsys):
    assert main(["data", "check", str(DATASET), "--frames"]) == 0
    assert "2 recordings: 0 cannot be read, 0 can" in capsys.readouterr().out


def test_show_makes_a_film_of_a_window_with_its_keys(people, tmp_path, capsys):
    film = tmp_path / "film.mp4"
    words = ["data", "show", str(people), "whole", "--start", "10", "--steps", "12"]
    assert main([*words, "--size", "32", "--out", str(film)]) == 0
    shown = list(read_video(film))
    assert len(shown) == 12 and shown[0].shape[0] > 32 * 12
    assert main([*words[:3], "wole"]) == 2
    assert "EPISODE 'wole' is none of the" in (told := capsys.readouterr().err)
    assert "Did you mean 'whole'?" in told
    assert main(["data", "show", str(people), "whole", "--start", "40"]) == 2
    assert "--start is 40, but the episode has 40 steps" in capsys.readouterr().err


def test_an_empty_folder_is_told(tmp_path, capsys):
    (tmp_path / "readme.txt").write_text("nothing")
    assert main(["data", "info", str(tmp_path)]) == 2
    assert "holds no recorded episode (files: 1 .txt)" in capsys.readouterr().err
