//! Figures in the words of other programs.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::str::FromStr;

/// A line of `key=value`.
#[derive(Debug)]
pub(crate) struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    pub(crate) const fn of(line: &'a str) -> Self {
        Self(line)
    }

    fn get<T: FromStr>(&self, name: &str) -> Result<T> {
        let mut pairs = self.0.split_whitespace();
        let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value
            .and_then(|value| value.parse().ok())
            .with_context(|| format!("no `{name}=` in `{}`", self.0.trim()))
    }

    pub(crate) fn whole(&self, name: &str) -> Result<u64> {
        self.get(name)
    }

    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        self.get(name)
    }
}

/// The number that stands before the first of these phrases (`12 packets captured`).
pub(crate) fn before(text: &str, phrases: &[&str]) -> Option<u64> {
    let found = |line: &str, phrase: &str| {
        let at = line.find(phrase)?;
        line.get(..at)?.split_whitespace().last()?.parse().ok()
    };
    phrases
        .iter()
        .find_map(|phrase| text.lines().find_map(|line| found(line, phrase)))
}

/// A number of a JSON document; parts of the way to it are separated by slashes.
///
/// # Errors
/// There is none.
pub(crate) fn number(said: &Value, way: &str) -> Result<f64> {
    let number = said.pointer(&format!("/{way}")).and_then(Value::as_f64);
    number.with_context(|| format!("no `{way}`"))
}

/// The same for a count.
///
/// # Errors
/// There is none.
pub(crate) fn count(said: &Value, way: &str) -> Result<u64> {
    let count = said.pointer(&format!("/{way}")).and_then(Value::as_u64);
    count.with_context(|| format!("no count `{way}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_phrases() {
        let words = Words::of("mode=xdp sent=12 link=13 pps=1.5\n");
        assert_eq!(words.whole("sent").unwrap(), 12);
        assert_eq!(words.number("pps").unwrap(), 1.5);
        assert!(words.whole("en").is_err());
        let said = "tcpdump: listening\n5 packets captured\n0 packets dropped by kernel\n";
        assert_eq!(before(said, &[" packets captured"]), Some(5));
        assert_eq!(
            before(said, &[" packets lost", " packets dropped by kernel"]),
            Some(0)
        );
        assert_eq!(before(said, &[" nothing"]), None);
    }
}
