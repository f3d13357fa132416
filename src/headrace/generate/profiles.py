"""The two kinds of flow traffic: what a backbone router exports, and what an office's link carries.

A profile is a mixture of levels, from flows that are seen once to flows that are seen thousands of times. Both
are calibrated against reported streams, and `shape.py` measures how near they come:

- backbone: a router that exported 1.7 million records in 20 minutes, from which 22 schemes made about 6 million
  result rows (US patent 9,116,956, "Efficient aggregate computation over data streams");
- enterprise: a link with 7,000 packets a second, where 3% of the groups hold 92% of the packets (Cormode et al.,
  "Holistic UDAFs at streaming speeds", SIGMOD 2004). Records come in trains of 22 of the same flow on average;
  four trains run at a time and take turns after four records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.generate.chunks import Floats, Ints, Longs
from headrace.generate.network import NetworkSize
from headrace.generate.options import Profile

_ANY_PORT = -1
# (port, protocol, weight). Free ports on both sides: programs that talk to their like. Port 0: none on either.
_SERVICES = (
    (80, 6, 260), (443, 6, 220), (443, 17, 30), (53, 17, 110), (53, 6, 4), (25, 6, 40), (110, 6, 10),
    (143, 6, 8), (993, 6, 12), (22, 6, 20), (21, 6, 8), (20, 6, 6), (23, 6, 3), (123, 17, 14), (161, 17, 5),
    (139, 6, 6), (445, 6, 14), (135, 6, 6), (1433, 6, 6), (1434, 17, 5), (3306, 6, 5), (3389, 6, 6),
    (5060, 17, 6), (6881, 6, 18), (4662, 6, 12), (6346, 6, 8), (8080, 6, 14), (119, 6, 10), (179, 6, 2),
    (_ANY_PORT, 6, 70), (_ANY_PORT, 17, 40), (0, 1, 22), (0, 47, 4), (0, 50, 4),
)  # fmt: skip
_TOS = ((0, 200), (8, 14), (16, 10), (32, 8), (72, 6), (104, 6), (184, 8), (192, 4))
_SIZES = ((40, 100), (52, 60), (76, 24), (120, 20), (300, 14), (576, 26), (1024, 10), (1420, 30), (1500, 60))
_DRAWS = 4096  # entries in a table that 12 random bits choose from


@dataclass(frozen=True, slots=True)
class Level:
    """Flows of one size. A flow sends trains of records; flows that are neighbours share their two hosts.

    `share` is the share of all records, `train` the mean number of records in a train, `trains` the mean
    number of trains in a flow, `flows` the number of flows between two hosts, and `life_s` the time over which
    a flow's trains are spread.
    """

    share: float
    train: float
    trains: float
    flows: int
    life_s: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """All that sets one profile apart.

    `skew` shapes the choice of a host: its rank is (number of hosts) * u ** skew for a uniform u, so that a
    higher one favours the first hosts. `lanes` trains run at the same time and take turns after `burst` records.
    Packets per record follow a Pareto law with the exponent `packets_tail`, up to `most_packets`; a record
    covers up to `active_s`, and its `ts` is up to `export_s` after its last packet.
    """

    size: NetworkSize
    levels: tuple[Level, ...]
    skew: float
    home_skew: float
    packets_tail: float
    most_packets: int
    active_s: float
    export_s: float
    lanes: int = 1
    burst: int = 1


@dataclass(frozen=True)
class Odds:
    """A traffic as tables: random bits or a level in, a value with the right frequency out."""

    level: npt.NDArray[np.uint8]
    mean_train: float
    longer: Floats  # by level: how much longer a train is than one record, on average
    life_rows: Floats
    flows_per_row: Floats
    pairs_per_flow: Floats
    service: Longs
    service_port: Ints
    service_protocol: Ints
    free_listens: Ints  # 1 where the service's own port is free
    free_calls: Ints  # 1 where the caller has a port: always a free one
    tos: Ints
    packets: Longs
    size: Longs
    active_ms: Longs
    export_ms: Longs

    @classmethod
    def of(cls, traffic: Traffic, rows_per_s: float) -> Odds:
        """The tables of a traffic at a rate."""
        share, train, trains, flows, life_s = (
            np.array([getattr(level, name) for level in traffic.levels], dtype=np.float64)
            for name in ("share", "train", "trains", "flows", "life_s")
        )
        seen_per_row = share / train
        port, protocol, weight = (np.array(column, dtype=np.int32) for column in zip(*_SERVICES, strict=True))
        middle = (np.arange(_DRAWS) + 0.5) / _DRAWS
        return cls(
            level=spread(range(len(share)), seen_per_row, 1 << 16).astype(np.uint8),
            mean_train=1 / float(seen_per_row.sum()),
            longer=np.maximum(train - 0.5, 0) * (train > 1),  # rounding down takes the half off again
            life_rows=life_s * rows_per_s,
            flows_per_row=seen_per_row / trains,
            pairs_per_flow=1 / flows,
            service=spread(range(len(port)), weight, _DRAWS),
            service_port=np.maximum(port, 0),
            service_protocol=protocol,
            free_listens=(port == _ANY_PORT).astype(np.int32),
            free_calls=(port != 0).astype(np.int32),
            tos=spread(*_columns(_TOS), 256).astype(np.int32),
            packets=np.minimum(middle ** (-1 / traffic.packets_tail), traffic.most_packets).astype(np.int64),
            size=spread(*_columns(_SIZES), _DRAWS),
            active_ms=(traffic.active_s * 1000 * middle**3).astype(np.int64),
            export_ms=(traffic.export_s * 1000 * middle).astype(np.int64),
        )


def spread(values: Sequence[int], weights: npt.ArrayLike, entries: int) -> Longs:
    """A table of `entries` values in which each has its weight's share, and at least one entry."""
    ends = np.cumsum(np.asarray(weights, dtype=np.float64))
    ends = np.rint(ends / ends[-1] * (entries - len(ends))).astype(np.int64) + np.arange(1, len(ends) + 1)
    return np.repeat(np.asarray(values, dtype=np.int64), np.diff(ends, prepend=0))


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [value for value, _ in pairs], [weight for _, weight in pairs]


def _levels(*levels: tuple[float, float, float, int, float]) -> tuple[Level, ...]:
    return tuple(Level(*level) for level in levels)


_BACKBONE = Traffic(
    size=NetworkSize(hosts=400_000, subnets=16_000, systems=4000, peers=48, interfaces=16),
    levels=_levels(  # share, train, trains, flows, life_s
        (0.092, 1, 0.05, 40, 30),
        (0.218, 1, 0.05, 2000, 120),
        (0.06, 1, 2, 6, 60),
        (0.13, 1, 3, 80, 120),
        (0.25, 1, 12, 20, 300),
        (0.25, 1, 150, 6, 600),
    ),
    skew=4.0,
    home_skew=4.0,
    packets_tail=1.2,
    most_packets=200_000,
    active_s=300,
    export_s=15,
)

_ENTERPRISE = Traffic(
    size=NetworkSize(
        hosts=103_000, subnets=9048, systems=2500, peers=8, interfaces=6, home_hosts=3000, home_subnets=48
    ),
    levels=_levels(  # share, train, trains, flows, life_s
        (0.011, 2, 1, 1, 20),
        (0.022, 4, 2, 2, 40),
        (0.025, 8, 6, 2, 60),
        (0.042, 16, 20, 2, 90),
        (0.160, 24, 80, 2, 120),
        (0.300, 30, 250, 2, 150),
        (0.440, 30, 800, 2, 180),
    ),
    skew=3.0,
    home_skew=2.0,
    packets_tail=2.0,
    most_packets=64,
    active_s=1,
    export_s=0.25,
    lanes=4,
    burst=4,
)

TRAFFIC: dict[Profile, Traffic] = {"backbone": _BACKBONE, "enterprise": _ENTERPRISE}
