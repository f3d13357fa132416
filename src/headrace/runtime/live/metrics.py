"""What a run does as Prometheus asks for it: `http://host:port/metrics`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headrace.runtime.live.progress import Progress, Watcher

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """Answers in a thread of its own."""

    def __init__(self, watcher: Watcher, port: int) -> None:
        """`port` 0 takes any that is free; `self.port` says which."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path in ("/", "/metrics")
                body = metrics_text(watcher.last).encode() if found else b"only /metrics is here\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # the name that it has in the library
                """Say nothing on standard error."""

        self._server = ThreadingHTTPServer(("", port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="headrace-metrics", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


def metrics_text(progress: Progress | None) -> str:
    """The metrics of a run's last micro-batch, in Prometheus' text format."""
    return "\n".join([*_lines(progress), ""]) if progress is not None else "\n"


def _lines(progress: Progress) -> Iterator[str]:
    run = f'run="{_escaped(progress.run)}"'
    totals = {
        "records_total": ("counter", "Records so far.", progress.total_records),
        "records_without_time_total": ("counter", "Records without a time.", progress.no_time),
        "records_ahead_total": ("counter", "Records with a time too far ahead.", progress.ahead),
        "batches_total": ("counter", "Micro-batches so far.", progress.batch + 1),
        "batch_seconds": ("gauge", "Time that the last micro-batch took.", progress.seconds),
        "records_per_second": ("gauge", "Rate of the last micro-batch.", progress.records_per_second),
        "queries": ("gauge", "Standing queries.", progress.queries),
        "plan_version": ("gauge", "Version of the plan.", progress.version),
        "log_partials": ("gauge", "Partials in the log.", progress.log_partials),
        "log_rows": ("gauge", "Rows in the log.", progress.log_rows),
        "log_bytes": ("gauge", "Bytes in the log.", progress.log_bytes),
    }
    if progress.lag_s is not None:
        totals["lag_seconds"] = ("gauge", "How far the latest record is behind the clock.", progress.lag_s)
    for name, (kind, words, value) in totals.items():
        yield f"# HELP headrace_{name} {words}"
        yield f"# TYPE headrace_{name} {kind}"
        yield f"headrace_{name}{{{run}}} {value}"
    yield "# HELP headrace_late_total Windows of late records that had been given already, one for each record."
    yield "# TYPE headrace_late_total counter"
    for query, count in sorted(progress.late.items()):
        yield f'headrace_late_total{{{run},query="{_escaped(query)}"}} {count}'
    yield "# HELP headrace_phase_seconds Time that each phase of the last micro-batch took."
    yield "# TYPE headrace_phase_seconds gauge"
    for phase, seconds in progress.phases.items():
        yield f'headrace_phase_seconds{{{run},phase="{_escaped(phase)}"}} {seconds}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
