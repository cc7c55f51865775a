"""Contractor recordings, made line by line: what OpenAI's recorder tells, in the parts we read."""

import json

import numpy as np

from rllib_minestudio.recordings.video import VideoWriter

NOTHING = {
    "mouse": {
        **{"x": 640.0, "y": 360.0, "dx": 0.0, "dy": 0.0, "dwheel": 0.0},
        **{"scaledX": 0.0, "scaledY": 0.0, "buttons": [], "newButtons": []},
    },
    "keyboard": {"keys": [], "newKeys": [], "chars": ""},
    **{"isGuiOpen": False, "isGuiInventory": False, "hotbar": 0, "inventory": [], "stats": {}},
    **{"yaw": 0.0, "pitch": 0.0, "xpos": 0.5, "ypos": 70.0, "zpos": 0.5, "milli": 1},
}


def tick(keys=(), buttons=(), new=(), dx=0.0, dy=0.0, **changes):
    """One line, as a mapping."""
    mouse = {**NOTHING["mouse"], "dx": dx, "dy": dy}
    mouse |= {"buttons": list(buttons), "newButtons": list(new)}
    mouse |= {name: changes.pop(name) for name in ("x", "y") if name in changes}
    pressed = [f"key.keyboard.{key}" for key in keys]
    return {**NOTHING, "mouse": mouse, "keyboard": {"keys": pressed}, **changes}


def frame(t, size=(64, 36), seed=0):
    """Smooth enough to survive encoding; no two are the same."""
    y, x = np.mgrid[: size[1], : size[0]]
    waves = [np.sin((x * (k + 1) + y * (3 - k)) / 9 + t / (4 + k) + seed) for k in range(3)]
    return np.uint8(128 + 100 * np.stack(waves, -1))


def write(folder, name, ticks, frames=None, size=(64, 36), crf=18, lines=None):
    """Write NAME.mp4 and NAME.jsonl; `frames` is their number, by default one more than lines."""
    folder.mkdir(parents=True, exist_ok=True)
    with VideoWriter(folder / f"{name}.mp4", crf=crf) as video:
        for t in range(len(ticks) + 1 if frames is None else frames):
            video.add(frame(t, size, seed=len(name)))
    told = [json.dumps({**line, "tick": t}) for t, line in enumerate(ticks)]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{line}\n" for line in told) if lines is None else lines(told))
    return path


def played(steps, seed=0):
    """Ticks of somebody who plays: keys, slots, screens, a cursor."""
    rng = np.random.default_rng(seed)
    ticks, slot, yaw, pitch = [], 0, 0.0, 0.0
    for t in range(steps):
        keys = [key for key in ("w", "a", "space", "left.control", "q") if rng.random() < 0.3]
        is_open = steps // 2 <= t < steps // 2 + 6
        if t in (steps // 2 - 1, steps // 2 + 5):
            keys = ["e"]
        if rng.random() < 0.2:
            slot = int(rng.integers(9))
        dx, dy = (float(v) for v in rng.integers(-60, 60, 2) * (rng.random() < 0.7))
        buttons = [b for b in (0, 1) if rng.random() < 0.3]
        place = {"x": float(rng.integers(1280)), "y": float(rng.integers(720))}
        state = {"hotbar": slot, "isGuiOpen": is_open, "yaw": yaw, "pitch": pitch}
        ticks.append(tick(keys, buttons, buttons if t else [0], dx, dy, **state, **place))
        if not is_open:
            yaw, pitch = yaw + dx * 0.15, float(np.clip(pitch + dy * 0.15, -90, 90))
    return ticks
