//! Numbers for the rules of a policy: marks of connections carry them over a reload.

use std::collections::{BTreeMap, BTreeSet};

use linkweir_engine::effect::MarkLayout;
use thiserror::Error;

/// More rules than a mark can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} rules are more than a mark can tell apart: {max}", max = MarkLayout::MAX_RULE)]
pub struct TooManyRules(pub usize);

/// Gives each name a number, from 1 on. A name that had one keeps it. A number that another name had
/// before is given again only when no other is left: connections may still carry it.
///
/// # Errors
/// There are more names than numbers.
pub fn assign_numbers<'a>(
    previous: &BTreeMap<String, u16>,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeMap<String, u16>, TooManyRules> {
    let all = 1..=MarkLayout::MAX_RULE;
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut numbers: BTreeMap<String, u16> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for &name in &names {
        if let Some(&number) = previous.get(name)
            && all.contains(&number)
            && taken.insert(number)
        {
            numbers.insert(name.to_owned(), number);
        }
    }
    let once: BTreeSet<u16> = previous.values().copied().collect();
    let fresh = all.clone().filter(|number| !once.contains(number));
    let freed = all.filter(|number| once.contains(number) && !taken.contains(number));
    let mut left = fresh.chain(freed);
    for &name in &names {
        if !numbers.contains_key(name) {
            let number = left.next().ok_or(TooManyRules(names.len()))?;
            numbers.insert(name.to_owned(), number);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(of: &[(&str, u16)]) -> BTreeMap<String, u16> {
        of.iter()
            .map(|&(name, number)| (name.to_owned(), number))
            .collect()
    }

    #[test]
    fn names_keep_their_numbers() {
        let first = assign_numbers(&BTreeMap::new(), ["http", "msn", "edonkey"]).unwrap();
        assert_eq!(first, numbers(&[("edonkey", 1), ("http", 2), ("msn", 3)]));
        let second = assign_numbers(&first, ["msn", "bittorrent", "http"]).unwrap();
        // 1 was that of edonkey: connections may carry it.
        assert_eq!(
            second,
            numbers(&[("bittorrent", 4), ("http", 2), ("msn", 3)])
        );
    }

    #[test]
    fn numbers_end() {
        let many: Vec<String> = (0..u32::from(MarkLayout::MAX_RULE))
            .map(|number| format!("rule {number}"))
            .collect();
        let full = assign_numbers(&BTreeMap::new(), many.iter().map(String::as_str)).unwrap();
        assert_eq!(full.len(), 511);
        assert_eq!(full.values().max(), Some(&511));
        let last = full.get("rule 7").copied();
        let others = many
            .iter()
            .map(String::as_str)
            .filter(|name| *name != "rule 7");
        let again = assign_numbers(&full, others.chain(["new"])).unwrap();
        assert_eq!(again.get("new").copied(), last);
        let one_more = many.iter().map(String::as_str).chain(["one more"]);
        assert_eq!(assign_numbers(&full, one_more), Err(TooManyRules(512)));
    }
}
