"""The picture of a run, of a search, and of several seeds."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rllib_minestudio.evaluation.report import LearningCurve, draw, mean_and_range

AGENT = LearningCurve("agent", [0, 1000, 2000], [0.1, 0.5, 2.0])


def test_a_curve_becomes_a_png(tmp_path):
    path = tmp_path / "curve.png"
    draw("cow", [AGENT], path, random_policy=0.2)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_picture_says_of_how_many_episodes_returns_are_means(tmp_path, monkeypatch):
    labels = []
    monkeypatch.setattr(Axes, "set_ylabel", lambda self, label: labels.append(label))
    draw("cow", [AGENT], tmp_path / "curve.png", window=20)
    draw("cow", [AGENT], tmp_path / "curve.png")
    assert labels == ["episode return\nmean of the last 20", "episode return"]


@pytest.mark.parametrize(("highest", "lines"), [(2.5, 1), (30.0, 0)])
def test_the_maximum_is_a_level_unless_it_would_press_the_curve_down(
    tmp_path, monkeypatch, highest, lines
):
    levels, labels = [], []
    level, legend = Axes.axhline, Figure.legend
    monkeypatch.setattr(
        Axes, "axhline", lambda self, y, **kw: levels.append(y) or level(self, y, **kw)
    )

    def noted(figure, **options):
        made = legend(figure, **options)
        labels.extend(text.get_text() for text in made.get_texts())
        return made

    monkeypatch.setattr(Figure, "legend", noted)
    draw("cow", [AGENT], tmp_path / "curve.png", highest_possible=highest)
    assert levels == [highest] * lines
    assert labels == ["agent", *[f"reward limit ({highest:g})"] * lines], "of what is drawn"


@pytest.fixture
def figures(monkeypatch):
    """Those that are saved."""
    figures = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **kw: figures.append(self) or save(self, *a, **kw)
    )
    return figures


def test_the_legend_is_within_the_picture_and_beside_the_title(tmp_path, figures):
    curve = LearningCurve("agent, 5 seeds: mean and range", [0, 100], [0.0, 9.0])
    draw("cow", [curve], tmp_path / "curve.png", random_policy=1.1, highest_possible=30)
    (figure,) = figures
    legend = figure.legends[0].get_window_extent()
    titles = [figure.axes[0].title, figure.axes[0]._left_title]
    assert not any(legend.overlaps(title.get_window_extent()) for title in titles)
    assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1


def test_long_labels_are_within_the_picture_and_beside_the_plot(tmp_path, figures):
    curves = [LearningCurve(f"{i} " + 40 * "x", [0, 100], [0.0, 9.0]) for i in range(2)]
    draw("cow", curves, tmp_path / "curve.png", random_policy=1.1)
    (figure,) = figures
    assert not figure.legends
    legend = figure.axes[0].get_legend().get_window_extent()
    assert figure.axes[0].bbox.x1 <= legend.x0 and legend.x1 <= figure.bbox.x1


def test_a_single_negative_point_is_enough(tmp_path):
    path = tmp_path / "curve.png"
    draw("cow", [LearningCurve("agent", [0], [-1.0])], path)
    assert path.stat().st_size > 0


def test_seeds_become_their_mean_and_range_where_all_have_been():
    runs = [
        LearningCurve("seed=0", [0, 100, 200], [0.0, 1.0, 2.0]),
        LearningCurve("seed=1", [50, 150, 300], [2.0, 4.0, 9.0]),
    ]
    curve = mean_and_range("2 seeds", runs)
    assert list(curve.env_steps) == [50, 100, 150, 200]
    np.testing.assert_allclose(curve.lowest, [0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(curve.highest, [2.0, 3.0, 4.0, 4.0 + 5 / 3])
    np.testing.assert_allclose(curve.returns, (curve.lowest + np.array(curve.highest)) / 2)


def test_one_seed_has_no_range():
    assert mean_and_range("agent", [AGENT]) == AGENT


def test_every_trial_of_a_search_has_its_label_and_a_band_its_place(tmp_path, monkeypatch):
    drawn, bands = [], []
    plot, fill = Axes.plot, Axes.fill_between
    monkeypatch.setattr(
        Axes, "plot", lambda self, *a, **kw: drawn.append(kw["label"]) or plot(self, *a, **kw)
    )
    monkeypatch.setattr(
        Axes, "fill_between", lambda self, *a, **kw: bands.append(a) or fill(self, *a, **kw)
    )
    curves = [LearningCurve(f"lr={i}", [0, 10], [0.0, i]) for i in range(12)]
    curves.append(LearningCurve("2 seeds", [0, 10], [1, 2], [0, 1], [2, 3]))
    draw("sweep", curves, tmp_path / "curve.png")
    assert drawn == [*(f"lr={i}" for i in range(12)), "2 seeds"]
    assert bands == [([0, 10], [0, 1], [2, 3])]
