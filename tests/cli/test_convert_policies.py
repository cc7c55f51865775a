"""`rllib convert` on policies other than VPT: named, refused until written, never replaced."""

import sys

import pytest
import yaml

from rllib_minestudio.cli import convert
from rllib_minestudio.cli.main import BAD_INPUT, main

MODELS = "from minestudio.models import *\n"
GENERATOR = "def policy_generator(): return "
OWN = """\
class OwnPolicy(MinePolicy):
    def __init__(self, path):
        super().__init__(hiddim=512)
        self.layer = [1] * self.hiddim.no_such_thing
    def forward(self, input, state_in=None): pass
"""
HUB = "CraftJarvis/MineStudio_"


@pytest.fixture
def converted(tmp_path, capsys):
    """Returns a function: text of a config -> (what is said of its policy, the YAML's config)."""

    def convert_text(text):
        (tmp_path / "task.py").write_text(text)
        target = tmp_path / "task.yaml"
        assert main(["convert", str(tmp_path / "task.py"), "--out", str(target)]) == (
            convert.INCOMPLETE
        )
        said = " ".join(capsys.readouterr().err.split())
        experiment = yaml.safe_load(target.read_text())["task"]
        return said.partition("policy_generator() returns ")[2], experiment.get("config", {})

    return convert_text


@pytest.mark.parametrize(
    ("call", "name", "written", "reads", "weights"),
    [
        (
            f"load_steve_one_policy('{HUB}STEVE-1.official').to('cuda')",
            "SteveOnePolicy (STEVE-1)",
            "SteveOneRLModule",
            "task_text",
            f"{HUB}STEVE-1.official",
        ),
        (
            "SteveOnePolicy(policy_kwargs={})",
            "SteveOnePolicy (STEVE-1)",
            "SteveOneRLModule",
            "callback Task",
            None,
        ),
        (
            "load_groot_policy()",
            "GrootPolicy (GROOT)",
            "GrootRLModule",
            "ref_video_path",
            f"{HUB}GROOT.18w_EMA",
        ),
        (
            "load_rocket_policy(ckpt_path='rocket.ckpt')",
            "RocketPolicy (ROCKET-1)",
            "RocketRLModule",
            "obj_mask",
            "rocket.ckpt",
        ),
        (
            f"RocketPolicy.from_pretrained('{HUB}ROCKET-1.12w_EMA')",
            "RocketPolicy (ROCKET-1)",
            "RocketRLModule",
            "segmentation",
            f"{HUB}ROCKET-1.12w_EMA",
        ),
        ("NewerPolicy('x')", "NewerPolicy,", "NewerRLModule", "read_weights", None),
    ],
)
def test_minestudios_other_policies_are_named(converted, call, name, written, reads, weights):
    said, config = converted(f"{MODELS}{GENERATOR}{call}")
    assert said.startswith(f"MineStudio's {name}")
    path = f"my_package.my_module.{written}"
    assert reads in said and f"config.module_class: {path}" in said
    assert "docs/policies.md" in said and "config.model.weights" in said
    assert config.pop("module_class") == path
    assert config == ({"model": {"weights": weights}, "prior": "initial"} if weights else {})


@pytest.mark.parametrize(
    ("text", "name", "written"),
    [
        (
            f"{MODELS}{OWN}{GENERATOR}OwnPolicy('a.ckpt')",
            "OwnPolicy of the config file, derived from MineStudio's MinePolicy",
            "my_package.my_module.OwnRLModule",
        ),
        (
            f"{MODELS}{OWN}{GENERATOR}OwnPolicy",
            "OwnPolicy of the config file, derived from MineStudio's MinePolicy",
            "my_package.my_module.OwnRLModule",
        ),
        (
            f"from own_policies import OwnPolicy\n{GENERATOR}OwnPolicy('a.ckpt')",
            "own_policies.OwnPolicy, derived from MineStudio's MinePolicy",
            "own_policies.OwnRLModule",
        ),
        (
            f"{MODELS}class Better(VPTPolicy): pass\n{GENERATOR}Better({{}})",
            "Better of the config file, derived from MineStudio's VPTPolicy",
            "my_package.my_module.BetterRLModule",
        ),
        (
            f"from no_such_package import Policy\n{GENERATOR}Policy()",
            "no_such_package.Policy",
            "my_package.my_module.PolicyRLModule",
        ),
        (
            f"import fractions\n{GENERATOR}fractions.Fraction(1)",
            "fractions.Fraction",
            "my_package.my_module.FractionRLModule",
        ),
    ],
    ids=["in the config", "a class", "beside it", "of VPT's", "not installed", "foreign"],
)
def test_a_users_own_policy_is_named(converted, tmp_path, text, name, written):
    (tmp_path / "own_policies.py").write_text(f"from minestudio.models import MinePolicy\n{OWN}")
    said, config = converted(text)
    assert said.startswith(f"{name}, and this package has no network of that class")
    assert f"config.module_class: {written}; no run starts" in said
    assert config == {"module_class": written}
    assert "own_policies" not in sys.modules


def test_weights_of_a_users_own_policy_are_named(converted):
    call = "Better.from_pretrained('me/better')"
    said, config = converted(f"{MODELS}class Better(VPTPolicy): pass\n{GENERATOR}{call}")
    assert "Its weights, me/better, are config.model.weights" in said
    assert config["model"] == {"weights": "me/better"}
    assert config["module_class"] == "my_package.my_module.BetterRLModule"


@pytest.mark.parametrize("call", ["load_groot_policy()", "NewerPolicy()"])
def test_what_is_written_is_refused_in_one_sentence(tmp_path, capsys, call):
    """VPT never takes the place of a policy that is missing, nor loads its weights."""
    (tmp_path / "task.py").write_text(f"{MODELS}{GENERATOR}{call}")
    target = tmp_path / "task.yaml"
    main(["convert", str(tmp_path / "task.py"), "--out", str(target)])
    capsys.readouterr()
    assert main(["train", "file", str(target), "--out", str(tmp_path)]) == BAD_INPUT
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("error:") == said.count("my_package.my_module") == 1
    assert "cannot be imported (No module named 'my_package'): install it, or put" in said
