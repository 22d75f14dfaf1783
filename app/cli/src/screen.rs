//! The one-screen summary for people.

use linkweir_sink::human::thousands;

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
