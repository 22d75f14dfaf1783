// The complementary cumulative distribution as it is plotted and read.

export type Points = readonly (readonly [number, number])[];

/** What a logarithmic scale can show: times and shares above zero. */
export function plottable(points: Points): Points {
  return points.filter(([ns, share]) => ns > 0 && share > 0);
}

/** The share of transactions slower than `ns`: a step function, read off the points. */
export function slowerThan(points: Points, ns: number): number | null {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const point = points[middle];
    if (point !== undefined && point[0] <= ns) low = middle + 1;
    else high = middle;
  }
  const point = points[low - 1];
  // Left of the fastest one, all are slower; right of the slowest one the share is zero.
  if (point === undefined) return points.length > 0 ? 1 : null;
  return low === points.length && ns > point[0] ? 0 : point[1];
}
