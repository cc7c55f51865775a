"""A session keeps time, forgets what is old, and rests when nobody looks."""

from __future__ import annotations

import json
import struct
import time

import pytest

from rllib_minestudio.watch.protocol import MessageDocument, parse_message
from rllib_minestudio.watch.session import LONGEST_LAG, MOST_UNDER_WAY, MOST_UNSEEN, Clock
from tests.watch.conftest import entry, wait_until


def told(message):
    """The head of a picture message, with the number of bytes of all its pictures."""
    (length,) = struct.unpack(">I", message[:4])
    head = json.loads(message[4 : 4 + length])
    sizes = [p["bytes"] for view in head["views"] for p in view["pictures"]]
    assert len(message) == 4 + length + sum(sizes) and min(sizes) > 100
    return head


def tell(session, **message):
    assert session.tell(parse_message(json.dumps(message)))


def pictures(session):
    """Take everything that there is to take, and return the heads of the pictures."""
    found = []
    while (message := session.take()) is not None:
        if isinstance(message, bytes):
            found.append(told(message))
        else:
            assert "failure" not in json.loads(message), message
    return found


def see(session):
    """Look at the next picture, and say so."""
    (head,) = wait_until(lambda: pictures(session))
    tell(session, seen=head["number"])
    return head


@pytest.fixture
def live(session, catalogue):
    """A session in which an agent plays while somebody looks."""
    session.attach(lambda: None)
    tell(session, open={"entries": [entry(catalogue, "live", "perfect-hunter")], "seed": 3})
    return session


def test_steps_are_due_at_the_rate_without_drift_and_are_not_made_up_for():
    clock = Clock()
    clock.begin(100.0)
    for _ in range(1000):
        clock.tick(clock.due + 0.01)  # each one late, but the next is due as before
    assert clock.due == pytest.approx(100.0 + 1001 / 20)
    clock.speed = 2.0
    clock.begin(200.0)
    clock.tick(200.0 + (LONGEST_LAG + 3) / 40)
    assert clock.due == pytest.approx(200.0 + (LONGEST_LAG + 4) / 40)


def test_time_stands_still_while_nobody_looks(live):
    assert see(live)["views"][0]["seed"] == 3
    for stop, go in (("detach", None), ("hidden", {"look": True})):
        if stop == "detach":
            live.detach()
        else:
            tell(live, look=False)
        before = wait_until(lambda: live._views)[0].step
        time.sleep(0.2)
        assert live._views[0].step <= before + 1
        if go is None:
            live.attach(lambda: None)
        else:
            tell(live, **go)
        wait_until(lambda b=before: [tell(live, seen=p["number"]) for p in pictures(live)] and (
            live._views[0].step > b + 1
        ))  # fmt: skip


def test_pictures_do_not_queue_and_nobody_plays_blindly(live):
    first = see(live)
    time.sleep(0.05 * (MOST_UNSEEN + 6))
    got = pictures(live)
    assert 1 <= len(got) <= MOST_UNDER_WAY
    assert live._views[0].step <= first["views"][0]["step"] + MOST_UNSEEN + 2
    # The rest were replaced: the next picture shows the present.
    tell(live, seen=got[-1]["number"])
    newest = see(live)
    assert newest["views"][0]["step"] > got[-1]["views"][0]["step"]


def test_single_steps_speed_and_the_same_world_again(live):
    tell(live, run=False)
    wait_until(lambda: not see(live)["runs"])
    tell(live, restart=11)
    begun = wait_until(lambda: (s := see(live))["views"][0]["seed"] == 11 and s)
    assert begun["views"][0]["step"] == 0
    tell(live, step=3)
    assert see(live)["views"][0]["step"] == 3
    tell(live, speed=4.0)
    assert see(live)["speed"] == 4.0


def test_an_episode_is_played_on_and_a_damaged_game_leaves_it_shown(session, catalogue, tmp_path):
    key = entry(catalogue, "play")
    session.attach(lambda: None)
    tell(session, open={"entries": [key], "seed": 3})
    wait_until(lambda: session._views)
    tell(session, step=5)
    tell(session, keep={"agent": "Ann"})
    listed = lambda: [e["key"] for e in catalogue.entries() if e["kind"] == "episode"]  # noqa: E731
    (episode,) = wait_until(listed)
    (file,) = (tmp_path / "played").rglob("00000000.game")
    tell(session, open={"entries": [episode]})
    wait_until(lambda: session._views and session._views[0].kind == "episode")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    tell(session, play_on={"view": 0, "step": 0})
    failure = wait_until(lambda: next((t for t in texts(session) if "failure" in t), None))
    assert "damaged" in failure["failure"] and session._views[0].kind == "episode"
    tell(session, play_on={"view": 1, "step": 0})
    failure = wait_until(lambda: next((t for t in texts(session) if "failure" in t), None))
    assert "Only a recorded episode" in failure["failure"]
    file.write_bytes(whole)
    tell(session, play_on={"view": 0, "step": 0})
    wait_until(lambda: session._views and session._views[0].kind == "play")
    assert session._open_keys == [episode]  # to look for what is new leaves the game alone


def texts(session):
    """Take everything that there is to take, and return the texts."""
    messages = iter(session.take, None)
    return [json.loads(message) for message in messages if isinstance(message, str)]


def test_a_session_without_views_or_whose_views_stand_still_does_nothing(session, catalogue):
    def waits():
        """How often its thread looks for something to do within a tenth of a second."""
        count, wait = [], session._changed.wait
        session._changed.wait = lambda timeout: count.append(timeout) or wait(timeout)
        time.sleep(0.1)
        del session._changed.wait
        return len(count)

    session.attach(lambda: None)
    wait_until(session.take)
    assert waits() <= 1
    tell(session, open={"entries": [entry(catalogue, "play")], "seed": 3})
    see(session)
    assert waits() <= 1


def test_more_orders_than_a_page_gives_are_refused(session):
    orders = [session.tell(MessageDocument(refresh=True)) for _ in range(5000)]
    assert orders[0] and not all(orders)
