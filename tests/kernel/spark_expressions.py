"""Random expressions of every operator and function that the kernel knows, and of some that it must refuse."""

from __future__ import annotations

import re

from tests.harness.expressions import Scope
from tests.harness.schemas import Kind

_KINDS = {
    "n": (Kind.INT, Kind.FLOAT, Kind.DECIMAL),
    "i": (Kind.INT,),
    "f": (Kind.FLOAT,),
    "s": (Kind.STRING,),
    "t": (Kind.TIMESTAMP, Kind.NTZ),
    "d": (Kind.DATE,),
}
# Where a schema has no column of a kind.
_WITHOUT = {"f": "CAST({i} AS DOUBLE)", "d": "CAST({t} AS DATE)"}

# One shape a line: {i} is a column of integers, {n} one of any numbers, and so on.
_NUMBERS = r"""
{n} + {n}
{n} - {n}
{n} * {n}
{i} + 1
{i} * 2
{n} / {n}
{n} / 3
1 / {n}
{n} % {n}
{i} % 7
{i} % -3
{n} % 2.5D
{i} div {i}
-{n}
{i} div 3
abs({n})
{i} & 3
{i} ^ {i}
{i} | 8
mod({i}, 5)
{n} + 1.5D
{f} + 1.5
{f} * 2
{f} / 2.5
({n} + 1) * 2 - {n}
+{n}
floor({n})
ceil({f})
ceiling({i} / 3)
floor({n} / 15)
floor({f} * 1e19)
sqrt({n})
greatest({n}, 0)
least({n}, {n})
greatest({i}, {i}, 1)
least({f}, {f}, -0.0D)
"""
_CHOICES = r"""
CASE WHEN {i} <> 0 THEN 10 / {i} END
CASE WHEN {i} > 0 THEN {n} / {i} ELSE 0 END
IF({i} = 0, 0, {n} / {i})
CASE {i} WHEN 0 THEN 'a' WHEN 1 THEN {s} ELSE 'c' END
coalesce({n}, 0)
coalesce({n}, {n} / {n})
nvl({s}, 'none')
nullif({n}, 0)
nullif({s}, 'a')
ifnull({i}, {n} + 1)
CASE WHEN {s} = 'a' THEN 1 WHEN {i} > 0 THEN {i} + 1 END
coalesce(NULL, {n})
IF({n} > 0, {n}, NULL)
coalesce(nullif({i}, 0) + {i}, {i} - 1)
IF({s} IS NULL, 1, 2.5D)
CASE WHEN {i} + 1 > 2 THEN 1 WHEN {i} * {i} > 5 THEN 2 ELSE 3 END
{i} + coalesce({n}, 1)
{n} + {i} / {i}
"""
_CASTS = r"""
CAST({i} AS BIGINT)
CAST({i} AS TINYINT)
CAST({i} AS INT)
{i}::smallint
CAST({n} AS DOUBLE)
CAST({n} AS FLOAT)
CAST({i} AS STRING)
CAST({t} AS DATE)
CAST({d} AS TIMESTAMP)
CAST({t} AS TIMESTAMP_NTZ)
CAST({t} AS BIGINT)
CAST({i} AS BOOLEAN)
CAST({i} > 1 AS INT)
CAST({i} > 1 AS STRING)
CAST({d} AS TIMESTAMP_NTZ)
int({n})
string({i})
bigint({t})
double({i} > 1)
CAST({f} AS INT)
CAST({f} AS TINYINT)
CAST({n} AS BIGINT)
CAST({f} * 1e19 AS BIGINT)
CASE WHEN {f} BETWEEN -100 AND 100 THEN CAST({f} AS TINYINT) END
"""
_TEXTS = r"""
length({s})
char_length({s})
octet_length({s})
substring({s}, 2)
substr({s}, 1, 1)
substring({s} FROM 2 FOR 1)
substring({s}, 0, 2)
substring({s}, -2)
substring({s}, -2, 5)
left({s}, 2)
right({s}, 1)
right({s}, 0)
left({s}, -1)
{s} || 'x'
concat({s}, '-', {s})
concat({s})
trim({s})
ltrim({s})
rtrim({s})
length({s}) + 1
concat(trim({s}), {s})
{s} LIKE 'a%'
{s} LIKE '%a%'
{s} LIKE '_%b'
{s} LIKE 'a_c'
{s} LIKE '%'
{s} NOT LIKE ''
{s} LIKE '__'
{s} LIKE 'a%c'
{s} LIKE 'a\\_c'
{s} LIKE '100\\%'
{s} LIKE '%日_'
{s} > 'a'
{s} = {s}
{s} <=> {s}
{s} IN ('a', 'b', '')
{s} < 'b' OR {i} > 1
{s} IS NULL AND {i} IS NOT NULL
substring({s}, 1, 1) = 'a'
{s} = 'it''s'
upper({s})
least({s}, {s})
greatest({s}, 'b')
startswith({s}, 'a')
endswith({s}, 'c')
contains({s}, 'b')
{s} IS DISTINCT FROM 'a'
{s} IS NOT DISTINCT FROM {s}
lower({s}) = 'a'
"""
_TIMES = r"""
year({t})
month({t})
day({t})
dayofmonth({d})
hour({t})
minute({t})
second({t})
quarter({d})
dayofweek({t})
weekday({d})
dayofyear({t})
date_trunc('HOUR', {t})
date_trunc('minute', {t})
date_trunc('DAY', {t})
date_trunc('week', {t})
date_trunc('MONTH', {t})
date_trunc('quarter', {t})
date_trunc('YEAR', {t})
trunc({d}, 'MM')
trunc({t}, 'WEEK')
trunc({d}, 'quarter')
trunc({d}, 'year')
to_date({t})
date({t})
unix_timestamp({t})
unix_seconds({t})
year({d}) = 2024
extract(HOUR FROM {t})
extract(year FROM {d})
hour({t}) * 60 + minute({t})
date_trunc('second', {t})
month({d}) >= 3
date_trunc('MILLISECOND', {t})
hour({t}) BETWEEN 5 AND 7
date_trunc('HOUR', {t}) = {t}
extract(day FROM {t})
datediff({t}, {d})
datediff({d}, '2024-01-01')
greatest({t}, {t})
least({d}, {d})
{t} >= '2024-01-01'
{t} < TIMESTAMP '2024-03-31 01:00:00'
{d} = '2024-02-29'
{t} > {d}
{t} <= TIMESTAMP_NTZ '1970-01-01'
{t} BETWEEN '1970-01-01 00:00:00' AND '2024-03-31 02:00:00.5'
{d} IN ('2024-02-29', '1970-01-01')
{d} < '9999-12-31'
"""
_TESTS = r"""
{n} > {n}
{n} = {n}
{n} <= {n}
{n} <=> {n}
{n} <> {n}
{n} >= 1.5
{n} < 0.1
{n} = 1
{i} = '1'
{i} > 300
{i} IN (1, 300, 5000000000)
{n} IN (0, 1)
{n} NOT IN (0, NULL)
{n} BETWEEN -1 AND 1.5
{n} IN (1, 2.5D)
{i} IN (0, 1.0)
NOT {n} > 0
({n} > 0) = ({n} < 1)
{n} > -0.0D
{n} <= CAST('nan' AS DOUBLE)
{n} = CAST('nan' AS FLOAT)
{n} > 1e3
{i} + 1 > 0
{i} + 1 BETWEEN 0 AND 5
{i} > -{i}
{n} > 0 AND {s} IS NOT NULL
{n} > 0 OR {n} < 0 AND {s} <> ''
NOT {s} = 'a' AND {n} > 0
{i} & 1 = 1
{n} IS NULL
isnull({n})
isnotnull({s})
{n} = {i} + 0.5D
{i} > 2147483647
{i} < -2147483648
{i} = 2147483648L
1 < {n}
NULL = {n}
{i} > 1 IS NULL
{n} > 0 = true
{n} < {n} < true
{i} | 1 & 2
{n} BETWEEN 0 AND 1 AND {n} <> 0
NOT {n} BETWEEN 0 AND 1
{s} || 'a' = 'aa'
{i} % 2 = 0 OR {i} % 3 = 0
{i} / 2 > 1 AND {i} / 4 < 3
! {n} > 0
{i} in (1)
{n} == .5
1 + 1
'x'
{n} > 1 AND NULL
"""

SHAPES = tuple("".join((_NUMBERS, _CHOICES, _CASTS, _TEXTS, _TIMES, _TESTS)).split("\n"))


def expression(scope: Scope) -> str:
    """A shape with columns of the schema in it."""
    return _filled(scope, scope.choices.pick([shape for shape in SHAPES if shape]))


def _filled(scope: Scope, shape: str) -> str:
    def column(found: re.Match[str]) -> str:
        columns = scope.schema.of(*_KINDS[found[1]])
        return scope.reference(scope.choices.pick(columns)) if columns else _filled(scope, _WITHOUT[found[1]])

    return re.sub(r"\{(\w)\}", column, shape)
