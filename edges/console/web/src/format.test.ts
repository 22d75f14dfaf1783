import assert from "node:assert/strict";
import { test } from "node:test";
import { slowerThan, plottable } from "./ccdf";
import { axisNumber, clock, count, counted, exact, percent, powerOfTen, si, span, time } from "./format";
import { ceil125, floor125, logLimits, logMarks } from "./log";

const plain = (text: string): string => text.replaceAll("\u202f", " ");

test("three significant digits and a prefix", () => {
  assert.equal(si(0), "0");
  assert.equal(si(7.126), "7.13");
  assert.equal(si(99.96), "100");
  assert.equal(plain(si(999.6)), "1.00 k");
  assert.equal(plain(si(12345)), "12.3 k");
  assert.equal(plain(si(540e6, "bit/s")), "540 Mbit/s");
  assert.equal(count(9876), "9,876");
  assert.deepEqual([0, 1, 2].map((value) => counted(value, "rule")), ["0 rules", "1 rule", "2 rules"]);
  assert.equal(exact(1234567), "1,234,567");
  assert.equal(plain(percent(0.01234)), "1.23 %");
  assert.equal(plain(percent(0.00001)), "< 0.01 %");
  assert.equal(plain(axisNumber(2500)), "2.5 k");
});

test("times", () => {
  assert.equal(plain(time(1)), "1 ns");
  assert.equal(plain(time(100_000)), "100 µs");
  assert.equal(plain(time(999_900)), "1.00 ms");
  assert.equal(plain(time(12_345_678)), "12.3 ms");
  assert.equal(plain(time(10e9)), "10 s");
  assert.equal(span(249), "4m 09s");
  assert.equal(span(100_000), "1d 03h");
  assert.equal(clock(1_700_000_000_000, "utc"), "22:13:20");
  assert.equal(clock(1_700_000_000_000, "utc", false), "22:13");
});

test("powers of ten keep their exponent", () => {
  assert.equal(powerOfTen(1e-4), "10⁻⁴");
  assert.equal(powerOfTen(0.1), "10⁻¹");
  assert.equal(powerOfTen(1), "1");
  assert.equal(powerOfTen(1e12), "10¹²");
  assert.equal(powerOfTen(0.2), "");
});

test("logarithmic limits and marks", () => {
  assert.equal(floor125(7.9e6), 5e6);
  assert.equal(ceil125(7.9e6), 1e7);
  assert.deepEqual(logLimits(null, null, [1, 10]), [1, 10]);
  assert.deepEqual(logLimits(0, 5, [1, 10]), [1, 10]);
  assert.deepEqual(logLimits(3, 4, [1, 10]), [2, 20]);
  assert.deepEqual(logMarks(1, 100), [1, 2, 5, 10, 20, 50, 100]);
  assert.deepEqual(logMarks(1e-5, 1), [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]);
});

test("a distribution is read as steps", () => {
  const points: [number, number][] = [[10, 0.9], [20, 0.5], [40, 0.1]];
  assert.equal(slowerThan([], 5), null);
  assert.equal(slowerThan(points, 5), 1);
  assert.equal(slowerThan(points, 10), 0.9);
  assert.equal(slowerThan(points, 39), 0.5);
  assert.equal(slowerThan(points, 40), 0.1);
  assert.equal(slowerThan(points, 41), 0);
  assert.deepEqual(plottable([[0, 1], [3, 0.5], [9, 0]]), [[3, 0.5]]);
});
