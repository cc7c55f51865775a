"""A session: the thread that steps what one tab views, in time with the game's clock."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.errors import MineStudioError, WatchError, describe
from rllib_minestudio.recordings import Recording
from rllib_minestudio.recordings.video import Frame
from rllib_minestudio.watch.catalogue import EpisodeView
from rllib_minestudio.watch.protocol import (
    MessageDocument,
    PlayOnDocument,
    picture_message,
    text_message,
)
from rllib_minestudio.watch.views import HumanInput, PlayView, View

MOST_UNSEEN = 12
"""Pictures that the page may be behind before time stands still: nobody plays blindly, and nothing
is computed that nobody sees."""

MOST_UNDER_WAY = 3
"""Pictures on their way to the page: a slow line would store them, and show the past."""

MOST_ORDERS = 256
"""Orders that may wait; a page that sends more is not ours."""

LONGEST_LAG = 5
"""Steps that may be late before the clock restarts, instead of hurrying to make up for them."""

STEPS_AFTER_END = 30
"""Steps of time for which the end of an agent's episode is shown before the next one begins."""

SECONDS_BETWEEN_NEWS = 3.0
"""Interval at which the course of a training run is looked at."""

_logger = logging.getLogger(__name__)


class Views(Protocol):
    """Where views come from; see `catalogue.Catalogue`."""

    def entries(self) -> list[dict[str, Any]]:
        """Return what there is to view."""

    def open(self, keys: Sequence[str], hand: HumanInput) -> list[View]:
        """Open entries, to be viewed side by side."""

    def play_on(self, recording: Recording, step: int, hand: HumanInput) -> View:
        """Open the game that is saved after a step of a recording."""


class Clock:
    """Says when the next step is due; steps keep their rate on average, without drift.

    Attributes:
        speed: Factor of the game's 20 steps a second.
    """

    def __init__(self) -> None:
        self.speed = 1.0
        self.begin(time.monotonic())

    def begin(self, now: float) -> None:
        """Restart: the next step is due in one period."""
        self._begun, self._steps = now, 0

    @property
    def due(self) -> float:
        """The time at which the next step is due, in seconds of `time.monotonic`."""
        return self._begun + (self._steps + 1) / (TICKS_PER_SECOND * self.speed)

    def tick(self, now: float) -> None:
        """Note that a step was taken."""
        self._steps += 1
        if (now - self.due) * TICKS_PER_SECOND * self.speed > LONGEST_LAG:
            self.begin(now)


class Session:
    """Steps the views of a tab in a thread of its own, and composes what the tab is to show.

    Messages for the tab do not queue: `take` returns the newest picture, and of each kind of text
    the newest one.

    Args:
        views: Where views come from.
        pictures_per_second: Most pictures that are composed in a second.
    """

    def __init__(self, views: Views, pictures_per_second: float) -> None:
        self._source = views
        self._between_pictures = 1.0 / pictures_per_second
        self._changed = threading.Condition()
        self._orders: deque[MessageDocument] = deque()
        self._outbox: dict[str, str | bytes] = {}
        self._on_news: Callable[[], None] = lambda: None
        self._hand = HumanInput()
        self._is_watched = self._is_closed = False
        self._sent = self._seen = 0
        self._under_way: deque[int] = deque()
        # The thread's own, from here on.
        self._views: list[View] = []
        self._open_keys: list[str] = []
        self._clock = Clock()
        self._runs = False
        self._rest = 0
        self._shown_at = self._news_at = 0.0
        self._is_stale = False
        self._random = np.random.default_rng()
        self._thread = threading.Thread(target=self._main, name="rllib watch", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------- called by the server's thread

    def attach(self, on_news: Callable[[], None]) -> None:
        """A tab looks from now on; it is told everything again.

        Args:
            on_news: Called from the session's thread when `take` may return something.
        """
        with self._changed:
            self._on_news, self._is_watched = on_news, True
            self._outbox.clear()  # what the tab before has not taken
            self._seen = self._sent
            self._under_way.clear()
            self._orders.append(MessageDocument(refresh=True))
            self._changed.notify()

    def detach(self) -> None:
        """Nobody looks from now on; time stands still."""
        with self._changed:
            self._on_news, self._is_watched = lambda: None, False
            self._hand.release()

    def tell(self, message: MessageDocument) -> bool:
        """Pass on a message of the page; returns whether there was room for it."""
        with self._changed:
            if message.hand is not None:
                self._hand.take(message.hand)
            elif message.seen is not None:
                self._seen = min(max(self._seen, message.seen), self._sent)
                while self._under_way and self._under_way[0] <= self._seen:
                    self._under_way.popleft()
                self._changed.notify()
                self._on_news()
            elif message.look is not None:
                self._is_watched = message.look
                self._hand.release()
                self._changed.notify()
            elif len(self._orders) >= MOST_ORDERS:
                return False
            else:
                self._orders.append(message)
                self._changed.notify()
            return True

    def take(self) -> str | bytes | None:
        """Return the next message for the page, texts first; None if there is none.

        A picture waits while others are under way, and is replaced by newer ones meanwhile.
        """
        with self._changed:
            for kind in sorted(self._outbox, key=_PICTURE.__eq__):
                if kind != _PICTURE:
                    return self._outbox.pop(kind)
                if len(self._under_way) < MOST_UNDER_WAY:
                    self._under_way.append(self._sent)
                    return self._outbox.pop(kind)
            return None

    def close(self, timeout: float = 10.0) -> None:
        """End the thread and close the views."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(timeout)

    # ------------------------------------------------------------------------- the thread itself

    def _main(self) -> None:
        try:
            while (order := self._wait()) is not _CLOSED:
                try:
                    if isinstance(order, MessageDocument):
                        self._obey(order)
                    else:
                        self._advance()
                    self._show()
                except MineStudioError as error:
                    self._fail(str(error))
                except Exception as error:  # of a user's environment or agent
                    _logger.exception("A view failed.")
                    self._fail(describe(error))
        finally:
            self._leave()

    def _wait(self) -> Any:
        """Wait for an order, for the next step, or until what is shown has to be shown again."""
        with self._changed:
            while True:
                if self._is_closed:
                    return _CLOSED
                if self._orders:
                    return self._orders.popleft()
                now, wakes_at = time.monotonic(), None
                if self._may_run():
                    wakes_at = self._clock.due
                elif self._is_stale and self._is_watched and self._views:
                    wakes_at = self._shown_at + self._between_pictures
                if wakes_at is not None and now >= wakes_at:
                    return None
                self._changed.wait(None if wakes_at is None else wakes_at - now)
                if not self._may_run():
                    self._clock.begin(time.monotonic())

    def _may_run(self) -> bool:
        is_seen = self._sent - self._seen <= MOST_UNSEEN
        return self._runs and self._is_watched and is_seen and bool(self._views)

    def _obey(self, order: MessageDocument) -> None:
        if order.open is not None:
            self._open(order.open.entries, order.open.seed)
        elif order.restart is not None:
            self._begin(self._draw() if order.restart < 0 else order.restart)
        elif order.run is not None:
            self._runs = order.run
            self._hand.release()
            self._clock.begin(time.monotonic())
        elif order.step is not None:
            self._runs = False
            for _ in range(order.step):
                self._step()
        elif order.speed is not None:
            self._clock.speed = order.speed
            self._clock.begin(time.monotonic())
        elif order.seek is not None:
            self._runs = False
            for view in self._views:
                if isinstance(view, EpisodeView):
                    view.seek(order.seek)
        elif order.play_on is not None:
            self._play_on(order.play_on)
        elif order.keep is not None:
            for view in self._views:
                if isinstance(view, PlayView):
                    view.keep(order.keep.agent)
        elif order.discard is not None:
            self._begin(self._draw())
        else:
            self._post("catalogue", {"entries": self._source.entries(), "open": self._open_keys})
            self._news_at = 0.0
        self._is_stale = True
        self._shown_at = 0.0

    def _open(self, keys: Sequence[str], seed: int | None) -> None:
        self._leave()
        self._runs = False
        self._post("opening", {"entries": list(keys), "after": self._sent})
        self._views = self._source.open(keys, self._hand)
        self._open_keys = list(keys)
        known = [view.seed for view in self._views if view.seed is not None]
        self._begin(seed if seed is not None else known[0] if known else self._draw())
        self._runs = not any(isinstance(view, PlayView) for view in self._views)
        self._news_at = 0.0

    def _play_on(self, order: PlayOnDocument) -> None:
        found = self._views[order.view] if order.view < len(self._views) else None
        if not isinstance(found, EpisodeView):
            raise WatchError("Only a recorded episode can be played on: choose one.")
        view = self._source.play_on(found.recording, order.step, self._hand)
        try:
            view.begin(found.seed or 0)
        except MineStudioError:  # a damaged game: the episode stays
            view.close()
            raise
        keys = self._open_keys
        self._leave()
        self._runs = False
        self._post("opening", {"entries": [""], "after": self._sent})
        self._views, self._open_keys = [view], keys

    def _begin(self, seed: int) -> None:
        for view in self._views:
            view.begin(seed)
        self._rest = 0
        self._clock.begin(time.monotonic())

    def _draw(self) -> int:
        return int(self._random.integers(2**31))

    def _advance(self) -> None:
        if not self._may_run():
            return
        self._step()
        self._clock.tick(time.monotonic())
        if self._views and all(view.ended for view in self._views):
            self._after_end()

    def _step(self) -> None:
        for view in self._views:
            view.advance()
        self._is_stale = True

    def _after_end(self) -> None:
        """Go on with the next episode of agents; what a person played or recorded stays."""
        self._rest += 1
        if not all(view.kind == "live" for view in self._views):
            self._runs = False
        elif self._rest > STEPS_AFTER_END:
            self._begin(((self._views[0].seed or 0) + 1) % 2**31)

    def _show(self) -> None:
        """Compose a picture, unless the last one is too recent or nobody looks."""
        now = time.monotonic()
        # A step is a little early or late: half of one is as good as on time.
        is_time = now - self._shown_at >= self._between_pictures - 0.5 / TICKS_PER_SECOND
        if self._views and self._is_stale and is_time and self._is_watched:
            self._shown_at, self._is_stale = now, False
            views = [view.shown() for view in self._views]
            facts = {"runs": self._runs, "speed": self._clock.speed}
            self._post(_PICTURE, self._composed(facts, views))
        if self._views and self._is_watched and now - self._news_at >= SECONDS_BETWEEN_NEWS:
            self._news_at = now
            for index, view in enumerate(self._views):
                for kind, told in view.news().items():
                    self._post(f"{kind} {index}", {"view": index, "what": kind, "told": told})

    def _composed(
        self, facts: dict[str, Any], views: Sequence[tuple[dict[str, Any], dict[str, Frame]]]
    ) -> bytes:
        with self._changed:
            self._sent += 1
        return picture_message(self._sent, facts, views)

    def _post(self, kind: str, told: Any) -> None:
        is_news = isinstance(told, dict) and "what" in told
        text = text_message("news" if is_news else kind, told) if kind != _PICTURE else told
        with self._changed:
            self._outbox[kind] = text
            on_news = self._on_news
        on_news()

    def _fail(self, reason: str) -> None:
        """Tell the page what went wrong; time stands still."""
        self._runs = False
        self._post("failure", reason)

    def _leave(self) -> None:
        views, self._views, self._open_keys = self._views, [], []
        for view in views:
            try:
                view.close()
            except Exception:
                _logger.exception("A view could not be closed.")


_PICTURE = "picture"
_CLOSED = object()
