"""Time windows: as Spark spells them, with the durations of `window(...)`, accepted and refused, and as papers do.

Spark's `window` takes its durations as string literals, or as integers in microseconds. Interval literals of SQL
(INTERVAL 10 MINUTES) are refused in every form.
"""

from __future__ import annotations

from tests.harness.choices import Choices

MINUTE, HOUR, DAY = 60, 3600, 86400

# Seconds, and the ways in which Spark can be told so.
DURATIONS: dict[int, tuple[str, ...]] = {
    2: (
        "'2 seconds'",
        "'2000 milliseconds'",
        "'2000000 microseconds'",
        "2000000",
        "'1.5 seconds 500 milliseconds'",
    ),
    MINUTE: ("'1 minute'", "'60 seconds'", "'1 MINUTES'"),
    90: ("'90 seconds'", "'interval 90 seconds'", "'1 minute 30 seconds'", "r'90 seconds'"),
    5 * MINUTE: ("'5 minutes'", "'5 minute'", "'interval 5 minutes'", "'300 seconds'", "300000000", '"5 minutes"'),
    10 * MINUTE: ("'10 minutes'", "'INTERVAL 10 MINUTES'", "'600 Seconds'", "'  10   minutes '"),
    15 * MINUTE: ("'15 minutes'", "'900 seconds'", "('15 minutes')"),
    HOUR: ("'1 hour'", "'1 hours'", "'60 minutes'", "'interval 1 hour'", "3600000000"),
    90 * MINUTE: ("'1 hour 30 minutes'", "'90 minutes'", "'2 hours -30 minutes'"),
    DAY: ("'1 day'", "'24 hours'", "'1 days'"),
    7 * DAY: ("'1 week'", "'7 days'"),
}

REFUSED = (
    *("INTERVAL 10 MINUTES", "INTERVAL '10' MINUTE", "INTERVAL '10 minutes'", "INTERVAL 1 HOUR 30 MINUTES"),
    *("INTERVAL '0 01:30:00' DAY TO SECOND", "INTERVAL '01:30' HOUR TO MINUTE", "(INTERVAL 5 MINUTES)"),
    *("'1 month'", "'1 year'", "'0 seconds'", "'-5 minutes'", "'5minutes'", "'90s'", "'5 mins'", "'1 hr'"),
    "concat('5', ' minutes')",
)

TUMBLING = (5 * MINUTE, HOUR, 90, 2, 90 * MINUTE, DAY, 7 * DAY, MINUTE)
# Range and slide; the slide divides the range, or not.
SLIDING = (
    (10 * MINUTE, 5 * MINUTE),
    (15 * MINUTE, 5 * MINUTE),
    (HOUR, 15 * MINUTE),
    (5 * MINUTE, 90),
    (90 * MINUTE, HOUR),
    (15 * MINUTE, 10 * MINUTE),
    (7 * DAY, DAY),
    (DAY, 90 * MINUTE),
    (HOUR, 90),
)
# The same with gaps, which only brackets can say.
HOPPING = (
    (5 * MINUTE, 10 * MINUTE),
    (MINUTE, 90),
    (10 * MINUTE, 15 * MINUTE),
    (15 * MINUTE, HOUR),
    (2, MINUTE),
    (90 * MINUTE, DAY),
    (DAY, 7 * DAY),
)
# Further ways to say it, inside brackets alone.
SHORT: dict[int, tuple[str, ...]] = {
    2: ("'2 s'", "'2000 ms'", "'2000000 us'"),
    MINUTE: ("'1 min'", "'60s'"),
    90: ("'90 sec'", "'1 min 30 secs'", "'90 SECS'"),
    5 * MINUTE: ("'5 min'", "'5 mins'"),
    10 * MINUTE: ("'10 min'", "'10min'"),
    15 * MINUTE: ("'15 Min'",),
    HOUR: ("'1 h'", "'1 hr'", "'60 mins'"),
    90 * MINUTE: ("'1 hr 30 min'", "'2 hrs -30 min'"),
    DAY: ("'24 h'", "'24 hrs'"),
    7 * DAY: ("'168 h'",),
}
# The start's magnitude must be less than the slide; negative ones are fine.
STARTS: dict[int, tuple[str, ...]] = {
    0: ("'0 seconds'", "0"),
    1: ("'1 second'", "'1000 milliseconds'"),
    -1: ("'-1 second'", "'interval -1 seconds'"),
    MINUTE: ("'1 minute'", "'60 seconds'"),
    -MINUTE: ("'-1 minute'", "-60000000"),
    7 * MINUTE: ("'7 minutes'", "'6 minutes 60 seconds'"),
}


def window_call(choices: Choices, time: str) -> str:
    """A call of `window` over the column `time`: tumbling or sliding, with a start or without."""
    if choices.chance(50):
        length, slide = choices.pick(SLIDING)
    else:
        length = slide = choices.pick(TUMBLING)
    arguments = [time, choices.pick(DURATIONS[length])]
    start = None
    if choices.chance(35):
        start = choices.pick([start for start in STARTS if abs(start) < slide])
    # With a start the slide must be written, also for a tumbling window.
    if slide != length or start is not None or choices.chance(10):
        arguments.append(choices.pick(DURATIONS[slide]))
    if start is not None:
        arguments.append(choices.pick(STARTS[start]))
    return f"window({', '.join(arguments)})"


def bracket(choices: Choices) -> str:
    """A window in brackets, to stand behind the stream's name: tumbling, overlapping or with gaps."""
    length = slide = choices.pick(TUMBLING)
    if choices.chance(70):
        length, slide = choices.pick(choices.pick((SLIDING, HOPPING)))
    parts = ["RANGE", _duration(choices, length)]
    if slide != length or choices.chance(10):
        parts += ["SLIDE", _duration(choices, slide)]
    if choices.chance(35):
        start = choices.pick([start for start in STARTS if abs(start) < slide])
        parts += ["OFFSET", choices.pick(STARTS[start])]
    return f"[{' '.join(parts)}]"


def _duration(choices: Choices, seconds: int) -> str:
    """A duration as brackets take it: no parentheses."""
    return choices.pick([way for way in (*SHORT[seconds], *DURATIONS[seconds]) if not way.startswith("(")])
