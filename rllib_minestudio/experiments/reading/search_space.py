"""Search spaces in YAML: how `{grid_search: [...]}` and its kin become Ray Tune's objects.

A mapping with exactly one key, one of `SEARCHES`, and a list as its value is a search:

    lr: {grid_search: [1e-5, 3e-5]}       # every value, once per sample
    lr: {loguniform: [1e-5, 1e-4]}        # the arguments of ray.tune.loguniform
    entropy_coeff: {choice: [0, 1e-3]}    # one of them, at random
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ray import tune
from ray.tune.search.sample import Domain
from ray.tune.search.variant_generator import generate_variants

TAKES_ONE_LIST = {"grid_search": tune.grid_search, "choice": tune.choice}
TAKES_ARGUMENTS = {
    name: getattr(tune, name)
    for name in (
        "uniform",
        "quniform",
        "loguniform",
        "qloguniform",
        "randn",
        "randint",
        "qrandint",
        "lograndint",
    )
}
SEARCHES = (*TAKES_ONE_LIST, *TAKES_ARGUMENTS)

MAX_VARIANTS = 64
"""How many members of a grid are validated; a larger one is validated in part."""


def parse_search_space(value: Any, path: str, problems: list[str]) -> Any:
    """Replace every search written in `value` by Tune's object, at any depth.

    Args:
        value: A plain container, as read from YAML.
        path: Dotted path of `value`, for messages.
        problems: Receives one sentence per search whose arguments Tune refuses.
    """
    if isinstance(value, list):
        return [parse_search_space(v, f"{path}.{i}", problems) for i, v in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    name = next(iter(value), None) if len(value) == 1 else None
    if name in SEARCHES:
        try:
            return _build(str(name), value[name])
        except (TypeError, ValueError, AssertionError) as error:
            reason = str(error).rstrip(".")
            problems.append(f"{path}: {name} does not take {value[name]!r}: {reason}.")
            return None
    return {k: parse_search_space(v, f"{path}.{k}", problems) for k, v in value.items()}


def variants(space: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield concrete configs of a search space: the grid's members, with sampled values drawn."""
    for _, variant in islice(generate_variants(dict(space)), MAX_VARIANTS):
        yield variant


def searched_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all searches in a space that `parse_search_space` returned."""
    if isinstance(value, Domain) or (isinstance(value, Mapping) and "grid_search" in value):
        return [path]
    if isinstance(value, Mapping):
        children = list(value.items())
    elif isinstance(value, list | tuple):
        children = list(enumerate(value))
    else:
        return []
    return [found for key, child in children for found in searched_paths(child, (*path, key))]


def _build(name: str, arguments: Any) -> Any:
    if not isinstance(arguments, list) or not arguments:
        raise ValueError("a list of values is expected")
    if name in TAKES_ONE_LIST:
        return TAKES_ONE_LIST[name](arguments)
    domain = TAKES_ARGUMENTS[name](*arguments)
    domain.sample()  # an impossible range is only noticed when drawing from it
    return domain
