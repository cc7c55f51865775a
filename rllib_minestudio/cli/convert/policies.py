"""What `policy_generator` returns, in this package's terms: a policy's class and its weights.

VPT is translated whole. For any other class there is no network here, so the file names a class
that its reader has yet to write: it is refused until there is one, and VPT never stands in for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rllib_minestudio.cli.convert.online_dict import Translation
from rllib_minestudio.cli.convert.stand_ins import CONFIG_MODULE, MINESTUDIO, StandIn, by_name

_FROM_PRETRAINED = ".from_pretrained"
_PRETRAINED_PARAMETERS = ("pretrained_model_name_or_path",)
_VPT_FILES = ("model_path", "weights_path")
_VPT_LOADERS = {
    "load_vpt_policy": _VPT_FILES,
    "load_openai_policy": _VPT_FILES,  # the name that it had before
    "VPTPolicy.from_pretrained": _PRETRAINED_PARAMETERS,
}
_HERE = __name__.partition(".")[0]
"""This package, whose own policies say in `source` what they were loaded from."""
_PLACEHOLDER = "my_package.my_module"


class _Other(NamedTuple):
    """A policy of MineStudio's other than VPT."""

    title: str
    """As its paper calls it."""

    reads: str
    """What it is shown besides frames, and where that comes from here."""

    default: str | None
    """What its loader loads if it is given nothing."""


_OTHERS = {
    "SteveOnePolicy": _Other(
        "STEVE-1",
        "Besides the image it reads its goal, which MineStudio passes as `condition` (a text or a "
        "video, and cond_scale): the callback Task puts the task's text into observations as "
        "task_text, for the policy to embed; make cond_scale an option of config.model",
        None,
    ),
    "GrootPolicy": _Other(
        "GROOT",
        "Besides the image it reads a video of the task, which MineStudio passes as "
        "`ref_video_path`: make that path an option of config.model, for the policy to embed",
        "CraftJarvis/MineStudio_GROOT.18w_EMA",
    ),
    "RocketPolicy": _Other(
        "ROCKET-1",
        "Besides the image it reads which object to deal with and how, `segmentation` with "
        "obj_mask and obj_id: a callback of your own has to add both to observations",
        "CraftJarvis/MineStudio_ROCKET-1.12w_EMA",
    ),
}
_OTHER_LOADERS = {
    "load_steve_one_policy": "SteveOnePolicy",
    "load_groot_policy": "GrootPolicy",
    "load_rocket_policy": "RocketPolicy",
}
"""Each takes `ckpt_path`."""


def translate_policy(translation: Translation, policy: Any) -> None:
    """Translate the policy that `policy_generator` returned: its class and its weights."""
    kind = policy if isinstance(policy, type) else type(policy)
    name, module = kind.__qualname__, kind.__module__
    if module == "builtins":
        translation.left_out.append(
            f"policy_generator() returns a {name}, which is no policy: set config.module_class "
            "and config.model (docs/policies.md)"
        )
    elif module.partition(".")[0] == _HERE and getattr(policy, "source", None) is not None:
        translation.set("config.model.weights", translation.plain(name, policy.source))
        translation.set("config.prior", "initial")
    elif not _is_minestudios(kind):
        _translate_own(translation, policy, kind)
    elif name in ("VPTPolicy", *_VPT_LOADERS):
        _translate_vpt(translation, policy, name)
    else:
        name = name.removesuffix(_FROM_PRETRAINED)
        name = _OTHER_LOADERS.get(name, name)
        known = _OTHERS.get(name)
        title = f"MineStudio's {name}" + (f" ({known.title})" if known else "")
        _leave_out(translation, policy, f"{_PLACEHOLDER}.{_to_write(name)}", title, known)


def _translate_vpt(translation: Translation, policy: Any, called: str) -> None:
    """Name the weights; the sizes follow from what they say of themselves."""
    parameters = _VPT_LOADERS.get(called, ())
    arguments = by_name(policy, parameters) if isinstance(policy, StandIn) else {}
    weights = [arguments[name] for name in parameters if arguments.get(name) is not None]
    if not weights:
        translation.left_out.append(
            f"policy_generator() returns {called}; translated are load_vpt_policy and "
            "VPTPolicy.from_pretrained with weights. Set config.model.preset, or "
            "config.model.weights"
        )
        return
    for name in [name for name in arguments if name not in parameters]:
        translation.left_out.append(f"{called}({name}=...): not translated")
    places = [translation.plain(called, place) for place in weights]
    translation.set("config.model.weights", places[0] if len(places) == 1 else places)
    translation.set("config.prior", "initial")


def _translate_own(translation: Translation, policy: Any, kind: type) -> None:
    """Say where a class that is not MineStudio's is, and what it derives from."""
    name = kind.__qualname__.removesuffix(_FROM_PRETRAINED)
    is_in_config = kind.__module__ == CONFIG_MODULE
    title = f"{name} of the config file" if is_in_config else f"{kind.__module__}.{name}"
    base = next((base.__qualname__ for base in kind.__mro__ if _is_minestudios(base)), None)
    if base is not None:
        title += f", derived from MineStudio's {base}"
    module = _PLACEHOLDER if is_in_config or base is None else kind.__module__
    _leave_out(translation, policy, f"{module}.{_to_write(name)}", title, None)


def _leave_out(
    translation: Translation, policy: Any, path: str, title: str, known: _Other | None
) -> None:
    """Name a class that is yet to be written, and say what it must do.

    Args:
        translation: The experiment in the making.
        policy: What `policy_generator` returned.
        path: Import path of that class.
        title: The original's name.
        known: What is known of it.
    """
    translation.set("config.module_class", path)
    weights = _weights_of(policy) or (known.default if known else None)
    its_weights = "Its weights are"
    if weights is not None:
        translation.set("config.model.weights", weights)
        translation.set("config.prior", "initial")
        its_weights = f"Its weights, {weights}, are"
    sentences = [
        f"policy_generator() returns {title}, and this package has no network of that class",
        "Write a RecurrentRLModule that wraps it (docs/policies.md) and name that, as in "
        f"config.module_class: {path}; no run starts before it exists",
        *([known.reads] if known else []),
        f"{its_weights} config.model.weights; read_weights of the new class gives their tensors "
        "the names that its network has",
    ]
    translation.left_out.append(". ".join(sentences))


def _weights_of(policy: Any) -> str | None:
    """Return the file or id that a loader was given, if it was given one."""
    if not isinstance(policy, StandIn):
        return None
    if policy.name.endswith(_FROM_PRETRAINED):
        parameters = _PRETRAINED_PARAMETERS
    elif policy.is_minestudios and policy.name in _OTHER_LOADERS:
        parameters = ("ckpt_path",)
    else:
        return None
    place = by_name(policy, parameters).get(parameters[0])
    return None if place is None else str(place)


def _to_write(name: str) -> str:
    """Name the class that is to wrap one, as this package names its own."""
    return f"{name.rpartition('.')[2].removesuffix('Policy') or name}RLModule"


def _is_minestudios(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == MINESTUDIO
