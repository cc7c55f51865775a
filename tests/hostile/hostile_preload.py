"""What the server of attacks imports once, so that no attack pays for it."""

import ray.rllib.algorithms.algorithm  # noqa: F401

import rllib_minestudio.algorithms
import rllib_minestudio.algorithms.cloning
import rllib_minestudio.cli.evaluate
import rllib_minestudio.cli.main
import rllib_minestudio.cli.plan
import rllib_minestudio.cli.train
import rllib_minestudio.demonstrations
import rllib_minestudio.evaluation.checkpoint
import rllib_minestudio.evaluation.report.page
import rllib_minestudio.models.vpt.export
import rllib_minestudio.models.vpt.summary  # noqa: F401
