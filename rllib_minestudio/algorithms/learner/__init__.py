"""Training: from fragments to an optimizer step, on one learner or several.

Start reading in `learner.py`; docs/learning.md explains the same in words.
"""

from rllib_minestudio.algorithms.learner.learner import (
    ITERATION,
    PUBLISHED_VERSION,
    PUBLISHES,
    MineStudioPPOLearner,
)

__all__ = ["ITERATION", "PUBLISHED_VERSION", "PUBLISHES", "MineStudioPPOLearner"]
