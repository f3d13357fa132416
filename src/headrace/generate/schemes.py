"""The 22 aggregation schemes that Cisco's NetFlow Collector predefines: the flow workload's queries.

Every scheme sums packets and octets and counts flows; some also keep the first start and the last end,
and the sum of active time. `examples/netflow/queries` asks the same in SQL, as a test holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Values = Literal["B", "BT", "BTA"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme: what it groups by and what it keeps of each group.

    `values` says which: B is packets, octets and flows; T is first start and last end; A is active time.
    """

    name: str
    keys: tuple[str, ...]
    values: Values = "B"


def _by_name(*schemes: Scheme) -> dict[str, Scheme]:
    return {scheme.name: scheme for scheme in schemes}


_FLOW = ("srcport", "dstport", "protocol")
_PREFIXES = ("src_subnet", "src_mask", "dst_subnet", "dst_mask", "input", "output", "src_as", "dst_as")

SCHEMES: dict[str, Scheme] = _by_name(
    Scheme("SourceNode", ("srcaddr",)),
    Scheme("DestNode", ("dstaddr",)),
    Scheme("HostMatrix", ("srcaddr", "dstaddr")),
    Scheme("SourcePort", ("srcport",)),
    Scheme("DestPort", ("dstport",)),
    Scheme("Protocol", ("protocol",)),
    Scheme("DetailSourceNode", ("srcaddr", *_FLOW)),
    Scheme("DetailDestNode", ("dstaddr", *_FLOW)),
    Scheme("DetailInterface", ("srcaddr", "dstaddr", "input", "output", "nexthop")),
    Scheme("HostMatrixInterface", ("srcaddr", "dstaddr", "input", "output", "protocol")),
    Scheme("ASMatrix", ("src_as", "dst_as")),
    Scheme("DetailASMatrix", ("srcaddr", "dstaddr", "src_as", "dst_as", "input", "output", *_FLOW)),
    Scheme("NetMatrix", ("src_subnet", "src_mask", "input", "dst_subnet", "dst_mask", "output")),
    Scheme("DetailHostMatrix", ("srcaddr", "dstaddr", *_FLOW), "BT"),
    Scheme("CallRecord", ("srcaddr", "dstaddr", *_FLOW, "tos"), "BTA"),
    Scheme("DetailCallRecord", ("srcaddr", "dstaddr", *_FLOW, "tos", "input", "output"), "BTA"),
    Scheme("ASHostMatrix", ("srcaddr", "dstaddr", "src_as", "dst_as"), "BTA"),
    Scheme("RouterAS", ("src_as", "dst_as", "input", "output"), "BTA"),
    Scheme("RouterProtoPort", _FLOW, "BTA"),
    Scheme("RouterSrcPrefix", ("src_subnet", "src_mask", "input", "src_as"), "BTA"),
    Scheme("RouterDstPrefix", ("dst_subnet", "dst_mask", "output", "dst_as"), "BTA"),
    Scheme("RouterPrefix", _PREFIXES, "BTA"),
)
