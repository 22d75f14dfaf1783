//! Names of feeds and their consumers.

/// Letters of a name at most.
const LONGEST: usize = 64;

/// Whether a feed may be called so: `[A-Za-z0-9._-]`, 1 to 64 of them.
fn is_name(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Checks the name of a feed.
///
/// # Errors
/// What is wrong with it, for a person.
pub fn check_name(text: &str) -> Result<&str, String> {
    if is_name(text) {
        Ok(text)
    } else {
        Err(format!(
            "`{text}` is not a valid feed name: 1 to {LONGEST} letters, digits, `.`, `_` or `-`"
        ))
    }
}

/// Which consumer of which feed: `NAME/K`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerName {
    /// The feed.
    pub feed: String,
    /// The consumer, from 0. The number of consumers itself is another name of 0, so that those who
    /// count from 1 to N are right too.
    pub number: u32,
}

impl std::str::FromStr for ConsumerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (feed, number) = text.rsplit_once('/').ok_or_else(|| {
            format!("`{text}` names no consumer: write NAME/K, for example {text}/0")
        })?;
        let feed = check_name(feed)?.to_owned();
        let number = number
            .parse()
            .map_err(|_| format!("`{number}` is not a consumer number: write {feed}/0"))?;
        Ok(Self { feed, number })
    }
}

impl std::fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.feed, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name: ConsumerName = "up-link.1/3".parse().unwrap();
        assert_eq!((name.feed.as_str(), name.number), ("up-link.1", 3));
        assert_eq!(name.to_string(), "up-link.1/3");
        for wrong in ["a", "a/", "/0", "a b/0", "a/-1", "a/b/0", "a/4294967296"] {
            assert!(wrong.parse::<ConsumerName>().is_err(), "{wrong}");
        }
        assert!(check_name(&"x".repeat(64)).is_ok() && check_name(&"x".repeat(65)).is_err());
        assert!(check_name("").is_err() && check_name("é").is_err());
    }
}
