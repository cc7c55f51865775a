"""What a person does becomes ticks and a recording; what an agent has in mind is told."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.checkpoints.record import RECORD_FILE
from rllib_minestudio.demonstrations import WindowOptions, windows
from rllib_minestudio.env import EpisodeRecorder, MineStudioEnv, RecorderOptions
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import CheckpointFormatError, RecordingError, WatchError
from rllib_minestudio.recordings import Recording, find_recordings
from rllib_minestudio.watch.catalogue import Catalogue, EpisodeView
from rllib_minestudio.watch.protocol import HandDocument
from rllib_minestudio.watch.request import WatchRequest
from rllib_minestudio.watch.views import HumanInput, inventory_of, likeliest, number
from tests.watch.conftest import STEPS, entry, task_options


def pressed(action):
    return {key for key, value in action.items() if key != "camera" and value}


def test_a_key_counts_in_every_tick_that_it_is_down_and_in_one_at_least():
    hand = HumanInput()
    hand.take(HandDocument(keys=["forward"], tapped=["forward"]))
    hand.take(HandDocument(keys=["forward", "use"], tapped=["use"]))
    hand.take(HandDocument(keys=["forward"]))
    assert [pressed(hand.action()) for _ in range(2)] == [{"forward", "use"}, {"forward"}]
    hand.take(HandDocument(keys=[]))
    assert not pressed(hand.action())


def test_turns_add_up_and_count_once():
    hand = HumanInput()
    hand.take(HandDocument(keys=[], turn=[1.0, 2.0]))
    hand.take(HandDocument(keys=[], turn=[0.5, -5.0]))
    assert hand.action()["camera"].tolist() == [1.5, -3.0]
    assert hand.action()["camera"].tolist() == [0.0, 0.0]


def test_the_wheel_goes_from_slot_to_slot():
    hand = HumanInput()
    hand.take(HandDocument(keys=[], scroll=-2))
    assert [pressed(hand.action()) for _ in range(3)] == [{"hotbar.9"}, {"hotbar.8"}, set()]
    hand.take(HandDocument(keys=[], tapped=["hotbar.4"]))
    hand.action()
    hand.take(HandDocument(keys=[], scroll=1))
    assert pressed(hand.action()) == {"hotbar.5"}
    hand.begin()
    hand.take(HandDocument(keys=[], scroll=1))
    assert pressed(hand.action()) == {"hotbar.2"}


def play(view, hand):
    """Play a few steps by hand, and return what was done and seen."""
    done, random = [], np.random.default_rng(0)
    for step in range(12):
        keys = ["forward", "attack", "inventory"][: step % 3]
        turn = random.uniform(-15, 15, 2).round(3).tolist()
        hand.take(HandDocument(keys=keys, tapped=["hotbar.2"] if step == 5 else [], turn=turn))
        view.advance()
        facts, pictures = view.shown()
        done.append((set(facts["keys"]), turn))
        assert pictures["view"].shape == (72, 128, 3) and facts["recorded"] == step + 1
    return done


def test_what_is_kept_holds_keys_degrees_and_tokens_tick_for_tick(catalogue, tmp_path):
    hand = HumanInput()
    (view,) = catalogue.open([entry(catalogue, "play")], hand)
    view.begin(7)
    facts, _ = view.shown()
    assert (facts["task"], facts["text"]) == ("stroll", "walk about")
    assert [0, "oak_planks", 5] in [list(stack) for stack in facts["inventory"]]
    done = play(view, hand)
    assert not list(find_recordings(tmp_path / "played"))  # not yet
    view.keep("Ann")
    view.close()
    (found,) = find_recordings(tmp_path / "played")
    names = found.meta["keys"]
    rows = [
        {name for name, down in zip(names, row, strict=True) if down}
        for row in found.steps["keys"].tolist()
    ]
    assert rows == [keys for keys, _ in done]
    assert np.allclose(found.steps["degrees"], [turn for _, turn in done])
    tokens = [ActionMapper().from_env({**dict.fromkeys(k, 1), "camera": t}) for k, t in done]
    assert [found.steps[name].tolist() for name in ("buttons", "camera")] == [
        list(column) for column in zip(*tokens, strict=True)
    ]
    assert found.meta["policy"]["agent"] == "Ann" and found.meta["seed"] == 7
    (window,) = windows(found, WindowOptions(len(done), 0, (32, 32)))
    assert window.buttons.tolist() == found.steps["buttons"].tolist()
    assert [len(list(found.frames(beside=b))) for b in (False, True)] == [len(done) + 1] * 2


def test_the_same_seed_and_hands_are_the_same_game(catalogue, tmp_path):
    for name in ("one", "other"):
        hand = HumanInput()
        (view,) = catalogue.open([entry(catalogue, "play")], hand)
        view.begin(3)
        play(view, hand)
        view.keep(name)
        view.close()
    one, other = find_recordings(tmp_path / "played")
    assert all(
        np.array_equal(a, b) for a, b in zip(one.frames(), other.frames(), strict=True)
    ) and list(one.infos()) == list(other.infos())


def test_nothing_is_kept_unless_the_person_says_so(catalogue, tmp_path):
    hand = HumanInput()
    (view,) = catalogue.open([entry(catalogue, "play")], hand)
    view.begin(1)
    with pytest.raises(RecordingError, match="nothing to keep"):
        view.keep("Ann")
    for _ in range(STEPS + 3):
        view.advance()
    assert (view.ended, view.step) == ("truncated", STEPS)
    view.begin(2)
    view.advance()
    view.close()
    assert not list(find_recordings(tmp_path / "played"))


def test_one_person_plays_one_game(catalogue):
    key = entry(catalogue, "play")
    with pytest.raises(WatchError, match="one game at a time"):
        catalogue.open([key, key], HumanInput())
    with pytest.raises(WatchError, match="no such entry"):
        catalogue.open(["../../etc/passwd"], HumanInput())


def test_a_checkpoint_of_another_format_is_listed_and_says_which_when_it_is_opened(tmp_path):
    folder = tmp_path / "trial" / "checkpoint_000001"
    folder.mkdir(parents=True)
    (folder / RECORD_FILE).write_text("format: 0\n")
    found = Catalogue(WatchRequest(source=str(tmp_path), out=str(tmp_path / "played")))
    (listed,) = (one for one in found.entries() if one["title"] == folder.name)
    assert listed["detail"] == "of another format"
    with pytest.raises(CheckpointFormatError, match="of format 0"):
        found.open([listed["key"]], HumanInput())


def test_two_who_are_compared_meet_in_the_same_world(catalogue):
    keys = [entry(catalogue, "live", title) for title in ("perfect-hunter", "hunter_nano")]
    views = catalogue.open([entry(catalogue, "play"), keys[0]], HumanInput())
    for view in views:
        view.begin(5)
    assert np.array_equal(*(view.shown()[1]["view"] for view in views))
    for view in views:
        view.close()
    views = catalogue.open(keys, HumanInput())
    for view in views:
        view.begin(5)
    (_, own), (facts, other) = (view.shown() for view in views)
    assert np.array_equal(own["view"], other["view"])
    assert own["seen"].shape != other["seen"].shape  # each sees what it was made to see
    assert len(facts["likeliest"]) == 8 and facts["entropy"] > 0 and facts["value"] is not None
    for view in views:
        view.close()


def test_the_likeliest_actions_are_those_of_the_whole_joint_distribution():
    mapper, random = ActionMapper(), np.random.default_rng(0)
    buttons, camera = np.zeros(8641), random.dirichlet(np.full(121, 0.1))
    possible = [*random.choice(8640, 200, replace=False), 8640]
    buttons[possible] = random.dirichlet(np.full(201, 0.1))
    heads = {"buttons": buttons, "camera": camera}
    whole = {}
    for token in possible:
        p = buttons[token]
        keys, used = tuple(mapper._key_rows[token]), mapper.uses_camera(np.int64(token))
        for turn, q in enumerate(camera):
            action = keys, turn if used else mapper.null_camera_token
            whole[action] = whole.get(action, 0.0) + p * q
    told = [action["p"] for action in likeliest(heads, mapper)]
    assert np.allclose(told, sorted(whole.values(), reverse=True)[:8], atol=1e-4)
    three = {"a": np.array([0.6, 0.4]), "b": np.array([0.7, 0.3])}
    assert [(a["p"], a["action"]) for a in likeliest(three, None)][:2] == [
        (0.42, {"a": 0, "b": 0}),
        (0.28, {"a": 1, "b": 0}),
    ]


@pytest.mark.parametrize("options", [{"crf": 0, "beside": True}, {"media": "jpeg"}])
def test_an_episode_is_shown_at_any_step(catalogue, options, tmp_path):
    callbacks = [{"JudgeReset": {"time_limit": 300}}]
    sizes = {"obs_size": (32, 32), "render_size": (64, 36)}
    env = MineStudioEnv(**sizes, num_empty_frames=1, callbacks=callbacks)
    env = EpisodeRecorder(env, RecorderOptions(str(tmp_path), **options))
    env.action_space.seed(0)
    env.reset(seed=4)
    done = False
    while not done:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        done = terminated or truncated
    env.close()
    (recording,) = find_recordings(tmp_path)
    frames, infos = list(recording.frames()), list(recording.infos())
    beside = list(recording.frames(beside=True)) if recording.has_beside else []
    assert bool(beside) == options.get("beside", False)
    view = EpisodeView("episode", Recording(recording.path))
    view.begin(0)
    for t in (0, 1, 2, 290, 289, 7, 7, 251, 250, len(recording), 0):
        view.seek(t)
        facts, pictures = view.shown()
        assert np.array_equal(pictures["seen"], frames[t]), t
        assert not beside or np.array_equal(pictures["view"], beside[t])
        assert (facts["step"], facts["info"], facts["seed"]) == (t, infos[t], 4)
        if t < len(recording):
            told = ActionMapper().keys_of({n: recording.steps[n][t] for n in ("buttons", "camera")})
            assert facts["keys"] == [k for k, v in told.items() if k != "camera" and v]
    view.seek(10**9)
    assert (view.step, view.ended) == (len(recording), "truncated")


def test_a_recorded_game_is_played_on_from_where_it_was_saved(catalogue, tmp_path):
    env = MineStudioEnv(task_options(action_type="env", render_mode="rgb_array"))
    options = RecorderOptions(str(tmp_path / "games"), snapshot_interval=10, beside=True)
    recorder = EpisodeRecorder(env, options, on_request=True)
    recorder.reset(seed=4)
    for _ in range(25):
        _, _, _, _, info = recorder.step({**env.sim.noop_action(), "forward": 1, "attack": 1})
    recording = Recording(recorder.keep())
    env.close()
    view = EpisodeView("episode", recording)
    saved = []
    for step in (0, 9, 10, 19, 20, 25):
        view.seek(step)
        saved.append(view.shown()[0]["saved"])
    assert saved == [0, 0, 10, 10, 20, 20]
    played = catalogue.play_on(recording, 20, HumanInput())
    for _ in range(2):  # whoever begins again begins in the same game
        played.begin(4)
        facts, pictures = played.shown()
        assert facts["is_saved_game"] and facts["step"] == 0
        assert facts["inventory"] == inventory_of(info)
        assert pictures["view"].shape == (360, 640, 3)
        played.advance()
    played.keep("Ann")
    played.close()
    (kept,) = find_recordings(tmp_path / "played")
    assert kept.meta["began_in"] == {"recording": str(recording.path), "step": 20}
    assert kept.snapshot_steps == [0]
    with pytest.raises(RecordingError, match="no game saved after step 21, but after 0, 10, 20"):
        catalogue.play_on(recording, 21, HumanInput())


def test_the_inventory_of_another_environment_may_be_anything():
    slots = {"sword": {"type": "iron"}, "3": {"type": "bow", "quantity": []}, 4: {"type": "egg"}}
    assert inventory_of({"inventory": {**slots, 5: "egg", 6: {}}}) == [(3, "bow", 0), (4, "egg", 1)]
    assert inventory_of({"inventory": [1]}) == inventory_of({}) == []
    assert [number(value) for value in (2, [1], "x", 10**400, float("inf"))] == [2.0, *[None] * 4]
