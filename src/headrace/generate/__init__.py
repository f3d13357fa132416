"""Streams to try headrace on: NetFlow records and stock trades, shaped as the papers describe theirs."""

from headrace.generate.flows import flow_chunks, generate_flows
from headrace.generate.options import FlowOptions, TradeOptions
from headrace.generate.schemes import SCHEMES, Scheme
from headrace.generate.shape import FlowShape, TradeShape, measure_flows, measure_trades
from headrace.generate.trades import generate_trades, trade_chunks
from headrace.generate.write import Generated

__all__ = [
    "SCHEMES",
    "FlowOptions",
    "FlowShape",
    "Generated",
    "Scheme",
    "TradeOptions",
    "TradeShape",
    "flow_chunks",
    "generate_flows",
    "generate_trades",
    "measure_flows",
    "measure_trades",
    "trade_chunks",
]
