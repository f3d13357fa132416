"""The high level: partials of many low levels meet, cascade down the tree and become answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headrace.kernel.cascade import Cascade, Measures, make_reducer, reduce_to
from headrace.kernel.coding import Coder
from headrace.kernel.conditions import Conditions
from headrace.kernel.due import Due
from headrace.kernel.narrow import Column, slot_of
from headrace.kernel.parent import Parent
from headrace.kernel.piece import Piece, Ready, pack
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Coded, Reducer, as_rows
from headrace.kernel.rows import Rows
from headrace.plan.plan import Node, Plan

_TOGETHER = 1 << 18
"""Rows that wait for others, at most."""
_MOST_APART = 1 << 19
"""Rows that stay apart, at most: more of them take less memory as groups."""


Given = tuple[int, Sequence[Column], int]
"""A partial: its node, its columns and how many rows they have."""


class Lot(NamedTuple):
    """What has to meet: partials for a bucket, of nodes whose rows are dealt as those of `dealt`."""

    bucket: int
    dealt: int

    @staticmethod
    def of(plan: Plan, node: int, bucket: int) -> Lot:
        """The lot of a node's partials."""
        return Lot(bucket, plan.meeting(node)[1])


def homes(plan: Plan, buckets: int, last: bool) -> list[Lot]:
    """Those of queries without keys or window: these have an answer without records."""
    alone = [answer for answer in plan.answers if not answer.query.keys and answer.query.window is None]
    dealt = [plan.meeting(answer.node)[1] for answer in alone if is_for(plan, answer.node, last)]
    return [Lot(home % buckets, home) for home in dict.fromkeys(dealt)]


def is_for(plan: Plan, node: int, last: bool) -> bool:
    """Whether rows of a node meet the first or the last time that rows come."""
    return last == (plan.split_at(node) is not None)


class HighLevel:
    """Lots of one bucket: merges their partials, and gives the answers of their groups.

    Rows come a `last` time where a node's groups are still apart: then all rows of a group are in one bucket.
    """

    def __init__(
        self,
        plan: Plan,
        buckets: int,
        last: bool = False,
        measures: Measures | None = None,
        conditions: Conditions | None = None,
        due: Due | None = None,
        homes: Iterable[Lot] = (),
    ) -> None:
        """`due` is what is wanted, where it is not all; `homes` are the lots that need no partials."""
        self._plan = plan
        self._due = due
        self._buckets = buckets
        self._last = last
        self._conditions = conditions or {}
        self.measures = measures if measures is not None else Measures()
        self._meetings: dict[int, _Meeting] = {}
        for home in homes:
            self._meet(home.dealt)

    def add(self, node: int, columns: Sequence[Column], rows: int) -> None:
        """Take in the columns of a partial that is for this time that rows come."""
        keys = self._plan.nodes[node].key_count
        self._meet(node).add(columns[:keys], columns[keys:], rows)

    def _meet(self, node: int) -> _Meeting:
        if node not in self._meetings:
            apart = self._plan.carried(node)
            self._meetings[node] = _Meeting(self._plan.nodes[node], self._conditions, apart)
        return self._meetings[node]

    def take(self, node: int) -> Rows:
        """The rows of a node's partials, which leave."""
        return self._meetings.pop(node).take()

    def finish(self) -> Iterator[Piece]:
        """All that comes of the partials, node by node; each is let go before the next."""
        plan = self._plan

        def whole(node: int) -> bool:
            return self._last or plan.whole(node, plan.deal_of(node))

        cascade = Cascade(
            plan, self._buckets, whole, self._meetings, self.measures, self._conditions, due=self._due
        )
        for node in sorted(self._meetings):
            yield from cascade.run(node, self._meetings.pop(node).take())


def merge_lots(
    plan: Plan,
    buckets: int,
    lots: Mapping[Lot, Iterable[Given]],
    conditions: Conditions,
    measures: Measures | None = None,
    due: Due | None = None,
) -> Iterator[Piece]:
    """All that comes of lots, one after another."""
    always = {*homes(plan, buckets, False), *homes(plan, buckets, True)}
    for lot in sorted(lots):
        last = plan.split_at(lot.dealt) is not None
        level = HighLevel(plan, buckets, last, measures, conditions, due, always & {lot})
        for partial in lots[lot]:
            level.add(*partial)
        yield from level.finish()


def meet_all(plan: Plan, pieces: Iterable[Piece], buckets: int, conditions: Conditions) -> Iterator[Ready]:
    """All that comes of a low level's pieces, both times that rows meet, in one process."""
    for last in (False, True):
        lots: dict[Lot, list[Given]] = {home: [] for home in homes(plan, buckets, last)}
        passing: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Ready):
                yield piece
            elif is_for(plan, piece.node, last):
                for bucket, first, end, _ in piece.parts:
                    own = lots.setdefault(Lot.of(plan, piece.node, bucket), [])
                    own.append((piece.node, [c.slice(first, end - first) for c in piece.columns], end - first))
            else:
                passing.append(piece)
        pieces = itertools.chain(passing, merge_lots(plan, buckets, lots, conditions))
    for piece in pieces:
        assert isinstance(piece, Ready), "rows meet twice at most"
        yield piece


class _Meeting:
    """A node's rows of one bucket. Those of several partials go in together, so that keys are coded once.

    Rows of a group may stay `apart` where nothing is made of them but children, which combine them anyway.
    """

    def __init__(self, node: Node, conditions: Conditions, apart: bool) -> None:
        self._node = node
        self._conditions = conditions
        self._apart = apart
        self._reducer: Reducer | None = None
        self._coding = Coding()
        self._waiting: list[tuple[Sequence[Column], Sequence[Column], int]] = []
        self._rows = 0

    def add(self, keys: Sequence[Column], slots: Sequence[Column], rows: int) -> None:
        """Take in rows."""
        self._waiting.append((keys, slots, rows))
        self._rows += rows
        self._apart = self._apart and self._rows < _MOST_APART
        if self._rows >= _TOGETHER and not self._apart:
            self._join()

    def pour(self, parent: Parent) -> None:
        """See `Gathering`."""
        own = reduce_to(parent, self._node, self._conditions)
        keys = len(own.coders)
        for rows, columns in pack(own):
            self.add(columns[:keys], columns[keys:], rows)

    def take(self) -> Rows:
        """All rows, which leave."""
        if self._apart:
            return as_rows([state.op for state in self._node.states], *self._coded())
        return self._join().take()

    def _join(self) -> Reducer:
        """Let the rows that wait go into the table."""
        if self._reducer is None:
            self._reducer = make_reducer(self._node, expect=self._rows)
        if self._rows:
            coders, parts = self._coded()
            for part in parts:
                self._reducer.add(coders, *part)
        return self._reducer

    def _coded(self) -> tuple[tuple[Coder, ...], list[Coded]]:
        """The rows that wait, which leave: the coders of their keys, and their parts."""
        waiting, self._waiting, self._rows = self._waiting, [], 0
        keys = zip(*(keys for keys, _, _ in waiting), strict=True)
        codes = [self._coding.encode_all(number, columns) for number, columns in enumerate(keys)]
        parts = [
            Coded([own[place] for own in codes], [slot_of(slot) for slot in slots], rows)
            for place, (_, slots, rows) in enumerate(waiting)
        ]
        return tuple(map(self._coding.coder, range(len(codes)))), parts
