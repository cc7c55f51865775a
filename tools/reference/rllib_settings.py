"""Every setting of RLlib's `AlgorithmConfig`, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping

from rllib_minestudio.algorithms.rllib_settings import HONOURED, MEANINGLESS, REFUSED
from tools.reference.tables import table

_INTRODUCTION = """\
# RLlib's settings

All public settings of RLlib 2.60's `AlgorithmConfig`. This package's own options are in
[Options](options.md).
"""

_SECTIONS = (
    (
        "Honoured",
        "`MineStudioBC` does not play while it trains: it refuses settings for env runners and "
        "their callbacks, `num_epochs`, and `custom_evaluation_function`. It honours `input_` and "
        "`dataset_num_iters_per_learner`, which `MineStudioPPO` refuses.",
        HONOURED,
    ),
    (
        "Refused",
        "Refused if the value differs from the default. The error gives the setting's name and "
        "value, followed by this sentence. Env runners, learners and RLModules that are not "
        "subclasses of this package's are refused too, as is a `callbacks_class` that overrides a "
        "refused callback.",
        REFUSED,
    ),
    ("Not applicable", "Accepted, and without an effect here.", MEANINGLESS),
)


def page() -> str:
    """Return the page."""
    sections = (
        f"## {title}\n\n{text}\n\n{table(_rows(settings), ('Settings', 'What becomes of them'))}"
        for title, text, settings in _SECTIONS
    )
    return "\n".join((_INTRODUCTION, *sections))


def _rows(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return a row per sentence, with the names of all settings that it is about."""
    names: dict[str, list[str]] = {}
    for name, sentence in settings.items():
        names.setdefault(sentence, []).append(name)
    # `table` sets a row's first cell as code, of which each name is a piece.
    return [("`, `".join(about), sentence) for sentence, about in names.items()]
