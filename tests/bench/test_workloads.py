"""The workloads are what they are said to be, and Spark's text is what headrace shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.bench.contest import Task
from headrace.bench.question import Data, Question
from headrace.bench.text import set_id, shared_sets, spark_text
from headrace.bench.workloads import TOPICS
from headrace.workload import Workload

EXAMPLES = Path(__file__).parents[2] / "examples"


def texts(questions: tuple[Question, ...], stream: str, time: str) -> dict[str, str]:
    data = Data(Path(), stream, time, {}, 0, False)
    return {question.name: spark_text(question, data) for question in questions}


@pytest.mark.parametrize(("name", "count"), [("netflow", 22), ("trades", 64), ("flights", 64)])
def test_questions_are_many_and_different(name: str, count: int) -> None:
    topic = TOPICS[name]
    assert len(topic.questions) == count
    assert len(set(texts(topic.questions, topic.stream, topic.time).values())) == count


@pytest.mark.parametrize("name", TOPICS)
def test_names_mean_one_measure(name: str) -> None:
    measures = {measure for question in TOPICS[name].take(200) for measure in question.measures}
    assert len({measure.name for measure in measures}) == len(measures)


@pytest.mark.parametrize("name", TOPICS)
def test_queries_can_be_shared(name: str) -> None:
    topic = TOPICS[name]
    workload = Workload(texts(topic.take(200), topic.stream, topic.time))
    assert len(workload) == 200
    assert len({query.sql for query in workload.values()}) == 200
    assert all(query.shareable for query in workload.values())


def test_drawn_questions_are_always_the_same_and_of_many_kinds() -> None:
    once, again = (TOPICS["netflow"].take(200)[22:] for _ in range(2))
    assert once == again
    assert len({question.window for question in once}) == 6
    assert len({question.where for question in once}) > 30
    assert 0.4 < sum(not question.where for question in once) / len(once) < 0.6
    assert len({question.keys for question in once}) > 80


def test_of_many_questions_plain_spark_is_timed_on_some() -> None:
    data = Data(Path(), "flows", "ts", {}, 0, False)
    assert len(Task(data, TOPICS["netflow"].take(100), 1).timed_by_spark) == 100
    assert len(Task(data, TOPICS["netflow"].take(200), 1).timed_by_spark) == 67


def test_netflow_is_the_example() -> None:
    topic = TOPICS["netflow"]
    ours = Workload(texts(topic.questions, topic.stream, topic.time))
    example = Workload.load(EXAMPLES / "netflow" / "queries")
    described = [
        {(q.window, frozenset(q.keys), frozenset(q.aggregates)) for q in w.values()} for w in (ours, example)
    ]
    assert described[0] == described[1]


def test_grouping_sets_hold_what_shares_window_and_filter() -> None:
    groups = shared_sets(TOPICS["trades"].questions)
    assert sum(map(len, groups)) == 64
    assert max(map(len, groups)) > 3
    for group in groups:
        assert len({(question.where, question.window) for question in group}) == 1


def test_set_id_has_a_bit_for_each_key_that_is_left_out() -> None:
    by_source, by_both = Question("a", ("src",), ()), Question("b", ("src", "dst"), ())
    assert set_id((by_source, by_both), by_source) == 0b01
    assert set_id((by_source, by_both), by_both) == 0b00


def test_questions_spread_evenly_are_of_all_kinds() -> None:
    topic = TOPICS["netflow"]
    first = topic.take(200)
    assert topic.spread(200, 200) == first
    assert topic.spread(5, 200) == (first[0], first[40], first[80], first[120], first[160])
    schemes = sum(question in first[:22] for question in topic.spread(64, 200))
    assert schemes == 8  # 64 × 22 / 200, rounded up
