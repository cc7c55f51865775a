"""The summary of a run: its numbers, the best checkpoint, a learning curve and a video."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_minestudio.checkpoints.formats import LineDocument
from rllib_minestudio.checkpoints.lookup import BEST
from rllib_minestudio.checkpoints.record import read_record
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.callbacks.builder import highest_return
from rllib_minestudio.errors import CheckpointError, MineStudioError, describe
from rllib_minestudio.evaluation.report import LearningCurve, draw, mean_and_range
from rllib_minestudio.experiments.experiment_file import value_at
from rllib_minestudio.experiments.result_metrics import (
    ENV_STEPS,
    HIGHEST_RETURN,
    ITERATION,
    LOWEST_RETURN,
    RETURN,
    TOTAL_SECONDS,
    StopAt,
    metric,
)
from rllib_minestudio.foundation.console import (
    Aligned,
    clock,
    counted,
    phase,
    print_next,
    quoted,
    short,
    stderr,
    stdout,
)
from rllib_minestudio.foundation.documents import parse_document
from rllib_minestudio.foundation.files import SmallFileError, parse_json, read_text, write_whole


def summarize(
    plan: Any, folder: Path, results: Any, random_returns: Sequence[float], seconds: float
) -> int:
    """Print and save the summary of a finished run.

    Args:
        plan: The `plan.Plan` of the run.
        folder: The run's folder, where `summary.json`, the curve and the video are written.
        results: Tune's ResultGrid.
        random_returns: Episode returns of the random policy on the same task; may be empty.
        seconds: Duration of the command so far.

    Returns:
        The exit status: 1 if any trial failed, else 0.
    """
    failed = [result for result in results if result.error is not None]
    for result in failed:
        _print_error(result)
    trials = [result for result in results if result.metrics and metric(result.metrics, ENV_STEPS)]
    if not trials:
        _print_failed(plan, failed, results)
        return 1
    best = max(trials, key=lambda result: _mean_return(result))
    random_mean = sum(random_returns) / len(random_returns) if random_returns else None
    summary = {
        "name": plan.name,
        "seconds": round(seconds, 1),
        "random_policy": {"mean_return": random_mean, "returns": list(random_returns)},
        "trials": [_trial_facts(plan, result) for result in trials],
        "failed_trials": len(failed),
        "best": _trial_facts(plan, best),
        "curve": None,
        "video": None,
    }
    # Save the numbers first, in case the curve or the video fails.
    _save(summary, folder)
    summary["curve"] = _draw_curve(plan, folder, trials, random_mean)
    summary["video"] = _record_video(plan, folder, best)
    _save(summary, folder)
    if len(results) > 1:
        _print_trials(plan, results)
        _print_seeds(plan, trials)
    _print_best(plan, folder, best, summary, random_mean, seconds)
    _print_failed(plan, failed, results)
    return 1 if failed else 0


def tell_where_it_stopped(folder: Path, results: Any) -> None:
    """Print what an interrupted run has saved, and how to resume it.

    Args:
        folder: The run's folder.
        results: Tune's ResultGrid.
    """
    saved = [result for result in results if result.checkpoint is not None]
    for result in saved:
        numbers = _saved_result(result)
        iteration = metric(numbers, ITERATION) or 0
        place = f"iteration {iteration:.0f}, {metric(numbers, ENV_STEPS) or 0:,.0f} steps"
        stdout.print(f"saved: {place}: {result.checkpoint.path}")
    if not saved:
        stdout.print(f"no iteration was trained, so there is no checkpoint: {folder}")
    stdout.print("--resume continues the run.")


def _saved_result(result: Any) -> Mapping[str, Any]:
    """Return the result recorded in a trial's checkpoint; RLlib's own algorithms record none."""
    try:
        return read_record(Path(result.checkpoint.path)).result
    except CheckpointError:
        return result.metrics or {}


def _save(summary: dict[str, Any], folder: Path) -> None:
    write_whole(folder / "summary.json", json.dumps(summary, indent=2, default=str) + "\n")


def _trial_facts(plan: Any, result: Any) -> dict[str, Any]:
    """Return one trial's settings and final numbers, ready for JSON."""
    steps = metric(result.metrics, ENV_STEPS)
    return {
        "settings": _settings(plan, result),
        "error": _gist(result),
        "mean_return": _last_return(result),
        "episodes": metric(result.metrics, "env_runners/num_episodes_lifetime"),
        "iterations": metric(result.metrics, ITERATION),
        "env_steps": steps,
        "training_seconds": metric(result.metrics, TOTAL_SECONDS),
        "checkpoint": result.checkpoint.path if result.checkpoint else None,
        "best_checkpoint": _best_checkpoint(Path(result.path)),
        "folder": result.path,
    }


def _best_checkpoint(trial_folder: Path) -> str | None:
    """Return the path of the trial's best checkpoint by return, or None."""
    path = trial_folder / BEST
    return str(path) if path.exists() else None


def _settings(plan: Any, result: Any) -> dict[str, Any]:
    """Return a trial's searched settings by their dotted names; "-" if it has no result."""
    return {
        ".".join(map(str, path)): value_at(result.config, path) if result.config else "-"
        for path in plan.searched
    }


def _mean_return(result: Any) -> float:
    value = _last_return(result)
    return float("-inf") if value is None else value


def _last_return(result: Any) -> float | None:
    """Return the newest mean return, which need not be in the last iteration's result."""
    history = read_history(Path(result.path))
    returns = (metric(line, RETURN) for line in reversed(history))
    return next((value for value in returns if value is not None), None)


def _draw_curve(
    plan: Any, folder: Path, trials: Sequence[Any], random_mean: float | None
) -> str | None:
    """Draw the trials' learning curves and return the file; None if no episode has ended."""
    path = folder / "learning_curve.png"
    told_apart = [(Path(result.path), _settings(plan, result)) for result in trials]
    window = int(plan.example.metrics_num_episodes_for_smoothing)
    drawn = draw_curves(
        plan.name, told_apart, path, random_mean, window, _highest_return(plan.example)
    )
    return str(path) if drawn else None


def _highest_return(config: Any) -> float | None:
    """Return the highest possible return of a task made of callbacks, if known."""
    if not isinstance(config.env, type) or not issubclass(config.env, MineStudioEnv):
        return None
    return highest_return(config.env_config.get("callbacks") or ())


def _record_video(plan: Any, folder: Path, result: Any) -> str | None:
    """Film the best trial's agent and return the file; None if there is nothing to film."""
    if not plan.summary.video_episodes or result.checkpoint is None:
        return None
    from rllib_minestudio.algorithms.environments import is_minestudio
    from rllib_minestudio.evaluation.inference import step_messages
    from rllib_minestudio.experiments.environment import make_env
    from rllib_minestudio.experiments.videos import MAX_STEPS, NO_FRAMES, film_checkpoint

    path = folder / "agent.mp4"
    config = plan.example.copy(copy_frozen=False).update_from_dict(
        {"env_config": result.config.get("env_config", {})}
    )
    episodes = plan.summary.video_episodes
    env = make_env(config)
    if env.render_mode != "rgb_array":
        env.close()
        stdout.print(f"no video: {NO_FRAMES}")
        return None
    with phase(f"recording the agent (at most {MAX_STEPS:,} steps an episode)") as show:
        tell = step_messages(show, episodes)
        try:
            film_checkpoint(env, result.checkpoint.path, path, episodes, on_step=tell)
        except Exception as error:  # an environment of the user's may raise anything
            if is_minestudio(config.env):
                raise
            stdout.print(f"no video: {describe(error)}")
            return None
    return str(path)


def _print_trials(plan: Any, trials: Sequence[Any]) -> None:
    """Print a table of all trials, best first, including those that failed without a result."""
    names = [".".join(map(str, path)) for path in plan.searched] or ["trial"]
    rows = []
    for number, result in enumerate(sorted(trials, key=_mean_return, reverse=True)):
        settings = [short(v) for v in _settings(plan, result).values()] or [str(number)]
        mean, measured = _last_return(result), result.metrics or {}
        numbers = (
            f"{metric(measured, 'training_iteration') or 0:.0f}",
            f"{metric(measured, ENV_STEPS) or 0:,.0f}",
            "-" if mean is None else f"{mean:.2f}",
        )
        rows.append((*settings, *numbers, "" if result.error is None else "failed"))
    stdout.print(
        Aligned(
            rows=rows,
            key=names[0],
            numbers=(*names[1:], "iterations", "steps", "return", ""),
            title=f"{plan.name}: {counted(len(trials), 'trial')}",
        )
    )


def _print_seeds(plan: Any, trials: Sequence[Any]) -> None:
    """Print mean and range over the seeds, if only the seed is searched."""
    returns = [mean for result in trials if (mean := _last_return(result)) is not None]
    if plan.searched != [(SEED,)] or len(returns) < 2:
        return
    mean = sum(returns) / len(returns)
    stdout.print(
        f"{plan.name}: mean return over {len(returns)} seeds: {mean:.2f} "
        f"(from {min(returns):.2f} to {max(returns):.2f})"
    )


def _print_failed(plan: Any, failed: Sequence[Any], results: Sequence[Any]) -> None:
    """Print how many trials failed, if any, and whether there is something to resume from."""
    if failed:
        what = "the trial" if len(results) == 1 else f"{len(failed)} of {len(results)} trials"
        is_saved = any(result.checkpoint is not None for result in results)
        then = "--resume continues from what was saved" if is_saved else "no checkpoint was saved"
        stderr.print(f"{plan.name}: {what} failed; {then}")


def _over(plan: Any, facts: dict[str, Any]) -> str:
    """Return which episodes a trial's mean return averages, in words."""
    if facts["episodes"] is None:
        return "when the policy last played"
    window = int(plan.example.metrics_num_episodes_for_smoothing)
    return f"of the last {min(window, int(facts['episodes']))} episodes"


def _print_best(
    plan: Any,
    folder: Path,
    best: Any,
    summary: dict[str, Any],
    random_mean: float | None,
    seconds: float,
) -> None:
    """Print the closing lines: the return against the random policy's, files, what may follow."""
    facts = summary["best"]
    mean = facts["mean_return"]
    stdout.print()
    if mean is None:
        stdout.print(f"{plan.name}: no episode ended in {clock(seconds)}")
    else:
        stdout.print(f"{plan.name}: mean return {_over(plan, facts)}: {mean:.2f}")
        if random_mean is not None:
            count = len(summary["random_policy"]["returns"])
            line = f"random policy, mean return of {counted(count, 'episode')}: {random_mean:.2f}"
            if random_mean > 0:
                line += f"  (the agent's is {mean / random_mean:.1f} times that)"
            stdout.print(line)
    files = {
        "checkpoint": facts["checkpoint"],
        "best checkpoint": facts["best_checkpoint"],
        "learning curve": summary["curve"],
        "video": summary["video"],
    }
    for title, value in files.items():
        if value:
            stdout.print(f"{title:<16} {quoted(Path(value))}")
    if best.error is None and plan.stop and not StopAt(plan.stop)("", best.metrics):
        stdout.print("It was stopped before its end; --resume continues it.")
    stdout.print(f"finished in {clock(seconds)}")
    if facts["checkpoint"]:
        name = quoted(folder)
        print_next(
            {
                f"rllib evaluate {name} --episodes 100": "success rate and return",
                f"rllib checkpoint info {name}": "what was saved",
            }
        )


def _print_error(result: Any) -> None:
    """Print a trial's error, and where the full one is."""
    stderr.print(f"A trial failed: {_gist(result)}", style="red", markup=False)
    stderr.print(f"The full error is in {Path(result.path) / 'error.txt'}; --verbose shows more.")


def _gist(result: Any) -> str | None:
    """Return the last line of a trial's error, which contains the reason; None without an error."""
    if result.error is None:
        return None
    lines = [line for line in str(result.error).splitlines() if line.strip()]
    return lines[-1] if lines else repr(result.error)


# --------------------------------------------- learning curves of a run's trials, from Tune's files

SEED = "seed"


def draw_curves(
    title: str,
    trials: Sequence[tuple[Path, Mapping[str, Any]]],
    path: Path,
    random_policy: float | None,
    window: int,
    highest_possible: float | None = None,
) -> bool:
    """Draw a curve per trial; trials that differ only in their seed become one curve with a band.

    The band of a single trial spans the lowest and highest return of the averaged episodes.

    Args:
        title: Title of the plot.
        trials: Folder and searched settings of each trial.
        path: The file to write.
        random_policy: Mean return of the random policy, if known.
        window: Number of recent episodes that each return averages.
        highest_possible: Return that no episode exceeds, if known.

    Returns:
        Whether there was anything to draw, that is, an episode that ended.
    """
    groups: dict[tuple[str, int], list[LearningCurve]] = {}
    for number, (folder, settings) in enumerate(trials):
        points = _points(folder)
        if points:
            others = {name: value for name, value in settings.items() if name != SEED}
            is_alike = SEED in settings or len(trials) == 1
            label = _label(others) or ("agent" if is_alike else f"trial {number}")
            curve = LearningCurve(label, *zip(*points, strict=True))
            groups.setdefault((repr(others), 0 if is_alike else number), []).append(curve)
    curves = [_curve_of(runs, is_alone=len(groups) == 1) for runs in groups.values()]
    if curves:
        draw(title, curves, path, random_policy, window, highest_possible)
    return bool(curves)


def _points(trial_folder: Path) -> list[tuple[float, float, float, float]]:
    """Return (steps, mean, lowest, highest return of recent episodes) of each iteration."""
    names = (ENV_STEPS, RETURN, LOWEST_RETURN, HIGHEST_RETURN)
    lines = [[metric(result, name) for name in names] for result in read_history(trial_folder)]
    return [
        (steps, mean, mean if lowest is None else lowest, mean if highest is None else highest)
        for steps, mean, lowest, highest in lines
        if steps is not None and mean is not None
    ]


def _curve_of(runs: Sequence[LearningCurve], is_alone: bool) -> LearningCurve:
    """Combine runs that differ only by chance; a single run keeps its band only without others."""
    label = runs[0].label
    if len(runs) > 1:
        return mean_and_range(f"{label}, {len(runs)} seeds: mean and range", runs)
    if is_alone:
        return replace(runs[0], label=f"{label}: mean and range")
    return replace(runs[0], lowest=None, highest=None)


def _label(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in settings.items())


RESULTS_FILE = "result.json"
"""Tune's file of a trial's results, a line for each."""

_LARGEST_HISTORY = 1024**3
"""Most bytes of such a file."""


def read_history(trial_folder: Path) -> list[dict[str, Any]]:
    """Read the results of a trial from its `result.json`, one per iteration.

    `progress.csv` has only the columns of the first result, in which no episode may have ended yet.
    Of iterations repeated after a crash, the last result counts; a line that the crash cut off, or
    that is no result, is ignored.

    Raises:
        MineStudioError: It is not a text file, or too large.
    """
    file = trial_folder / RESULTS_FILE
    if not file.is_file():
        return []
    try:
        lines = read_text(file, _LARGEST_HISTORY).splitlines()
    except SmallFileError as error:
        raise MineStudioError(f"{str(file)!r} cannot be read: {error}.") from error
    by_iteration: dict[int, dict[str, Any]] = {}
    add_results(by_iteration, lines)
    return [by_iteration[iteration] for iteration in sorted(by_iteration)]


def add_results(by_iteration: dict[int, dict[str, Any]], lines: Iterable[str | bytes]) -> None:
    """Add the results in lines of `RESULTS_FILE` to those read before, by their iteration."""
    for line in lines:
        with suppress(SmallFileError):
            result = parse_json(line)
            by_iteration[parse_document(result, LineDocument).training_iteration] = result
