//! The one-screen summary for people.

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Nanoseconds with a unit that leaves one to three digits before the point.
#[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
pub(crate) fn span(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// Pairs of name and count on one line, most first, the rest summed.
pub(crate) fn listed(mut pairs: Vec<(String, u64)>, most: usize) -> String {
    pairs.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest: u64 = pairs.iter().skip(most).map(|(_, count)| count).sum();
    let mut words: Vec<String> = pairs
        .iter()
        .take(most)
        .map(|(name, count)| format!("{name} {}", grouped(*count)))
        .collect();
    if rest > 0 {
        words.push(format!("others {}", grouped(rest)));
    }
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join("  ")
    }
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
    fn numbers_for_people() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(span(999), "999 ns");
        assert_eq!(span(1_234_000), "1.23 ms");
        assert_eq!(
            listed(
                vec![("a".into(), 1), ("b".into(), 2000), ("c".into(), 3)],
                2
            ),
            "b 2,000  c 3  others 1"
        );
        assert_eq!(
            rows(&[("a", "1".into()), ("long", "2".into())]),
            "  a     1\n  long  2"
        );
    }
}
