"""What workers are told once: a plan of hundreds of queries takes longer to pack than many a task lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

T = TypeVar("T")


class Told(Generic[T]):
    """A value that travels to each worker once, with the first task that mentions it."""

    def __init__(self, value: T, spark: SparkSession) -> None:
        """Nothing travels yet: a value that no task mentions never does."""
        self.value = value
        self._spark = spark
        self._sent: Broadcast[T] | None = None

    def __reduce__(self) -> tuple[Callable[[Broadcast[T]], Received[T]], tuple[Broadcast[T]]]:
        """What a task has of it."""
        if self._sent is None:
            self._sent = self._spark.sparkContext.broadcast(self.value)
        return Received, (self._sent,)


class Received(Generic[T]):
    """The same in a worker, which unpacks it when it is first wanted."""

    def __init__(self, sent: Broadcast[T]) -> None:
        self._sent = sent

    @property
    def value(self) -> T:
        """The value."""
        return self._sent.value
