"""Keys that decide others, in samples where it is known which do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.plan.alike import first_alike
from headrace.plan.dependent import Deciding
from headrace.plan.shapes import Shapes
from headrace.plan.sizes import Sizes
from headrace.query import Expression

ROWS = 20_000


def named(names: str) -> list[Expression]:
    return [Expression.parse(name) for name in names.split()]


def sample() -> dict[str, npt.NDArray[np.int64]]:
    """Addresses with a subnet and an AS each, airports with a distance between any two, and serial numbers."""
    random = np.random.default_rng(3)
    addr, origin, dest = random.integers(0, [[900], [40], [40]], size=(3, ROWS))
    return {
        "addr": addr,
        "subnet": addr // 4,
        "asn": addr // 4 % 50,
        "code": addr * 7 + 1,
        "origin": origin,
        "dest": dest,
        "distance": (origin - dest) ** 2 + origin * dest % 13,
        "serial": np.arange(ROWS),
        "other": random.integers(0, 5, size=ROWS),
    }


def deciding_of(columns: dict[str, npt.NDArray[np.int64]]) -> Deciding:
    block = {Expression.parse(name): pa.array(values) for name, values in columns.items()}
    return Deciding(Sizes([block], 1_000_000, None).values)


def steps_of(deciding: Deciding, keys: str, others: str) -> list[str] | None:
    steps = deciding.steps(named(keys), named(others))
    return None if steps is None else [str(step) for step in steps]


def test_a_key_decides_others() -> None:
    deciding = deciding_of(sample())
    assert steps_of(deciding, "addr", "addr asn subnet") == ["addr decides asn", "addr decides subnet"]
    assert steps_of(deciding, "subnet other", "asn") == ["subnet decides asn"]
    assert steps_of(deciding, "subnet", "addr") is None
    assert steps_of(deciding, "asn other", "subnet") is None
    assert steps_of(deciding, "addr", "addr") == []


def test_two_keys_decide_another() -> None:
    deciding = deciding_of(sample())
    assert steps_of(deciding, "dest other origin", "distance") == ["dest, origin decide distance"]
    assert steps_of(deciding, "dest other", "distance") is None


def test_sets_of_the_same_groups() -> None:
    deciding = deciding_of(sample())
    sets = ["addr", "code asn", "subnet", "code subnet", "origin dest", "dest distance origin", "dest distance"]
    assert deciding.same_groups([*map(named, sets)]) == [[0, 1, 3], [2], [4, 5], [6]]


def test_one_exception_is_enough() -> None:
    columns = sample()
    columns["asn"][-1] += 1
    deciding = deciding_of(columns)
    assert steps_of(deciding, "addr", "asn") is None
    assert steps_of(deciding, "addr", "subnet") == ["addr decides subnet"]


def test_keys_that_hardly_repeat_are_not_believed() -> None:
    assert steps_of(deciding_of(sample()), "serial", "other") is None


def test_keys_that_the_sample_does_not_have_decide_nothing() -> None:
    deciding = deciding_of(sample())
    assert steps_of(deciding, "addr", "unknown") is None
    assert steps_of(deciding, "unknown", "addr") is None
    assert Deciding(Sizes().values).same_groups([named("a"), named("a b")]) == [[0], [1]]


def test_groups_are_counted_by_the_keys_that_decide() -> None:
    deciding, shapes = deciding_of(sample()), Shapes()
    shape = shapes.shape(named("other asn code subnet addr"), None, None)
    assert shapes.deciding_keys(shape) == tuple(named("other asn code subnet addr"))
    shapes.learn(deciding.decides)
    # An address and its code decide each other: the one that came first stays.
    assert shapes.deciding_keys(shape) == tuple(named("other code"))
    assert shapes.deciding_keys(shapes.shape(named("asn addr"), None, None)) == tuple(named("addr"))
    assert shapes.deciding_keys(shapes.shape(named("asn other"), None, None)) == tuple(named("other asn"))


def test_the_first_row_alike() -> None:
    values = np.random.default_rng(5).integers(0, 300, size=2000).astype(np.uint64) * np.uint64(1 << 32)
    _, firsts, numbers = np.unique(values, return_index=True, return_inverse=True)
    assert first_alike(values).tolist() == firsts[numbers].tolist()
