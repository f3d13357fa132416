"""What the engine's steps cost, in nanoseconds of one core: constants that `headrace calibrate` measures."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import SetupError

_NEAR_GROUPS = 4096
"""Tables of so many groups stay in the processor's nearest caches."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Constants of a machine; the defaults were fitted to the kernel on a usual server."""

    record: float = 15.0
    """To find the group of a record,"""
    record_key: float = 2.0
    """to pack one of its keys,"""
    record_slot: float = 5.0
    """and to combine one slot of its states."""
    row: float = 22.0
    """To find the group of a parent's row,"""
    row_key: float = 0.0
    """to move one of its keys,"""
    row_slot: float = 4.5
    """and to combine one of its slots."""
    group: float = 40.0
    """A group that is new,"""
    group_slot: float = 3.0
    """and one slot of it."""
    miss: float = 0.0
    """To find a group, for each doubling of a table beyond what stays in the nearest caches."""
    condition: float = 3.0
    """To compute a condition of a record or row."""
    ordered: float = 80.0
    """To put a row in order, for windows and filters,"""
    sifted: float = 2.0
    """to look whether a filter is true for it,"""
    taken: float = 8.0
    """and to take it."""
    shipped: float = 700.0
    """A row that travels to another task, in both."""

    def from_records(self, records: float, rows: float, slots: int, keys: int, tables: float = 1.0) -> float:
        """A node from records; its rows are spread over so many tables, one after the other."""
        each = self.record + self.record_key * keys + self.record_slot * slots + self.miss * depth(rows / tables)
        return records * each + self.groups(rows, slots)

    def from_rows(self, parent_rows: float, rows: float, slots: int, keys: int) -> float:
        """A node from another's rows."""
        return parent_rows * self.each_row(rows, slots, keys) + self.groups(rows, slots)

    def each_row(self, rows: float, slots: int, keys: int, tables: float = 1.0) -> float:
        """A row of a parent, into a node of so many rows."""
        return self.row + self.row_key * keys + self.row_slot * slots + self.miss * depth(rows / tables)

    def conditions(self, rows: float, conditions: int) -> float:
        """So many conditions of records, or of rows."""
        return rows * conditions * self.condition

    def more_slots(self, rows: float, slots: int) -> float:
        """Slots that a node has only for its children's sake."""
        return rows * slots * (self.row_slot + self.group_slot)

    def groups(self, rows: float, slots: int) -> float:
        """So many new groups."""
        return rows * (self.group + self.group_slot * slots)


def depth(groups: float) -> float:
    """How often a table of so many groups has doubled since it left the nearest caches."""
    return math.log2(groups / _NEAR_GROUPS) if groups > _NEAR_GROUPS else 0.0


def costs_file() -> Path:
    """Where a machine's constants are kept: `HEADRACE_COSTS`, or a file among the user's settings."""
    settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(os.environ.get("HEADRACE_COSTS") or Path(settings) / "headrace" / "costs.json")


def load_costs() -> Costs:
    """The constants that this machine was calibrated to, or the defaults; raises `SetupError`."""
    file = costs_file()
    try:
        return Costs(**{name: float(value) for name, value in json.loads(file.read_text())["costs"].items()})
    except FileNotFoundError:
        return Costs()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"'{file}' holds no costs ({error}); write it anew with: headrace calibrate") from error


def save_costs(costs: Costs, notes: dict[str, object]) -> Path:
    """Keep the constants of this machine, with how they were found."""
    file = costs_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**notes, "costs": dataclasses.asdict(costs)}, indent=2) + "\n")
    return file
