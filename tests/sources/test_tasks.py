"""Who reads what: every record once, tasks of even size, edges where epochs begin."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.plan.slices import Slices
from headrace.query import Expression
from headrace.sources.parquet import Extent, RowGroup, Task, read_footers, read_task
from headrace.sources.tasks import Grid, deal_by_time, deal_row_groups

MINUTE = 60_000_000
MANY = 10**6


def group(number: int, least: int, most: int, rows: int = 100, nulls: int = 0) -> RowGroup:
    return RowGroup("f.parquet", number, rows, {"ts": Extent(least, most, nulls)})


def grid(size_us: int, offset_us: int, cut: float) -> Grid:
    return Grid(Slices.every(Expression.parse("ts"), size_us, offset_us), cut)


def in_order(count: int, length: int) -> list[RowGroup]:
    return [group(number, number * length, (number + 1) * length - 1) for number in range(count)]


def edges(tasks: list[Task] | None) -> list[int | None]:
    assert tasks is not None
    assert tasks[0].start_us is None
    assert tasks[-1].end_us is None
    assert [task.end_us for task in tasks[:-1]] == [task.start_us for task in tasks[1:]]
    return [task.end_us for task in tasks[:-1]]


def test_edges_lie_where_slices_begin() -> None:
    groups = in_order(40, 45_000_000)  # 30 minutes
    assert edges(deal_by_time(groups, 2, "ts", [grid(5 * MINUTE, 0, MANY)])) == [15 * MINUTE]
    assert edges(deal_by_time(groups, 2, "ts", [grid(4 * MINUTE, 0, MANY)])) == [16 * MINUTE]
    in_three = edges(deal_by_time(groups, 3, "ts", [grid(MINUTE, 30_000_000, MANY)]))
    assert in_three == [10.5 * MINUTE, 20.5 * MINUTE]


def test_slices_of_many_rows_are_not_cut() -> None:
    groups = in_order(40, 45_000_000)
    assert edges(deal_by_time(groups, 2, "ts", [grid(MINUTE, 0, 1), grid(5 * MINUTE, 0, 1)])) == [15 * MINUTE]
    hour, seven = grid(60 * MINUTE, 0, 1), grid(7 * MINUTE, 0, MANY)
    assert edges(deal_by_time(groups, 2, "ts", [hour, seven])) == [14 * MINUTE]


def test_slices_of_few_rows_are_cut_where_shares_are_even() -> None:
    groups = in_order(40, 45_000_000)
    (edge,) = edges(deal_by_time(groups, 2, "ts", [grid(20 * MINUTE, 0, 1)]))
    assert edge is not None
    assert abs(edge - 15 * MINUTE) < MINUTE


def test_row_groups_on_an_edge_belong_to_both() -> None:
    tasks = deal_by_time(in_order(10, 70_000_000), 2, "ts", [grid(MINUTE, 0, MANY)])
    assert edges(tasks) == [6 * MINUTE]
    assert tasks is not None
    assert [[g.number for g in task.groups] for task in tasks] == [[0, 1, 2, 3, 4, 5], [5, 6, 7, 8, 9]]


def test_when_time_does_not_help() -> None:
    assert deal_by_time([], 2, "ts", []) is None
    assert deal_by_time([group(0, 0, 9, rows=0)], 2, "ts", []) is None
    assert deal_by_time([group(0, 0, 9), group(1, 10, 19, nulls=1)], 2, "ts", []) is None
    assert deal_by_time([RowGroup("f", 0, 5, {})], 2, "ts", []) is None
    everywhere = [group(number, 0, 1000) for number in range(20)]
    assert deal_by_time(everywhere, 2, "ts", []) is None


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, 500)), min_size=1), st.data()
)
def test_every_time_has_one_task_with_all_its_row_groups(
    shapes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    groups = [group(n, least, least + length, rows) for n, (least, length, rows) in enumerate(shapes)]
    own = grid(data.draw(st.integers(1, 10**6)), 0, data.draw(st.integers(0, 1000)))
    tasks = deal_by_time(groups, data.draw(st.integers(1, 4)), "ts", [own])
    if tasks is None:
        return
    time = data.draw(st.integers(0, 2 * 10**6))
    owners = [
        {g.number for g in task.groups}
        for task in tasks
        if (task.start_us is None or time >= task.start_us) and (task.end_us is None or time < task.end_us)
    ]
    holders = {g.number for g in groups if g.extents["ts"].least <= time <= g.extents["ts"].most}
    assert owners in ([], [owners[0] | holders] if owners else [])
    assert owners or not holders


def test_row_groups_in_order_where_time_is_not_known() -> None:
    dealt = deal_row_groups(in_order(5, 10), 2)
    assert [[g.number for g in task.groups] for task in dealt] == [[0, 1], [2, 3, 4]]
    assert len(deal_row_groups(in_order(2, 10), 8)) == 2


@pytest.mark.parametrize(
    ("rows", "tasks", "expected"),
    [
        (
            [40_000],
            4,
            [([0], (0, 10_000)), ([0], (10_000, 20_000)), ([0], (20_000, 30_000)), ([0], (30_000, 40_000))],
        ),
        ([20_000], 8, [([0], (0, 10_000)), ([0], (10_000, 20_000))]),
        ([30_000, 15_000], 3, [([0], (0, 15_000)), ([0], (15_000, 30_000)), ([1], (0, 15_000))]),
        ([20_000, 30_000], 3, [([0], (0, 16_666)), ([0, 1], (16_666, 33_333)), ([1], (13_333, 30_000))]),
        ([30_000, 15_000], 2, [([0], None), ([1], None)]),
        ([8191], 8, [([0], None)]),
    ],
)
def test_a_few_large_row_groups_in_parts(
    rows: list[int], tasks: int, expected: list[tuple[list[int], tuple[int, int] | None]]
) -> None:
    dealt = deal_row_groups([group(number, 0, 9, count) for number, count in enumerate(rows)], tasks)
    assert [([g.number for g in task.groups], task.places) for task in dealt] == expected


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 40_000), min_size=1, max_size=4), st.integers(1, 8), st.sampled_from([7_000, 10**6])
)
def test_every_record_is_read_once(rows: list[int], tasks: int, batch_rows: int) -> None:
    table = pa.table({"x": range(sum(rows))}).add_column(
        0, "name", [pa.array([f"n{n % 5}" for n in range(sum(rows))])]
    )
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.sources.parquet._BATCH_ROWS", batch_rows)
        for number, count in enumerate(rows):
            pq.write_table(table.slice(sum(rows[:number]), count), f"{folder}/{number}.parquet")
        groups = [g for footer in read_footers(folder) for g in footer.groups]
        dealt = deal_row_groups(groups, tasks)
        batches = [batch for task in dealt for batch, _ in read_task(task, ["x", "name"])]
    assert [x for batch in batches for x in batch["x"].to_pylist()] == list(range(sum(rows)))
    assert all(batch["name"][0].as_py() == f"n{batch['x'][0].as_py() % 5}" for batch in batches)
    assert len(dealt) >= min(tasks, sum(rows) // 10_000)
