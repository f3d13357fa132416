"""What to generate: the options of each stream, checked when they are made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, get_args

from headrace.errors import GenerateError, did_you_mean

Profile = Literal["backbone", "enterprise"]
PROFILES: tuple[Profile, ...] = get_args(Profile)

OPEN_S = (9 * 60 + 30) * 60
CLOSE_S = (16 * 60 + 30) * 60
MAX_SYMBOLS = 100_000

_FLOW_RATES: dict[Profile, float] = {"backbone": 1_700_000 / 1200, "enterprise": 7000.0}
_TRADE_RATE = 190_000 / 600
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)  # the last year that Spark and Python can print


@dataclass(frozen=True, kw_only=True)
class StreamOptions(ABC):
    """What every stream has: how many records, from when, how fast, and how disturbed.

    `rate` is in records per second of stream time. Of the disturbances, `disorder_s` moves each record back
    by up to that many seconds, and `late` is the share of records that come up to `late_by_s` late. `nulls`
    is the share of nulls in every column but the time; `duplicates` is the share of records that repeat the
    record before. A disturbance changes nothing but what it is named for: the records stay the same.
    """

    rows: int = field(kw_only=False)
    seed: int = 1
    start: str = ""
    rate: float | None = None
    late: float = 0.0
    late_by_s: float = 600.0
    disorder_s: float = 0.0
    nulls: float = 0.0
    duplicates: float = 0.0

    def __post_init__(self) -> None:
        _check_whole("rows", self.rows, least=1)
        _check_whole("seed", self.seed, least=0)
        for name in ("late", "nulls", "duplicates"):
            _check_share(name, getattr(self, name))
        if not (math.isfinite(self.disorder_s) and self.disorder_s >= 0):
            raise GenerateError(f"disorder_s must be a number of seconds from 0 up, not {self.disorder_s!r}")
        if not (math.isfinite(self.late_by_s) and self.late_by_s > 0):
            raise GenerateError(f"late_by_s must be a number of seconds above 0, not {self.late_by_s!r}")
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise GenerateError(f"rate must be records per second, a number above 0, not {self.rate!r}")
        self._check_span()

    @property
    @abstractmethod
    def usual_rate(self) -> float:
        """Records per second where `rate` is not given."""

    @property
    def records_per_s(self) -> float:
        """The rate that holds: the given one or the usual one."""
        return self.usual_rate if self.rate is None else self.rate

    @property
    def start_time(self) -> datetime:
        """`start` as a time in UTC."""
        try:
            time = datetime.fromisoformat(self.start)
        except ValueError:
            raise GenerateError(
                f"start must be a time such as '2024-03-04 09:30:00', not {self.start!r}"
            ) from None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)

    @property
    def start_us(self) -> int:
        """`start` in microseconds since 1970."""
        return round(self.start_time.timestamp() * 1_000_000)

    def _check_span(self) -> None:
        room_s = (_END_OF_TIME - self.start_time).total_seconds()
        # A trading day is less than a third of a calendar day, and weekends come on top.
        if self.rows / self.records_per_s * 6 > room_s:
            raise GenerateError(
                f"{self.rows} rows at {self.records_per_s:g} records per second would end after the year 9998; "
                "take fewer rows or a higher rate"
            )


@dataclass(frozen=True, kw_only=True)
class FlowOptions(StreamOptions):
    """A stream of NetFlow records. `text_addresses` writes addresses as dotted text instead of integers."""

    profile: Profile = "backbone"
    start: str = "2024-03-04 09:00:00"
    text_addresses: bool = False

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            hint = did_you_mean(str(self.profile), PROFILES)
            raise GenerateError(
                f"profile must be one of {', '.join(PROFILES)}, not {self.profile!r}"
                + (f"; {hint}" if hint else "")
            )
        super().__post_init__()

    @property
    def usual_rate(self) -> float:
        """A backbone router's 1.7 million records in 20 minutes, or an office link's 7,000 packets a second."""
        return _FLOW_RATES[self.profile]


@dataclass(frozen=True, kw_only=True)
class TradeOptions(StreamOptions):
    """A stream of stock trades of `symbols` symbols, in trading hours (09:30 to 16:30, Monday to Friday)."""

    symbols: int = 8000
    start: str = "2024-03-04 09:30:00"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_whole("symbols", self.symbols, least=1, most=MAX_SYMBOLS)
        time = self.start_time
        second = (time.hour * 60 + time.minute) * 60 + time.second
        if time.weekday() > 4 or not OPEN_S <= second < CLOSE_S:
            raise GenerateError(
                f"start must be in trading hours, Monday to Friday from 09:30 to before 16:30, not {self.start!r}"
            )

    @property
    def usual_rate(self) -> float:
        """Of two markets in 2004: 190,000 trades in ten minutes."""
        return _TRADE_RATE


def _check_whole(name: str, value: object, *, least: int, most: int | None = None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value >= least and (most is None or value <= most):  # type: ignore[operator]
        return
    bounds = f"from {least} up" if most is None else f"from {least} to {most}"
    raise GenerateError(f"{name} must be a whole number {bounds}, not {value!r}")


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise GenerateError(f"{name} must be a share between 0 and 1, not {value!r}")
