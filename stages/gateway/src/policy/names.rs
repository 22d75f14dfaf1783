//! Patterns of names: `*` stands for any bytes, `?` for one; letters match in both cases.

/// A pattern of a file or server name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Vec<u8>);

impl NamePattern {
    /// A pattern from its source.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_ascii_lowercase().into_bytes())
    }

    /// The pattern as text, in lower case.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it matches all of `name`. Cost: at most the product of the two lengths.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        let mut pattern = self.0.as_slice();
        let mut rest = name;
        // Where to go on when a guess about the last `*` was wrong.
        let mut retry: Option<(&[u8], &[u8])> = None;
        loop {
            match (pattern.split_first(), rest.split_first()) {
                (Some((b'*', after)), _) => {
                    retry = Some((after, rest));
                    pattern = after;
                    continue;
                }
                (Some((want, after)), Some((have, tail)))
                    if *want == b'?' || *want == have.to_ascii_lowercase() =>
                {
                    pattern = after;
                    rest = tail;
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            let Some((after, [_, tail @ ..])) = retry else {
                return false;
            };
            retry = Some((after, tail));
            pattern = after;
            rest = tail;
        }
    }
}

/// Several patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamePatterns(pub Vec<NamePattern>);

impl NamePatterns {
    /// The first pattern that matches.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&NamePattern> {
        self.0.iter().find(|pattern| pattern.matches(name))
    }
}
