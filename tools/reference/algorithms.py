"""Every option of the algorithms and models, from their declarations."""

from __future__ import annotations

from dataclasses import Field, fields

from rllib_minestudio.algorithms.options import ALGORITHMS, as_yaml
from rllib_minestudio.foundation.options import (
    bounds_of,
    default_of,
    group_of,
    sentence_of,
    types_of,
)
from rllib_minestudio.models.conv_gru import ConvGRUConfig
from rllib_minestudio.models.vpt.config import VPTConfig

_INTRODUCTION = """\
## The algorithms

The keys of `config`, and the arguments of `training()`. [RLlib's settings](rllib_settings.md) are
its own, such as `num_env_runners` and `rollout_fragment_length`.
"""

_VPT = """\
### `model`: the fields of `VPTConfig`

`model` takes them in addition to `preset`, `weights` and `freeze`. With `weights`, these decide
all but `precision` and `compile`; without, defaults are those of the preset, and of `1x` if that is
null or left out. [VPT](vpt.md#from-image-to-action) has the other presets.
"""

_CONV_GRU = """\
### `model`: the fields of `ConvGRUConfig`

With [`module_class: ConvGRU`](policies.md), `model` takes them in addition to
`weights` and `freeze`.
"""

_TYPES = {
    int: "integer",
    float: "number",
    bool: "true or false",
    str: "text",
    dict: "mapping",
    tuple: "list of integers",
}


def section() -> str:
    """Return the section of the options' page."""
    parts = [_INTRODUCTION]
    for name, options in ALGORITHMS.items():
        parts.append(f"### {name}\n\n{_table(options)}")
        for option in fields(options):
            if (group := group_of(option)) is not None:
                parts.append(f"#### {name}: `{option.name}`\n\n{_table(group)}")
    parts.append(f"{_VPT}\n{_table(VPTConfig)}")
    return "\n".join([*parts, f"{_CONV_GRU}\n{_table(ConvGRUConfig)}"])


def _table(options: type) -> str:
    rows = []
    for option in fields(options):
        sentence = sentence_of(option).replace("|", r"\|")
        cells = (f"`{option.name}`", _default(option), _values(options, option), sentence)
        rows.append(f"| {' | '.join(cells)} |")
    header = ("| Option | Default | Values | Description |", "|---|---|---|---|")
    return "\n".join([*header, *rows, ""])


def _default(option: Field) -> str:
    return "" if group_of(option) is not None else f"`{as_yaml(default_of(option))}`"


def _values(options: type, option: Field) -> str:
    """Describe the values that an option may have."""
    kind, nullable = types_of(options)[option.name]
    bounds = bounds_of(option)
    text = bounds.wording or _TYPES[kind]
    if bounds.choices:
        text = ", ".join(f"`{choice}`" for choice in bounds.choices)
    elif kind in (int, float) and bounds.check is None and bounds.wording is None:
        text += _range(bounds.least, bounds.most)
    return f"{text}, or null" if nullable else text


def _range(least: float, most: float) -> str:
    """Describe bounds that a user could meet; those that only catch typing errors are left out."""
    if most == 1:
        return f" from {least:g} to 1"
    if least == 0:
        return ", at least 0"
    return f", at least {least:g}" if isinstance(least, int) else ", positive"
