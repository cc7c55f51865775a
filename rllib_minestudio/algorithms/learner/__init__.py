"""What trains: from fragments to a step of the optimizer, on one learner or several.

`learner.py` is where to begin reading; docs/learning.md tells the same in words.
"""

from rllib_minestudio.algorithms.learner.learner import (
    ITERATION,
    PUBLISHED_VERSION,
    MineStudioPPOLearner,
)

__all__ = ["ITERATION", "PUBLISHED_VERSION", "MineStudioPPOLearner"]
