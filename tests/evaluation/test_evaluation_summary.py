"""Numbers, comparison, and the page."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import av
import numpy as np
import pytest
from rich.console import Console

from rllib_minestudio import MineStudioPPOConfig
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.voxel import RULES
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.during_training import environment_identity
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.report import (
    _bins,
    comparison_table,
    lengths,
    moments_of,
    returns,
    summary_table,
    write_page,
)
from rllib_minestudio.evaluation.summary import Rate, Summary, compare, mcnemar
from rllib_minestudio.foundation.values import digest
from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.video import VideoWriter, small_film
from tests.algorithms.toy_envs import AttackOnRed


def episode(index, success, earned=0.0, **facts):
    return EvaluatedEpisode(
        **{"task": "cow", **facts},
        index=index,
        seed=100 + index,
        length=10 * (index + 1),
        undiscounted_return=earned,
        success=success,
    )


def summary(outcomes, **facts):
    facts = {"seed": 1, "filter": None, "config": {"digest": "abc"}, **facts}
    return Summary.of([episode(i, s, float(s)) for i, s in enumerate(outcomes)][::-1], **facts)


def test_numbers_have_minestudios_names_and_an_interval():
    facts = summary([True, False, True, True]).to_json()
    assert (facts["num_yes"], facts["num_episodes"], facts["yes_rate"]) == (3, 4, 0.75)
    assert facts["episode_return"]["mean"] == 0.75 and facts["episode_length"]["max"] == 40
    assert [e["index"] for e in facts["episodes"]] == [0, 1, 2, 3]


def test_wilsons_interval_is_the_published_one():
    # Newcombe (1998), Statistics in Medicine 17:857-872, table I, method 3
    assert Rate(81, 263).interval == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert Rate(0, 20).interval == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert Rate(29, 29).interval == pytest.approx((0.8830, 1.0), abs=5e-5)


def test_tasks_are_told_apart_and_failures_reported():
    one = Summary.of(
        [episode(0, True), episode(1, False, task="pig"), episode(2, True, task="pig", error="x")],
        seed=0,
        filter=None,
    )
    facts = one.to_json()
    assert facts["tasks"]["pig"]["num_yes"] == 0 and facts["tasks"]["cow"]["num_yes"] == 1
    assert facts["failed_episodes"] == 1


def test_without_anything_that_says_what_success_is_no_rate_is_claimed():
    facts = Summary.of([episode(0, None)], seed=0, filter=None).to_json()
    assert facts["yes_rate"] is None and facts["num_yes"] is None


def test_a_summary_survives_the_disk(tmp_path):
    one = summary([True, False], policy={"checkpoint": "c"}, seconds=1.5)
    one.save(tmp_path / "summary.json")
    assert Summary.load(tmp_path).to_json() == one.to_json()
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(MineStudioError, match="is not the summary of an evaluation"):
        Summary.load(tmp_path)


def test_mcnemar_is_the_sign_test_of_the_discordant_pairs():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(3, 3) == 1.0
    assert mcnemar(0, 6) == pytest.approx(2 / 2**6)


def test_pairing_shows_what_independent_rates_do_not():
    # The new one solves all that the old one does, and eight more, of 40: the intervals overlap.
    old = summary([i % 2 == 0 for i in range(40)])
    new = summary([i % 2 == 0 or i < 16 for i in range(40)])
    found = compare(new, old)
    assert (found.pairs, found.only_new, found.only_old) == (40, 8, 0)
    assert found.success_p == pytest.approx(2 / 2**8)
    assert found.return_difference == pytest.approx(0.2) and found.return_p < 0.02
    assert old.rate.interval[1] > new.rate.interval[0]
    assert compare(old, old).return_p == 1.0
    assert compare(old, new).return_difference == pytest.approx(-0.2)


def test_what_did_not_meet_the_same_worlds_is_not_compared():
    with pytest.raises(MineStudioError, match=r"seeds differ.*options differ.*filters differ"):
        compare(summary([True]), summary([True], seed=2, filter="x>1", config={"digest": "d"}))


def test_the_same_worlds_under_other_rules_are_not_compared():
    config = MineStudioPPOConfig().environment(env_config={"obs_size": [64, 64]})
    now = environment_identity(config, EvaluationOptions())
    before = {name: value for name, value in now.items() if name not in ("rules", "digest")}
    with pytest.raises(
        MineStudioError, match=rf"rules have changed \(no revision and revision {RULES}\)"
    ):
        compare(summary([True], config=before), summary([True], config=now))
    own = environment_identity(config.environment(AttackOnRed), EvaluationOptions())
    assert "rules" not in own


def test_an_experiment_file_and_its_checkpoint_name_the_same_worlds():
    """A file leads to the class, a checkpoint to the path that it wrote down."""
    path = "rllib_minestudio.env.minestudio_env.MineStudioEnv"
    identities = [
        environment_identity(MineStudioPPOConfig().environment(env), EvaluationOptions())
        for env in (MineStudioEnv, path, "MineStudio")
    ]
    assert [one["env"] for one in identities] == [path] * 3
    assert len({one["digest"] for one in identities}) == 1


def test_equal_data_have_equal_digests():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})


def test_the_tables_say_it(capsys):
    console = Console(width=160)
    a, b = summary([True, True]), summary([True, False], policy={"checkpoint": "b"})
    console.print(summary_table(a))
    console.print(summary_table(Summary.of([episode(0, True, attempts=3)], seed=0, filter=None)))
    console.print(comparison_table(a, b, compare(a, b)))
    shown = capsys.readouterr().out
    assert "50.0%" in shown and "McNemar" in shown and "by the new policy only 1" in shown
    assert shown.count("attempts repeated") == 1 and "attempts repeated: 2" in shown


class Page(HTMLParser):
    """Collects tags and complains about those that are not closed."""

    VOID = ("meta", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def recorded(folder):
    writer = EpisodeWriter(folder)
    frame = np.zeros((16, 16, 3), np.uint8)
    writer.begin(frame, {})
    writer.add({"buttons": 0, "camera": 0}, 1.0, True, False, frame=frame, info={})
    return str(writer.finish({}))


def test_the_page_needs_no_other_file_and_escapes_what_it_shows(tmp_path):
    episodes = [episode(i, True, recording=recorded(tmp_path / "e" / str(i))) for i in range(2)]
    episodes.append(episode(2, False, task="<script>alert(1)</script>"))
    one = Summary.of(episodes, seed=0, filter="return>0 and length<5")
    write_page(one, tmp_path / "summary.html")
    page = Page((tmp_path / "summary.html").read_text())
    videos = [attributes["src"] for tag, attributes in page.tags if tag == "video"]
    assert len(videos) == 2 and all(v.startswith("data:video/mp4;base64,") for v in videos)
    for video in videos:  # what browsers play, with every frame
        with av.open(io.BytesIO(base64.b64decode(video.partition(",")[2]))) as container:
            context = container.streams.video[0].codec_context
            assert (context.name, context.pix_fmt) == ("h264", "yuv420p")
            assert sum(1 for _ in container.decode(video=0)) == 2
    names = [tag for tag, _ in page.tags]
    assert names.count("script") == 1 and "link" not in names, "and that one is the page's"
    assert not any("src" in attributes for tag, attributes in page.tags if tag == "script")
    assert names.count("svg") == 2, "all returns are equal, which needs no plot"
    assert "sampled actions" in page.text and "± is the standard deviation" in page.text
    details = names.index("details")
    assert names[details : details + 3] == ["details", "summary", "pre"], "the config is collapsed"
    assert "<script>alert(1)</script>" in page.text and "not recorded" in page.text


def test_the_page_says_how_and_what_was_played_and_shows_pairs(tmp_path):
    policy = {"checkpoint": "results/cow/run/trial/best", "deterministic": True}
    new, old = summary([True, True, False], policy=policy), summary([True, False, True])
    write_page(new, tmp_path / "summary.html", (old, compare(new, old)))
    page = Page((tmp_path / "summary.html").read_text())
    assert "most probable actions" in page.text and policy["checkpoint"] in page.text
    assert "new minus old" in page.text and "above the line, the new policy" in page.text
    assert [tag for tag, _ in page.tags].count("svg") == 3, "a single rate needs no plot"


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        ([2.0, 2.0], [1.5, 2.5]),
        ([0.0, 3.0], [-0.5, 0.5, 1.5, 2.5, 3.5]),
        ([0.25, 0.75], [0.25, 0.5, 0.75]),
        ([0.0, 1000.0], [0.0, 500.0, 1000.0]),
    ],
)
def test_every_value_has_a_bin_and_few_whole_numbers_one_each(values, edges):
    np.testing.assert_allclose(_bins(values), edges)


def numbers_of(svg):
    """The texts of a plot that are numbers: those at its axes."""
    return re.findall(r">[^\d<]?(\d+(?:\.\d+)?)</text>", svg)


def test_axes_of_whole_numbers_have_whole_numbers():
    one = summary([True])
    assert "10" in numbers_of(lengths(one))
    assert not [text for text in numbers_of(lengths(one)) if "." in text]
    in_parts = Summary.of([episode(i, True, 0.25 * i) for i in range(4)], seed=1, filter=None)
    assert [text for text in numbers_of(returns(in_parts)) if "." in text]


def test_a_large_video_becomes_a_small_film_of_as_many_frames(tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (12, 360, 640, 3), np.uint8)
    with VideoWriter(tmp_path / "large.mp4", fps=10) as writer:
        for frame in frames:
            writer.add(frame)
    film = small_film(tmp_path / "large.mp4")
    assert len(film) < (tmp_path / "large.mp4").stat().st_size / 2
    with av.open(io.BytesIO(film)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.average_rate) == (426, 240, 10)
        assert sum(1 for _ in container.decode(video=0)) == 12


def test_moments_of_reward_are_where_the_film_shows_their_outcome(tmp_path):
    writer = EpisodeWriter(tmp_path / "e")
    frame = np.zeros((16, 16, 3), np.uint8)
    writer.begin(frame, {})
    for t in range(50):
        reward = {9: 1.0, 30: -0.5}.get(t, 0.0)
        writer.add({"buttons": 0, "camera": 0}, reward, False, t == 49, frame=frame, info={})
    one = episode(0, True, recording=str(writer.finish({})))
    assert moments_of(one) == [(0.5, 1.0), (1.55, -0.5)]
    assert moments_of(episode(1, True)) == []
    (Path(one.recording) / "steps.npz").write_bytes(b"damaged")
    assert moments_of(one) == []


def test_successes_are_told_apart_by_more_than_colour():
    assert "<pattern" in returns(summary([True, False]))
    unknown = Summary.of([episode(0, None)], seed=0, filter=None)
    assert "<pattern" not in returns(unknown)


def test_videos_that_are_too_large_together_are_linked(tmp_path):
    one = Summary.of([episode(0, True, recording=recorded(tmp_path / "e"))], seed=0, filter=None)
    write_page(one, tmp_path / "pages" / "summary.html", max_embedded=0)
    page = Page((tmp_path / "pages" / "summary.html").read_text())
    assert [a["src"] for tag, a in page.tags if tag == "video"] == ["../e/video.mp4"]
