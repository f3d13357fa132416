"""The slice manager: the next edge of all windows that are there now (seed 003, algorithm 1).

Windows come and go at any time. Of each, only the next edges and their period are kept, in a priority queue;
nothing is written out to the least common multiple of their slides.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from headrace.plan.slices import Pair, Recurring
from headrace.query import Window


class SliceManager:
    """Windows over one time, and their edges after some moment.

    >>> from headrace.query import Expression
    >>> manager = SliceManager(now_us=0)
    >>> manager.add(Window(Expression.parse("ts"), range_us=18, slide_us=15))
    >>> list(manager.until(31))
    [3, 15, 18, 30]
    """

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        """All edges up to this moment have been told."""
        self._queue: list[tuple[int, int, Recurring]] = []
        """Next edges, each with the number of its entry: one whose edges have left is passed over in its turn."""
        self._entries: dict[Recurring, int] = {}
        self._windows: dict[Recurring, int] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        """How many edges recur; those that windows share count once."""
        return len(self._entries)

    def add(self, window: Window) -> None:
        """A window joins: its edges count from now on."""
        for edges in Pair.of(window).recurring:
            self._windows[edges] = self._windows.get(edges, 0) + 1
            if edges not in self._entries:
                number = self._entries[edges] = next(self._numbers)
                heapq.heappush(self._queue, (edges.next(self.now_us + 1), number, edges))

    def remove(self, window: Window) -> None:
        """A window leaves; edges that others have too stay. Raises KeyError for a window that is not there."""
        for edges in Pair.of(window).recurring:
            self._windows[edges] -= 1
            if not self._windows[edges]:
                del self._windows[edges], self._entries[edges]

    def peek(self) -> int | None:
        """The next edge; None without windows."""
        while self._queue and self._entries.get(self._queue[0][2]) != self._queue[0][1]:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def advance(self) -> int | None:
        """The next edge, which has then been told; None without windows."""
        edge = self.peek()
        while edge is not None and self.peek() == edge:
            _, number, edges = self._queue[0]
            heapq.heapreplace(self._queue, (edge + edges.period_us, number, edges))
        self.now_us = self.now_us if edge is None else edge
        return edge

    def until(self, end_us: int) -> Iterator[int]:
        """All edges before a time, in order; time goes on as they are taken."""
        while (edge := self.peek()) is not None and edge < end_us:
            self.advance()
            yield edge
        self.now_us = max(self.now_us, end_us - 1)
