"""Streams: what queries read."""

from headrace.sources.stream import Column, Stream

__all__ = ["Column", "Stream"]
