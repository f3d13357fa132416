"""The streaming runtime: standing queries over a stream that never ends, exactly once, with live changes."""
