#!/usr/bin/env python3
"""Writes a capture of made TCP and UDP flows to standard output, at the speed at which it would be captured.

    python3 tests/browser/flow_traffic.py [--rate 60] [--speed 1] [--past 0] [--seconds 600] [--seed 1] |
        linkweir flows -r - --console 127.0.0.1:8080 --no-output

As traffic.py, but with whole connections: handshakes with round-trip times, data in both directions,
lost segments that are sent again, resets, SYNs that nobody answers, and questions to a name server.
Names of hosts are also such as strangers choose them.
"""

import itertools
import struct

import traffic
from traffic import ETHERNET, HOSTS, checksum

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SEGMENT = 1400


numbers = itertools.count(1)


def segment(ends, flags, seq, ack, payload=b""):
    """Ethernet, IPv4, TCP; `ends` is source, target, ports."""
    number = next(numbers)
    source, target, ports = ends

    def header(check):
        return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), number & 0xFFFF, 0x4000, 64, 6, check, source, target)

    tcp = struct.pack("!HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 5 << 4, flags, 64240, 0, 0)
    return ETHERNET + header(checksum(header(0))) + tcp + payload


def datagram(source, target, ports, payload):
    def header(check):
        return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 1, 0, 64, 17, check, source, target)

    return ETHERNET + header(checksum(header(0))) + struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload


def question(name, number, answer):
    """A DNS message about `name`, with an address where it is an answer."""
    labels = b"".join(bytes([len(part)]) + part for part in name.encode().split(b"."))
    head = struct.pack("!HHHHHH", number & 0xFFFF, 0x8180 if answer else 0x0100, 1, 1 if answer else 0, 0, 0)
    message = head + labels + b"\0" + struct.pack("!HH", 1, 1)
    if answer:
        message += struct.pack("!HHHIH4s", 0xC00C, 1, 1, 60, 4, bytes([10, 20, 0, 17]))
    return message


class Flows(traffic.Traffic):
    """Flows in the place of transactions."""

    port = 10_000

    def transaction(self, at):
        self.port = 10_000 + (self.port - 9_999) % 50_000
        host, _, server, _ = self.random.choices(HOSTS, [share for _, share, _, _ in HOSTS])[0]
        client = bytes([10, 1, self.random.randrange(4), self.random.randrange(1, 250)])
        if self.random.random() < 0.25:
            yield from self.lookup(at, client)
        else:
            yield from self.connection(at, client, bytes([10, 20, 0, server]), host)

    def lookup(self, at, client):
        resolver, name = bytes([10, 20, 0, 53]), f"tenant-{self.random.randrange(40)}.example"
        yield at, datagram(client, resolver, (self.port, 53), question(name, self.port, False))
        yield at + 0.004, datagram(resolver, client, (53, self.port), question(name, self.port, True))

    def connection(self, at, client, server, host):
        """Captured beside the client: its half of the path is a tenth of the server's."""
        there = (client, server, (self.port, 80))
        back = (server, client, (80, self.port))
        far = 0.008 * self.random.lognormvariate(0, 0.9)
        near = far / 10
        seq, ack = self.random.randrange(2**32), self.random.randrange(2**32)
        fate = self.random.random()
        yield at, segment(there, SYN, seq, 0)
        if fate < 0.02:
            yield at + 1, segment(there, SYN, seq, 0)
            return
        at += far
        yield at, segment(back, SYN | ACK, ack, seq + 1)
        at += near
        yield at, segment(there, ACK, seq + 1, ack + 1)
        request = f"GET /item/{self.port} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: made\r\n\r\n".encode()
        at += 0.0005
        yield at, segment(there, PSH | ACK, seq + 1, ack + 1, request)
        seq, ack = seq + 1 + len(request), ack + 1
        at += far
        size = int(min(200_000, self.random.lognormvariate(9.2, 1.2)))
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()
        left = len(head) + size
        while left > 0:
            payload = (head + b"x" * SEGMENT)[: min(SEGMENT, left)]
            head = b""
            yield at, segment(back, PSH | ACK, ack, seq, payload)
            if self.random.random() < 0.012:
                # Lost between here and the client: sent again by the timer.
                at += 0.25 + far
                yield at, segment(back, PSH | ACK, ack, seq, payload)
            ack += len(payload)
            left -= len(payload)
            at += near
            yield at, segment(there, ACK, seq, ack)
            at += 0.0002
        if fate < 0.08:
            yield at, segment(there, RST | ACK, seq, ack)
            return
        yield at, segment(back, FIN | ACK, ack, seq)
        at += near
        yield at, segment(there, FIN | ACK, seq, ack + 1)
        yield at + far, segment(back, ACK, ack + 1, seq + 1)


if __name__ == "__main__":
    # The same program with other packets.
    traffic.Traffic = Flows
    traffic.main()
