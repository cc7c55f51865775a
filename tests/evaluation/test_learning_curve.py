"""The picture of a run."""

from rllib_minestudio.evaluation.learning_curve import LearningCurve, draw


def test_a_curve_becomes_a_png(tmp_path):
    path = tmp_path / "curve.png"
    draw(LearningCurve("cow", [0, 1000, 2000], [0.1, 0.5, 2.0], random_policy=0.2), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_single_negative_point_is_enough(tmp_path):
    path = tmp_path / "curve.png"
    draw(LearningCurve("cow", [0], [-1.0]), path)
    assert path.stat().st_size > 0
