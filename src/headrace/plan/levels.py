"""Which nodes are made where records are read, and which above, where rows of all tasks meet.

A node stays below where a task has most of its slices whole, and memory for the rows that gather. All others need
rows that travel, which costs several times as much as to make a row of a child. What travels need not be their
own rows: those of a node that several of them come from are often far fewer. Such a node is then *carried*: its
rows leave the tasks as they are, and what was to be made of them on the way is made again above, where that pays.

A carried node stands in the plan as a child of itself. All that hangs below it has a key in common, by which its
rows are dealt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from headrace.plan.costs import Costs
from headrace.plan.plan import Answer, Deal, Expected, Node, Plan
from headrace.plan.slices import Times, Windows
from headrace.query import Expression


def placed(plan: Plan, span_us: int, tasks: int, memory: int, costs: Costs) -> Plan:
    """A plan with carried nodes, where these save something.

    So many tasks read equal parts of the time that the stream takes, each with so many bytes for groups.
    """
    return _Placing(plan, span_us, tasks, memory, costs).run()


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


def _cut_share(slices: Times | None, span_us: int | None, tasks: int) -> float:
    """Which part of all slices is not whole in any task: each edge between two tasks cuts one."""
    return 1.0 if slices is None or not span_us else min(1.0, (tasks - 1) * slices.length_us / span_us)


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
    def __init__(self, plan: Plan, span_us: int, tasks: int, memory: int, costs: Costs) -> None:
        self._plan, self._span_us, self._tasks, self._costs = plan, max(1, span_us), tasks, costs
        self._rising: set[int] = set()
        for node in range(len(plan.nodes)):
            if not self._stays(node):
                self._rising.update(self._plan.below(node))
        self._make_room(memory)

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

    def _make_room(self, memory: int) -> None:
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
        return any(self._has_key(index, key) for key in self._plan.nodes[index].keys)

    def _bytes(self, index: int) -> float:
        """What a task needs for the rows of one slice."""
        node = self._plan.nodes[index]
        share = min(1.0, node.slices.length_us / self._span_us) if node.slices else 1.0
        return self._plan.rows[index] * share * _row_bytes(node)

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
            members = tuple(node for node in hanging if self._has_key(node, key))
            saved = sum(map(self._shipping, members))
            spent = self._plan.rows[carried] * self._costs.shipped
            if saved > spent:
                spent += sum(map(self._making, self._between(carried, members)))
                yield _Group(carried, key, members, saved - spent)

    def _has_key(self, index: int, key: Expression) -> bool:
        return all(self._plan.whole(node, Deal(key=key)) for node in self._plan.below(index))

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
                copies[node] = _Branch(plan.nodes[node], plan.expected[node])
                copies[_parent(plan, node)].children.append(copies[node])
            for member in group.members:
                branches[_parent(plan, member)].children.remove(branches[member])
                copies[_parent(plan, member)].children.append(branches[member])
            for node in reversed(between):
                self._settle(copies[node], copies[_parent(plan, node)])
        return _flattened([branches[root] for root in plan.roots], plan)

    def _settle(self, copy: _Branch, above: _Branch) -> None:
        """Give a copy the states that are still made from it, or leave it out if it costs more than it saves."""
        needed = {state for child in copy.children for state in child.node.states}
        slim = replace(copy.node, states=tuple(state for state in copy.node.states if state in needed))
        seconds = self._seconds(copy, above.expected.rows, above.expected.rows, slim)
        rows = copy.expected.rows, above.expected.rows
        without = [self._seconds(child, *rows, child.node) for child in copy.children]
        saved = sum(without) - seconds - sum(child.expected.seconds for child in copy.children)
        windows = any(isinstance(child.node.slices, Windows) for child in copy.children)
        if saved > 0 or windows or copy.node.ordered:
            copy.node, copy.expected = slim, Expected(copy.expected.rows, seconds, saved)
            return
        above.children.remove(copy)
        for child, instead in zip(copy.children, without, strict=True):
            child.expected = replace(child.expected, seconds=instead)
            above.children.append(child)

    def _seconds(self, branch: _Branch, rows: float, others: float, node: Node) -> float:
        """What a branch's node takes by its seconds from so many rows: from others', and as another node."""
        costs, own, (before, after) = self._costs, branch.expected, (branch.node, node)
        slots = _slots(before), _slots(after)
        each = [costs.each_row(own.rows, count, before.key_count) for count in slots]
        groups = [costs.groups(own.rows, count) / 1e9 for count in slots]
        return (own.seconds - groups[0]) * others / max(1.0, rows) * each[1] / each[0] + groups[1]


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


_WORDS = 2
_TABLE_FILL = 2
"""A guess at the key words of a row, and the room that a table has for each."""


def _row_bytes(node: Node) -> int:
    return 8 * (_WORDS + _slots(node)) * _TABLE_FILL


def _slots(node: Node) -> int:
    return sum(state.slots for state in node.states)
