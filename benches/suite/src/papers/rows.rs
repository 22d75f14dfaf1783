//! From the runs to the rows: one for each figure or table.

use super::Results;
use super::curve::Curve;
use super::sample::Sample;
use crate::bench::harness::median;
use crate::shell::grouped;
use std::collections::BTreeMap;
use std::ops::Range;

/// The longest URL of the paper's tool, characters: what fits into one segment (sec. 3.1.1).
const ONE_SEGMENT: u64 = 1455;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) claim: &'static str,
    pub(super) paper: &'static str,
    pub(super) ours: String,
    pub(super) remark: String,
}

/// Makes a row of what was said of a capture.
type Figure = fn(&Results) -> Row;

/// The rows in the order of the paper, with the capture that each is of.
pub(super) fn all<'a>(results: &'a [(&'a str, Results)]) -> Vec<(&'a str, Row)> {
    // Which captures a row is of: the first has the speeds, the last the long URLs.
    let traffic = results.len().saturating_sub(1);
    let first = 0..traffic.min(1);
    let long = traffic..results.len();
    let rows: [(Figure, Range<usize>); 11] = [
        (interim, first.clone()),
        (longest_url, long.clone()),
        (cut_urls, long),
        (url_lengths, 0..traffic),
        (without_query, 0..traffic),
        (first_packet, 0..traffic),
        (last_packet, 0..traffic),
        (codes, 0..traffic),
        (methods, 0..traffic),
        (speed, first.clone()),
        (over_tshark, first),
    ];
    let of = |(row, captures): (Figure, Range<usize>)| {
        let captures = results.get(captures).unwrap_or_default();
        captures
            .iter()
            .map(move |(name, results)| (*name, row(results)))
    };
    rows.into_iter().flat_map(of).collect()
}

fn interim(results: &Results) -> Row {
    let (ours, theirs) = (&results.ours, &results.first_packet);
    Row {
        claim: "sec. 2.1.5, `100 Continue`",
        paper: "the interim response is a duplicate in the cell; the final one is hoped for there",
        ours: format!(
            "{} interim responses, {} requests (tshark {}), {} of {} requests answered at the end of the capture",
            grouped(ours.interim),
            grouped(ours.requests),
            grouped(theirs.requests),
            grouped(ours.requests - ours.unanswered),
            grouped(ours.requests),
        ),
        remark: "no request is counted twice; the rest was in flight when the recorder stopped"
            .to_owned(),
    }
}

fn longest_url(results: &Results) -> Row {
    let longest = |sample: &Sample| grouped(sample.uri_lengths().max().unwrap_or(0));
    Row {
        claim: "Fig. 4, sec. 2.2.3, longest URL",
        paper: "1,455 characters, longer ones are cut",
        ours: format!(
            "{} characters (tshark {}; tshark on first packets, as the paper's tool, {})",
            longest(&results.ours),
            longest(&results.last_packet),
            longest(&results.first_packet)
        ),
        remark: "capture of long URIs; heads are gathered over segments, at most 64 KiB each"
            .to_owned(),
    }
}

fn cut_urls(results: &Results) -> Row {
    let lengths = results.ours.uri_lengths();
    let lost = missing(&results.last_packet.uris, &results.ours.uris);
    Row {
        claim: "Fig. 4, URLs cut",
        paper: "0.04 % of all (those beyond 1,455 characters)",
        ours: format!(
            "{} of {} differ from tshark's",
            grouped(lost),
            grouped(lengths.len() as u64)
        ),
        remark: format!(
            "capture of long URIs: {:.1} % are beyond 1,455 characters",
            100.0 * lengths.above(ONE_SEGMENT) as f64 / lengths.len().max(1) as f64
        ),
    }
}

fn url_lengths(results: &Results) -> Row {
    let (ours, theirs) = (
        results.ours.uri_lengths(),
        results.last_packet.uri_lengths(),
    );
    let lost = missing(&results.last_packet.uris, &results.ours.uris);
    let at = |curve: &Curve, q| curve.quantile(q).map_or_else(|| "-".to_owned(), grouped);
    let both = |q| format!("{} / {}", at(&ours, q), at(&theirs, q));
    Row {
        claim: "Fig. 4, distribution of URL lengths",
        paper: "equal to tshark's up to 1,455 characters",
        ours: format!(
            "largest distance of the curves {:.5}; ours / tshark's: p50 {}, p99 {}, longest {}",
            ours.distance(&theirs),
            both(0.5),
            both(0.99),
            both(1.0),
        ),
        remark: format!(
            "{} of {} URLs of tshark's are missing or different",
            grouped(lost),
            grouped(theirs.len() as u64)
        ),
    }
}

fn without_query(results: &Results) -> Row {
    let lengths = results.ours.path_lengths();
    let at = |q| lengths.quantile(q).map_or_else(|| "-".to_owned(), grouped);
    Row {
        claim: "Fig. 4, URLs without their query",
        paper: "none is beyond 1,455 characters",
        ours: format!(
            "p50 {}, p99 {}, longest {}; {} of {} beyond 1,455 characters",
            at(0.5),
            at(0.99),
            at(1.0),
            grouped(lengths.above(ONE_SEGMENT) as u64),
            grouped(lengths.len() as u64)
        ),
        remark: "of our records: text before the first `?`".to_owned(),
    }
}

fn first_packet(results: &Results) -> Row {
    let (ours, theirs) = (&results.ours, &results.first_packet);
    let both = ours.by_transaction.iter().filter_map(|(key, time)| {
        let other = theirs.by_transaction.get(key)?;
        Some(time.abs_diff(*other))
    });
    let apart: Curve = both.collect();
    let alone = ours.by_transaction.len() - apart.len();
    Row {
        claim: "Fig. 5, response time CCDF, first packets",
        paper: "no significant difference to tshark without reassembly",
        ours: compared(&ours.times, &theirs.times),
        remark: format!(
            "{} of tshark's {} transactions are ours with the same response packet, their response times differ by at most {} us; {} of ours have none in tshark",
            grouped(apart.len() as u64),
            grouped(theirs.by_transaction.len() as u64),
            grouped(apart.max().unwrap_or(0).div_ceil(1000)),
            grouped(alone as u64)
        ),
    }
}

fn last_packet(results: &Results) -> Row {
    let (ours, theirs) = (&results.ours, &results.last_packet);
    Row {
        claim: "Fig. 5, response time CCDF, last packet",
        paper: "tshark with reassembly measures to the last packet; shown for comparison",
        ours: compared(&ours.last_byte, &theirs.times),
        remark: format!(
            "ours is `--ttlb`; our response time against this curve: largest distance {:.4}",
            ours.times.distance(&theirs.times)
        ),
    }
}

fn codes(results: &Results) -> Row {
    let ours = &results.ours.codes;
    let whole = differences(ours, &results.last_packet.codes);
    let first = differences(ours, &results.first_packet.codes);
    let each: Vec<String> = ours
        .iter()
        .map(|(code, count)| {
            let theirs = results.last_packet.codes.get(code).copied().unwrap_or(0);
            format!("{code} {} / {}", grouped(*count), grouped(theirs))
        })
        .collect();
    Row {
        claim: "Fig. 6, counts of status codes",
        paper: "differ from tshark's by 2.6 % on average, median 1.3 %",
        ours: format!(
            "{} on average, median {} (tshark without reassembly: {}, {})",
            per_cent(mean(&whole)),
            per_cent(median(&whole)),
            per_cent(mean(&first)),
            per_cent(median(&first))
        ),
        remark: format!("ours / tshark's: {}", each.join(", ")),
    }
}

fn methods(results: &Results) -> Row {
    let ours = &results.ours.methods;
    let apart = differences(ours, &results.last_packet.methods);
    let each: Vec<String> = ours
        .iter()
        .map(|(method, count)| {
            let theirs = results
                .last_packet
                .methods
                .get(method)
                .copied()
                .unwrap_or(0);
            format!("{method} {} / {}", grouped(*count), grouped(theirs))
        })
        .collect();
    Row {
        claim: "Fig. 7, counts of methods",
        paper: "nearly the same as tshark's",
        ours: format!("{} on average", per_cent(mean(&apart))),
        remark: format!("ours / tshark's: {}", each.join(", ")),
    }
}

fn speed(results: &Results) -> Row {
    let (packets, bytes) = (results.ours.packets as f64, results.ours.bytes as f64);
    Row {
        claim: "Table 2, speed of one instance",
        paper: "from RAID 10.6 Gb/s, 1.8 Mpps; in memory 13.8 Gb/s, 2.1 Mpps",
        ours: format!(
            "in memory {:.1} Gb/s, {:.2} Mpps",
            bytes * 8.0 / results.our_cpu_s * 1e-9,
            packets / results.our_cpu_s * 1e-6
        ),
        remark: format!(
            "per second of CPU time ({:.3} s); {:.0} bytes a packet here, 821 in the paper's in-memory row",
            results.our_cpu_s,
            bytes / packets
        ),
    }
}

fn over_tshark(results: &Results) -> Row {
    let packets = results.ours.packets as f64;
    Row {
        claim: "Fig. 9a, speed over tshark",
        paper: "43 x",
        ours: format!("{:.0} x", results.tshark_cpu_s / results.our_cpu_s),
        remark: format!(
            "CPU time; tshark prints {} fields of HTTP messages: {:.3} Mpps",
            super::sample::TSHARK_FIELDS.len(),
            packets / results.tshark_cpu_s * 1e-6
        ),
    }
}

/// Two curves of nanoseconds side by side.
fn compared(ours: &Curve, theirs: &Curve) -> String {
    let at = |curve: &Curve, q| {
        curve
            .quantile(q)
            .map_or_else(|| "-".to_owned(), |ns| format!("{:.3}", ns as f64 * 1e-6))
    };
    let both = |q| format!("{} / {}", at(ours, q), at(theirs, q));
    format!(
        "largest distance {:.5}; ours / tshark's in ms: p50 {}, p90 {}, p99 {} (of {} / {})",
        ours.distance(theirs),
        both(0.5),
        both(0.9),
        both(0.99),
        grouped(ours.len() as u64),
        grouped(theirs.len() as u64)
    )
}

/// By how many per cent of theirs each count differs; a count that only one has, by 100.
fn differences<K: Ord>(ours: &BTreeMap<K, u64>, theirs: &BTreeMap<K, u64>) -> Vec<f64> {
    let only_ours = ours.keys().filter(|key| !theirs.contains_key(key));
    let of = |(key, count): (&K, &u64)| {
        let own = ours.get(key).copied().unwrap_or(0);
        100.0 * own.abs_diff(*count) as f64 / *count as f64
    };
    theirs
        .iter()
        .map(of)
        .chain(only_ours.map(|_| 100.0))
        .collect()
}

/// How many of theirs ours has not.
fn missing(theirs: &BTreeMap<String, u64>, ours: &BTreeMap<String, u64>) -> u64 {
    theirs
        .iter()
        .map(|(key, count)| count.saturating_sub(ours.get(key).copied().unwrap_or(0)))
        .sum()
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

fn per_cent(figure: f64) -> String {
    if figure == 0.0 {
        "0 %".to_owned()
    } else if figure < 0.001 {
        "< 0.001 %".to_owned()
    } else {
        format!("{figure:.3} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_per_cent_of_theirs() {
        let ours = BTreeMap::from([(200, 99), (404, 5), (999, 1)]);
        let theirs = BTreeMap::from([(200, 100), (404, 5), (500, 4)]);
        let mut apart = differences(&ours, &theirs);
        apart.sort_by(f64::total_cmp);
        assert_eq!(apart, [0.0, 1.0, 100.0, 100.0]);
        assert_eq!(mean(&[1.0, 3.0]), 2.0);
        assert_eq!(per_cent(0.0), "0 %");
        assert_eq!(per_cent(0.0123), "0.012 %");
        assert_eq!(per_cent(0.0004), "< 0.001 %");
    }

    #[test]
    fn a_missing_url_is_counted_as_often_as_it_is_missing() {
        let map = |pairs: &[(&str, u64)]| {
            pairs
                .iter()
                .map(|(uri, count)| ((*uri).to_owned(), *count))
                .collect::<BTreeMap<_, _>>()
        };
        let theirs = map(&[("/a", 3), ("/b", 1)]);
        assert_eq!(missing(&theirs, &map(&[("/a", 1), ("/c", 9)])), 3);
    }
}
