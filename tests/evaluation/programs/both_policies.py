"""MineStudio's own `VPTPolicy` and ours, with the same weights, in the same episodes.

    python -c 'from tests.evaluation.programs import both_policies as it; it.deterministic(FOLDER)'

or `it.sampled(FOLDER)`, after `it.hunter(FOLDER)` or `it.random_weights(FOLDER)`. What they find
out they print as JSON behind `FACTS`. This is a process of its own, as importing MineStudio
replaces parts of other packages.
"""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import ray
import torch
import yaml

from rllib_minestudio import checkpoints
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents.user_agents import AgentMaker, shipped
from rllib_minestudio.evaluation.agent_runner import AgentOrder, AgentRunner
from rllib_minestudio.evaluation.filters import InfoBaseFilter
from rllib_minestudio.evaluation.pipeline import MineGenerator
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.evaluation.summary import Summary, compare
from rllib_minestudio.minestudio import VPTPolicy
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import export_checkpoint, export_network
from tests.models.vpt.golden.make_golden import import_vpt_policy

EXPERIMENT = Path(__file__).parents[3] / "tuned_examples" / "cow.yaml"
LOGIT_STD = 6.4
"""Of published agents' logits, about; a new head's are nearly constant."""
FACTS = "facts: "
STEPS, EPISODES = 300, 2
"""Of the deterministic policies."""
FEW_STEPS, MANY_EPISODES, COWS = 40, 40, 2
"""Of those that sample: what about half of the hunter's episodes succeed in."""

_gaps: list[float] = []
"""Between the two best logits, of the nearer head, at each step of MineStudio's policy."""


def theirs(folder: str) -> Any:
    """MineStudio's policy, unmodified; a hook looks at its logits."""
    policy = _their_class().from_pretrained(folder)
    policy.pi_head.register_forward_hook(_note_gap)
    return policy


def ours(folder: str) -> VPTPolicy:
    """Our policy with the methods of theirs."""
    return VPTPolicy.from_pretrained(folder)


@cache  # the import works once
def _their_class() -> Any:
    return import_vpt_policy()


def _note_gap(head: Any, inputs: Any, logits: dict[str, torch.Tensor]) -> None:
    best = [x.flatten().topk(2).values for x in logits.values()]
    _gaps.append(min(float(two[0] - two[1]) for two in best))


class Noting(gym.Wrapper):
    """The cow task, which tells at an episode's end what was done in it."""

    def __init__(self) -> None:
        super().__init__(MineStudioEnv({**env_config(), "seed": 0}))
        self._actions: list[tuple[int, int]] = []

    def reset(self, **options: Any) -> Any:
        self._actions = []
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        self._actions.append((int(action["buttons"].item()), int(action["camera"].item())))
        *others, info = self.env.step(action)
        return *others, {**info, "actions": json.dumps(self._actions)}


def env_config() -> dict[str, Any]:
    """The cow task's options."""
    (experiment,) = yaml.safe_load(EXPERIMENT.read_text()).values()
    config: dict[str, Any] = experiment["config"]["env_config"]
    return config


def hunter(folder: str) -> None:
    """Write the package's own hunter as MineStudio reads it, with joint heads."""
    export_checkpoint(checkpoints.open("package:hunter_nano"), folder)


def random_weights(folder: str) -> None:
    """Write a random network of nano's size."""
    torch.manual_seed(0)
    network = VPTNetwork(VPTConfig.from_options({"preset": "nano", "action_head": "joint"}))
    for head in network.pi_head.values():
        torch.nn.init.normal_(head.linear_layer.weight, std=LOGIT_STD / network.config.hidsize**0.5)
    export_network(network, folder)


def played(make: Any, folder: str) -> list[list[tuple[int, int]]]:
    """The actions of each episode, by the most probable one at every step."""
    maker = AgentMaker.of(partial(make, folder))
    runner = AgentRunner()
    settings = PlaySettings(seed=1, deterministic=True, max_steps=STEPS, max_attempts=1)
    order = AgentOrder(maker, shipped(Noting, "env_generator"))
    episodes = list(runner.play([EpisodeSpec(i) for i in range(EPISODES)], settings, order))
    runner.close()
    errors = [episode.error for episode in episodes if episode.error]
    assert not errors, errors
    return [json.loads(episode.info["actions"]) for episode in episodes]


def deterministic(folder: str) -> None:
    """Print per episode its length, where actions first differ, and the gaps of theirs."""
    torch.set_num_threads(1)
    of_theirs, of_ours = played(theirs, folder), played(ours, folder)
    gaps, facts = list(_gaps), []
    for one, other in zip(of_theirs, of_ours, strict=True):
        own, gaps = gaps[: len(one)], gaps[len(one) :]
        unequal = [t for t, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
        facts.append(
            {
                "lengths": [len(one), len(other)],
                "kinds": len({tuple(action) for action in one}),
                "first_difference": unequal[0] if unequal else None,
                "gaps": own,
            }
        )
    assert not gaps
    print(FACTS + json.dumps(facts))


def sampled(folder: str) -> None:
    """Print how often each succeeds, and how a paired test tells them apart."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    summaries = [_summary(make, folder) for make in (theirs, ours)]
    found = compare(*summaries)
    facts = {
        "errors": [e.error for summary in summaries for e in summary.episodes if e.error],
        "successes": [summary.rate.num_yes for summary in summaries],
        "pairs": found.pairs,
        "success_p": found.success_p,
        "return_p": found.return_p,
    }
    print(FACTS + json.dumps(facts))


def _summary(make: Any, folder: str) -> Summary:
    generator = MineGenerator(
        num_workers=2,
        num_gpus=0,
        env_config=env_config(),
        agent_generator=partial(make, folder),
        num_max_steps=FEW_STEPS,
        num_episodes=MANY_EPISODES // 2,
        seed=2,
    )
    hunted = InfoBaseFilter(key="kill_entity", regex="cow", num=COWS)
    return Summary.of(hunted.filter(generator.generate()), filter=str(hunted), **generator.facts)
