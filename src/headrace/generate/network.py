"""The network that flows run through: hosts in subnets, subnets in autonomous systems, systems behind peers.

What a host's number decides is decided here once, in small tables: its address and subnet; by the subnet, mask
and autonomous system; by the system, the peer through which it is usually reached; by the peer, the interface
and the next hop. So the dependencies between the columns of a flow are true and cost one table look-up each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.generate.chunks import Ints, Longs, to_arrow

HOME_NET = (135 << 24) | (254 << 16)  # 135.254.0.0/16, the network of the example query in US 9,116,956
PEER_NET = (198 << 24) | (32 << 16)
HOME_AS = 10455
_MASKS = np.repeat(np.array([16, 17, 18, 19, 20, 21, 22, 23, 24], dtype=np.int32), [3, 1, 2, 4, 5, 4, 6, 5, 30])
_HOST_STEP = 97  # prime to 253, so that the hosts of a subnet get different last bytes
_HOSTS_PER_SUBNET = 253


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """How large a network is; `home_hosts` of the hosts sit in /24 subnets of one home network."""

    hosts: int
    subnets: int
    systems: int
    peers: int
    interfaces: int
    home_hosts: int = 0
    home_subnets: int = 0


@dataclass(frozen=True)
class Network:
    """The tables: arrays indexed by host, by subnet or by peer. Numbers below `home_hosts` are at home.

    `address` holds one table for each of "host", "subnet" and "peer".
    """

    size: NetworkSize
    address: dict[str, Longs]
    host_subnet: Longs
    subnet_mask: Ints
    subnet_as: Ints
    subnet_peer: Longs
    peer_interface: Ints

    @cached_property
    def text(self) -> dict[str, pa.Array]:
        """The addresses as dotted text."""
        return {kind: dotted(address) for kind, address in self.address.items()}


@lru_cache(maxsize=2)  # building it, with the text of all addresses, takes as long as a chunk
def build_network(size: NetworkSize, seed: int) -> Network:
    """The network of a seed."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0, 0))))
    mask, address = _place_subnets(size, random)
    host_subnet = _place_hosts(size)
    place = _place_in_subnet(size)
    low = 1 + place * _HOST_STEP % _HOSTS_PER_SUBNET
    # Subnets wider than /24 spread their hosts over the middle byte as well; the last byte alone is unique.
    blocks = 1 << (24 - mask[host_subnet])
    middle = random.integers(0, 256, size.hosts) % blocks
    host_address = address[host_subnet] + middle * 256 + low
    system = (size.systems * random.random(size.subnets) ** 4).astype(np.int64)
    system_number = 1 + random.permutation(64_000)[: size.systems].astype(np.int32)
    subnet_as = system_number[system]
    home_peers = min(size.home_subnets, 2)
    subnet_peer = home_peers + system % (size.peers - home_peers)
    home = slice(0, size.home_subnets)
    subnet_as[home] = HOME_AS
    subnet_peer[home] = np.arange(size.home_subnets) % 2
    peer_address = PEER_NET + 1 + 4 * np.arange(size.peers, dtype=np.int64)
    return Network(
        size=size,
        address={"host": host_address, "subnet": address, "peer": peer_address},
        host_subnet=host_subnet,
        subnet_mask=mask,
        subnet_as=subnet_as,
        subnet_peer=subnet_peer,
        peer_interface=(1 + np.arange(size.peers) % size.interfaces).astype(np.int32),
    )


def _place_subnets(size: NetworkSize, random: np.random.Generator) -> tuple[Ints, Longs]:
    """Masks and addresses: the home subnets first, then one in each of as many /16 blocks, so none overlap."""
    mask = random.choice(_MASKS, size.subnets).astype(np.int32)
    first_byte = np.setdiff1d(np.arange(1, 224), [10, 127, 192, 198])
    block = (first_byte[:, None] * 256 + np.arange(256)).ravel()
    block = random.permutation(block[block != HOME_NET >> 16])[: size.subnets]
    inside = random.integers(0, 1 << 16, size.subnets) >> (32 - mask) << (32 - mask)
    address = (block << 16) + inside
    if size.home_subnets:
        mask[: size.home_subnets] = 24
        address[: size.home_subnets] = HOME_NET + 256 * np.arange(size.home_subnets)
    else:
        mask[0], address[0] = 16, HOME_NET
    return mask, address.astype(np.int64)


def _place_hosts(size: NetworkSize) -> Longs:
    """The subnet of each host, in turns, so that the busy hosts (low numbers) are spread over the subnets."""
    at_home = np.arange(size.home_hosts) % max(size.home_subnets, 1)
    away = size.home_subnets + np.arange(size.hosts - size.home_hosts) % (size.subnets - size.home_subnets)
    return np.concatenate([at_home, away])


def _place_in_subnet(size: NetworkSize) -> Longs:
    """The position of each host among those of its subnet."""
    at_home = np.arange(size.home_hosts) // max(size.home_subnets, 1)
    away = np.arange(size.hosts - size.home_hosts) // (size.subnets - size.home_subnets)
    place = np.concatenate([at_home, away]).astype(np.int64)
    assert place.max(initial=0) < _HOSTS_PER_SUBNET, "more hosts than addresses in a subnet"
    return place


def dotted(addresses: Longs) -> pa.Array:
    """IPv4 addresses as text.

    >>> dotted(np.array([2281570305], dtype=np.int64))[0].as_py()
    '135.254.0.1'
    """
    byte_text = pa.array([str(byte) for byte in range(256)])
    parts = [byte_text.take(to_arrow((addresses >> shift) & 255)) for shift in (24, 16, 8, 0)]
    return pc.binary_join_element_wise(*parts, ".")
