#!/usr/bin/env python3
"""Tests the page of `linkweir flows --console` in a real browser, against a real server.

    python3 tests/browser/flows.py --url http://127.0.0.1:8080/ [as console.py]

The run must be under way, with TCP and UDP flows in it and new intervals coming (flow_traffic.py makes
them). What is checked of the page whatever it shows (the policy, pausing, themes, the end of the run) is
in console.py; here is what only flows have.

Exit: as console.py.
"""

import os
import sys

import console
from console import DRAWN, Test, check, until

console.TILES = ("dropped", "table", "alerts", "uptime", "pps", "bps", "fps", "rtt", "retransmissions")
CHARTS = ("bits", "flows", "rtt", "losses", "ccdf", "states", "active", "packets", "handshake", "rates")
GROUPS = ("name", "server", "client", "application")
# Where a database says where addresses are.
PLACES = {"client_country": "NL", "server_country": "DE", "client_asn": "AS64500", "server_asn": "AS64501"}


class FlowTest(Test):
    def live_points(self):
        first = until("the first interval", 20, self.shown)
        until("two more intervals", 30, lambda: self.shown() >= first + 2)
        check(self.get("/api/snapshot")["meta"]["kind"] == "flows", "the server does not say flows")
        order = self.page.eval_on_selector_all(
            "[data-tile]", "(all) => all.map((tile) => tile.dataset.tile)"
        )
        check(order == list(console.TILES), f"tiles: {order}")

    def charts_are_drawn(self):
        for name in CHARTS:
            canvas = self.page.wait_for_selector(f'[data-chart="{name}"] canvas')
            colours = until(f"chart {name}", 10, lambda c=canvas: c.evaluate(DRAWN))
            check(colours > 8, f"chart {name} is empty: {colours} colours")

    def numbers_equal_the_snapshot(self):
        self.page.click('[data-range="0"]')
        self.page.click("#pause")
        self.page.wait_for_timeout(200)
        shown = self.shown()
        ticks = [tick for tick in self.get("/api/snapshot")["ticks"] if tick["id"] <= shown]
        check(ticks and ticks[-1]["id"] == shown, f"interval {shown} is not in the snapshot")
        last = ticks[-1]
        wanted = {
            "dropped": sum(last["dropped_total"].values()),
            "table": last["table"]["entries"],
            "pps": last["packets"],
            "bps": last["bytes"],
            "fps": last["new_flows"],
            "rtt": (last["rtt_ns"] or {"p95": 0})["p95"],
            "retransmissions": last["retransmissions"],
        }
        for name, value in wanted.items():
            check(self.tile(name) == value, f"tile {name}: {self.tile(name)}, snapshot: {value}")
        if ticks[0]["id"] == 1:
            for card, counts in (
                ("ends", lambda tick: tick["ends"]),
                ("anomalies", lambda tick: tick["anomalies"]),
                ("applications", lambda tick: {n: a["bytes"] for n, a in tick["applications"].items()}),
            ):
                sums = {}
                for tick in ticks:
                    for name, count in counts(tick).items():
                        sums[name] = sums.get(name, 0) + count
                rows = self.page.eval_on_selector_all(
                    f'[data-bars="{card}"] tr[data-name]',
                    "(all) => all.map((row) => [row.dataset.name, Number(row.dataset.count)])",
                )
                check(sum(count for _, count in rows) == sum(sums.values()), f"{card}: {rows}, {sums}")
        self.page.click("#pause")

    def tables(self):
        has_places = self.get("/api/snapshot")["meta"].get("places", False)
        check(has_places == bool(os.environ.get("GEOIP")), f"places: {has_places}")
        groups = GROUPS + (tuple(PLACES) if has_places else ())
        tabs = self.page.eval_on_selector_all('[role="tab"]', "(all) => all.map((tab) => tab.id)")
        check(tabs == [f"tab-{group}" for group in groups], f"tabs: {tabs}")
        for group in groups:
            self.page.click(f"#tab-{group}")
            # Rows of the group before may still be there when the tab is.
            def is_sorted():
                rows = self.column("bytes")
                return len(rows) > 0 and rows == sorted(rows, reverse=True)
            until(f"{group} sorted by bytes", 20, is_sorted)
            if group in PLACES:
                key = f'[data-top="{group}"] tr[data-key="{PLACES[group]}"]'
                until(f"{key}", 20, lambda key=key: self.page.locator(key).count() == 1)
            if group == "client" and has_places:
                known = '[data-top="client"] td[data-column="%s"]'
                for name, value in (("country", "NL"), ("asn", "AS64500")):
                    cells = self.page.locator(known % name)
                    until(f"{name} of clients", 20, lambda cells=cells: value in cells.all_inner_texts())
        self.page.click("#tab-name")
        self.page.click('[data-sort="rtt_p95"]')
        until("the other order", 10, lambda: "sort=rtt_p95" in self.hash())
        until("slow names first", 10, lambda: self.column("rtt_p95") == sorted(self.column("rtt_p95"), reverse=True))
        self.page.click('[data-sort="bytes"]')
        check("sort=" not in self.hash(), f"the first column is in the address: {self.hash()}")

    def distributions(self):
        for of in ("server_rtt", "throughput", "duration", "rtt"):
            answer = self.get(f"/api/ccdf?of={of}&window=all")
            check(answer["count"] > 0 and answer["points"], f"no distribution of {of}")
            shares = [share for _, share in answer["points"]]
            check(shares == sorted(shares, reverse=True), f"{of} does not fall")
            self.page.select_option("#ccdf-of", of)
            self.page.wait_for_timeout(300)
            check((of == "rtt") != (f"of={of}" in self.hash()), f"{of} in {self.hash()}")

    def downloads(self):
        for what in ("series", "names", "servers", "clients", "applications"):
            with console.urllib.request.urlopen(f"{self.base}/api/download.csv?what={what}", timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            check(len(lines) > 1, f"{what}: no row")
            # A cell of a name may be quoted.
            check(what == "names" or lines[0].count(",") == lines[1].count(","), f"{what}: {lines[:2]}")

    def archive(self):
        live = self.page.url

        def is_drawn():
            return self.page.eval_on_selector(
                ".archive img", "(img) => img.complete && img.naturalWidth > 0"
            )

        self.page.click("#archive")
        self.page.wait_for_selector(".archive img")
        until("the picture of the archive", 20, is_drawn)
        for link, word in (("ccdf", "distribution=ccdf"), ("tcp_rtt_avg", "series=tcp_rtt_avg"), ("all", "span=all")):
            self.page.click(f".archive a:text-is('{link}')")
            self.page.wait_for_url(f"**/archive?*{word}*")
            check("ccdf" in self.page.url, f"a word of the address is lost: {self.page.url}")
            until(f"the picture of {word}", 20, is_drawn)
            shown = self.page.eval_on_selector_all(
                ".archive a[aria-current]", "(all) => all.map((link) => link.textContent)"
            )
            check(link in shown, f"{link} is not marked: {shown}")
        self.page.goto(live)
        until("the live page again", 20, self.shown)


console.Test = FlowTest
console.CHECKS = (
    "headers",
    "live_points",
    "charts_are_drawn",
    "numbers_equal_the_snapshot",
    "pause",
    "tables",
    "text_stays_text",
    "distributions",
    "themes",
    "downloads",
    "archive",
    "fits",
    "no_errors",
)

if __name__ == "__main__":
    sys.exit(console.main())
