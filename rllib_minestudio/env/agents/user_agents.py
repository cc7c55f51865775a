"""Agents from elsewhere: where they come from, their interfaces, and what their actions mean here.

An agent is an object that chooses actions. Which of these interfaces it has is determined once,
from its methods' signatures:

| methods | origin |
|---|---|
| `get_action(obs, memory, input_shape="*") -> action, memory` | MineStudio 1 |
| `initial_state()`, `act(observation, state, *, deterministic) -> action, state` | MineStudio 2 |
| `predict(obs, state, episode_start, deterministic) -> action, state` | stable-baselines3 |
| `act(obs) -> action`, and perhaps `reset()`, which may take a `seed` | `Policy`, many others |
| `act(env) -> action`, with this name: it reads the environment itself | our scripted agents |
| `takes_batches = True`, `act(observations, begins) -> actions` | agents that compute in batches |

A string stands for the policy of a checkpoint, if the caller can load one. Anything else is refused
with an error.
"""

from __future__ import annotations

import faulthandler
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.checkpoints.lookup import is_shipped
from rllib_minestudio.env.actions import ActionMapper, check_env_action
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import AgentError, InvalidActionError, InvalidOptionsError
from rllib_minestudio.foundation.options import shown

_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")

_logger = logging.getLogger(__name__)

SEED = "seed"
TIMEOUT_S = 60.0
"""Seconds that an agent may take for an action, by default."""

LEAST_TO_MAKE_S = 600.0
"""The least time limit in seconds for making an agent: weights are read, and perhaps fetched."""


def is_agent_path(name: str) -> bool:
    """Return whether a name is `module:function` rather than a checkpoint's."""
    is_path = _PATH.fullmatch(name) is not None and not is_shipped(name)
    return is_path and not Path(name).exists()


@dataclass(frozen=True)
class AgentMaker:
    """Makes an agent in the process in which it plays.

    A function that takes a `seed` is called for every episode, with a seed of its own. Any other
    is called once per process; before each episode the generators of Python, NumPy and torch are
    seeded, and the agent's `reset` is called if it has one.

    Attributes:
        name: Its name in messages and summaries.
        identity: What summaries report about it, as plain data.
        path: `module:function`, imported where it plays; None if it is shipped by value.
        pickled: The function by value, by cloudpickle; None if it is imported.
        folders: Where its modules are found, besides Python's search path.
    """

    name: str
    identity: Mapping[str, Any]
    path: str | None = None
    pickled: bytes | None = None
    folders: tuple[str, ...] = ()

    @classmethod
    def named(cls, path: str) -> AgentMaker:
        """Find a function by its path; this imports, and so runs, its module.

        Raises:
            InvalidOptionsError: If the module cannot be imported, or has no such function.
        """
        _note_program(path)
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.append(folder)
        return cls(path, _identity(path, _imported(path)), path=path, folders=(folder,))

    @classmethod
    def of(cls, make: Callable[..., Any], what: str = "agent_generator") -> AgentMaker:
        """Take a function, lambda, partial or class, to be shipped by value.

        Raises:
            InvalidOptionsError: If it is none of these, or cannot be shipped.
        """
        pickled = shipped(make, what)
        name = _name_of(make)
        return cls(name, _identity(name, make), pickled=pickled)

    def load(self) -> Callable[..., Any]:
        """Return the function, in the process in which it is to be called.

        Raises:
            InvalidOptionsError: If it cannot be imported here.
        """
        if self.pickled is not None:
            function: Callable[..., Any] = cloudpickle.loads(self.pickled)
            return function
        assert self.path is not None
        sys.path.extend(folder for folder in self.folders if folder not in sys.path)
        return _imported(self.path)


def shipped(function: Callable[..., Any], what: str) -> bytes:
    """Return a function by value, for another process.

    Raises:
        InvalidOptionsError: If it cannot be called, or holds something that cannot be shipped.
    """
    if not callable(function):
        raise InvalidOptionsError(
            f"{what} is {function!r}: it must be a function without arguments, such as a lambda."
        )
    try:
        pickled: bytes = cloudpickle.dumps(function)
    except Exception as error:  # pickling runs the objects' own code
        raise InvalidOptionsError(
            f"{what} cannot be shipped to the processes that play ({type(error).__name__}: "
            f"{error}): build what it needs inside it, instead of using what was built before."
        ) from error
    return pickled


# ------------------------------------------------------------------ acting


class AgentActs:
    """An agent behind a common interface; each subclass adapts another interface to it.

    Attributes:
        takes_batches: Whether observations and actions have a leading axis of environments.
    """

    takes_batches: ClassVar[bool] = False

    def __init__(self, agent: Any, env: gym.Env, deterministic: bool) -> None:
        self._agent = agent
        self._env = env
        self._deterministic = deterministic
        reset = getattr(agent, "reset", None)
        self._reset = reset if callable(reset) else None
        self._reset_takes_seed = self._reset is not None and SEED in _parameters(self._reset)

    def begin(self, seed: int) -> None:
        """Forget the previous episode."""
        if self._reset is not None:
            self._reset(**({SEED: seed} if self._reset_takes_seed else {}))

    def act(self, obs: Any) -> Any:
        """Return the agent's answer to an observation."""
        return self._agent.act(obs)


class _Looking(AgentActs):
    """Reads the environment itself."""

    def act(self, obs: Any) -> Any:
        return self._agent.act(self._env)


class _Told(AgentActs):
    """Is told with every observation to take its most probable action, as `Policy` can be."""

    def act(self, obs: Any) -> Any:
        return self._agent.act(obs, deterministic=True)


class _WithState(AgentActs):
    """MineStudio 2: the caller keeps the state."""

    def begin(self, seed: int) -> None:
        super().begin(seed)
        initial = getattr(self._agent, "initial_state", None)
        self._state = initial() if callable(initial) else None
        given = _parameters(self._agent.act)
        self._keywords = {"deterministic": True} if self._deterministic else {}
        if self._keywords and "deterministic" not in given:
            raise _no_choice(self._agent, "act")

    def act(self, obs: Any) -> Any:
        action, self._state = self._agent.act(obs, self._state, **self._keywords)
        return action


class _GetAction(AgentActs):
    """MineStudio 1."""

    def begin(self, seed: int) -> None:
        super().begin(seed)
        self._memory = None
        self._keywords: dict[str, Any] = {"input_shape": "*"}
        if self._deterministic:
            if "deterministic" not in _parameters(self._agent.get_action):
                raise _no_choice(self._agent, "get_action")
            self._keywords["deterministic"] = True

    def act(self, obs: Any) -> Any:
        action, self._memory = self._agent.get_action(obs, self._memory, **self._keywords)
        return action


class _Predict(AgentActs):
    """stable-baselines3; it gets the observations of one environment, without a batch axis."""

    def begin(self, seed: int) -> None:
        super().begin(seed)
        self._state: Any = None
        self._first = np.ones(1, np.bool_)

    def act(self, obs: Any) -> Any:
        action, self._state = self._agent.predict(
            obs,
            state=self._state,
            episode_start=self._first,
            deterministic=self._deterministic,
        )
        self._first = np.zeros(1, np.bool_)
        return action


class _Batches(AgentActs):
    """Computes for several environments at once."""

    takes_batches = True

    def begin(self, seed: int) -> None:
        """Do nothing: `begins` tells the agent where episodes begin."""

    def act(self, obs: Any, begins: NDArray[np.bool_] | None = None) -> Any:
        return self._agent.act(obs, begins)


def adapt(
    agent: Any,
    env: gym.Env,
    *,
    name: str,
    deterministic: bool = False,
    gpu: bool = False,
    load: Callable[[str], Any] | None = None,
) -> AgentActs:
    """Find out which interface an agent has, and adapt it.

    Args:
        agent: The agent, or the name of a checkpoint.
        env: The environment that it plays in.
        name: Its name in messages.
        deterministic: Whether it is to take its most probable actions.
        gpu: Whether it was promised a share of a GPU, to which torch modules are moved.
        load: Loads a checkpoint's policy, already set to act deterministically or not.

    Raises:
        InvalidOptionsError: If it has none of the interfaces, or cannot be deterministic.
    """
    if isinstance(agent, str | Path) and load is not None:
        return AgentActs(load(str(agent)), env, deterministic)
    _prepare(agent, gpu)
    kind = _kind_of(agent, name)
    if deterministic and kind is AgentActs and "deterministic" in _parameters(agent.act):
        kind = _Told
    if deterministic and kind in (AgentActs, _Looking, _Batches):
        raise InvalidOptionsError(
            f"deterministic: {name!r} cannot be told to take its most probable actions; that needs "
            "an argument `deterministic` (of predict, get_action, or act with a state)."
        )
    return kind(agent, env, deterministic)


def _kind_of(agent: Any, name: str) -> type[AgentActs]:
    if getattr(agent, "takes_batches", False) is True and callable(getattr(agent, "act", None)):
        return _Batches
    if callable(getattr(agent, "get_action", None)):
        return _GetAction
    if callable(getattr(agent, "predict", None)):
        return _Predict
    if callable(getattr(agent, "act", None)):
        first, *others = [*_parameters(agent.act), ""]
        if callable(getattr(agent, "initial_state", None)) or others[:1] == ["state"]:
            return _WithState
        return _Looking if first == "env" else AgentActs
    methods = [each for each in dir(agent) if not each.startswith("_")][:8]
    raise InvalidOptionsError(
        f"{name} made a {type(agent).__name__}, which is no agent: it must have "
        "get_action(obs, memory, input_shape), act(observation, state), predict(obs, state, "
        "episode_start, deterministic), or act(obs), or be a checkpoint's name; it has "
        f"{', '.join(methods) or 'no methods'}."
    )


def _prepare(agent: Any, gpu: bool) -> None:
    """Move an agent to the GPU and into evaluation mode, as MineStudio's worker does."""
    if gpu and callable(getattr(agent, "to", None)):
        agent.to("cuda")
    if callable(getattr(agent, "eval", None)):
        agent.eval()


def _no_choice(agent: Any, method: str) -> InvalidOptionsError:
    return InvalidOptionsError(
        f"deterministic: {type(agent).__name__}.{method} has no argument `deterministic`."
    )


# ------------------------------------------------------------------ actions


@dataclass
class ActionReader:
    """Turns agents' answers into actions of an environment.

    In `MineStudioEnv`, tokens are accepted where keys are wanted and keys where tokens are wanted,
    as in MineStudio. In any other environment an action has to be in its space, except for its
    type: tensors are accepted, and so are arrays of another shape with the same number of elements.

    Attributes:
        env: The environment.
        name: The agent's name.
    """

    env: gym.Env
    name: str
    _mapper: ActionMapper | None = field(init=False)

    def __post_init__(self) -> None:
        """Determine the kind of actions that the environment takes."""
        inner = self.env.unwrapped
        self._mapper = None
        # A wrapper may have changed the kind of actions.
        if isinstance(inner, MineStudioEnv) and self.env.action_space == inner.action_space:
            self._mapper = ActionMapper(inner.options.camera_config)
            self._wants_tokens = inner.options.action_type == "agent"

    def read(self, action: Any) -> Any:
        """Return an agent's answer as an action of the environment.

        Raises:
            AgentError: If it is not an action.
        """
        try:
            if self._mapper is not None:
                return self._ours(action, self._mapper)
            return _fitted(action, self.env.action_space)
        except (InvalidActionError, TypeError, ValueError, OverflowError) as error:
            returned = " ".join(shown(action).split())
            raise AgentError(
                f"{self.name} returned {returned}, which is no action here: {error}"
            ) from error

    def _ours(self, action: Any, mapper: ActionMapper) -> Any:
        if isinstance(action, Mapping) and "buttons" not in action:
            keys = check_env_action({key: _plain(value) for key, value in action.items()})
            if not self._wants_tokens:
                return keys
            buttons, camera = mapper.from_env(keys)
        else:
            if not isinstance(action, Mapping | tuple):
                action = tuple(np.asarray(_plain(action)).ravel())  # the pair of a MultiDiscrete
            buttons, camera = mapper.parse(action)
            if not self._wants_tokens:
                keys = mapper.to_env(buttons, camera)
                del keys["drop"]  # the space has none, as in MineStudio
                return keys
        return {"buttons": np.array([buttons]), "camera": np.array([camera])}


def rows_of(actions: Any, count: int) -> list[Any]:
    """Split a batch of actions.

    Raises:
        AgentError: If there are not `count` actions.
    """
    if isinstance(actions, Mapping):
        columns = {name: rows_of(values, count) for name, values in actions.items()}
        return [{name: values[row] for name, values in columns.items()} for row in range(count)]
    values = _plain(actions)
    if not isinstance(values, Sequence | np.ndarray) or len(values) != count:
        raise AgentError(
            f"An agent that takes batches did not return {count} actions: {shown(actions)}."
        )
    return list(values)


def _fitted(action: Any, space: gym.Space) -> Any:
    """Return an action in the form of its space.

    Raises:
        ValueError: If it is not in the space.
    """
    if isinstance(space, gym.spaces.Dict) and isinstance(action, Mapping):
        if missing := sorted(space.spaces.keys() ^ action.keys()):
            raise ValueError(f"{missing[0]!r} is missing or unexpected; the space is {space}")
        return {name: _fitted(action[name], inner) for name, inner in space.spaces.items()}
    value = _plain(action)
    if isinstance(space, gym.spaces.Discrete):
        array = np.asarray(value)
        value = int(array.item()) if array.size == 1 and array == array.astype(int) else value
    elif space.shape is not None and not isinstance(space, gym.spaces.Text):
        array = np.asarray(value)
        if array.size == int(np.prod(space.shape)):
            value = array.reshape(space.shape).astype(space.dtype, casting="same_kind")
    if not space.contains(value):
        raise ValueError(f"the space is {space}")
    return value


def _plain(value: Any) -> Any:
    """Return a tensor as an array, and anything else as it is."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


# ------------------------------------------------------------------ playing


class AgentPlays:
    """An agent that plays in this process, episode after episode.

    Args:
        maker: Makes the agent.
        deterministic: Whether it is to take its most probable actions.
        gpu: Whether it has a share of a GPU.
        load: Loads the policy of a checkpoint for an environment.
    """

    def __init__(
        self,
        maker: AgentMaker,
        *,
        deterministic: bool = False,
        gpu: bool = False,
        load: Callable[[gym.Env, str], Any] | None = None,
    ) -> None:
        self.maker = maker
        self._deterministic, self._gpu, self._load = deterministic, gpu, load
        self._make: Callable[..., Any] | None = None
        self._agent: Any = None
        self._env: gym.Env | None = None
        self._acts: AgentActs
        self._reader: ActionReader

    @property
    def takes_batches(self) -> bool:
        """Whether it plays several environments at once; known once an episode has begun."""
        return self._acts.takes_batches

    def begin(self, env: gym.Env, seed: int) -> None:
        """Begin an episode; make the agent if there is none yet, or if it is made with a seed.

        Args:
            env: The environment that it plays in.
            seed: The agent's seed in this episode.

        Raises:
            InvalidOptionsError: If it has no known interface, or cannot be deterministic.
            AgentError: If it raised.
        """
        with self._named():
            self._begin(env, seed)

    def _begin(self, env: gym.Env, seed: int) -> None:
        if self._make is None:
            self._make = self.maker.load()
        seeded = SEED in _parameters(self._make)
        if seeded or self._agent is None:
            self._agent = self._make(seed=seed) if seeded else self._make()
            self._env = None
        if self._env is not env:
            load = self._load
            self._acts = adapt(
                self._agent,
                env,
                name=self.maker.name,
                deterministic=self._deterministic,
                gpu=self._gpu,
                load=None if load is None else lambda checkpoint: load(env, checkpoint),
            )
            self._reader = ActionReader(env, self.maker.name)
            self._env = env
        if not seeded:
            _seed_generators(seed)
        self._acts.begin(seed)
        self._begins = True

    def act(self, obs: Any) -> Any:
        """Return the action for an observation, as the environment takes it.

        Raises:
            AgentError: If the agent raised, or did not return an action.
        """
        if not isinstance(self._acts, _Batches):
            with self._named():
                return self._reader.read(self._acts.act(obs))
        (action,) = self.act_in_all([obs], np.array([self._begins]))
        self._begins = False
        return action

    def act_in_all(self, observations: Sequence[Any], begins: NDArray[np.bool_]) -> list[Any]:
        """Return actions like `act` for N environments at once, for an agent that takes batches.

        Args:
            observations: N observations.
            begins: (N,) whether an episode begins with each.
        """
        assert isinstance(self._acts, _Batches)
        with self._named():
            answers = self._acts.act(_stacked(observations), begins)
            return [self._reader.read(answer) for answer in rows_of(answers, len(begins))]

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise an AgentError that names the agent for any error that it raises."""
        try:
            yield
        except (AgentError, InvalidOptionsError):
            raise
        except (Exception, SystemExit) as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise AgentError(f"{self.maker.name} raised {said}") from error

    def forget(self) -> None:
        """Drop the agent, which failed; the next episode makes another."""
        self._agent = self._env = None


_GRACE_S = 10.0
"""Seconds between the interrupt and the end of the process."""


class Watch:
    """Ends what takes too long: by an exception if it can be interrupted, or by force.

    Args:
        ends_hung: Whether to use force, which ends the process.
    """

    def __init__(self, ends_hung: bool) -> None:
        self._ends_hung = ends_hung
        self._ends_at = 0.0
        self._limit_s = 0.0
        self._interrupts = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Prepare for `limit` in a block; only a process's main thread can be interrupted."""
        self._interrupts = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGALRM, self._interrupt) if self._interrupts else None
        try:
            yield
        finally:
            self.rest()
            if self._interrupts:
                signal.signal(signal.SIGALRM, before)

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Raise in the block after some time.

        Raises:
            AgentError: If the block takes longer than `seconds`.
        """
        self._limit_s = seconds
        self._arm(seconds + _GRACE_S)
        if self._interrupts:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            if self._interrupts:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def rest(self) -> None:
        """Stop watching for now: an environment begins, or a result is handed in."""
        if self._ends_at:
            faulthandler.cancel_dump_traceback_later()
            self._ends_at = 0.0

    def _arm(self, seconds: float) -> None:
        """Have the process ended after `seconds` or a little later.

        Setting the timer again for each action would cost more.
        """
        now = time.monotonic()
        left = self._ends_at - now
        if self._ends_hung and not seconds <= left <= seconds + _GRACE_S:
            self._ends_at = now + seconds + _GRACE_S
            log: Any = sys.__stderr__
            faulthandler.dump_traceback_later(seconds + _GRACE_S, exit=True, file=log)

    def _interrupt(self, *_: Any) -> None:
        raise AgentError(f"the agent did not answer within {self._limit_s:g} s")


class WatchedAgent(AgentPlays):
    """An agent that is interrupted if it does not answer, for callers without a `Watch`."""

    def begin(self, env: gym.Env, seed: int) -> None:
        """Begin like `AgentPlays.begin`, within `LEAST_TO_MAKE_S`."""
        watch = Watch(ends_hung=False)
        with watch(), watch.limit(LEAST_TO_MAKE_S):
            super().begin(env, seed)

    def act(self, obs: Any) -> Any:
        """Act like `AgentPlays.act`, within `TIMEOUT_S`."""
        watch = Watch(ends_hung=False)
        with watch(), watch.limit(TIMEOUT_S):
            return super().act(obs)


def _stacked(observations: Sequence[Any]) -> Any:
    if isinstance(observations[0], Mapping):
        return {name: _stacked([obs[name] for obs in observations]) for name in observations[0]}
    return np.stack(observations)


def _seed_generators(seed: int) -> None:
    """Seed the global generators, for agents that take no seed."""
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


# ------------------------------------------------------------------ where they come from


def _imported(path: str) -> Callable[..., Any]:
    """Import a function.

    Raises:
        InvalidOptionsError: If it cannot be imported, or is not a function.
    """
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the author's code may raise anything
        raise InvalidOptionsError(
            f"{path!r}: the module {module_name} cannot be imported "
            f"({type(error).__name__}: {error}). It is looked for in the current folder and on "
            "Python's search path; what it needs has to be installed next to this package."
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            functions = [n for n, value in vars(found).items() if callable(value)] if (
                inspect.ismodule(found)
            ) else []  # fmt: skip
            raise InvalidOptionsError(
                f"{path!r}: {module_name} has no {attribute!r}; it has "
                f"{', '.join(n for n in functions if not n.startswith('_')) or 'no functions'}."
            )
        found = getattr(found, name)
    if not callable(found):
        raise InvalidOptionsError(
            f"{path!r} is a {type(found).__name__}: it must be a function that makes an agent."
        )
    function: Callable[..., Any] = found
    return function


@cache
def _note_program(path: str) -> None:
    """Warn once that naming a module runs it."""
    _logger.warning("%s is a program: it is imported, and so run, here and in workers.", path)


def _identity(name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Return what identifies an agent's program: its module, version, and a digest of its file."""
    function = inspect.unwrap(getattr(make, "func", make))
    module = inspect.getmodule(function)
    identity: dict[str, Any] = {"checkpoint": name, "agent": name}
    if module is None:
        return identity
    identity["module"] = module.__name__
    package = module.__name__.partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", None)
    for distribution in importlib.metadata.packages_distributions().get(package, [])[:1]:
        version = importlib.metadata.version(distribution)
    if isinstance(version, str):
        identity["version"] = version
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        identity["file_digest"] = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    return identity


def _name_of(make: Callable[..., Any]) -> str:
    function = getattr(make, "func", make)  # of a partial
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}:{name}"


def _parameters(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a built-in
        return {}
