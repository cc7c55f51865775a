"""What this user wrote is recognised; from elsewhere only data is taken, or what is trusted."""

from __future__ import annotations

import dataclasses
import inspect
import os
import random
import shutil
import stat
import typing

import pytest
import yaml

from rllib_minestudio import Policy, checkpoints
from rllib_minestudio.checkpoints import trust
from rllib_minestudio.checkpoints.checkpoint import MODULE_CLASS, MODULE_PATH
from rllib_minestudio.checkpoints.lookup import PRIORS
from rllib_minestudio.checkpoints.record import with_own_digest
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions
from rllib_minestudio.env.callbacks.builder import CALLBACKS
from rllib_minestudio.env.env_options import (
    CONTAINERS,
    PATHS_OF_CALLBACKS,
    PLAIN_MINECRAFT_OPTIONS,
    PLAIN_OPTIONS,
    EnvOptions,
    requests_beyond_data,
)
from rllib_minestudio.errors import MineStudioError, UntrustedError
from rllib_minestudio.evaluation.policy_loading import load_policy
from tests.models.vpt.checkpoints import tell

FACTS = yaml.safe_load((PRIORS / "hunter_nano" / "playing.yaml").read_text())


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Makes one of several users of this machine the present one, by name."""

    def become(name):
        monkeypatch.setenv(trust.CONFIG_VARIABLE, str(tmp_path / "users" / name))

    become("self")
    return become


@pytest.fixture
def policy(tmp_path, users):
    """A policy's folder that the present user has sealed."""
    folder = tmp_path / "policy"
    shutil.copytree(PRIORS / "hunter_nano", folder)
    trust.seal(folder)
    return folder


def played(folder, **facts):
    """Rewrite what a policy played, as a stranger would: with a digest, without the user's key."""
    text = yaml.safe_dump({**FACTS, **facts})
    (folder / "playing.yaml").write_text(with_own_digest(text))


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a file where it is imported; returns that file."""
    mark = tmp_path / "imported"
    (tmp_path / "evilmod.py").write_text(
        f"open({str(mark)!r}, 'w').close()\n"
        "from rllib_minestudio.env import MineStudioEnv\n"
        "from rllib_minestudio.models.rl_modules import ConvGRURLModule\n"
        "class CB:\n    def after_reset(self, sim, obs, info): return obs, info\n"
        "class Env(MineStudioEnv): pass\n"
        "class Policy(ConvGRURLModule): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "evilmod", raising=False)
    return mark


def test_a_key_is_made_once_and_only_for_its_user(users, tmp_path):
    key = trust.user_key()
    assert key == trust.user_key() and len(key) == 32
    file = tmp_path / "users" / "self" / trust.KEY_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [trust.KEY_FILE]
    users("other")
    assert trust.user_key() != key


@pytest.mark.parametrize(
    ("mode", "content"), [(0o644, b"x" * 32), (0o620, b"x" * 32), (0o600, b"")]
)
def test_a_key_that_others_could_know_is_refused(users, tmp_path, mode, content):
    file = tmp_path / "users" / "self" / trust.KEY_FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(MineStudioError, match="only you can read"):
        trust.user_key()


def test_without_a_place_for_a_key_nothing_is_sealed(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(trust.CONFIG_VARIABLE, str(tmp_path / "file" / "below"))
    trust.seal(tmp_path)
    assert not (tmp_path / trust.SEAL_FILE).exists()
    assert "counts as from elsewhere" in caplog.text


@pytest.mark.parametrize("step", range(3))
def test_whoever_dies_while_replacing_a_sealed_file_leaves_one(users, tmp_path, monkeypatch, step):
    """Killed between any two of its writes, the old or the new file is there, under seal."""
    file, write, steps = tmp_path / "record.yaml", trust.write_whole, iter(range(100))

    def deadly(*arguments):
        if next(steps) == step:
            raise KeyboardInterrupt
        write(*arguments)

    trust.write_sealed(file, "old")
    for _ in range(2):  # as often as one likes
        steps = iter(range(100))
        with monkeypatch.context() as patched:
            patched.setattr(trust, "write_whole", deadly)
            with pytest.raises(KeyboardInterrupt):
                trust.write_sealed(file, "new")
        assert file.read_text() == ("old" if step < 2 else "new")
        assert trust.is_sealed(tmp_path, [file.name])
    trust.write_sealed(file, "newest")
    assert trust.is_sealed(tmp_path, [file.name])
    file.write_text("new")  # no seal of the past is left
    assert not trust.is_sealed(tmp_path, [file.name])


def test_looking_makes_no_key(users, tmp_path):
    shutil.copytree(PRIORS / "hunter_nano", tmp_path / "policy")
    (tmp_path / "policy" / trust.SEAL_FILE).write_text("0" * 64)
    assert not checkpoints.open(tmp_path / "policy").trusted
    assert not (tmp_path / "users").exists()


def test_a_policy_is_its_users_until_anything_of_it_changes(policy, users):
    assert checkpoints.open(policy).trusted
    users("other")
    trust.user_key()
    assert not checkpoints.open(policy).trusted
    users("self")
    for name in ("playing.yaml", "network.json", "model.safetensors", trust.SEAL_FILE):
        file = policy / name
        whole = file.read_bytes()
        file.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        assert not trust.is_sealed(policy), name
        file.write_bytes(whole)
        assert checkpoints.open(policy).trusted
    played(policy, num_envs_per_env_runner=2)
    assert not checkpoints.open(policy).trusted
    (policy / "playing.yaml").unlink()
    assert not checkpoints.open(policy).trusted


REQUESTS = {
    "program": (
        {"engine": "minecraft", "minecraft": {"directory": "zoo"}},
        r"env_config\.minecraft\.directory 'zoo'",
    ),
    "callback": ({"callbacks": [{"evilmod.CB": {}}]}, r"env_config\.callbacks\.0 'evilmod\.CB'"),
    "bare": ({"callbacks": ["evilmod.CB"]}, r"env_config\.callbacks\.0 'evilmod\.CB'"),
    "inner": (
        {"callbacks": [{"Compose": {"callbacks": ["evilmod.CB"]}}]},
        r"callbacks\.0\.Compose\.callbacks\.0 'evilmod\.CB'",
    ),
    "inner, unnamed": ({"callbacks": [{"Compose": ["evilmod.CB"]}]}, "evilmod"),
    "recording": (
        {"callbacks": [{"RecordCallback": {"record_path": "/anywhere"}}]},
        r"Record\.record_path '/anywhere'",
    ),
    "reading": ({"callbacks": [{"TaskFile": "/etc/passwd"}]}, r"TaskFile\.path '/etc/passwd'"),
    "pack": ({"resource_pack": "/home"}, r"resource_pack '/home'"),
    "unknown": ({"new_option": "x"}, r"new_option 'x'"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_a_stranger_asks_for_is_named_and_not_done(policy, evil, capsys, name):
    options, said = REQUESTS[name]
    played(policy, env_config=options)
    with pytest.raises(UntrustedError, match=f"asks for more than data: .*{said}.*--trust"):
        load_policy(policy)
    assert not evil.exists()
    assert main(["evaluate", str(policy), "--out", str(policy / "out")]) == BAD_INPUT
    assert "--trust" in capsys.readouterr().err
    assert not evil.exists()


def test_all_of_it_is_named_and_done_if_trusted(policy, evil):
    played(policy, env="evilmod.Env", env_config={"callbacks": ["evilmod.CB"]})
    with pytest.raises(UntrustedError, match=r"env 'evilmod\.Env'.*callbacks\.0 'evilmod\.CB'"):
        load_policy(policy)
    assert not evil.exists()
    assert load_policy(policy, trust=True).config.env == "evilmod.Env"


def test_a_strangers_class_of_policy_is_not_imported(policy, evil, tmp_path):
    tell(policy, '{"policy": "evilmod.Policy", "options": {}}')
    for load in (load_policy, Policy.load):
        with pytest.raises(UntrustedError, match=r"network\.json: the policy 'evilmod\.Policy'"):
            load(policy)
    assert not evil.exists()
    with pytest.raises(MineStudioError):  # its tensors do not fit
        load_policy(policy, trust=True)
    assert evil.exists()


def test_a_strangers_pickle_is_not_read(policy, tmp_path):
    """Without `playing.yaml` the environment's options are in RLlib's pickle."""
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / MODULE_PATH).mkdir(parents=True)
    policy.rename(checkpoint / "policy")
    (checkpoint / "policy" / "playing.yaml").unlink()
    mark = tmp_path / "run"
    program = b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR."
    (checkpoint / MODULE_CLASS).write_bytes(program)
    with pytest.raises(UntrustedError, match=r"class_and_ctor_args\.pkl \(a pickle, which can"):
        load_policy(checkpoint)
    assert not mark.exists()
    with pytest.raises(MineStudioError, match="is not a checkpoint of MineStudioPPO"):
        load_policy(checkpoint, trust=True)
    assert mark.exists()


def test_data_from_elsewhere_needs_no_trust(policy, users):
    users("other")
    played(
        policy, env_config={**FACTS["env_config"], "callbacks": [{"JudgeReset": 5}, "FastReset"]}
    )
    assert not checkpoints.open(policy).trusted
    assert load_policy(policy).config.env_config["callbacks"][0] == {"JudgeReset": 5}


def test_every_option_is_classified():
    """A new option of an environment or of the game is refused until somebody has sorted it in."""
    options = {field.name for field in dataclasses.fields(EnvOptions)}
    assert options == PLAIN_OPTIONS | {"callbacks", "minecraft", "resource_pack"}
    launch = {field.name for field in dataclasses.fields(MinecraftOptions)}
    assert launch == PLAIN_MINECRAFT_OPTIONS | {"directory", "display", "device"}


def test_every_path_of_a_built_in_callback_is_known():
    for name, callback in CALLBACKS.items():
        hints = typing.get_type_hints(callback.__init__)
        for argument in inspect.signature(callback).parameters:
            is_path = (
                "path" in argument or "file" in argument or os.PathLike in _of(hints, argument)
            )
            assert is_path == (argument in PATHS_OF_CALLBACKS.get(name, ())), (name, argument)
            holds_callbacks = argument == CONTAINERS.get(name)
            assert holds_callbacks == (argument == "callbacks"), (name, argument)


def _of(hints, argument):
    kinds = typing.get_args(hints.get(argument))
    return [typing.get_origin(kind) or kind for kind in kinds]


@pytest.mark.parametrize("specs", [5, None, {"a": 1}, [[]], [{}], [{"a": 1, "b": 2}], [None]])
def test_specs_of_any_shape_are_requests(specs):
    assert requests_beyond_data({"callbacks": specs})


def test_flipped_bits_of_a_copied_policy_are_noticed(tmp_path):
    """In any of its files; a prior that comes with the package is such a folder, too."""
    folder = tmp_path / "policy"
    shutil.copytree(PRIORS / "hunter_nano", folder)
    generator = random.Random(0)
    files = [folder / name for name in ("model.safetensors", "network.json", "playing.yaml")]
    for _ in range(60):
        file = generator.choice(files)
        whole = file.read_bytes()
        place, bit = generator.randrange(len(whole)), generator.randrange(8)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        file.write_bytes(flipped)
        with pytest.raises(MineStudioError):
            _ = load_policy(folder), checkpoints.open(folder).playing
        file.write_bytes(whole)
    load_policy(folder)
