"""Makes small checkpoints in every published form."""

import dataclasses
import json
import pickle

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from rllib_minestudio.checkpoints.tensor_files import digests_of
from rllib_minestudio.models.vpt.weights import arguments_from_config


def hugging_face(network, folder, temperature=2.0):
    folder.mkdir()
    config = {
        "action_space": None,
        "policy_kwargs": arguments_from_config(network.config),
        "temperature": temperature,
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(network.state_dict(), folder / "model.safetensors")
    return folder


def described(network, folder):
    """Our own form without pickle."""
    folder.mkdir()
    tell(folder, json.dumps(dataclasses.asdict(network.config)), network.state_dict())
    return folder


def tell(folder, description, state=None):
    """Write both files of our own form, with digests that are right whatever they say.

    Args:
        folder: The folder.
        description: The text of `network.json`; None keeps it.
        state: The tensors; None keeps them.
    """
    file, tensors = folder / "network.json", folder / "model.safetensors"
    if description is not None:
        file.write_text(description)
    state = load_file(tensors) if state is None else state
    save_file(state, tensors, metadata=digests_of(state, file.read_bytes()))


def openai(network, folder, temperature=2.0, protocol=4):
    """A .model and .weights; the latter with a head that only OpenAI's training had."""
    folder.mkdir(exist_ok=True)
    # What OpenAI's files hold besides must not disturb.
    arguments = arguments_from_config(network.config) | {"only_img_input": True}
    model = {
        "model": {
            "type": "MinecraftPolicy",
            "args": {
                "net": {"args": arguments},
                "pi_head_opts": {"temperature": np.float32(temperature)},
            },
        },
        "extra_args": {"shape": np.arange(3), "names": ("a", None, b"bytes", {1, 2})},
    }
    paths = folder / "tiny.model", folder / "tiny.weights"
    paths[0].write_bytes(pickle.dumps(model, protocol=protocol))
    extra = {"aux_value_head.weight": torch.zeros(1, 4)}
    torch.save({**network.state_dict(), **extra}, paths[1])
    return paths


class Settings:
    """Stands for the objects that Lightning stores beside the weights."""

    def __init__(self, rate):
        self.rate = rate


def lightning(network, path):
    state = {f"mine_policy.{name}": tensor for name, tensor in network.state_dict().items()}
    torch.save({"epoch": 3, "hyper_parameters": Settings(1.0), "state_dict": state}, path)
    return path


def state_dict(network, path, prefix=""):
    torch.save({prefix + name: tensor for name, tensor in network.state_dict().items()}, path)
    return path


def module(network, folder):
    """What RLlib stores of our module, written without RLlib; returns the two files."""
    folder.mkdir()
    options = dataclasses.asdict(network.config)
    arguments = ((), {"model_config": options, "observation_space": Settings(0.0)})
    described = {"class": Settings, "ctor_args_and_kwargs": arguments}
    state = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    files = folder / "class_and_ctor_args.pkl", folder / "module_state.pkl"
    for path, content in zip(files, (described, state), strict=True):
        path.write_bytes(pickle.dumps(content))
    return files
