"""Flow records: their columns and dependencies, what disturbs them, and the shape of the two profiles."""

import ipaddress
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headrace.errors import GenerateError
from headrace.generate import SCHEMES, FlowOptions, flow_chunks, generate_flows, measure_flows
from headrace.generate.chunks import CHUNK_ROWS
from headrace.generate.flows import COLUMNS
from headrace.generate.options import PROFILES, Profile
from headrace.generate.shape import flow_shape

TIME = pa.timestamp("us", tz="UTC")
ROWS = 500_000  # two chunks


def flows(options: FlowOptions) -> pa.Table:
    return pa.concat_tables(flow_chunks(options)).combine_chunks()


def keys(options: FlowOptions, names: Sequence[str] = COLUMNS[:16]) -> pa.Table:
    """Only the time and the keys of all schemes: for streams that are long."""
    return pa.concat_tables(chunk.select(list(names)) for chunk in flow_chunks(options))


def numbers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = table[name].cast(pa.int64()).to_numpy()
    return values


@pytest.fixture(scope="module")
def streams() -> dict[Profile, pa.Table]:
    return {profile: flows(FlowOptions(ROWS, profile=profile)) for profile in PROFILES}


@pytest.fixture(params=PROFILES)
def stream(request: pytest.FixtureRequest, streams: dict[Profile, pa.Table]) -> pa.Table:
    return streams[request.param]


def test_columns_and_types(stream: pa.Table) -> None:
    assert stream.num_rows == ROWS
    assert {field.name: str(field.type) for field in stream.schema} == {
        "ts": "timestamp[us, tz=UTC]",
        **dict.fromkeys(["srcaddr", "dstaddr", "nexthop"], "int64"),
        **dict.fromkeys(["input", "output", "src_as", "dst_as"], "int32"),
        **dict.fromkeys(["src_subnet", "dst_subnet"], "int64"),
        **dict.fromkeys(["src_mask", "dst_mask", "srcport", "dstport", "protocol", "tos"], "int32"),
        **dict.fromkeys(["packets", "octets"], "int64"),
        **dict.fromkeys(["first", "last"], "timestamp[us, tz=UTC]"),
        "active": "int64",
    }
    assert stream.column_names[:4] == ["ts", "srcaddr", "dstaddr", "nexthop"]
    assert stream.column_names[-3:] == ["first", "last", "active"]
    assert all(key in stream.column_names for scheme in SCHEMES.values() for key in scheme.keys)


def test_values_are_in_range(stream: pa.Table) -> None:
    bounds = {"srcaddr": (1 << 24, 1 << 32), "srcport": (0, 1 << 16), "dstport": (0, 1 << 16), "tos": (0, 256)}
    bounds |= {"protocol": (1, 256), "src_mask": (16, 25), "packets": (1, 1 << 40), "src_as": (1, 1 << 16)}
    for name, (least, end) in bounds.items():
        values = numbers(stream, name)
        assert least <= values.min(), name
        assert values.max() < end, name
    assert (numbers(stream, "octets") >= 40 * numbers(stream, "packets")).all()


def test_times_of_a_record_are_in_order(stream: pa.Table) -> None:
    ts, first, last = (numbers(stream, name) for name in ("ts", "first", "last"))
    assert (np.diff(ts) >= 0).all()
    assert (first <= last).all()
    assert (last <= ts).all()
    assert (ts - last < 16_000_000).all()
    assert (numbers(stream, "active") * 1000 == last - first).all()
    assert (last > first).any()


@pytest.mark.parametrize("side", ["src", "dst"])
def test_an_address_decides_its_network(stream: pa.Table, side: str) -> None:
    decided = [f"{side}_subnet", f"{side}_mask", f"{side}_as"]
    groups = stream.group_by(f"{side}addr").aggregate([(name, "count_distinct") for name in decided])
    assert groups.num_rows > 1000
    for name in decided:
        assert pc.max(groups[f"{name}_count_distinct"]).as_py() == 1, name
    free_bits = 32 - numbers(stream, f"{side}_mask")
    assert (numbers(stream, f"{side}addr") >> free_bits << free_bits == numbers(stream, f"{side}_subnet")).all()


@pytest.mark.parametrize(
    ("address", "decided"), [("srcaddr", "input"), ("dstaddr", "output"), ("dstaddr", "nexthop")]
)
def test_an_address_mostly_decides_its_route(stream: pa.Table, address: str, decided: str) -> None:
    counts = stream.group_by([address, decided]).aggregate([([], "count_all")])
    usual = counts.group_by(address).aggregate([("count_all", "max")])["count_all_max"]
    share = pc.sum(usual).as_py() / ROWS
    assert 0.97 < share < 1


def test_a_port_mostly_decides_the_protocol(stream: pa.Table) -> None:
    def share(port: int, protocol: int) -> float:
        protocols = numbers(stream.filter(pc.field("dstport") == port), "protocol")
        return float((protocols == protocol).mean())

    assert 0.8 < share(443, 6) < 1
    assert 0.9 < share(53, 17) < 1
    assert share(80, 6) == 1
    assert share(0, 6) == 0  # without ports: ICMP, GRE, ESP


def test_a_flow_is_seen_again_in_a_later_chunk(streams: dict[Profile, pa.Table]) -> None:
    first, second = streams["enterprise"].slice(0, CHUNK_ROWS), streams["enterprise"].slice(CHUNK_ROWS)
    flow = list(SCHEMES["CallRecord"].keys)
    again = first.group_by(flow).aggregate([]).join(second.select(flow), flow, join_type="right semi")
    assert again.num_rows > 0.5 * second.num_rows


def test_same_options_same_records_and_another_seed_others() -> None:
    assert flows(FlowOptions(5000)).equals(flows(FlowOptions(5000)))
    assert not flows(FlowOptions(5000)).equals(flows(FlowOptions(5000, seed=2)))


def test_every_chunk_is_drawn_anew(stream: pa.Table) -> None:
    first, second = stream.slice(0, CHUNK_ROWS), stream.slice(CHUNK_ROWS)
    for name in ("srcport", "packets", "octets"):
        assert (numbers(first, name) == numbers(second, name)).mean() < 0.9


def test_more_rows_only_append(streams: dict[Profile, pa.Table]) -> None:
    first = next(flow_chunks(FlowOptions(2 * ROWS)))
    assert first.equals(streams["backbone"].slice(0, CHUNK_ROWS))


@pytest.mark.parametrize("profile", PROFILES)
def test_text_addresses_are_the_same_addresses(profile: Profile) -> None:
    plain = flows(FlowOptions(5000, profile=profile))
    text = flows(FlowOptions(5000, profile=profile, text_addresses=True))
    for name in plain.column_names:
        if name in ("srcaddr", "dstaddr", "nexthop", "src_subnet", "dst_subnet"):
            assert [int(ipaddress.IPv4Address(value)) for value in text[name].to_pylist()] == plain[
                name
            ].to_pylist()
        else:
            assert text[name].equals(plain[name])


def test_rate_and_start_set_the_times() -> None:
    table = flows(FlowOptions(10_000, rate=100.0, start="2025-01-01 00:00:00"))
    start = 1_735_689_600_000_000
    ts = numbers(table, "ts")
    assert start <= ts.min() < start + 1_000_000
    assert start + 99_000_000 < ts.max() < start + 100_000_000


def test_disorder_moves_only_times_and_not_far() -> None:
    calm, moved = flows(FlowOptions(20_000)), flows(FlowOptions(20_000, disorder_s=5.0))
    behind = numbers(calm, "ts") - numbers(moved, "ts")
    assert behind.min() >= 0
    assert 4_900_000 < behind.max() <= 5_000_000
    assert (np.diff(numbers(moved, "ts")) < 0).any()
    times = ["ts", "first", "last"]
    assert moved.drop_columns(times).equals(calm.drop_columns(times))


def test_late_records_have_their_share_and_their_bound() -> None:
    calm, moved = flows(FlowOptions(50_000)), flows(FlowOptions(50_000, late=0.1, late_by_s=60))
    behind = numbers(calm, "ts") - numbers(moved, "ts")
    assert (behind > 0).mean() == pytest.approx(0.1, abs=0.01)
    assert 55_000_000 < behind.max() <= 60_000_000
    assert (numbers(moved, "last") <= numbers(moved, "ts")).all()


@pytest.mark.parametrize("text_addresses", [False, True])
def test_nulls_are_everywhere_but_in_the_time(text_addresses: bool) -> None:
    calm = flows(FlowOptions(5000, text_addresses=text_addresses))
    holed = flows(FlowOptions(5000, text_addresses=text_addresses, nulls=0.05))
    assert holed["ts"].equals(calm["ts"])
    for name in calm.column_names[1:]:
        assert holed[name].null_count / 5000 == pytest.approx(0.05, abs=0.015)
        kept = holed[name].is_valid()
        assert holed[name].filter(kept).to_pylist() == calm[name].filter(kept).to_pylist()


def test_duplicates_repeat_the_record_before() -> None:
    table = flows(FlowOptions(10_000, duplicates=0.2, nulls=0.1))
    records = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    repeats = sum(one == other for one, other in itertools.pairwise(records))
    assert len(records) == 10_000
    assert repeats / 10_000 == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 0}, "rows must be a whole number from 1 up, not 0"),
        ({"rows": 2.5}, "rows must be a whole number"),
        ({"seed": -1}, "seed must be a whole number from 0 up"),
        ({"profile": "enterprize"}, "did you mean 'enterprise'"),
        ({"rate": 0.0}, "rate must be records per second, a number above 0"),
        ({"rate": float("inf")}, "rate must be"),
        ({"late": 1.5}, "late must be a share between 0 and 1, not 1.5"),
        ({"late_by_s": 0}, "late_by_s must be a number of seconds above 0"),
        ({"disorder_s": -1.0}, "disorder_s must be a number of seconds from 0 up"),
        ({"nulls": float("nan")}, "nulls must be a share"),
        ({"duplicates": -0.1}, "duplicates must be a share"),
        ({"start": "yesterday"}, "start must be a time such as"),
        ({"rate": 1e-9}, "take fewer rows or a higher rate"),
    ],
)
def test_wrong_options_say_what_would_be_right(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(GenerateError, match=message):
        FlowOptions(**{"rows": 1000, **wrong})  # type: ignore[arg-type]


def test_start_may_name_its_zone() -> None:
    assert FlowOptions(1, start="2024-03-04T10:00:00+01:00").start_us == FlowOptions(1).start_us


def test_shape_counts_groups_as_a_group_by_does(tmp_path: Path) -> None:
    generate_flows(FlowOptions(20_000, nulls=0.1, text_addresses=True), tmp_path)
    table = pq.read_table(tmp_path).slice(0, 15_000)
    shape = measure_flows(tmp_path, max_rows=15_000)
    assert shape.records == 15_000
    for scheme in shape.schemes:
        groups = table.group_by(list(SCHEMES[scheme.name].keys)).aggregate([([], "count_all")])
        sizes = sorted(groups["count_all"].to_pylist(), reverse=True)
        top = max(1, round(0.03 * len(sizes)))
        assert (scheme.name, scheme.groups) == (scheme.name, len(sizes))
        assert scheme.top_share == pytest.approx(sum(sizes[:top]) / 15_000)
    header, *lines = shape.rows()
    assert len(lines) == 22 + 3
    assert {len(line) for line in lines} == {len(header)}


def test_backbone_makes_six_million_results_of_its_records() -> None:
    shape = flow_shape(keys(FlowOptions(1_700_000, profile="backbone")))
    assert 3.2 < shape.ratio < 3.8
    groups = {scheme.name: scheme.groups for scheme in shape.schemes}
    assert 0.35 < groups["DetailHostMatrix"] / shape.records < 0.55
    assert shape.mean_train < 1.1


def test_enterprise_has_few_groups_with_most_of_the_records() -> None:
    table = keys(FlowOptions(2_000_000, profile="enterprise"), ["srcaddr", "dstaddr"])
    sizes = table.group_by(["srcaddr", "dstaddr"]).aggregate([([], "count_all")])["count_all"].to_numpy()
    top = np.sort(sizes)[-round(0.03 * len(sizes)) :]
    assert 0.90 < top.sum() / 2_000_000 < 0.94


def test_enterprise_comes_in_trains(streams: dict[Profile, pa.Table]) -> None:
    shape = flow_shape(streams["enterprise"])
    assert 0.05 < shape.ratio < 0.20
    assert 10 < shape.mean_train < 30
