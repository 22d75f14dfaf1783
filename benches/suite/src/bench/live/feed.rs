//! From a feeder to a consumer through shared memory: the example `feed_speed`, which pins both to cores of
//! their own and times every way of `linkweir feed --by`.

use super::super::bars::Bar;
use super::super::measure::median;
use crate::shell::{cargo, output, print_table};
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

/// Times the rings; prints the table.
pub(super) fn rate(runs: usize) -> Result<Bar> {
    let mut figures = vec![Vec::new(); WAYS.len()];
    for _ in 0..runs {
        let mut example = cargo();
        example
            .args(["run", "--quiet", "--release", "--package"])
            .arg("linkweir-instructions")
            .args(["--example", "feed_speed", "--"])
            .args([PACKETS, BYTES].map(|number| number.to_string()));
        let text = String::from_utf8(output(&mut example)?)?;
        let found = parse(text.lines().last().unwrap_or_default())?;
        for (all, figure) in figures.iter_mut().zip(found) {
            all.push(figure);
        }
    }
    println!(
        "\nfeeder to consumer process, a core each: packets of {BYTES} bytes without HTTP, or those of the \
         bundled capture; median of {runs}"
    );
    let mut table = vec![
        ["through", "Mpps", "least", "most"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for ((_, name), all) in WAYS.iter().zip(&figures) {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(0.0, f64::max);
        let figures = [median(all), least, most].map(|figure| format!("{figure:.2}"));
        table.push([vec![(*name).to_owned()], figures.to_vec()].concat());
    }
    print_table(&table);
    let goal = WAYS.iter().zip(&figures).find(|((key, _), _)| *key == GOAL);
    Ok(bar(goal.map_or(f64::NAN, |(_, all)| median(all))))
}

fn parse(line: &str) -> Result<Vec<f64>> {
    let figures: Value = serde_json::from_str(line).context("the last line of feed_speed")?;
    WAYS.iter()
        .map(|(key, _)| {
            let figure = figures.get(key).and_then(Value::as_f64);
            figure.with_context(|| format!("no `{key}`"))
        })
        .collect()
}

fn bar(mpps: f64) -> Bar {
    Bar {
        what: format!("feeder to consumer by Eq. (3): at least {LEAST_MPPS} Mpps of {BYTES} bytes"),
        figure: format!("{mpps:.2} Mpps"),
        passed: mpps >= LEAST_MPPS,
    }
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
        assert!(bar(5.0).passed && !bar(4.99).passed && !bar(f64::NAN).passed);
    }
}
