"""Files of every format that this package reads back, each wrong in one place.

A document's attacks are generated from an honest one, as its writer leaves it: each value in turn
is replaced by what belongs elsewhere or nowhere, left out, given twice, or joined by a stranger.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import yaml
from hostile_policies import ENV_CONFIG, OPTIONS
from hostile_recordings import STEPS
from hostile_recordings import honest as honest_recording
from hostile_weights import arguments
from judging import Case

from rllib_minestudio import checkpoints
from rllib_minestudio.benchmark import report
from rllib_minestudio.benchmark.request import REQUEST_FILE, claim_folder
from rllib_minestudio.benchmark.results import BenchmarkResults, compare_benchmarks
from rllib_minestudio.benchmark.results_file import (
    BenchmarkDocument,
    KeptTaskDocument,
    RequestDocument,
)
from rllib_minestudio.benchmark.run import RESULT_FILE, _kept_result
from rllib_minestudio.benchmark.task import SUITE_FILE, SuiteDocument, TaskDocument, load_suite
from rllib_minestudio.checkpoints.formats import (
    HuggingFaceDocument,
    LineDocument,
    NetworkDocument,
    PlayingDocument,
    RecordDocument,
    ReturnsDocument,
    RunDocument,
    VPTDocument,
)
from rllib_minestudio.checkpoints.record import (
    CheckpointRecord,
    parse_record,
    save_record,
    with_own_digest,
)
from rllib_minestudio.cli.checkpoint_command import _facts
from rllib_minestudio.demonstrations.recording import OrderDocument, RecordingOrder, missing
from rllib_minestudio.demonstrations.windows import imitated_from
from rllib_minestudio.env.callbacks import build_callbacks
from rllib_minestudio.env.callbacks.tasks import TaskFileDocument
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.snapshot import GameDocument, contents, packed
from rllib_minestudio.errors import (
    CheckpointError,
    CheckpointFormatError,
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
    RecordingError,
    SnapshotError,
    UntrustedError,
    WatchError,
)
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.policy_loading import evaluation_config, played_config
from rllib_minestudio.evaluation.report import comparison_table, summary_table
from rllib_minestudio.evaluation.summary import Summary, SummaryDocument, compare
from rllib_minestudio.experiments.resume_options import (
    RunRecord,
    _report,
    read_run_record,
    write_run_record,
)
from rllib_minestudio.experiments.run import _read_returns
from rllib_minestudio.experiments.summary import _points, read_history
from rllib_minestudio.foundation import console
from rllib_minestudio.foundation.documents import Document, Excerpt
from rllib_minestudio.foundation.files import read_text
from rllib_minestudio.models.policy_registry import policy_of_checkpoint
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.weights import config_from_checkpoint
from rllib_minestudio.recordings import Recording
from rllib_minestudio.recordings.columns import InfoDocument
from rllib_minestudio.recordings.contractor import ContractorRecording, LineExcerpt
from rllib_minestudio.recordings.layout import INFOS_FILE, to_json
from rllib_minestudio.recordings.reader import EpisodeDocument
from rllib_minestudio.watch.catalogue import EpisodeView
from rllib_minestudio.watch.protocol import MessageDocument, parse_message
from rllib_minestudio.watch.views import HumanInput
from tests.benchmark import fabricated
from tests.recordings import contractor_files

CONTROLS = "\x1b[31m\r\x9b2J\x07\x7f\u202e\u2066\u2028\u0085\u200b"
"""Colours, a return, the C1 controls, reversed and hidden text."""

VALUES = {
    "null": "null",
    "true": "true",
    "text": '"x"',
    "no text": '""',
    "a number": "5",
    "a fraction": "0.5",
    "-1": "-1",
    "NaN": "NaN",
    "inf": "Infinity",
    "-inf": "-Infinity",
    "1e308": "1e308",
    "2^63": str(2**63),
    "5,000 digits": "9" * 5000,
    "no list": "[]",
    "a list": '[[0], "x"]',
    "no mapping": "{}",
    "a mapping": '{"x": {"y": 1}}',
    "10^6 characters": json.dumps("a" * 10**6),
    "10^4 nestings": "[" * 10**4 + "]" * 10**4,
    "control characters": json.dumps(CONTROLS),
    "half a character": '"\\ud800"',
}
"""What takes a value's place, as JSON."""

NOT_JSON = {"NaN": ".nan", "inf": ".inf", "-inf": "-.inf", "1e308": "1.0e+308"}
"""The same where YAML writes it otherwise."""

STRANGERS = ("stranger", CONTROLS, "a" * 10**6)
"""Keys that no document has."""

_PLACE = "@place@"

Path_ = tuple[str | int, ...]


def places(document: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of each value; of a list, those of its first and last entries."""
    if path:
        yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
    elif isinstance(document, list):
        for index in sorted({0, len(document) - 1}) if document else ():
            yield from places(document[index], (*path, index))


def wrong(document: Any, file: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield (what is wrong, a maker of the text) of each file to make of an honest document."""
    texts = {**VALUES, **NOT_JSON} if file.endswith(".yaml") else VALUES
    for path in places(document):
        where = ".".join(map(str, path))
        changed = _with(document, path, _PLACE)
        for name, value in texts.items():
            yield f"{where}: {name}", partial(_swapped, changed, file, _PLACE, value)
        yield f"{where}: left out", partial(as_text, _without(document, path), file)
        if isinstance(path[-1], str):
            beside = _with(document, (*path[:-1], _PLACE), 1)
            again = json.dumps(path[-1])
            yield f"{where}: twice", partial(_swapped, beside, file, _PLACE, again)
    for path in [(), *places(document)]:
        if isinstance(_at(document, path), dict):
            for name in STRANGERS:
                where = ".".join(map(str, (*path, name[:8])))
                yield f"{where!r}: added", partial(as_text, _with(document, (*path, name), 1), file)
    for name, value in texts.items():
        yield f"the whole: {name}", partial(str, value)
    text = as_text(document, file)
    yield "cut off", partial(str, text[: len(text) // 2])


def _swapped(document: Any, file: str, mark: str, text: str) -> str:
    return as_text(document, file).replace(f'"{mark}"', text)


def as_text(document: Any, path: str) -> str:
    """Return a document as JSON, which is YAML as well but for numbers that are none."""
    text = json.dumps(document)
    return text.replace("NaN", ".nan") if path.endswith(".yaml") else text


def _at(document: Any, path: Path_) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(document: Any, path: Path_, value: Any) -> Any:
    """Return a document with another value at a path; only what lies on the path is copied."""
    if not path:
        return value
    copy = document.copy()
    inside = copy[path[0]] if path[1:] else None
    copy[path[0]] = _with(inside, path[1:], value)
    return copy


def _without(document: Any, path: Path_) -> Any:
    copy = document.copy()
    if path[1:]:
        copy[path[0]] = _without(copy[path[0]], path[1:])
    else:
        del copy[path[0]]
    return copy


# ---------------------------------------------------------------------------- honest documents


def _benchmark() -> BenchmarkResults:
    return fabricated.results(
        fabricated.task("tree", "craft", episodes=fabricated.episodes(1, count=2, log=[3, 0])),
        fabricated.task("swim", "travel", "marked", reason="There is no water."),
        fabricated.task("dig", "mine", "failed", reason="The engine broke."),
    )


def _results() -> Any:
    return _benchmark().to_json()


def _task_result() -> Any:
    return {"request": "1234abcd", **_benchmark().tasks[0].to_json()}


def _hand() -> Any:
    hand = {"keys": ["forward", "jump"], "tapped": ["use"], "turn": [1.5, -3.0], "scroll": 1}
    return {"hand": hand}


def _view() -> Any:
    return {"open": {"entries": ["0123456789abcdef", "fedcba9876543210"], "seed": 7}}


def _request() -> Any:
    return {
        "suite": "animals",
        "player": {"name": "random"},
        "episodes": 2,
        "seed": 0,
        "steps": None,
        "envs": 1,
        "tasks": "cow_*",
        "smoke": False,
        "overrides": ["env_config.seed=1"],
        "env_config": ENV_CONFIG,
        "rules": 12,
        "task_digests": {"cow_near": "12ab"},
        "digest": "34cd",
    }


MOBS = {"name": "cow", "number": 2, "range_x": [-3, 3], "range_z": [-3, 3]}
ITEM = {"slot": 0, "type": "stick", "quantity": 2}


def _task() -> Any:
    world = {"biomes": ["plains", "forest"], "commands": ["/weather rain"], "inventory": [ITEM]}
    return {
        **{"text": "Fell a tree.", "category": "collect", "time_limit": 600, "judged": "at_end"},
        "world": {**world, "summon": [MOBS], "time": 500, "weather": "rain", "difficulty": "hard"},
        **{"success": "pickup:*_log>=1", "because": "Logs come from trees.", "needs": ["fluids"]},
        "progress": {"of": "pickup:*_log", "goal": 4},
        **{"by_chance": "Never.", "origin": "wood", "solution": {"fell_tree": {"logs": 1}}},
        "rewards": {"Rewards": {"reward_cfg": []}},
    }


def _task_file() -> Any:
    return {
        **{"name": "hunt", "text": "Hunt a cow.", "custom_init_commands": ["/time set 6000"]},
        **{"biomes": ["plains"], "random_tp_range": 100, "start_time": 0, "start_weather": "clear"},
        **{"summon_mobs": [MOBS], "commands": ["/weather clear"], "time_limit": 600},
        **{"init_inventory": [ITEM], "use_prev_action": True, "defaults": ["base", "_self_"]},
        **{"spawn_positions": [{"seed": 5, "position": [100, 80, 7]}], "reference_video": "hunt"},
    }


def _evaluation() -> Summary:
    episodes = [
        EvaluatedEpisode(i, 7 + i, "cow", 5, float(i), success=i == 0, labels={"status": "yes"})
        for i in range(2)
    ]
    config = {"env": "cow", "env_config": ENV_CONFIG, "rules": 12, "digest": "12ab"}
    policy = {"checkpoint": "here", "weights": "34cd"}
    return Summary.of(episodes, seed=0, filter="task:cow", policy=policy, config=config)


def _summary() -> Any:
    return _evaluation().to_json()


@cache
def _episode() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        told = json.loads((honest_recording(Path(folder)) / "episode.json").read_text())
    told["observations"] = {"map": {"shape": [4, 4], "dtype": "float32"}}
    return {**told, "success": True, "policy": {"agent": "hunter"}, "takeover": 1}


def _info() -> Any:
    stacks = {"0": {"type": "bow", "quantity": 1}}
    seen = {"mine_block": {"dirt": 2}, "inventory": stacks, "health": 19.5, "isGuiOpen": False}
    task = {"task": "cow", "task_text": "Hunt.", "success": False, "progress": 0.5}
    return {**seen, **task, "-": ["a", "b"]}


PLAYED = contractor_files.played(STEPS)


def _line() -> Any:
    return {**contractor_files.tick(["w", "e"], [0], [0], 3.5, -2.0), "tick": 1}


@cache
def _beside(name: str) -> dict[str, bytes]:
    """Return the other files of a recording, by their names."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if name == INFOS_FILE:
            folder = honest_recording(folder)
        else:
            contractor_files.write(folder, "NAME", PLAYED)
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != name}


ORDER = RecordingOrder("cow", print, env_config=ENV_CONFIG, novice="here", novice_steps=5)


def _record() -> Any:
    with tempfile.TemporaryDirectory() as name:
        told = CheckpointRecord(
            saved_at="2026-01-02T03:04:05+00:00",
            result={
                "training_iteration": 3,
                "num_env_steps_sampled_lifetime": 640,
                "env_runners": {"episode_return_mean": 1.5},
            },
            versions={"python": "3.11.0"},
            code={"commit": "cafe", "modified": False},
            numerics=1,
            looks={"revision": 1, "pictures": "0123456789ab", "resource_pack": "cafe"},
            config={"lr": 0.1, "env_config": ENV_CONFIG},
            files={"policy/network.json": 5},
            digests={"policy/network.json": hashlib.sha256().hexdigest()},
        )
        save_record(Path(name), told)
        return yaml.safe_load((Path(name) / "record.yaml").read_text())


def _playing() -> Any:
    return {
        "algorithm": "rllib_minestudio.algorithms.MineStudioPPO",
        "env": "rllib_minestudio.env.minestudio_env.MineStudioEnv",
        "env_config": {**ENV_CONFIG, "callbacks": [{"JudgeReset": {"time_limit": 20}}]},
        "num_envs_per_env_runner": 2,
        "seed": 0,
        "env_pool": {"mode": "inline"},
        "prior": None,
        "prior_update_interval": 0,
        "weights": None,
        "looks": {"revision": 1, "pictures": "0123456789ab"},
    }


def _network() -> Any:
    return {"policy": "ConvGRU", "options": OPTIONS}


def _vpt() -> Any:
    return {**vars(VPTConfig.from_options({"preset": "nano"})), "hidsize": 16}


def _hugging_face() -> Any:
    return {"policy_kwargs": arguments(), "temperature": 2.0, "architectures": ["VPTPolicy"]}


def _run() -> Any:
    experiment = {"run": "MineStudioPPO", "stop": {"training_iteration": 1}, "config": {"lr": 0.1}}
    with tempfile.TemporaryDirectory() as name:
        write_run_record(Path(name), RunRecord(experiment, experiment))
        return yaml.safe_load((Path(name) / "experiment.yaml").read_text())


# ----------------------------------------------------------------- what is done with what was read


def printed(*renderables: Any) -> None:
    """Print as the commands do, and see that nothing reaches the terminal that it would obey."""
    for target in (console.stdout, console.stderr):
        with target.capture() as seen:
            for one in renderables:
                target.print(one)
        assert all(c.isprintable() or c in "\n\t" for c in seen.get())


def read_benchmark(file: Path) -> None:
    found = BenchmarkResults.load(file)
    printed(report.results_table(found), *map(report.items_table, found.with_status("played")))
    printed(report.comparison_table(compare_benchmarks(found, found)))
    report.write_page(found, file.with_suffix(".html"))


def read_task_result(file: Path) -> None:
    plan = SimpleNamespace(folder=file.parents[2], facts={"digest": "1234abcd"})
    found = _kept_result(plan, SimpleNamespace(task=SimpleNamespace(name=file.parent.name)))
    if found is not None:
        printed(report.results_table(fabricated.results(found)))


@cache
def _engine() -> VoxelEngine:
    """An engine with a game in which there is something of everything."""
    engine = VoxelEngine(frame_size=(16, 9))
    engine.reset(3)
    for command in (
        *("/summon cow ~2 ~ ~2", "/give @s oak_planks 7", "/effect give @s haste 20 1"),
        *("/setblock ~ ~ ~1 furnace", "/fill ~3 ~4 ~3 ~5 ~6 ~5 sand"),
    ):
        engine.execute(command)
    for tick in range(30):
        engine.tick({"attack": tick % 9 > 4, "drop": tick == 9, "inventory": tick == 29})
    return engine


@cache
def _game() -> Any:
    return json.loads(contents(_engine().snapshot()))


def read_game(file: Path) -> None:
    text = file.read_text(errors="surrogateescape").encode(errors="surrogateescape")
    _engine().restore(packed(text))
    _engine().tick({"forward": 1, "use": 1})
    _engine().render()


def read_request(file: Path) -> None:
    claim_folder(file.parent, _request())


def read_suite(file: Path) -> None:
    found = load_suite(file.parent)
    printed(found.title, found.text)
    for task in found.tasks:
        printed(task.text, task.category, task.because, str(task.progress), *task.marks())


def read_task_file(file: Path) -> None:
    printed(*map(repr, build_callbacks([{"TaskFile": str(file)}])))


def read_summary(file: Path) -> None:
    found = Summary.load(file)
    printed(summary_table(found), comparison_table(found, found, compare(found, found)))
    found.to_json()


def read_episode(file: Path) -> None:
    found = Recording(file.parent)
    printed(repr(found), str(found.meta), *found.meta, f"{len(found)} {imitated_from(found)}")
    (found.meta.get("video") or {}).get("overlay")


def read_line_of_infos(file: Path) -> None:
    view = EpisodeView("x", found := Recording(file.parent))
    for t, info in enumerate(found.infos()):
        printed(str(info))
        view.seek(t)
        to_json(view.shown()[0])


def read_lines(file: Path) -> None:
    found = ContractorRecording(file)
    printed(f"{len(found)} {found.steps['keys'].sum()} {found.steps['degrees'].sum():f}")
    for problem in found.problems():
        raise RecordingError(f"{problem}.")


def read_order(file: Path) -> None:
    missing(ORDER, file.parent, 1)


def read_record(file: Path) -> None:
    found = parse_record(file)
    printed(found.saved_at, *_facts(found).values(), yaml.safe_dump(found.config, sort_keys=True))
    printed(*found.versions.values(), *found.files)


def read_playing(file: Path) -> None:
    found = checkpoints.open(file.parent)
    evaluation_config(played_config(found), num_env_runners=0)


def read_network(file: Path) -> None:
    policy_of_checkpoint(checkpoints.open(file.parent))
    found = checkpoints.open(file.parent)
    if found.other_policy is None:
        config_from_checkpoint(found)
    printed(str(found.other_policy))


def read_run(file: Path) -> None:
    _report(read_run_record(file.parent), _run()["file"], [])


def read_returns(file: Path) -> None:
    found = _read_returns(file)
    printed(str(sum(found)))


def read_message(file: Path) -> None:
    message, hand = parse_message(read_text(file)), HumanInput()
    if message.hand is not None:
        hand.take(message.hand)
        printed(str(hand.action()))
    printed(message.kind, *(message.open.entries if message.open else ()))


def read_results(file: Path) -> None:
    read_history(file.parent)
    for point in _points(file.parent):
        printed("{:f} {:f} {:f} {:f}".format(*point))


class Format(NamedTuple):
    """A format: its file, model and reader, an honest document, and what reading may raise."""

    path: str
    model: type[Document | Excerpt]
    honest: Callable[[], Any]
    read: Callable[[Path], None]
    errors: tuple[type[MineStudioError], ...]

    def write(self, folder: Path, text: str) -> Path:
        """Write a document below a folder, with the other files that its reader needs."""
        file = folder / self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.name in ("record.yaml", "playing.yaml"):
            text = with_own_digest(f"{text}\n")
        if file.name == SUITE_FILE:
            (file.parent / "cow.yaml").write_text(json.dumps(_task()))
        if file.name in (INFOS_FILE, "NAME.jsonl"):
            for name, content in _beside(file.name).items():
                (file.parent / name).write_bytes(content)
        if file.name == INFOS_FILE:
            lines = ['{"a": 1}', text, *["{}"] * (STEPS - 1)]
            file.write_bytes(gzip.compress("\n".join(lines).encode()))
            return file
        if file.name == "NAME.jsonl":
            lines = [json.dumps({**line, "tick": t}) for t, line in enumerate(PLAYED)]
            text = "\n".join([lines[0], text, *lines[2:]])
        file.write_text(text)
        if file.name == "playing.yaml":
            (file.parent / "network.json").write_text(json.dumps(_network()))
        if file.name == "config.json":
            (file.parent / "model.safetensors").touch()
        return file

    @property
    def attacks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        return wrong(self.honest(), self.path)


_OPTIONS = (CheckpointMismatchError, InvalidOptionsError, UntrustedError)
_RECORDS = (CheckpointError, CheckpointFormatError)
_ORDERS = (RecordingError, InvalidOptionsError)
_REQUESTS = (MineStudioError, InvalidOptionsError)

FORMATS = {
    name: Format(*facts)
    for name, facts in {
        "benchmark": (
            *("benchmark.json", BenchmarkDocument, _results),
            *(read_benchmark, (MineStudioError,)),
        ),
        "task": (
            *(f"tasks/tree/{RESULT_FILE}", KeptTaskDocument, _task_result),
            *(read_task_result, (MineStudioError,)),
        ),
        "suite": (
            *(SUITE_FILE, SuiteDocument, lambda: {"title": "Mine", "text": "For me."}),
            *(read_suite, _OPTIONS),
        ),
        "suite_task": ("cow.yaml", TaskDocument, _task, read_suite, _OPTIONS),
        "task_file": ("hunt.yaml", TaskFileDocument, _task_file, read_task_file, _OPTIONS),
        "request": (REQUEST_FILE, RequestDocument, _request, read_request, _REQUESTS),
        "summary": ("summary.json", SummaryDocument, _summary, read_summary, (MineStudioError,)),
        "episode": ("episode.json", EpisodeDocument, _episode, read_episode, (RecordingError,)),
        "infos": (INFOS_FILE, InfoDocument, _info, read_line_of_infos, (RecordingError,)),
        "lines": ("NAME.jsonl", LineExcerpt, _line, read_lines, (RecordingError,)),
        "order": ("demonstrations.json", OrderDocument, ORDER.facts, read_order, _ORDERS),
        "record": ("record.yaml", RecordDocument, _record, read_record, _RECORDS),
        "playing": ("playing.yaml", PlayingDocument, _playing, read_playing, _OPTIONS),
        "network": ("network.json", NetworkDocument, _network, read_network, _OPTIONS),
        "vpt": ("network.json", VPTDocument, _vpt, read_network, _OPTIONS),
        "hugging_face": (
            *("config.json", HuggingFaceDocument, _hugging_face),
            *(read_network, _OPTIONS),
        ),
        "run": ("experiment.yaml", RunDocument, _run, read_run, (CheckpointError,)),
        "returns": (
            *("random_policy.json", ReturnsDocument, lambda: [1.5, 2.0]),
            *(read_returns, (CheckpointError,)),
        ),
        "hand": ("hand.json", MessageDocument, _hand, read_message, (WatchError,)),
        "view": ("view.json", MessageDocument, _view, read_message, (WatchError,)),
        "keep": (
            *("keep.json", MessageDocument, lambda: {"keep": {"agent": "Ann"}}),
            *(read_message, (WatchError,)),
        ),
        "game": ("game.json", GameDocument, _game, read_game, (SnapshotError,)),
        "results": ("result.json", LineDocument, lambda: _record()["result"], read_results, ()),
    }.items()
}
"""Every format that this package reads back, by a name for the tests."""


def endure(told: tuple[str, str]) -> str:
    """Read a file of a format, and use what it holds.

    Raises:
        MineStudioError: It is refused with the error of its reader, in one sentence, or one for
            each option of a network or environment that is wrong.
    """
    name, file = told
    known = FORMATS[name]
    try:
        known.read(Path(file))
    except MineStudioError as error:
        assert type(error) in known.errors, type(error)
        printed(f"error: {error}")
        text = str(error)
        assert len(text) < 4000 and all(map(str.isprintable, text.splitlines())), text
        assert isinstance(error, _OPTIONS) or (text.endswith(".") and "\n" not in text), text
        raise
    return "read"


def cases() -> Iterator[Case]:
    """Every attack on every format."""
    for name, known in FORMATS.items():
        for what, make in known.attacks:

            def prepare(
                folder: Path,
                known: Format = known,
                name: str = name,
                make: Callable[[], str] = make,
            ) -> tuple[str, str]:
                return name, str(known.write(folder, make()))

            yield Case(f"{name}: {what}", prepare, endure)
