"""Random stream schemas: a time column, and columns of every type that a query can group, filter or aggregate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import strategies as st

from tests.harness.choices import Choices, Draw, Drawn
from tests.harness.tolerance import Spread

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Kind(Enum):
    """What an expression is to the generator: the family of its type."""

    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOL = "bool"
    STRING = "string"
    BINARY = "binary"
    TIMESTAMP = "timestamp"
    NTZ = "timestamp_ntz"
    DATE = "date"
    STRUCT = "struct"
    ARRAY = "array"


NUMBERS = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL})


class Role(Enum):
    """What a column's values are good for."""

    TIME = "time"
    PLAIN = "plain"
    BOUNDED = "bounded"  # numbers small enough for sums and products of two columns
    EXTREME = "extreme"  # numbers at the edges of their type: a sum may overflow
    UNIQUE = "unique"  # another value in every row, never null: breaks ties


@dataclass(frozen=True)
class Column:
    """One column: numbers also say how they are spread, which is what tolerances are computed from."""

    name: str
    type: pa.DataType
    role: Role = Role.PLAIN
    spread: Spread | None = None

    @property
    def kind(self) -> Kind:
        return kind_of(self.type)


@dataclass(frozen=True)
class StreamSchema:
    """A table of a stream: its name, its time column, and all columns (the time column among them)."""

    table: str
    time: str
    columns: tuple[Column, ...]

    @property
    def view(self) -> str:
        """The table's name as SQL text and `createOrReplaceTempView` want it."""
        return quoted(self.table)

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    def spark(self) -> StructType:
        """The Spark schema: without it Spark reads an Arrow timestamp without zone as TIMESTAMP, not NTZ."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow, prefer_timestamp_ntz=True)

    def of(self, *kinds: Kind) -> list[Column]:
        return [column for column in self.columns if column.kind in kinds]

    def taken(self, name: str) -> bool:
        """Whether a column has this name: Spark does not look at the case."""
        return any(column.name.lower() == name.lower() for column in self.columns)


# Bare names that Spark's parser could take for something else are quoted too, to be on the safe side.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"count", "end", "from", "group", "order", "select", "table", "timestamp", "window"})


def needs_quotes(name: str) -> bool:
    """Letters outside ASCII need backquotes in Spark, in names of columns and of views."""
    return not _BARE.fullmatch(name) or name.lower() in _KEYWORDS


def quoted(name: str, always: bool = False) -> str:
    return "`" + name.replace("`", "``") + "`" if always or needs_quotes(name) else name


def kind_of(arrow: pa.DataType) -> Kind:
    if pa.types.is_timestamp(arrow):
        return Kind.NTZ if arrow.tz is None else Kind.TIMESTAMP
    tests = {
        Kind.INT: pa.types.is_integer,
        Kind.FLOAT: pa.types.is_floating,
        Kind.DECIMAL: pa.types.is_decimal,
        Kind.BOOL: pa.types.is_boolean,
        Kind.STRING: pa.types.is_string,
        Kind.BINARY: pa.types.is_binary,
        Kind.DATE: pa.types.is_date,
        Kind.STRUCT: pa.types.is_struct,
        Kind.ARRAY: pa.types.is_list,
    }
    return next(kind for kind, test in tests.items() if test(arrow))


# Bounds that keep the product of two columns of a type inside the type: Spark multiplies tinyint by tinyint in a
# tinyint, and raises. A sum of products of bigint stays inside bigint for a thousand rows.
INT_BOUNDS = {8: 11, 16: 180, 32: 40_000, 64: 50_000_000}

# Doubles: multiples of a quarter, whose sums are exact; decimals with three digits, whose sums are not; and
# numbers up to the largest magnitude that data.py allows.
QUARTERS = Spread(1000.0, 0.25, dyadic=True)
THOUSANDTHS = Spread(1000.0, 0.001)
LARGE = Spread(1e15, 1e10)
TINY_TO_LARGE = Spread(1e15)

# Sums have ten more digits than their input, so only the columns of 38 digits can overflow.
DECIMALS = ((10, 2), (5, 2), (10, 0), (18, 4), (38, 10), (38, 18), (38, 0), (19, 0), (20, 2), (28, 6))
WIDE_DIGITS = 19  # from so many on, the unscaled value needs more than 64 bits
WIDE_DECIMAL_BOUND = 1e6

STRUCT = pa.struct([("p", pa.int32()), ("q", pa.string())])

TABLES = ("t", "flows", "Readings", "order", "my table")
TIMES = ("ts", "event_time", "Ts", "the time")
PLAIN_NAMES = ("a", "b", "c", "price", "size", "city", "Value", "host_2", "x", "y", "z", "k")
ODD_NAMES = ("my col", "select", "größe", "MixedCase", "a.b", "tick`ed", "count", "日付", "1st", "Σ sum", "end")


def _ints(bits: int, role: Role) -> tuple[pa.DataType, Role, Spread]:
    magnitude = 2.0 ** (bits - 1) if role is Role.EXTREME else float(INT_BOUNDS[bits])
    return getattr(pa, f"int{bits}")(), role, Spread(magnitude, 1.0, dyadic=True)


def _decimals(choices: Choices) -> tuple[pa.DataType, Role, Spread]:
    precision, scale = choices.pick(DECIMALS)
    role = Role.EXTREME if precision >= WIDE_DIGITS and choices.chance(25) else Role.BOUNDED
    bounded = precision >= WIDE_DIGITS and role is Role.BOUNDED
    magnitude = WIDE_DECIMAL_BOUND if bounded else 10.0 ** (precision - scale)
    return pa.decimal128(precision, scale), role, Spread(magnitude, 10.0**-scale)


def _column_type(choices: Choices) -> tuple[pa.DataType, Role, Spread | None]:
    """The type of one more column; common ones first and often."""
    match choices.weighted(
        [(20, "int"), (20, "string"), (18, "float"), (14, "decimal"), (8, "bool"), (18, "other")]
    ):
        case "int":
            role = Role.EXTREME if choices.chance(30) else Role.BOUNDED
            return _ints(choices.pick((32, 64, 16, 8)), role)
        case "string":
            return pa.string(), Role.PLAIN, None
        case "float":
            if choices.chance(15):
                return pa.float64(), Role.EXTREME, TINY_TO_LARGE
            width = choices.pick((pa.float64(), pa.float64(), pa.float32()))
            return width, Role.BOUNDED, choices.pick((THOUSANDTHS, QUARTERS, LARGE))
        case "decimal":
            return _decimals(choices)
        case "bool":
            return pa.bool_(), Role.PLAIN, None
        case _:
            times = (pa.timestamp("us"), pa.timestamp("us", "UTC"))
            others = (*times, pa.date32(), pa.binary(), STRUCT, pa.list_(pa.int32()))
            return choices.pick(others), Role.PLAIN, None


@st.composite
def schemas(draw: Draw) -> StreamSchema:
    """The schemas that `make_schema` makes."""
    return make_schema(Drawn(draw))


def make_schema(choices: Choices) -> StreamSchema:
    """A schema of 3 to 10 columns: always a time column, a string, a number, and often a unique one."""
    plain, odd = list(PLAIN_NAMES), list(ODD_NAMES)

    def name() -> str:
        names = odd if odd and choices.chance(25) else plain
        return names.pop(choices.number(0, len(names) - 1))

    time = choices.pick(TIMES)
    columns = [
        Column(time, pa.timestamp("us", None if choices.chance(15) else "UTC"), Role.TIME),
        Column(name(), pa.string()),
        Column(name(), *_ints(32, Role.BOUNDED)),
    ]
    if choices.chance(60):
        columns.append(Column("seq", pa.int64(), Role.UNIQUE, Spread(1e6, 1.0, dyadic=True)))
    columns += [Column(name(), *_column_type(choices)) for _ in range(choices.number(0, 6))]
    return StreamSchema(choices.pick(TABLES), time, tuple(columns))
