//! The metrics of a run as an `ExportMetricsServiceRequest`. Numbers of fields are those of `opentelemetry-proto` 1.x.

use linkweir_live::{Metric, Point, PointValue};

use super::wire::Message;
use super::{Origin, head};

/// Values since the start, as counters of Prometheus are (`AGGREGATION_TEMPORALITY_CUMULATIVE`).
const CUMULATIVE: u64 = 2;

/// All metrics at `now`, of a run that began at `start`, both nanoseconds since the epoch.
pub(super) fn request(metrics: &[Metric], origin: &Origin, start: u64, now: u64) -> Vec<u8> {
    let mut request = Message::default();
    request.within(1, |resource| {
        head(resource, origin);
        resource.within(2, |scope| {
            super::scope(scope);
            for metric in metrics {
                scope.within(2, |one| one_metric(one, metric, start, now));
            }
        });
    });
    request.0
}

fn one_metric(out: &mut Message, metric: &Metric, start: u64, now: u64) {
    out.text(1, metric.name.as_bytes());
    out.text(2, metric.help.as_bytes());
    out.text(3, metric.unit().as_bytes());
    let points = |data: &mut Message| {
        for point in &metric.points {
            data.within(1, |out| one_point(out, point, start, now));
        }
    };
    match metric.kind {
        "counter" => out.within(7, |sum| {
            points(sum);
            sum.number(2, CUMULATIVE);
            sum.number(3, 1);
        }),
        "histogram" => out.within(9, |histogram| {
            points(histogram);
            histogram.number(2, CUMULATIVE);
        }),
        "summary" => out.within(11, points),
        _ => out.within(5, points),
    }
}

fn one_point(out: &mut Message, point: &Point, start: u64, now: u64) {
    out.fixed(2, start);
    out.fixed(3, now);
    let mut labels = 7;
    match &point.value {
        PointValue::Whole(value) => out.fixed(6, value.cast_unsigned()),
        PointValue::Real(value) => out.double(4, *value),
        PointValue::Histogram { bounds, below, sum } => {
            labels = 9;
            // Those of Prometheus count what is below a bound, these what is between two.
            let before = std::iter::once(0).chain(below.iter().copied());
            let between: Vec<u64> = below
                .iter()
                .zip(before)
                .map(|(upper, lower)| upper.saturating_sub(lower))
                .collect();
            out.fixed(4, below.last().copied().unwrap_or(0));
            out.double(5, *sum);
            out.packed(6, between.into_iter());
            out.packed(7, bounds.iter().map(|bound| bound.to_bits()));
        }
        PointValue::Summary {
            quantiles,
            sum,
            count,
        } => {
            out.fixed(4, *count);
            out.double(5, *sum);
            for (quantile, value) in quantiles {
                out.within(6, |at| {
                    at.double(1, *quantile);
                    at.double(2, *value);
                });
            }
        }
    }
    for (label, value) in &point.labels {
        out.attribute(labels, label, value.as_bytes());
    }
}
