//! Response times over time, and how they are distributed.

use super::seen::Seen;
use crate::curves::{complementary, means_over_time};
use crate::report::{Axis, Curve, Picture, Unit};

/// What a point over time is the mean of, seconds.
const STEP_S: f64 = 0.1;
/// Names of the runs near the limit, and where they are.
const NEAR: [(&str, usize); 2] = [("MMPP", 2), ("constant", 3)];

/// All of them; the runs are in the order of the table.
pub(super) fn all(seen: &[Seen]) -> Vec<Picture> {
    let curves = |points: fn(&Seen) -> Vec<(f64, f64)>| {
        let near = NEAR
            .iter()
            .filter_map(|(name, at)| Some((name, seen.get(*at)?)));
        near.map(|(name, seen)| Curve {
            name: (*name).to_owned(),
            points: points(seen),
        })
        .collect()
    };
    let response = |is_logarithmic| Axis {
        name: "response time".to_owned(),
        unit: Unit::Seconds,
        is_logarithmic,
    };
    let over_time = Picture {
        title: "Response time near the limit, by tenths of a second".to_owned(),
        x: Axis {
            name: "time".to_owned(),
            unit: Unit::Seconds,
            is_logarithmic: false,
        },
        y: response(true),
        curves: curves(|seen| means_over_time(&seen.client, STEP_S)),
    };
    let distribution = Picture {
        title: "Response time near the limit".to_owned(),
        x: response(true),
        y: Axis {
            name: "part that is longer".to_owned(),
            unit: Unit::Part,
            is_logarithmic: true,
        },
        curves: curves(|seen| {
            let mut times: Vec<f64> = seen.client.iter().map(|(_, time)| *time).collect();
            times.sort_by(f64::total_cmp);
            complementary(&times)
        }),
    };
    vec![over_time, distribution]
}
