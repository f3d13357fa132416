"""NetFlow records, made chunk by chunk: which flows are seen, what each flow is, what each record counted.

A flow is a number, and the number decides all of it (`_describe`): hosts, ports, protocol, type of service. So
a flow that is seen again minutes and chunks later is the same, and nothing has to be remembered. The numbers
that may be seen move on with time (`_number`).

True dependencies: srcaddr decides src_subnet, src_mask and src_as always and input mostly (63 of 64 sightings of
a flow take the usual route); dstaddr decides dst_subnet, dst_mask and dst_as always and output and nexthop
mostly, in the same way. The port of a service decides the protocol mostly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.words import mix
from headrace.generate.chunks import (
    TIME,
    Floats,
    Longs,
    Unsigned,
    arrivals,
    chunk_count,
    chunk_random,
    chunk_rows,
    chunk_start,
    delay,
    spoil,
    to_arrow,
)
from headrace.generate.network import Network, build_network
from headrace.generate.options import FlowOptions
from headrace.generate.profiles import TRAFFIC, Odds, Traffic
from headrace.generate.write import Generated, Layout, write_stream

Column = npt.NDArray[Any]

COLUMNS = tuple(
    "ts srcaddr dstaddr nexthop input output src_as dst_as src_subnet dst_subnet src_mask dst_mask "
    "srcport dstport protocol tos packets octets first last active".split()
)
# Which of the network's tables an address column is taken from.
ADDRESSES = {
    "srcaddr": "host",
    "dstaddr": "host",
    "nexthop": "peer",
    "src_subnet": "subnet",
    "dst_subnet": "subnet",
}
_TIMES = ("ts", "first", "last")
_COUNTS = ("packets", "octets", "active")
_MANY_VALUED = (*_TIMES, *_COUNTS, "srcaddr", "dstaddr", "srcport", "dstport")
_STEP = 0x9E3779B97F4A7C15  # of splitmix64
_DETOUR = 63  # the one of 64 draws that takes another route than usual


def flow_schema(options: FlowOptions) -> pa.Schema:
    """The columns of a flow record, `ts` first."""
    address = pa.dictionary(pa.int32(), pa.string()) if options.text_addresses else pa.int64()
    kinds = dict.fromkeys(_TIMES, TIME) | dict.fromkeys(_COUNTS, pa.int64()) | dict.fromkeys(ADDRESSES, address)
    return pa.schema([(name, kinds.get(name, pa.int32())) for name in COLUMNS])


def generate_flows(
    options: FlowOptions,
    folder: str | Path,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    overwrite: bool = False,
) -> Generated:
    """Write the flows that the options describe as Parquet files into a folder that is new or empty.

    The files are the same for the same options, whatever the number of workers (threads; by default one per
    core). `progress` is called, in the caller's thread, with the number of rows that were just made.
    """
    schema = flow_schema(options)
    delta = tuple(name for name in _MANY_VALUED if not pa.types.is_dictionary(schema.field(name).type))
    return write_stream(
        _tasks(options),
        Layout(schema, delta=delta),
        Path(folder),
        workers=workers,
        progress=progress,
        overwrite=overwrite,
    )


def flow_chunks(options: FlowOptions) -> Iterator[pa.Table]:
    """The same records as tables, in the order of the files."""
    return (make() for make in _tasks(options))


def _tasks(options: FlowOptions) -> Iterator[Callable[[], pa.Table]]:
    """One call per chunk; the calls may run in any order and in any thread."""
    world = _World.of(options)
    return (partial(_make_chunk, world, chunk) for chunk in range(chunk_count(options)))


@dataclass(frozen=True)
class _World:
    """What all chunks share: the network, the traffic's odds, and two keys that make numbers into hashes."""

    options: FlowOptions
    traffic: Traffic
    network: Network
    odds: Odds
    pair_key: np.uint64
    flow_key: np.uint64

    @classmethod
    def of(cls, options: FlowOptions) -> _World:
        traffic = TRAFFIC[options.profile]
        pair_key, flow_key = np.random.SeedSequence(options.seed).generate_state(2, np.uint64)
        network = build_network(traffic.size, options.seed)
        return cls(options, traffic, network, Odds.of(traffic, options.records_per_s), pair_key, flow_key)


@dataclass(frozen=True)
class _Sightings:
    """Flows as they are seen: numbers of flow and pair of hosts, and random bits for the routes taken.

    `record` says which sighting each record belongs to; without it there is one record to each.
    """

    flow: Unsigned
    pair: Unsigned
    bits: Unsigned
    record: Longs | None


def _make_chunk(world: _World, chunk: int) -> pa.Table:
    options = world.options
    random = chunk_random(options, chunk, 0)
    disturbance = chunk_random(options, chunk, 1)
    ts = delay(options.start_us + arrivals(options, chunk, random), options, disturbance)
    rows = chunk_rows(options, chunk)
    see = _see_trains if world.traffic.lanes > 1 else _see_singles
    sightings = see(world, random, chunk_start(chunk), rows)
    columns = _describe(world, sightings)
    if sightings.record is not None:
        columns = {name: column.take(sightings.record) for name, column in columns.items()}
    columns |= _measure(world, ts, random)
    table = _to_table(world, columns)
    return spoil(table, options, disturbance)


def _see_singles(world: _World, random: np.random.Generator, first_row: int, rows: int) -> _Sightings:
    """One record to a sighting."""
    bits = _random_words(random, rows)
    level = world.odds.level[_field(bits, 0, 16)]
    at = np.arange(first_row, first_row + rows, dtype=np.float64)
    return _Sightings(*_number(world, bits, level, at), bits=bits, record=None)


def _see_trains(world: _World, random: np.random.Generator, first_row: int, rows: int) -> _Sightings:
    """Sightings are trains of records, and several trains take turns.

    Each lane is a row of trains one after the other. The trains of all lanes are laid out lane by lane, and
    `slot` says at which row of the chunk each place of that layout comes.
    """
    odds, traffic = world.odds, world.traffic
    turns = random.integers(0, traffic.lanes, -(-rows // traffic.burst), dtype=np.uint8)
    slot = np.argsort(np.repeat(turns, traffic.burst)[:rows], kind="stable")
    bits = _random_words(random, int(rows / odds.mean_train * 1.2) + 64)
    level = odds.level[_field(bits, 0, 16)]
    length = 1 + (random.standard_exponential(len(bits)) * odds.longer[level]).astype(np.int64)
    end = np.minimum(np.cumsum(length), rows)
    end[-1] = rows  # the draws are as good as always enough; if not, the last train is a long one
    count = int(np.searchsorted(end, rows)) + 1
    start = np.concatenate([[0], end[: count - 1]])
    record = np.empty(rows, dtype=np.int64)
    record[slot] = np.repeat(np.arange(count), end[:count] - start)
    at = (first_row + slot[start]).astype(np.float64)
    return _Sightings(*_number(world, bits[:count], level[:count], at), bits=bits[:count], record=record)


def _number(world: _World, bits: Unsigned, level: Column, at: Column) -> tuple[Unsigned, Unsigned]:
    """Numbers of flow and pair for sightings at the rows `at`.

    The flows of a level are numbered in the order of their birth. A sighting takes one of those alive, evenly:
    all flows of a level get as many sightings on average, spread over their life.
    """
    odds = world.odds
    moment = _fraction(bits >> np.uint64(32))
    moment *= odds.life_rows[level]
    moment += at
    moment *= odds.flows_per_row[level]
    flow = np.floor(moment, out=moment)
    pair = ((flow + 0.5) * odds.pairs_per_flow[level]).astype(np.uint64)
    levels = np.uint64(len(odds.longer))
    return flow.astype(np.uint64) * levels + level, pair * levels + level


def _describe(world: _World, seen: _Sightings) -> dict[str, Column]:
    """What the numbers decide. Addresses stay numbers of hosts, subnets and peers for now."""
    network, odds = world.network, world.odds
    one, other = _choose_hosts(world, mix(seen.pair ^ world.pair_key, _STEP))
    bits = mix(seen.flow ^ world.flow_key, _STEP)
    back = bits.view(np.int64) >> 63
    service = odds.service[_field(bits, 0, 12)]
    listens = odds.service_port[service] + odds.free_listens[service] * _free_port(bits, 28)
    calls = odds.free_calls[service] * _free_port(bits, 12)
    src, dst = _swap(one, other, back)
    srcport, dstport = _swap(calls, listens, back.astype(np.int32))
    src_subnet, dst_subnet = network.host_subnet[src], network.host_subnet[dst]
    src_peer = _route(network, src_subnet, _field(seen.bits, 16, 6))
    dst_peer = _route(network, dst_subnet, _field(seen.bits, 22, 6))
    return {
        "srcaddr": src,
        "dstaddr": dst,
        "nexthop": dst_peer,
        "input": network.peer_interface[src_peer],
        "output": network.peer_interface[dst_peer],
        "src_as": network.subnet_as[src_subnet],
        "dst_as": network.subnet_as[dst_subnet],
        "src_subnet": src_subnet,
        "dst_subnet": dst_subnet,
        "src_mask": network.subnet_mask[src_subnet],
        "dst_mask": network.subnet_mask[dst_subnet],
        "srcport": srcport,
        "dstport": dstport,
        "protocol": odds.service_protocol[service],
        "tos": odds.tos[_field(bits, 44, 8)],
    }


def _choose_hosts(world: _World, bits: Unsigned) -> tuple[Column, Column]:
    """Two hosts: one at home and one away, or, where no network is home, any two."""
    size, traffic = world.network.size, world.traffic
    away = _fraction(bits & np.uint64(0xFFFFFFFF)) ** traffic.skew
    home = _fraction(bits >> np.uint64(32)) ** traffic.home_skew
    first_away = size.home_hosts
    one = (home * (size.home_hosts or size.hosts)).astype(np.int64)
    other = first_away + (away * (size.hosts - first_away)).astype(np.int64)
    return one, other


def _swap(one: Column, other: Column, where: Column) -> tuple[Column, Column]:
    """The two columns with their values swapped where the bits of `where` are set: much faster than np.where."""
    change = (one ^ other) & where
    return one ^ change, other ^ change


def _route(network: Network, subnet: Column, bits: Longs) -> Column:
    """The peer that a subnet is reached through: the usual one, or now and then the next."""
    peer = network.subnet_peer[subnet]
    peer += bits == _DETOUR
    peer[peer == network.size.peers] = 0
    return peer


def _measure(world: _World, ts: Longs, random: np.random.Generator) -> dict[str, Column]:
    """What a record counted, and when its packets were seen: `last` just before `ts`, in whole milliseconds."""
    odds = world.odds
    bits = _random_words(random, len(ts))
    packets = odds.packets[_field(bits, 0, 12)]
    active_ms = odds.active_ms[_field(bits, 24, 12)]
    active_ms *= packets > 1
    last_ms = ts // 1000
    last_ms -= odds.export_ms[_field(bits, 36, 12)]
    return {
        "ts": ts,
        "packets": packets,
        "octets": packets * odds.size[_field(bits, 12, 12)],
        "first": (last_ms - active_ms) * 1000,
        "last": last_ms * 1000,
        "active": active_ms,
    }


def _to_table(world: _World, columns: dict[str, Column]) -> pa.Table:
    """The columns in their order, addresses as integers or as text."""
    network = world.network
    schema = flow_schema(world.options)
    arrays = []
    for field in schema:
        column = columns[field.name]
        if field.name not in ADDRESSES:
            arrays.append(to_arrow(column, field.type))
        elif world.options.text_addresses:
            arrays.append(_as_text(column, network.text[ADDRESSES[field.name]]))
        else:
            arrays.append(to_arrow(network.address[ADDRESSES[field.name]][column]))
    return pa.table(arrays, schema=schema)


def _as_text(number: Column, text: pa.Array) -> pa.DictionaryArray:
    """A dictionary column of just the texts that occur, so that a row group does not carry all of them."""
    used = np.zeros(len(text), dtype=bool)
    used[number] = True
    code = np.cumsum(used, dtype=np.int32) - 1
    return pa.DictionaryArray.from_arrays(to_arrow(code[number]), text.take(to_arrow(np.flatnonzero(used))))


def _random_words(random: np.random.Generator, count: int) -> Unsigned:
    return random.integers(0, 2**64, count, dtype=np.uint64)


def _field(words: Unsigned, shift: int, width: int) -> Longs:
    """`width` bits of each word, as an index."""
    return ((words >> np.uint64(shift)) & np.uint64((1 << width) - 1)).view(np.int64)


def _fraction(words: Unsigned) -> Floats:
    """32 bits as a number from 0 up to 1."""
    fraction = words.view(np.int64).astype(np.float64)
    fraction *= 2.0**-32
    return fraction


def _free_port(bits: Unsigned, shift: int) -> Column:
    """A port above the reserved ones; low ones are likelier, since systems hand them out upwards from 1024."""
    part = _field(bits, shift, 16)
    return (1024 + (part * part * 64_512 >> 32)).astype(np.int32)
