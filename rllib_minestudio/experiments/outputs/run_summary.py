"""What a run leaves behind: the numbers, the best checkpoint, a learning curve and a video."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from rllib_minestudio.console import clock, phase, short, stderr, stdout
from rllib_minestudio.experiments.outputs.result_metrics import ENV_STEPS, RETURN, StopAt, metric
from rllib_minestudio.experiments.outputs.trial_checkpoints import BEST
from rllib_minestudio.experiments.reading.search_space import value_at
from rllib_minestudio.whole_file import write_whole


def summarize(
    plan: Any, folder: Path, results: Any, random_returns: Sequence[float], seconds: float
) -> int:
    """Print and save the summary of a finished run.

    Args:
        plan: What was run, a `tune_plan.Plan`.
        folder: The run's folder; `summary.json` and the pictures go there.
        results: Tune's ResultGrid.
        random_returns: Episode returns of the random policy on the same task; may be empty.
        seconds: How long the command has been running.

    Returns:
        The exit status: 1 if any trial failed, else 0.
    """
    for result in results:
        if result.error is not None:
            _print_error(result)
    trials = [result for result in results if result.metrics and metric(result.metrics, ENV_STEPS)]
    if not trials:
        return 1
    best = max(trials, key=lambda result: _mean_return(result))
    random_mean = sum(random_returns) / len(random_returns) if random_returns else None
    summary = {
        "name": plan.name,
        "seconds": round(seconds, 1),
        "random_policy": {"mean_return": random_mean, "returns": list(random_returns)},
        "trials": [_trial_facts(plan, result) for result in trials],
        "best": _trial_facts(plan, best),
        "curve": None,
        "video": None,
    }
    # The numbers first: whatever goes wrong with a picture, they are there.
    _save(summary, folder)
    summary["curve"] = _draw_curve(plan, folder, best, random_mean)
    summary["video"] = _record_video(plan, folder, best)
    _save(summary, folder)
    if len(results) > 1:
        _print_trials(plan, trials)
    _print_best(plan, best, summary, random_mean, seconds)
    return 1 if results.errors else 0


def _save(summary: dict[str, Any], folder: Path) -> None:
    write_whole(folder / "summary.json", json.dumps(summary, indent=2, default=str) + "\n")


def _trial_facts(plan: Any, result: Any) -> dict[str, Any]:
    """Collect one trial's settings and final numbers, ready for JSON."""
    steps = metric(result.metrics, ENV_STEPS)
    return {
        "settings": _settings(plan, result),
        "mean_return": _last_return(result),
        "episodes": metric(result.metrics, "env_runners/num_episodes_lifetime"),
        "iterations": metric(result.metrics, "training_iteration"),
        "env_steps": steps,
        "training_seconds": metric(result.metrics, "time_total_s"),
        "checkpoint": result.checkpoint.path if result.checkpoint else None,
        "best_checkpoint": _best_checkpoint(Path(result.path)),
        "folder": result.path,
    }


def _best_checkpoint(trial_folder: Path) -> str | None:
    """Return the path of the trial's best checkpoint by return, if there is one."""
    path = trial_folder / BEST
    return str(path) if path.exists() else None


def _settings(plan: Any, result: Any) -> dict[str, Any]:
    """Return the searched settings of a trial by their dotted names."""
    return {".".join(map(str, path)): value_at(result.config, path) for path in plan.searched}


def _mean_return(result: Any) -> float:
    value = _last_return(result)
    return float("-inf") if value is None else value


def _last_return(result: Any) -> float | None:
    """Return the newest mean return; not every iteration has one, where few of them play."""
    history = read_history(Path(result.path))
    returns = (metric(line, RETURN) for line in reversed(history))
    return next((value for value in returns if value is not None), None)


def _draw_curve(plan: Any, folder: Path, result: Any, random_mean: float | None) -> str | None:
    """Draw the best trial's learning curve; None if no episode ended."""
    history = read_history(Path(result.path))
    measured = [(metric(line, ENV_STEPS), metric(line, RETURN)) for line in history]
    points = [(x, y) for x, y in measured if x is not None and y is not None]
    if not points:
        return None
    from rllib_minestudio.evaluation.learning_curve import LearningCurve, draw

    path = folder / "learning_curve.png"
    steps, returns = [x for x, _ in points], [y for _, y in points]
    draw(LearningCurve(plan.name, steps, returns, random_mean), path)
    return str(path)


def read_history(trial_folder: Path) -> list[dict[str, Any]]:
    """Read the results of a trial from its `result.json`, one per iteration.

    Its `progress.csv` has only the columns of the first result, in which no episode may have
    ended yet. Iterations that were repeated after a crash count as they went the last time; a
    last line that the crash cut off is left out.
    """
    file = trial_folder / "result.json"
    by_iteration: dict[int, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(result, dict) or "training_iteration" not in result:
            continue
        by_iteration[result["training_iteration"]] = result
    return [by_iteration[iteration] for iteration in sorted(by_iteration)]


def _record_video(plan: Any, folder: Path, result: Any) -> str | None:
    """Film the best trial's agent; None if there is nothing to film."""
    if not plan.summary.video_episodes or result.checkpoint is None:
        return None
    from rllib_minestudio.experiments.outputs.film import film_checkpoint
    from rllib_minestudio.experiments.running.environment import make_env

    path = folder / "agent.mp4"
    config = plan.example.copy(copy_frozen=False).update_from_dict(
        {"env_config": result.config.get("env_config", {})}
    )
    with phase("recording the agent"):
        episodes = plan.summary.video_episodes
        film_checkpoint(make_env(config), result.checkpoint.path, path, episodes)
    return str(path)


def _print_trials(plan: Any, trials: Sequence[Any]) -> None:
    """Print a table of trials, best first."""
    table = Table(title=f"{plan.name}: {len(trials)} trials", title_justify="left")
    names = [".".join(map(str, path)) for path in plan.searched] or ["trial"]
    for name in names:
        table.add_column(name)
    for name in ("iterations", "steps", "return"):
        table.add_column(name, justify="right")
    for number, result in enumerate(sorted(trials, key=_mean_return, reverse=True)):
        settings = [short(v) for v in _settings(plan, result).values()] or [str(number)]
        mean = _last_return(result)
        table.add_row(
            *settings,
            f"{metric(result.metrics, 'training_iteration') or 0:.0f}",
            f"{metric(result.metrics, ENV_STEPS) or 0:,.0f}",
            "-" if mean is None else f"{mean:.2f}",
        )
    stdout.print(table)


def _over(plan: Any, facts: dict[str, Any]) -> str:
    """Say over which episodes a trial's mean return goes."""
    if facts["episodes"] is None:
        return "when the policy last played"
    window = int(plan.example.metrics_num_episodes_for_smoothing)
    return f"of the last {min(window, int(facts['episodes']))} episodes"


def _print_best(
    plan: Any, best: Any, summary: dict[str, Any], random_mean: float | None, seconds: float
) -> None:
    """Print the closing lines: the return beside the random policy's, and where things are."""
    facts = summary["best"]
    mean = facts["mean_return"]
    stdout.print()
    if mean is None:
        stdout.print(f"{plan.name}: no episode ended in {clock(seconds)}")
    else:
        stdout.print(f"{plan.name}: mean return {_over(plan, facts)}: {mean:.2f}")
        if random_mean is not None:
            count = len(summary["random_policy"]["returns"])
            line = f"random policy, mean return of {count} episodes: {random_mean:.2f}"
            if random_mean > 0:
                line += f"  (the agent's is {mean / random_mean:.1f} times that)"
            stdout.print(line)
    for title, value in (
        ("checkpoint", facts["checkpoint"]),
        ("best checkpoint", facts["best_checkpoint"]),
        ("learning curve", summary["curve"]),
        ("video", summary["video"]),
    ):
        if value:
            stdout.print(f"{title}: {value}")
    if plan.stop and not StopAt(plan.stop)("", best.metrics):
        stdout.print("It was stopped before its end; --resume continues it.")
    stdout.print(f"finished in {clock(seconds)}")


def _print_error(result: Any) -> None:
    """Print the last line of a trial's error, which says what went wrong, and where to look."""
    lines = [line for line in str(result.error).splitlines() if line.strip()]
    stderr.print(
        f"A trial failed: {lines[-1] if lines else repr(result.error)}", style="red", markup=False
    )
    stderr.print(f"The whole story is in {Path(result.path) / 'error.txt'}; --verbose tells more.")
