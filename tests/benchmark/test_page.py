"""The page of a benchmark: what is on it, and that names are text."""

import re

import pytest

from rllib_minestudio.benchmark.report import write_page
from tests.benchmark.fabricated import EVIL, episodes, results, task, with_everything


def written(found, folder, **options):
    file = folder / "benchmark.html"
    write_page(found, file, **options)
    return file.read_text()


def plain(html):
    """The text of a page, with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.split("<body>")[1]).split())


def test_the_numbers_are_those_of_the_results(tmp_path):
    found = with_everything(tmp_path)
    html = written(found, tmp_path)
    text = plain(html)
    low, high = (f"{100 * end:.0f}" for end in found.total.yes_rate_interval)
    assert f"42 % success, mean of 3 tasks (95 % interval {low} to {high} %)" in text
    assert "3 tasks played, 12 episodes; 1 marked" in text and "1 failed" in text
    for fact in ("seed 7", "rules 12", "python 3.11.0", "commit cafe123", "took 1 h 02 min"):
        assert fact in text
    assert "1 of 4 25 % 5 to 70 %" in text  # dig: Wilson's interval
    assert 'style="width:25.00%"' in html
    assert "There is no water." in text and "none was played" in text


def test_tasks_are_in_the_order_of_their_numbers(tmp_path):
    names = ("logs_12", "12000", "3000", "fell")
    found = results(*(task(name, "tree", episodes=episodes(1)) for name in names))
    html = written(found, tmp_path)
    shown = re.findall(r'<span class="name">([\w<>]+)</span>', html)
    assert shown == ["3000", "12000", "fell", "logs_<wbr>12"]


def test_what_was_changed_of_the_environment_is_told(tmp_path):
    found = results(
        task("dig", "mine", episodes=episodes(1)),
        env_config={"engine": "minecraft"},
        overrides=["env_config.engine=minecraft"],
    )
    text = plain(written(found, tmp_path))
    assert "engine minecraft set env_config.engine=minecraft" in text and ", rules" not in text


def test_items_have_a_table(tmp_path):
    text = plain(written(with_everything(tmp_path), tmp_path))
    assert "log 75 % (30 to 95 %), 1.5" in text and "stick 25 % (5 to 70 %), 1.0" in text
    without = results(task("dig", "mine", episodes=episodes(1)))
    assert "Items" not in plain(written(without, tmp_path))


def test_names_and_reasons_are_text(tmp_path):
    html = written(with_everything(tmp_path), tmp_path)
    assert EVIL not in html and html.count("<script>") == 1
    assert html.count("&lt;script&gt;") >= 4


@pytest.mark.parametrize(("share", "shown"), [(1 / 300, "0.3 %"), (299 / 300, "99.7 %")])
def test_a_rate_that_is_not_quite_all_or_nothing_does_not_look_like_it(tmp_path, share, shown):
    many = results(task("dig", "mine", episodes=episodes(round(300 * share), 300)))
    assert f"{shown} success" in plain(written(many, tmp_path))


def test_a_page_of_nothing_but_marks(tmp_path):
    text = plain(written(results(task("swim", "travel", "marked", reason="No water.")), tmp_path))
    assert "No task was played." in text and "0 of 1" in text


def test_videos_beyond_the_room_are_linked_and_missing_ones_left_out(tmp_path):
    found = with_everything(tmp_path)
    sizes = [(tmp_path / file).stat().st_size for file in found.tasks[0].videos.values()]
    room = min(sizes) + max(sizes) - 1
    html = written(found, tmp_path, max_embedded=room)
    assert html.count('src="data:video/mp4;base64,') == 1
    assert len(re.findall(r'src="tasks/dig/\w+\.mp4"', html)) == 1
    (tmp_path / "tasks/dig/success.mp4").unlink()
    assert written(found, tmp_path).count("<video") == 1


def test_the_page_asks_for_nothing_else(tmp_path):
    html = written(with_everything(tmp_path), tmp_path)
    assert not re.search(r"(https?:)?//\w|@import|<link|url\(", html.split("base64,")[0])
    assert not re.search(r"<(script|img|iframe)[^>]*\bsrc=", html)
