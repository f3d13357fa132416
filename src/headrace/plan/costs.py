"""What the engine's steps cost, in nanoseconds of one core."""

from __future__ import annotations

from dataclasses import dataclass


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

    shipped: float = 700.0
    """A row that travels to another task, in both."""

    def from_records(self, records: float, rows: float, slots: int, keys: int) -> float:
        """A node from records."""
        each = self.record + self.record_key * keys + self.record_slot * slots
        return records * each + self._groups(rows, slots)

    def from_rows(self, parent_rows: float, rows: float, slots: int, keys: int) -> float:
        """A node from another's rows."""
        each = self.row + self.row_key * keys + self.row_slot * slots
        return parent_rows * each + self._groups(rows, slots)

    def more_slots(self, rows: float, slots: int) -> float:
        """Slots that a node has only for its children's sake."""
        return rows * slots * (self.row_slot + self.group_slot)

    def _groups(self, rows: float, slots: int) -> float:
        return rows * (self.group + self.group_slot * slots)
