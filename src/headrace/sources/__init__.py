"""Streams: what queries read."""

from headrace.sources.stream import Stream

__all__ = ["Stream"]
