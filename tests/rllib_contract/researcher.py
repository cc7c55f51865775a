"""What a researcher who knows RLlib writes around MineStudioPPO: callbacks, a learner, a search."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.tune.schedulers import PopulationBasedTraining

from rllib_minestudio.algorithms.learner import MineStudioPPOLearner


class Bookkeeping(RLlibCallback):
    """Counts episodes, and logs what RLlib has no metric for."""

    def on_environment_created(self, *, env_runner: Any, env: Any, **_: Any) -> None:
        env_runner.environments_seen = env.num_envs

    def on_episode_start(self, *, episode: Any, **_: Any) -> None:
        episode.custom_data["rewarded_steps"] = 0

    def on_episode_step(self, *, episode: Any, **_: Any) -> None:
        episode.custom_data["rewarded_steps"] += episode.get_rewards(-1) > 0

    def on_episode_end(self, *, episode: Any, metrics_logger: Any, **_: Any) -> None:
        share = episode.custom_data["rewarded_steps"] / len(episode)
        metrics_logger.log_value("rewarded_share", share, window=100)
        metrics_logger.log_value("episodes_counted", 1, reduce="lifetime_sum")

    def on_sample_end(
        self, *, env_runner: Any, samples: list, metrics_logger: Any, **_: Any
    ) -> None:
        assert env_runner.environments_seen == env_runner.num_envs
        metrics_logger.log_value("fragments", len(samples), reduce="sum")

    def on_evaluate_end(
        self, *, algorithm: Any, evaluation_metrics: dict[str, Any], **_: Any
    ) -> None:
        algorithm.last_evaluated = evaluation_metrics["env_runners"]["num_episodes"]

    def on_train_result(self, *, algorithm: Any, result: dict[str, Any], **_: Any) -> None:
        """Tell what the optimizer really uses, and a score that is another for each seed."""

        def options(learner: Any) -> tuple[float, float]:
            (group, *_) = learner.get_optimizer(DEFAULT_MODULE_ID).param_groups
            return group["lr"], group["weight_decay"]

        for found in algorithm.learner_group.foreach_learner(options):
            result["lr_in_use"], result["weight_decay_in_use"] = getattr(
                found, "get", lambda found=found: found
            )()
        result["score"] = algorithm.config.seed


class AuxiliaryLearner(MineStudioPPOLearner):
    """Adds a penalty on large values to the loss, and scales the gradients of the value head."""

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: dict[str, Any]
    ) -> torch.Tensor:
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        penalty = (fwd_out[Columns.VF_PREDS].square() * batch.share).sum()
        self.metrics.log_value((module_id, "value_penalty"), penalty.item(), reduce="sum")
        return loss + config.learner_config_dict["penalty"] * penalty

    def postprocess_gradients(
        self, gradients_dict: dict[torch.Tensor, torch.Tensor]
    ) -> dict[torch.Tensor, torch.Tensor]:
        gradients = super().postprocess_gradients(gradients_dict)
        for parameter in self.policy.network.value_head.parameters():
            gradients[parameter].mul_(0.5)
        self.metrics.log_value((DEFAULT_MODULE_ID, "gradient_hooks"), 1, reduce="sum")
        return gradients


def as_a_researcher(config: Any) -> Any:
    """The config with all of the above."""
    config.callbacks(Bookkeeping)
    config.learners(learner_class=AuxiliaryLearner, learner_config_dict={"penalty": 0.1})
    return config


def population(interval: int) -> PopulationBasedTraining:
    """Half of the trials take over the others' weights, with options of their own."""
    return PopulationBasedTraining(
        metric="score",
        mode="max",
        time_attr="training_iteration",
        perturbation_interval=interval,
        quantile_fraction=0.5,
        resample_probability=1.0,
        synch=True,
        hyperparam_mutations={
            "lr": [1e-3, 3e-3],
            "kl_coeff": [0.01, 0.03],
            "weight_decay": [0.1, 0.3],
        },
    )
