//! Figs. 4 to 7 of the paper, drawn.

use super::Results;
use super::curve::Curve;
use linkweir_report::plot::{Axis, Marks, Plot, Scale, Series, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Points of a curve.
const PLACES: u32 = 400;

/// The figures of a capture, each with its number.
pub(super) fn all(capture: &str, results: &Results) -> [(u8, String); 4] {
    let (ours, whole, first) = (&results.ours, &results.last_packet, &results.first_packet);
    let nanoseconds = 1e-9;
    let lengths = Plot {
        title: format!("Fig. 4: lengths of URLs, {capture}"),
        x: Axis::new("characters", Scale::Log, Unit::Plain),
        y: Axis::new("share of longer ones", Scale::Log, Unit::Share),
        series: vec![
            ccdf("tshark", Marks::ThickLine, &whole.uri_lengths(), 1.0),
            ccdf(
                "tshark, first packets",
                Marks::Line,
                &first.uri_lengths(),
                1.0,
            ),
            ccdf("linkweir", Marks::Line, &ours.uri_lengths(), 1.0),
            ccdf(
                "linkweir, without query",
                Marks::Line,
                &ours.path_lengths(),
                1.0,
            ),
        ],
        guides: Vec::new(),
    };
    let times = Plot {
        title: format!("Fig. 5: response times, {capture}"),
        x: Axis::new("response time", Scale::Log, Unit::Seconds),
        y: Axis::new("share of longer ones", Scale::Log, Unit::Share),
        series: vec![
            ccdf(
                "tshark, first packets",
                Marks::ThickLine,
                &first.times,
                nanoseconds,
            ),
            ccdf("linkweir", Marks::Line, &ours.times, nanoseconds),
            ccdf(
                "tshark, last packet",
                Marks::ThickLine,
                &whole.times,
                nanoseconds,
            ),
            ccdf(
                "linkweir, last byte",
                Marks::Line,
                &ours.last_byte,
                nanoseconds,
            ),
        ],
        guides: Vec::new(),
    };
    let codes = counts(
        format!("Fig. 6: status codes, {capture}"),
        [&ours.codes, &whole.codes, &first.codes],
    );
    let methods = counts(
        format!("Fig. 7: methods, {capture}"),
        [&ours.methods, &whole.methods, &first.methods],
    );
    let drawn = [(4, lengths), (5, times), (6, codes), (7, methods)];
    drawn.map(|(number, plot)| (number, plot.standalone_svg()))
}

fn ccdf(name: &str, marks: Marks, curve: &Curve, unit: f64) -> Series {
    let points = curve.ccdf(PLACES);
    Series {
        name: name.to_owned(),
        marks,
        points: points
            .into_iter()
            .map(|(x, share)| (x * unit, share))
            .collect(),
    }
}

/// Counts by name, those of linkweir and tshark side by side.
fn counts<K: Ord + ToString>(title: String, of: [&BTreeMap<K, u64>; 3]) -> Plot {
    let names: BTreeSet<&K> = of.iter().flat_map(|counts| counts.keys()).collect();
    let series = |name: &str, at: f64, marks, counts: &BTreeMap<K, u64>| {
        let points = names.iter().zip(1_u32..).filter_map(|(name, place)| {
            let count = *counts.get(*name)?;
            Some((f64::from(place) + at, count as f64))
        });
        Series {
            name: name.to_owned(),
            marks,
            points: points.collect(),
        }
    };
    let [ours, whole, first] = of;
    Plot {
        title,
        x: Axis::new("each in its place", Scale::Linear, Unit::Plain),
        y: Axis::new("messages", Scale::Log, Unit::Count),
        series: vec![
            series("linkweir", 0.0, Marks::Bars, ours),
            series("tshark", -0.1, Marks::Points, whole),
            series("tshark, first packets", 0.1, Marks::Points, first),
        ],
        guides: names
            .iter()
            .zip(1_u32..)
            .map(|(name, place)| (f64::from(place), name.to_string()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::sample::Sample;

    #[test]
    fn every_curve_and_every_count_is_drawn() {
        let sample = |codes: [(u16, u64); 2]| Sample {
            uris: BTreeMap::from([("/a?b".to_owned(), 9), ("/much/longer".to_owned(), 3)]),
            methods: BTreeMap::from([("GET".to_owned(), 12)]),
            codes: BTreeMap::from(codes),
            times: [1_000, 5_000, 90_000].into_iter().collect(),
            last_byte: [2_000, 6_000, 95_000].into_iter().collect(),
            ..Sample::default()
        };
        let results = Results {
            ours: sample([(200, 10), (404, 2)]),
            last_packet: sample([(200, 11), (503, 1)]),
            first_packet: sample([(200, 10), (404, 2)]),
            our_cpu_s: 1.0,
            tshark_cpu_s: 40.0,
        };
        let drawn = all("made", &results);
        assert_eq!(drawn.each_ref().map(|(number, _)| *number), [4, 5, 6, 7]);
        for (number, svg) in &drawn {
            assert!(
                svg.contains(&format!("Fig. {number}")) && svg.contains("tshark, first packets")
            );
            assert!(!svg.contains("NaN"));
        }
        let [_, _, (_, codes), (_, methods)] = &drawn;
        assert!(
            ["200", "404", "503"]
                .iter()
                .all(|code| codes.contains(code))
        );
        assert!(methods.contains("GET"));
    }
}
