#!/usr/bin/env python3
"""Writes a capture of made HTTP traffic to standard output, at the speed at which it would be captured.

    python3 tests/browser/traffic.py [--rate 300] [--speed 1] [--seconds 600] [--seed 1] |
        linkweir http -r - --console 127.0.0.1:8080 -w /dev/null

So the console can be looked at and tested without an interface and without privileges. With --speed 20,
twenty seconds of capture time are written in one. A transaction is two packets (the request, and the
head of its response), some requests come twice, some stay without an answer, and now and then a server
is slow and fails. Names of hosts are also such as strangers choose them. The same seed gives the same
packets, apart from their times.
"""

import argparse
import heapq
import random
import signal
import struct
import sys
import time

ETHERNET = bytes.fromhex("02000000000102000000000208 00".replace(" ", ""))
REASONS = {200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 304: "Not Modified",
           400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests",
           500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable"}
CODES = ([200] * 790 + [304] * 110 + [204] * 30 + [404] * 21 + [301] * 12 + [206] * 8 + [401] * 5 + [400] * 3 + [500, 502, 503])
FAILING = CODES + [503] * 90 + [502] * 40 + [500] * 25 + [429] * 12
METHODS = ["GET"] * 810 + ["POST"] * 140 + ["HEAD"] * 30 + ["PUT"] * 12 + ["OPTIONS"] * 6 + ["DELETE"] * 2
# Host, its share, its server, the middle of its response times in seconds.
HOSTS = (
    ("shop.example", 30, 17, 0.012),
    ("api.shop.example", 22, 18, 0.030),
    ("static.example.net", 18, 19, 0.002),
    ("login.example", 8, 18, 0.055),
    ("search.example", 7, 20, 0.085),
    ("media.example", 5, 21, 0.007),
    ("intranet.example", 4, 22, 0.025),
    ("10.20.0.17", 2, 17, 0.010),
    ("<img src=x onerror=alert(1)>", 1, 23, 0.020),
    ("=cmd|' /C calc'!A0", 1, 23, 0.020),
) + tuple((f"tenant-{number}.example", 2 / (1 + number), 24 + number % 5, 0.016) for number in range(40))
PATHS = ("/", "/item/{n}", "/cart/{n}/lines", "/js/app.js", "/img/{n}.webp", "/q?s={n}", "/v2/orders/{n}", "/oauth/token")


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def packet(source, target, ports, seq, ack, payload):
    """Ethernet, IPv4, TCP with PSH and ACK."""
    def header(check):
        return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 1, 0x4000, 64, 6, check, source, target)

    tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, 5 << 4, 0x18, 64240, 0, 0)
    return ETHERNET + header(checksum(header(0))) + tcp + payload


class Traffic:
    def __init__(self, rate, seed):
        self.random = random.Random(seed)
        self.rate = rate
        self.weights = [share for _, share, _, _ in HOSTS]
        self.connections = 0
        self.start = 0.0

    def transaction(self, at):
        """Packets of one transaction: (time, frame)."""
        host, _, server, middle = self.random.choices(HOSTS, self.weights)[0]
        trouble = 170 < (at - self.start) % 240 < 195
        if trouble and server == 18:
            middle *= 6
        client = bytes((192, 0, 2, self.random.choice((10, 10, 10, 11, 11, 12)) + int(self.random.expovariate(0.2)) % 40))
        place = bytes((10, 20, 0, server))
        self.connections += 1
        ports = (1024 + self.connections % 60000, 80)
        seq, ack = self.random.getrandbits(32), self.random.getrandbits(32)
        method = self.random.choice(METHODS)
        path = self.random.choice(PATHS).replace("{n}", str(self.random.randrange(90000)))
        request = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: made/1.0\r\n\r\n".encode()
        yield at, packet(client, place, ports, seq, ack, request)
        if self.random.random() < (0.03 if trouble else 0.004):
            at += 0.2
            yield at, packet(client, place, ports, seq, ack, request)
        if self.random.random() < (0.012 if trouble else 0.0015):
            return
        code = self.random.choice(FAILING if trouble and server in (17, 18) else CODES)
        size = 0 if code in (204, 304) or method == "HEAD" else int(self.random.lognormvariate(8.5, 1.4))
        head = f"HTTP/1.1 {code} {REASONS[code]}\r\nServer: made\r\nContent-Length: {size}\r\nContent-Type: text/html\r\n\r\n".encode()
        payload = head + b"x" * min(size, 1460 - len(head))
        yield at + middle * self.random.lognormvariate(0, 1.05), packet(place, client, ports[::-1], ack, (seq + len(request)) & 0xFFFFFFFF, payload)

    def packets(self, start, seconds):
        """All packets in the order of their times."""
        self.start = start
        waiting = []
        at = start
        number = 0
        while at < start + seconds:
            wave = 1 + 0.3 * (((at - start) / 90) % 2 - 1) ** 2
            at += self.random.expovariate(self.rate * wave)
            for when, frame in self.transaction(at):
                number += 1
                heapq.heappush(waiting, (when, number, frame))
            while waiting and waiting[0][0] <= at:
                when, _, frame = heapq.heappop(waiting)
                yield when, frame
        for when, _, frame in sorted(waiting):
            yield when, frame


def main():
    parser = argparse.ArgumentParser(description="Writes a capture of made HTTP traffic as it would be captured.")
    parser.add_argument("--rate", type=float, default=300, help="transactions per second of capture time [300]")
    parser.add_argument("--speed", type=float, default=1, help="seconds of capture time per second [1]")
    parser.add_argument("--past", type=float, default=0, help="seconds of capture time to write at once, before the others [0]")
    parser.add_argument("--seconds", type=float, default=600, help="capture time after that [600]")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # A reader that has had enough ends this quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    out = sys.stdout.buffer
    began = time.time()
    start = began - options.past
    out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
    flushed = 0.0
    for when, frame in Traffic(options.rate, options.seed).packets(start, options.past + options.seconds):
        due = began + (when - began) / options.speed
        now = time.time()
        if due > now or now - flushed > 0.1:
            out.flush()
            flushed = now
        if due > now:
            # In steps: a packet may wait for a twentieth of a second.
            time.sleep(max(due - now, 0.05))
        nanos = int(when * 1e9)
        out.write(struct.pack("<IIII", nanos // 10**9, nanos % 10**9, len(frame), len(frame)) + frame)
    out.flush()


if __name__ == "__main__":
    main()
