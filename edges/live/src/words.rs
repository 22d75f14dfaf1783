//! Choices that have words in the API.

use std::str::FromStr;

use serde::Serialize;

/// Names its variants as the query strings of the API do.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+ }

        impl $crate::words::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<Self, $crate::words::UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::words::UnknownWord { expected: concat!($($word, " "),+) }),
                }
            }
        }
    };
}
pub(crate) use words;

/// A choice that has a word in the query strings of the API.
pub trait Word:
    Copy + std::fmt::Debug + PartialEq + Serialize + FromStr<Err = UnknownWord> + Send + Sync + 'static
{
    /// All of them; the first is the default.
    const ALL: &'static [Self];

    /// The word of the API.
    #[must_use]
    fn as_str(self) -> &'static str;

    /// Its place among all.
    #[must_use]
    fn position(self) -> usize {
        Self::ALL.iter().position(|one| *one == self).unwrap_or(0)
    }
}

/// A word that is not one of those expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {expected}")]
pub struct UnknownWord {
    /// The words, with a space after each.
    pub expected: &'static str,
}
