//! The one-screen summary for people.

use linkweir_record::human::{span, thousands};
use linkweir_sketch::LogLinear;

/// Pairs of name and count on one line, most first, the rest summed.
pub(crate) fn listed(mut pairs: Vec<(String, u64)>, most: usize) -> String {
    pairs.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest: u64 = pairs.iter().skip(most).map(|(_, count)| count).sum();
    let mut words: Vec<String> = pairs
        .iter()
        .take(most)
        .map(|(name, count)| format!("{name} {}", thousands(*count)))
        .collect();
    if rest > 0 {
        words.push(format!("others {}", thousands(rest)));
    }
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join("  ")
    }
}

/// What was lost on one line, most first. Who has failed without a loss that can be counted has no number.
/// Where it is nothing, a capture may still have gaps of its own.
pub(crate) fn lost(pairs: Vec<(String, u64)>, most: usize) -> String {
    if pairs.is_empty() {
        return "nothing by linkweir itself".to_owned();
    }
    let (counted, failed): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(_, count)| *count > 0);
    if failed.is_empty() {
        return listed(counted, most);
    }
    let counted = (!counted.is_empty()).then(|| listed(counted, most));
    let failed = failed.into_iter().map(|(name, _)| name);
    let words: Vec<String> = counted.into_iter().chain(failed).collect();
    words.join("  ")
}

/// A time that a share `q` of these nanoseconds does not exceed; `-` where they are too few to tell: one at
/// least has to be expected above it (2 for the median, 100 for the 99th percentile). The longest is always
/// shown.
#[expect(
    clippy::cast_precision_loss,
    reason = "only small counts are near the limit"
)]
pub(crate) fn quantile(times: &LogLinear, q: f64) -> String {
    let above = times.count() as f64 * (1.0 - q);
    let told = times.quantile(q).filter(|_| q >= 1.0 || above > 0.999_999);
    told.map_or_else(|| "-".to_owned(), span)
}

/// The quantiles of these nanoseconds that they are enough for, by name, and the longest; of one time it and
/// nothing else.
pub(crate) fn quantiles(times: &LogLinear, named: &[(&str, f64)]) -> String {
    let max = quantile(times, 1.0);
    if times.count() <= 1 {
        return max;
    }
    let named = named.iter().map(|(name, q)| (*name, quantile(times, *q)));
    let told = named.filter(|(_, text)| text != "-");
    let all = told.chain([("max", max)]);
    let words: Vec<String> = all.map(|(name, text)| format!("{name} {text}")).collect();
    words.join("  ")
}

/// Rows of label and text, labels aligned.
pub(crate) fn rows(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    rows.iter()
        .map(|(label, text)| format!("  {label:width$}  {text}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_times_have_no_percentiles() {
        let of = |count: u64| {
            let mut times = LogLinear::default();
            (0..count).for_each(|_| times.record(500));
            let named = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
            quantiles(&times, &named)
        };
        assert_eq!([of(0), of(1)], ["-", "500 ns"]);
        let p50 = "p50 500 ns  ";
        let p90 = format!("{p50}p90 500 ns  ");
        let p99 = format!("{p90}p99 500 ns  ");
        let all = format!("{p99}p99.9 500 ns  ");
        for (count, told) in [
            (2, p50),
            (9, p50),
            (10, &p90),
            (99, &p90),
            (100, &p99),
            (999, &p99),
            (1000, &all),
        ] {
            assert_eq!(of(count), format!("{told}max 500 ns"), "{count}");
        }
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            listed(
                vec![("a".into(), 1), ("b".into(), 2000), ("c".into(), 3)],
                2
            ),
            "b 2,000  c 3  others 1"
        );
        let said = |pairs: &[(&str, u64)]| {
            let pairs = pairs
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count));
            lost(pairs.collect(), 2)
        };
        assert_eq!(said(&[]), "nothing by linkweir itself");
        assert_eq!(said(&[("a", 0), ("b", 2)]), "b 2  a");
        assert_eq!(said(&[("a", 0)]), "a");
        assert_eq!(
            rows(&[("a", "1".into()), ("long", "2".into())]),
            "  a     1\n  long  2"
        );
    }
}
