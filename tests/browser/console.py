#!/usr/bin/env python3
"""Tests the page of `linkweir http --console` in a real browser, against a real server.

    python3 tests/browser/console.py --url http://127.0.0.1:8080/ [--pid PID] [--end kill|interrupt]
                                     [--images DIR] [--browser PATH] [--require]

The run must be under way, with HTTP transactions in it and new intervals coming (an interface, or a
capture that is fed slowly: `... | linkweir http -r - --console ...`). With --pid, the process is ended
at the end of the test, by SIGKILL (the page must say that its data is stale) or by SIGINT (the page
must say that the run has finished). With --images, console.png and console-dark.png are written there.

Needs Chromium (Debian: `apt-get install chromium`) and Playwright for Python, without the browsers it
brings:

    python3 -m venv .venv && .venv/bin/pip install -r tests/browser/requirements.txt

Exit: 0 all checks hold; 1 one does not, and its name and what was seen are printed; 77 Chromium or
Playwright is missing (1 with --require).
"""

import argparse
import csv
import io
import json
import os
import shutil
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

SKIP = 77
CSP = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
)
TILES = ("dropped", "table", "alerts", "uptime", "pps", "bps", "rps", "p99")
CHARTS = (
    "requests",
    "latency",
    "ccdf",
    "codes",
    "packets",
    "bits",
    "unanswered",
    "retransmissions",
)
# Breaches of the policy do not always reach the console.
WATCH = """
window.breaches = [];
document.addEventListener('securitypolicyviolation', (event) => {
  window.breaches.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""
# Whether something is drawn on the canvas of a chart: more than its grid has.
DRAWN = """(canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] > 200) colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  }
  return colours.size;
}"""


class Fault(Exception):
    """A check that does not hold."""


def check(holds, message):
    if not holds:
        raise Fault(message)


def until(what, seconds, probe):
    """Waits until `probe` gives something true, and gives it."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        check(time.monotonic() < deadline, f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Test:
    def __init__(self, page, base):
        self.page = page
        self.base = base.rstrip("/")
        self.errors = []
        self.restarted = False
        page.on("console", lambda line: line.type == "error" and self.errors.append(line.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.add_init_script(WATCH)

    # What the page and the server say.

    def get(self, path):
        with urllib.request.urlopen(self.base + path, timeout=10) as answer:
            return json.load(answer)

    def shown(self):
        return int(self.page.get_attribute("main", "data-tick"))

    def tile(self, name):
        return int(self.page.get_attribute(f'[data-tile="{name}"]', "data-value"))

    def banner(self, name):
        return self.page.locator(f'[data-banner="{name}"]').is_visible()

    def column(self, name):
        cells = self.page.eval_on_selector_all(
            f'[data-column="{name}"]', "(all) => all.map((cell) => cell.dataset.value ?? '')"
        )
        return [float(value) for value in cells if value not in ("", "null")]

    def is_sorted(self, name, descending):
        # Read once: the page goes on between two readings.
        column = self.column(name)
        return column == sorted(column, reverse=descending)

    def hash(self):
        return self.page.evaluate("location.hash")

    # The checks, in the order in which they run.

    def headers(self):
        answer = self.page.goto(self.base + "/")
        policy = answer.headers.get("content-security-policy", "")
        for part in CSP:
            check(part in policy, f"{part} is not in the policy {policy!r}")
        check("unsafe" not in policy, f"the policy has unsafe parts: {policy!r}")
        self.page.wait_for_selector("[data-tile]")

    def live_points(self):
        first = until("the first interval", 20, self.shown)
        until("two more intervals", 30, lambda: self.shown() >= first + 2)
        for name in TILES:
            text = self.page.inner_text(f'[data-tile="{name}"] .tile-value')
            # A last interval without a response has no percentile.
            check(text not in ("", "–") or name == "p99", f"tile {name} shows {text!r}")
        order = self.page.eval_on_selector_all(
            "[data-tile]", "(all) => all.map((tile) => tile.dataset.tile)"
        )
        check(order[:2] == ["dropped", "table"], f"losses and table fill are not first: {order}")

    def charts_are_drawn(self):
        for name in CHARTS:
            canvas = self.page.wait_for_selector(f'[data-chart="{name}"] canvas')
            # Text and lines are smoothed: many shades.
            colours = until(f"chart {name}", 10, lambda c=canvas: c.evaluate(DRAWN))
            check(colours > 8, f"chart {name} is empty: {colours} colours")

    def numbers_equal_the_snapshot(self):
        self.page.click('[data-range="0"]')
        self.page.click("#pause")
        self.page.wait_for_timeout(200)
        shown = self.shown()
        snapshot = self.get("/api/snapshot")
        ticks = [tick for tick in snapshot["ticks"] if tick["id"] <= shown]
        check(ticks and ticks[-1]["id"] == shown, f"interval {shown} is not in the snapshot")
        last = ticks[-1]
        times = last["response_time_ns"] or {"p99": 0}
        wanted = {
            "dropped": sum(last["dropped_total"].values()),
            "table": last["table"]["entries"],
            "alerts": sum(alert["state"] == "firing" for alert in last["alerts"]),
            "pps": last["packets"],
            "bps": last["bytes"],
            "rps": last["requests"],
            "p99": times["p99"],
        }
        for name, value in wanted.items():
            check(self.tile(name) == value, f"tile {name}: {self.tile(name)}, snapshot: {value}")
        # The page keeps more than a snapshot has; in a test the run is young.
        if ticks[0]["id"] == 1:
            for card, key in (("codes", "codes"), ("methods", "methods")):
                sums = {}
                for tick in ticks:
                    for name, count in tick[key].items():
                        sums[name] = sums.get(name, 0) + count
                rows = self.page.eval_on_selector_all(
                    f'[data-bars="{card}"] tr[data-name]',
                    "(all) => all.map((row) => [row.dataset.name, Number(row.dataset.count)])",
                )
                check(sum(count for _, count in rows) == sum(sums.values()), f"{card}: {rows}, {sums}")
                for name, count in rows:
                    check(name not in sums or sums[name] == count, f"{card}: {name} {count}, {sums}")
        self.page.click("#pause")

    def pause(self):
        self.page.keyboard.press("p")
        until("the banner", 5, lambda: self.banner("paused"))
        frozen = self.shown()
        until("new intervals", 30, lambda: self.get("/api/snapshot")["ticks"][-1]["id"] >= frozen + 2)
        self.page.wait_for_timeout(500)
        check(self.shown() == frozen, "the view moved while it was paused")
        self.page.click("#pause")
        until("what was missed", 5, lambda: self.shown() >= frozen + 2)
        check(not self.banner("paused"), "the banner stayed")

    def table_sorts_and_searches(self):
        self.page.click("#tab-url")
        until("rows of URLs", 15, lambda: self.column("requests"))
        check(self.is_sorted("requests", True), "not by requests")
        for name in ("p95", "bytes", "max"):
            self.page.click(f'[data-sort="{name}"]')
            until(f"{name}, largest first", 10, lambda n=name: self.is_sorted(n, True))
            heading = self.page.locator(f'th:has([data-sort="{name}"])')
            check(heading.get_attribute("aria-sort") == "descending", f"aria-sort of {name}")
            self.page.click(f'[data-sort="{name}"]')
            until(f"{name}, smallest first", 10, lambda n=name: self.is_sorted(n, False))
        check("by=url" in self.hash() and "sort=max" in self.hash() and "order=asc" in self.hash(), self.hash())
        self.page.click("#tab-host")
        self.page.click('[data-sort="requests"]')
        until("rows of hosts", 15, lambda: self.page.get_attribute("[data-top]", "data-top") == "host" and self.column("requests"))
        key = self.page.locator("tr[data-key]").first.get_attribute("data-key")
        self.page.keyboard.press("/")
        self.page.keyboard.type(key)
        until("only what matches", 5, lambda: all(
            key.lower() in (row.get_attribute("data-key") or "").lower()
            for row in self.page.locator("tr[data-key]").all()
        ))
        self.page.fill("#search", "")

    def records_behind_a_row(self):
        """A click, or Enter, on a host shows the last records of that host and only those."""
        hosts = self.page.eval_on_selector_all("tr[data-key]", "(all) => all.map((row) => row.dataset.key)")
        check(len(hosts) > 1, f"one host says nothing: {hosts}")

        def shown():
            return self.page.eval_on_selector_all(
                "dialog[open] tr[data-host]", "(all) => all.map((row) => row.dataset.host.toLowerCase())"
            )

        for key in hosts[:2]:
            row = self.page.locator("tr[data-key]").nth(hosts.index(key))
            key = row.get_attribute("data-key")
            if key == hosts[0]:
                row.click()
            else:
                row.focus()
                row.press("Enter")
            records = until(f"records of {key}", 10, shown)
            check(set(records) == {key}, f"{key}: {set(records)}")
            where = self.page.inner_text("dialog[open] code")
            check("--where 'host ~ " in where, where)
            self.page.click('[data-order="newest"]')
            until("the newest", 10, shown)
            check(set(shown()) == {key}, f"{key}, newest: {set(shown())}")
            self.page.click('[data-order="slowest"]')
            self.page.keyboard.press("Escape")
            until("the dialog is closed", 5, lambda: not self.page.locator("dialog[open]").count())
        rule = "p95%20of%20host%20" + hosts[0] + "%20%3E%201%20ms"
        behind = self.get(f"/api/records?rule={rule}&order=slowest")["records"]
        times = [one["response_time_ns"] for one in behind]
        check(times == sorted(times, reverse=True) and len(times) > 3, f"slowest first: {times[:5]}")

    def text_stays_text(self):
        marks = self.page.eval_on_selector_all(
            "#top-table tbody *", "(all) => [...new Set(all.map((element) => element.localName))].sort()"
        )
        check(set(marks) <= {"tr", "th", "td", "svg", "rect"}, f"elements in the table: {marks}")

    def distributions(self):
        legend = '[data-chart="ccdf"] .legend'
        self.page.select_option("#ccdf-window", "all")
        self.page.select_option("#ccdf-overlay", "none")
        until("one distribution", 10, lambda: self.page.locator(f"{legend} li").count() == 1)
        self.page.select_option("#ccdf-overlay", "60")
        until("two distributions", 10, lambda: "last minute" in self.page.inner_text(legend))
        check("ccdf=all" in self.hash() and "overlay=60" in self.hash(), self.hash())

    def choices_survive(self):
        self.page.click('[data-range="60"]')
        self.page.click("text=UTC")
        self.page.reload()
        self.page.wait_for_selector("[data-tile]")
        check(self.page.get_attribute('[data-range="60"]', "aria-pressed") == "true", self.hash())
        until("the clock", 10, lambda: self.page.locator(".clock").count())
        utc = self.page.inner_text(".clock")
        self.page.keyboard.press("u")
        local = self.page.inner_text(".clock")
        # The browser of the test lives nine hours ahead.
        check((int(local[-8:-6]) - int(utc[-8:-6])) % 24 == 9, f"UTC {utc}, local {local}")

    def pointer_is_linked(self):
        plot = self.page.locator('[data-chart="requests"] .plot')
        plot.focus()
        plot.press("ArrowLeft")
        times = until("times under the pointer", 5, lambda: self.page.locator(".card-head .at").all_inner_texts())
        shown = [text for text in times if ":" in text]
        check(len(shown) >= 5 and len({text[:8] for text in shown}) == 1, f"pointers at {times}")
        plot.press("Escape")

    def themes(self):
        def background():
            return self.page.evaluate("getComputedStyle(document.body).backgroundColor")

        light = background()
        self.page.emulate_media(color_scheme="dark")
        until("dark, as the system", 5, lambda: background() != light)
        self.page.emulate_media(color_scheme="light")
        until("light again", 5, lambda: background() == light)
        self.page.click("#theme")
        self.page.click("#theme")
        until("dark, as chosen", 5, lambda: background() != light)
        check("theme=dark" in self.hash(), self.hash())
        self.page.reload()
        until("dark after loading again", 10, lambda: background() != light)
        self.page.click("#theme")

    def a_day_on_disk(self):
        """The hours come from the file of --console-history, which a killed run before this one began."""
        run = self.get("/api/snapshot")["meta"]
        check(run.get("history"), "no history is kept")
        self.page.click('[data-range="3600"]')
        kept = until("rows of 5 s", 20, lambda: self.get("/api/history?span=3600")["ticks"])
        check(all(one["interval_s"] <= 5.01 for one in kept), "rows longer than 5 s")
        until("the curves of the hour", 15, lambda: int(self.page.get_attribute("main", "data-from")) == kept[0]["t_ms"])
        canvas = self.page.wait_for_selector('[data-chart="requests"] canvas')
        check(canvas.evaluate(DRAWN) > 8, "the hour is not drawn")
        if self.restarted:
            before = run["started_ms"] - kept[0]["t_ms"]
            check(before > 5000, f"nothing of the run before this one: {before} ms")
            # Nothing counts twice where both runs were fed the same seconds.
            per_s = [one["requests"] / one["interval_s"] for one in kept if one["interval_s"] >= 4]
            check(max(per_s) < 2 * sorted(per_s)[len(per_s) // 2], f"requests/s: {max(per_s)}")
        self.page.keyboard.press("6")
        until("24 h", 15, lambda: self.page.get_attribute('[data-range="86400"]', "aria-pressed") == "true")
        check("range=86400" in self.hash(), self.hash())
        self.page.click('[data-range="0"]')

    def downloads(self):
        for name in ("series.csv", "hosts.csv", "urls.json", "servers.json", "clients.csv"):
            if not self.page.locator(".menu[open]").count():
                self.page.click("#download")
            with self.page.expect_download() as waiting:
                self.page.click(f'[data-download="{name}"]')
            text = Path(waiting.value.path()).read_text(encoding="utf-8")
            if name.endswith("json"):
                check(json.loads(text), f"{name} is empty")
            else:
                rows = list(csv.reader(io.StringIO(text)))
                check(len(rows) > 1 and len({len(row) for row in rows}) == 1, f"{name}: {rows[:3]}")
        self.page.keyboard.press("Escape")

    def fits(self):
        for width, height in ((1280, 800), (390, 844)):
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.wait_for_timeout(400)
            over = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            check(over <= 0, f"at {width} px the page is {over} px too wide")
        self.page.set_viewport_size({"width": 1280, "height": 800})

    def no_errors(self):
        check(not self.errors, f"errors on the console: {self.errors}")
        breaches = self.page.evaluate("window.breaches")
        check(not breaches, f"breaches of the content security policy: {breaches}")

    def says_when_silent(self, pid):
        """A live run whose process stands still: connected, but nothing comes."""
        interval = self.get("/api/snapshot")["meta"]["interval_s"]
        os.kill(pid, signal.SIGSTOP)
        try:
            until("the stale banner", 3 * interval + 10, lambda: self.banner("stale"))
        finally:
            os.kill(pid, signal.SIGCONT)
        until("its end", 3 * interval + 10, lambda: not self.banner("stale"))

    def says_when_gone(self, pid, end):
        os.kill(pid, signal.SIGKILL if end == "kill" else signal.SIGINT)
        wanted = "stale" if end == "kill" else "finished"
        until(f"the banner {wanted}", 20, lambda: self.banner(wanted))
        # What was there can still be read.
        check(self.shown() > 0, "the numbers are gone")


CHECKS = (
    "headers",
    "live_points",
    "charts_are_drawn",
    "numbers_equal_the_snapshot",
    "pause",
    "table_sorts_and_searches",
    "records_behind_a_row",
    "text_stays_text",
    "distributions",
    "choices_survive",
    "pointer_is_linked",
    "themes",
    "a_day_on_disk",
    "downloads",
    "fits",
    "no_errors",
)


def take_images(browser, base, directory):
    """The pictures of the manual, light and dark: the page down to the tables."""
    directory.mkdir(parents=True, exist_ok=True)
    for scheme, name in (("light", "console.png"), ("dark", "console-dark.png")):
        context = browser.new_context(
            viewport={"width": 1280, "height": 1300}, color_scheme=scheme, timezone_id="UTC"
        )
        page = context.new_page()
        page.goto(base.rstrip("/") + "/#range=0&zone=utc")
        page.wait_for_selector("[data-tile]")
        page.wait_for_selector("tr[data-key]", timeout=20_000)
        page.wait_for_timeout(1500)
        path = directory / name
        page.screenshot(path=path, animations="disabled")
        context.close()
        size = path.stat().st_size
        check(size < 300_000, f"{path} has {size} bytes")
        print(f"browser: {path} {size} bytes")


def missing(why, required):
    print(f"browser: {'FAILED' if required else 'SKIPPED'}: {why}", file=sys.stderr)
    return 1 if required else SKIP


def main():
    parser = argparse.ArgumentParser(description="Tests the page of --console in Chromium.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--pid", type=int, help="the server, to be ended")
    parser.add_argument("--end", choices=("kill", "interrupt"), default="kill")
    parser.add_argument("--restarted", action="store_true", help="a run before this one left its history")
    parser.add_argument("--images", type=Path, help="directory for the pictures of the manual")
    parser.add_argument("--browser", default=os.environ.get("CHROMIUM", ""))
    parser.add_argument("--require", action="store_true", help="fail where something is missing")
    options = parser.parse_args()

    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return missing("no playwright (pip install -r tests/browser/requirements.txt)", options.require)
    path = options.browser or shutil.which("chromium") or shutil.which("chromium-browser") or ""
    if not path:
        return missing("no chromium (apt-get install chromium)", options.require)

    with sync_playwright() as playwright:
        # Root has no sandbox; a container has little shared memory and no GPU.
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            color_scheme="light",
            timezone_id="Asia/Tokyo",
            accept_downloads=True,
        )
        test = Test(context.new_page(), options.url)
        test.restarted = options.restarted
        steps = [(name, getattr(test, name)) for name in CHECKS]
        if options.images:
            steps.append(("images", lambda: take_images(browser, options.url, options.images)))
        if options.pid:
            if test.get("/api/snapshot")["meta"]["live"]:
                steps.append(("says_when_silent", lambda: test.says_when_silent(options.pid)))
            steps.append(("says_when_gone", lambda: test.says_when_gone(options.pid, options.end)))
        name = ""
        try:
            for name, step in steps:
                started = time.monotonic()
                step()
                print(f"browser: ok {name} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as fault:  # noqa: BLE001 - a fault of the browser is one of the test
            print(f"browser: FAILED {name}: {fault}", file=sys.stderr)
            for line in test.errors:
                print(f"browser: console: {line}", file=sys.stderr)
            return 1
        finally:
            with suppress(Exception):
                browser.close()
    print(f"browser: {len(steps)} checks hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
