//! From a feeder to a consumer through shared memory: the example `feed_speed`, which pins both to cores of
//! their own and times every way of `linkweir feed --by`.

use super::super::harness::{Column, Runs, Target, digits, number, print};
use crate::shell::{cargo, output};
use anyhow::{Context as _, Result};
use serde_json::Value;

/// What a feeder and a consumer must carry, million packets per second.
const LEAST_MPPS: f64 = 5.0;
/// Bytes of a packet of zeros.
const BYTES: u64 = 200;
const PACKETS: u64 = 20_000_000;
/// The way that the goal is of.
const GOAL: &str = "feed_paper_mpps";
/// The ways that are timed, by their keys; the last is what `linkweir feed` does unless told otherwise.
const WAYS: [(&str, &str); 6] = [
    ("ring_mpps", "a ring, two threads"),
    ("feed_flow_mpps", "--by flow"),
    ("feed_paper_mpps", "--by paper"),
    ("nginx_flow_mpps", "--by flow, traffic of nginx"),
    ("nginx_paper_mpps", "--by paper, traffic of nginx"),
    (
        "nginx_transaction_mpps",
        "--by transaction, traffic of nginx",
    ),
];

/// Figures by way, in their order.
type Figures = [f64; WAYS.len()];

/// Times the rings; prints the table.
pub(super) fn rate(runs: usize) -> Result<Target> {
    let figures = Runs::measure(runs, "feeder to consumer", |_| {
        let mut example = cargo();
        example
            .args(["run", "--quiet", "--release", "--package"])
            .arg("linkweir-instructions")
            .args(["--example", "feed_speed", "--"])
            .args([PACKETS, BYTES].map(|number| number.to_string()));
        let text = String::from_utf8(output(&mut example)?)?;
        parse(text.lines().last().unwrap_or_default())
    })?;
    let of_way = |at: usize| -> Runs<f64> {
        let figures = figures.iter().map(|figures| figures.get(at).copied());
        figures.collect()
    };
    let title = format!(
        "feeder to consumer process, a core each: packets of {BYTES} bytes without HTTP, or those of the \
         bundled capture; median of {runs}"
    );
    let rows = WAYS.iter().enumerate();
    print(
        &title,
        &COLUMNS,
        rows.map(|(at, (_, name))| (*name, of_way(at))),
    );
    let goal = WAYS.iter().position(|(key, _)| *key == GOAL);
    let goal = of_way(goal.context("no way for the target")?);
    Ok(target(goal.median(|mpps| *mpps)))
}

const COLUMNS: [Column<(&str, Runs<f64>)>; 4] = [
    ("through", |(name, _)| (*name).to_owned()),
    ("Mpps", |(_, runs)| digits(runs.median(|mpps| *mpps), 2)),
    ("least", |(_, runs)| digits(runs.least(|mpps| *mpps), 2)),
    ("most", |(_, runs)| digits(runs.most(|mpps| *mpps), 2)),
];

fn parse(line: &str) -> Result<Figures> {
    let said: Value = serde_json::from_str(line).context("the last line of feed_speed")?;
    let mut figures = [f64::NAN; WAYS.len()];
    for (figure, (key, _)) in figures.iter_mut().zip(WAYS) {
        *figure = number(&said, key)?;
    }
    Ok(figures)
}

fn target(mpps: f64) -> Target {
    Target::new(
        format!("feeder to consumer by Eq. (3): at least {LEAST_MPPS} Mpps of {BYTES} bytes"),
        format!("{mpps:.2} Mpps"),
        mpps >= LEAST_MPPS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_example() {
        let line = r#"{"packet_bytes":200,"ring_mpps":9.5,"feed_flow_mpps":7,"feed_paper_mpps":6.5,
            "nginx_flow_mpps":6,"nginx_paper_mpps":5.5,"nginx_transaction_mpps":5.001}"#;
        assert_eq!(parse(line).unwrap(), [9.5, 7.0, 6.5, 6.0, 5.5, 5.001]);
        assert!(parse("{}").is_err());
        let passed = |mpps| target(mpps).is_reached;
        assert!(passed(5.0) && !passed(4.99) && !passed(f64::NAN));
    }
}
