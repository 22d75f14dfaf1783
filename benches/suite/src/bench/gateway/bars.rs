//! What the rows must reach.

use super::Plan;
use super::part::Part;
use super::row::Row;
use super::series::{Series, ratio};
use crate::bench::bars::Bar;
use crate::shell::grouped;

/// Least part of the row (the smallest of the rows) that it is compared with.
const LEAST: [(Row, f64); 4] = [
    (Row::Classify, 0.9),
    (Row::Inspect, 0.85),
    (Row::Keywords, 0.8),
    (Row::Scan, 0.8),
];

/// The promises about rows that were asked for.
pub(super) fn of_rows(plan: &Plan, all: &[Series]) -> Vec<Bar> {
    let asked = LEAST.iter().filter(|(row, _)| plan.wants(Part::Row(*row)));
    let mut bars: Vec<Bar> = asked.map(|(row, least)| part(all, *row, *least)).collect();
    bars.push(no_drop("2 MB downloads", all));
    bars
}

fn part(all: &[Series], row: Row, least: f64) -> Bar {
    let others = row.compared_with();
    let names: Vec<&str> = others.iter().map(|other| other.name()).collect();
    let of_what = match names.as_slice() {
        [one] => format!("\"{one}\""),
        several => format!("the smaller of \"{}\"", several.join("\" and \"")),
    };
    let what = format!("{}: at least {least} of {of_what}", row.name());
    let find = |row: Row| all.iter().find(|series| series.row == row);
    let others: Option<Vec<&Series>> = others.iter().map(|other| find(*other)).collect();
    match (find(row), others) {
        (Some(own), Some(others)) => {
            let ratio = ratio(own, &others);
            Bar {
                what,
                figure: format!("{ratio:.2}"),
                passed: ratio >= least,
            }
        }
        _ => Bar {
            what,
            figure: "not measured, something is not installed".to_owned(),
            passed: false,
        },
    }
}

/// Whether the kernel dropped a packet of any queue.
pub(super) fn no_drop(title: &str, all: &[Series]) -> Bar {
    let dropped: u64 = all.iter().map(|series| series.sum(|run| run.dropped)).sum();
    let queued: u64 = all.iter().map(|series| series.sum(|run| run.queued)).sum();
    Bar {
        what: format!("{title}: no packet dropped by a queue of the kernel"),
        figure: format!("{} of {}", grouped(dropped), grouped(queued)),
        passed: dropped == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::tests::series;
    use super::*;

    #[test]
    fn a_part_is_of_the_smaller() {
        let mut all = vec![
            series(Row::Keywords, &[4.0]),
            series(Row::Accept, &[16.0]),
            series(Row::Automaton, &[5.0]),
        ];
        assert!(part(&all, Row::Keywords, 0.8).passed);
        assert!(!part(&all, Row::Keywords, 0.81).passed);
        all.pop();
        let bar = part(&all, Row::Keywords, 0.1);
        assert!(!bar.passed && bar.figure.starts_with("not measured"));
    }

    #[test]
    fn one_dropped_packet_is_a_miss() {
        let mut one = series(Row::Accept, &[1.0, 1.0]);
        assert!(no_drop("t", std::slice::from_ref(&one)).passed);
        one.runs[1].dropped = 1;
        assert!(!no_drop("t", &[one]).passed);
    }
}
