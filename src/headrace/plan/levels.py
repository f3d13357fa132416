"""Which nodes are made where records are read, and which above, where rows of all tasks meet.

A node stays below where a task has most of its slices whole, and memory for the rows that gather. All others need
rows that travel, which costs several times as much as to make a row of a child. What travels need not be their
own rows: those of a node that several of them come from are often far fewer. Such a node is then *carried*: its
rows leave the tasks as they are, and what was to be made of them on the way is made again above, where that pays.

A carried node stands in the plan as a child of the node whose rows it is: of these, what is made above has need
of some keys and states, and the rest stays where it is. All that hangs below it has a key in common, by which its
rows are dealt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from headrace.plan.costs import Costs
from headrace.plan.member import slots_of
from headrace.plan.plan import Answer, Deal, Expected, Node, Plan
from headrace.plan.shapes import Filters
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Times, Windows
from headrace.query import Expression


def placed(plan: Plan, sizes: Sizes, filters: Filters, tasks: int, memory: float, costs: Costs) -> Plan:
    """A plan that knows which nodes are low, with carried nodes where these save something.

    So many tasks read equal parts of the time that the stream takes, each with so many bytes for groups.
    """
    return _Placing(plan, sizes, filters, tasks, memory, costs).run()


def travelling(plan: Plan, span_us: int | None, tasks: int) -> float:
    """About how many rows leave the tasks, of the node of which most do.

    They are all that are carried, and else those of slices on an edge between tasks.
    """
    rows = [
        plan.rows[node] * (1.0 if plan.carried(node) else _cut_share(plan.nodes[node].slices, span_us, tasks))
        for node, deal in enumerate(plan.deals)
        if deal is not None
    ]
    return max(rows, default=0.0)


def slice_share(slices: Times | None, span_us: int | None, cut: int = 1) -> float:
    """Which part of all that a stream has is in one slice, or in so many; in all of them, where nobody knows."""
    return 1.0 if slices is None or not span_us else min(1.0, cut * slices.length_us / span_us)


def _cut_share(slices: Times | None, span_us: int | None, tasks: int) -> float:
    """Which part of all slices is not whole in any task: each edge between two tasks cuts one."""
    return slice_share(slices, span_us, tasks - 1)


_MOST_ALIKE = 1 / 3
"""A key deals no rows of which more have the same value: all of these would meet in one bucket."""


@dataclass(eq=False, slots=True)
class _Branch:
    """A node on its way into a new plan."""

    node: Node
    expected: Expected
    deal: Deal | None = None
    answers: list[Answer] = field(default_factory=list)
    children: list[_Branch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Group:
    """A node to be carried, and the nodes that it is carried for."""

    carried: int
    key: Expression
    members: tuple[int, ...]
    saving: float


class _Placing:
    def __init__(
        self, plan: Plan, sizes: Sizes, filters: Filters, tasks: int, memory: float, costs: Costs
    ) -> None:
        self._plan, self._sizes, self._filters = plan, sizes, filters
        self._span_us, self._tasks, self._costs = max(1, sizes.span_us or 1), tasks, costs
        self._rising: set[int] = set()
        for node in range(len(plan.nodes)):
            if not self._stays(node):
                self._rising.update(self._plan.below(node))
        self._make_room(memory)
        expected = (replace(own, low=node not in self._rising) for node, own in enumerate(plan.expected))
        self._plan = replace(plan, expected=tuple(expected))

    def run(self) -> Plan:
        """Groups that save most first, as long as there are any."""
        waiting = [
            node
            for node in sorted(self._rising)
            if (parent := self._plan.parents[node]) is not None and parent not in self._rising
        ]
        groups = []
        while waiting and (group := self._best_group(waiting)) is not None:
            groups.append(group)
            waiting = [node for node in waiting if node not in group.members]
        return self._rebuilt(groups) if groups else self._plan

    def _stays(self, index: int) -> bool:
        """Whether tasks have most slices of a node whole."""
        return _cut_share(self._plan.nodes[index].slices, self._span_us, self._tasks) <= 0.5

    def _make_room(self, memory: float) -> None:
        """Let nodes rise until the rest has room: first those whose rows a key can deal, large ones before small.

        Roots that others come from stay, since all of these would have to rise with them.
        """
        gathering = {
            node: self._bytes(node)
            for node in range(len(self._plan.nodes))
            if node not in self._rising and self._plan.gathers(node)
        }
        movable = [node for node in gathering if node not in self._plan.roots or not self._plan.children(node)]
        for node in sorted(movable, key=lambda node: (self._meets(node), gathering[node]), reverse=True):
            if sum(gathering.values()) <= memory:
                return
            for other in self._plan.below(node):
                gathering.pop(other, None)
                self._rising.add(other)

    def _meets(self, index: int) -> bool:
        """Whether all that comes of a node has a key in common, by which its rows can be dealt."""
        return any(self._plan.all_have(key, self._plan.below(index)) for key in self._plan.nodes[index].keys)

    def _bytes(self, index: int) -> float:
        """What a task needs for the rows of one slice."""
        node = self._plan.nodes[index]
        return self._plan.rows[index] * slice_share(node.slices, self._span_us) * table_row_bytes(node)

    def _best_group(self, waiting: Sequence[int]) -> _Group | None:
        found = [group for node in range(len(self._plan.nodes)) for group in self._groups(node, waiting)]
        best = max(found, key=lambda group: group.saving, default=None)
        return best if best is not None and best.saving > 0 else None

    def _groups(self, carried: int, waiting: Sequence[int]) -> Iterator[_Group]:
        """What a node could be carried for: for each of its keys, all that has it too."""
        # Rows gather in nodes of longer slices, and may still be in part where they leave.
        slices = self._plan.nodes[self._plan.root_of(carried)].slices
        if carried in self._rising or self._plan.nodes[carried].slices != slices:
            return
        hanging = [node for node in waiting if node in self._plan.below(carried)]
        for key in self._plan.nodes[carried].keys if len(hanging) > 1 else ():
            members = tuple(node for node in hanging if self._plan.all_have(key, self._plan.below(node)))
            saved = sum(map(self._shipping, members))
            spent = self._plan.rows[carried] * self._costs.shipped
            if saved > spent and self._sizes.commonest(key) <= _MOST_ALIKE:
                spent += sum(map(self._making, self._between(carried, members)))
                spent += self._waiting(key, members)
                yield _Group(carried, key, members, saved - spent)

    def _waiting(self, key: Expression, members: Sequence[int]) -> float:
        """What tasks lose that wait for the one which has a key's commonest value."""
        made = sum(self._making(node) for member in members for node in self._plan.below(member))
        return made * max(0.0, self._sizes.commonest(key) * self._tasks - 1.0)

    def _shipping(self, index: int) -> float:
        """What a node costs whose own rows travel."""
        rows = min(self._plan.rows[_parent(self._plan, index)], self._tasks * self._plan.rows[index])
        return rows * self._costs.shipped

    def _making(self, index: int) -> float:
        """What it costs to make a node once more."""
        node, parent_rows = self._plan.nodes[index], self._plan.rows[_parent(self._plan, index)]
        return self._costs.from_rows(parent_rows, self._plan.rows[index], _slots(node), node.key_count)

    def _between(self, carried: int, members: Sequence[int]) -> list[int]:
        """The nodes on the way from a node to others, without these, parents first."""
        way = {node for member in members for node in self._plan.above(member)}
        return sorted(node for node in way if node != carried and node in self._plan.below(carried))

    def _rebuilt(self, groups: Sequence[_Group]) -> Plan:
        plan = self._plan
        branches = [_Branch(*parts) for parts in zip(plan.nodes, plan.expected, plan.deals, strict=True)]
        for answer in plan.answers:
            branches[answer.node].answers.append(answer)
        for node, parent in enumerate(plan.parents):
            if parent is not None:
                branches[parent].children.append(branches[node])
        for group in groups:
            spent = plan.rows[group.carried] * self._costs.shipped / 1e9
            expected = Expected(plan.rows[group.carried], spent)
            carried = _Branch(plan.nodes[group.carried], expected, Deal(key=group.key))
            copies = {group.carried: carried}
            branches[group.carried].children.append(copies[group.carried])
            between = self._between(group.carried, group.members)
            for node in between:
                copies[node] = _Branch(plan.nodes[node], replace(plan.expected[node], low=False))
                copies[_parent(plan, node)].children.append(copies[node])
            for member in group.members:
                branches[_parent(plan, member)].children.remove(branches[member])
                copies[_parent(plan, member)].children.append(branches[member])
            for node in reversed(between):
                self._settle(copies[node], copies[_parent(plan, node)])
            carried.node = self._slim(carried)
        return replace(_flattened([branches[root] for root in plan.roots], plan), tree=plan)

    def _slim(self, copy: _Branch) -> Node:
        """A copy's node with the keys and states that others are made from."""
        node, nodes = copy.node, [child.node for child in copy.children]
        keys = {key for child in nodes for key in self._filters.keys_for(child, node)}
        states = {state for child in nodes for state in child.states}
        return replace(
            node,
            keys=tuple(key for key in node.keys if key in keys),
            states=tuple(state for state in node.states if state in states),
        )

    def _settle(self, copy: _Branch, above: _Branch) -> None:
        """Let a copy have what others are made from, or leave it out if it costs more than it saves."""
        node, old = self._slim(copy), max(1.0, copy.expected.rows)
        rows = old
        if node.keys != copy.node.keys:
            rows = min(old, self._sizes.groups(node.keys, node.marks, node.any_of, node.slices))
        seconds = self._seconds(copy, 1.0, node, rows)
        each, without = (
            [self._seconds(child, share, child.node, child.expected.rows) for child in copy.children]
            for share in (rows / old, above.expected.rows / old)
        )
        saved = sum(without) - seconds - sum(each)
        windows = any(isinstance(child.node.slices, Windows) for child in copy.children)
        stays = saved > 0 or windows or copy.node.ordered
        for child, own in zip(copy.children, each if stays else without, strict=True):
            child.expected = replace(child.expected, seconds=own)
        if stays:
            copy.node, copy.expected = node, Expected(rows, seconds, saved)
        else:
            above.children.remove(copy)
            above.children += copy.children

    def _seconds(self, branch: _Branch, share: float, node: Node, rows: float) -> float:
        """What a branch would take from so many times the rows of a parent, as another node of so many rows."""
        row, own = self._spent(branch.node, branch.expected.rows)
        other_row, other = self._spent(node, rows)
        return (branch.expected.seconds - own) * share * other_row / row + other

    def _spent(self, node: Node, rows: float) -> tuple[float, float]:
        """What each row of a parent takes in a node of so many rows, and the seconds of these themselves."""
        each = self._costs.each_row(rows, _slots(node), node.key_count)
        return each, self._costs.groups(rows, _slots(node)) / 1e9


def _parent(plan: Plan, node: int) -> int:
    parent = plan.parents[node]
    assert parent is not None
    return parent


def _flattened(roots: Sequence[_Branch], plan: Plan) -> Plan:
    """Branches as a plan, without phantoms that nothing comes from any more."""
    listed: list[tuple[_Branch, int | None]] = []

    def add(branch: _Branch, parent: int | None) -> None:
        if _needed(branch):
            listed.append((branch, parent))
            place = len(listed) - 1
            for child in branch.children:
                add(child, place)

    for root in roots:
        add(root, None)
    answers = [
        replace(answer, node=place) for place, (branch, _) in enumerate(listed) for answer in branch.answers
    ]
    return Plan(
        tuple(branch.node for branch, _ in listed),
        tuple(parent for _, parent in listed),
        tuple(branch.deal for branch, _ in listed),
        tuple(answers),
        plan.beside,
        tuple(branch.expected for branch, _ in listed),
        plan.estimate,
    )


def _needed(branch: _Branch) -> bool:
    return bool(branch.answers) or any(map(_needed, branch.children))


_WORDS = 3
"""A guess at the key words of a row."""
_INDEX_BYTES = 32
"""What a table needs to find a row: four entries of four bytes, and as many for room that it may not use."""


def row_bytes(node: Node) -> int:
    """What a row takes, about."""
    return 8 * (_WORDS + _slots(node))


def table_row_bytes(node: Node) -> int:
    """What a row takes in a table that finds it."""
    return row_bytes(node) + _INDEX_BYTES


def _slots(node: Node) -> int:
    return slots_of(node.states)
