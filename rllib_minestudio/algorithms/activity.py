"""What a process is doing within an iteration, for whoever watches the run from another process.

An iteration may take minutes, and reports nothing to Tune until it ends. Meanwhile each process
keeps an entry in the key-value store of Ray's control service (GCS): the algorithm under the name
of its trial's folder, env runners and learners of their own under their actors' ids. The algorithm
says in which stage it is, and for which actors it waits; whoever does the work says in detail how
far that is. `activity_of` puts the two together.

It works as logging does: `stage` and `detail` cost nothing where nobody asked (`publish_as`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.experimental import internal_kv

NAMESPACE = "rllib_minestudio_activity"

SECONDS_BETWEEN_DETAILS = 0.5
"""Writing takes a fraction of a millisecond, and so may a step of the environments."""

_key: str | None = None
_entry: dict[str, Any] = {}
_written_at = 0.0


def publish_as(key: str | None) -> None:
    """Let this process tell what it is doing.

    Args:
        key: Of a trial (`key_of_trial`), or an actor's id; None tells nothing from now on.
    """
    global _key
    _key = key
    _entry.clear()


def publish_as_trial(storage: Any) -> None:
    """Let this process, which runs a trial of Tune's, tell what it is doing.

    The folder stands for the trial: RLlib drops the trial's id on its way to the algorithm
    (`AlgorithmConfig.update_from_dict`).

    Args:
        storage: Tune's `StorageContext`; None outside of Tune, where nobody watches.
    """
    publish_as(None if storage is None else storage.trial_dir_name)


def key_of_trial(trial: Any) -> str:
    """Return the key under which a trial's process tells what it is doing.

    Args:
        trial: Tune's.
    """
    return str(trial.storage.trial_dir_name)


def publish_as_actor() -> None:
    """Let this process tell what it is doing if it is an actor, and does not tell already."""
    if _key is None and ray.is_initialized():
        publish_as(ray.get_runtime_context().get_actor_id())


def stage(name: str, done: int | None = None, total: int = 0, actors: Sequence[Any] = ()) -> None:
    """Tell of a stage of the iteration, at once.

    Args:
        name: Such as "learning", or "collecting: fragment" if there is something to count.
        done: How much of it is done.
        total: How much there is to do.
        actors: Handles of those that this process waits for, who tell the details.
    """
    if _key is not None:
        _entry.clear()
        _entry["actors"] = [actor._actor_id.hex() for actor in actors]
        _write("stage", name, done, total)


def detail(name: str, done: int | None = None, total: int = 0) -> None:
    """Tell how far the work in this process is; not more than twice a second.

    Args:
        name: As in `stage`, such as "step".
        done: As in `stage`.
        total: As in `stage`.
    """
    if _key is not None and time.monotonic() - _written_at >= SECONDS_BETWEEN_DETAILS:
        _write("detail", name, done, total)


class Count:
    """Tells how many of a number of things are done.

    Args:
        name: As in `detail`.
        total: How many there are to do.
    """

    def __init__(self, name: str, total: int) -> None:
        """Begin with none done."""
        self._name, self._total, self._done = name, total, 0

    def add(self, number: int = 1) -> None:
        """Note that so many more are done, or under way."""
        self._done += number
        detail(self._name, min(self._done, self._total), self._total)


def _write(kind: str, name: str, done: int | None, total: int) -> None:
    global _written_at
    if not ray.is_initialized():
        return
    _written_at = time.monotonic()
    _entry[kind] = name if done is None else f"{name} {done:,} of {total:,}"
    internal_kv._internal_kv_put(_key, json.dumps(_entry), overwrite=True, namespace=NAMESPACE)


def activity_of(key: str) -> str:
    """Return what a trial is doing, with the details of where it is done; "" if it told nothing.

    Args:
        key: As given to `publish_as`.
    """
    entry = _read(key)
    details = [entry, *map(_read, entry.get("actors", ()))]
    inner = next((one["detail"] for one in details if "detail" in one), "")
    return f"{entry.get('stage', '')} ({inner})".strip() if inner else entry.get("stage", "")


def _read(key: str) -> dict[str, Any]:
    value = internal_kv._internal_kv_get(key, namespace=NAMESPACE)
    entry: dict[str, Any] = {} if value is None else json.loads(value)
    return entry
