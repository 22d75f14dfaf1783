//! Values of the file that serde does not know: sizes, spans of time, lists of which one may stand alone; and errors with the
//! line and column they are at.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, Visitor};
use toml::Spanned;

use crate::exit::Wrong;
use crate::units;

/// The file, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Place<'_> {
    /// What is wrong at a place: `gateway.toml:12:8: what`.
    pub(super) fn wrong(&self, at: &Range<usize>, what: impl Display) -> Wrong {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before.get(start..).map_or(0, |part| part.chars().count()) + 1;
        Wrong(format!("{}:{line}:{column}: {what}", self.path.display()))
    }

    /// An error of the reader of TOML.
    pub(super) fn not_read(&self, error: &toml::de::Error) -> Wrong {
        let at = error.span().unwrap_or_default();
        let hint = match self.text.get(at.clone()) {
            Some("rule" | "[rule]") => "; rules are [[rule]], twice in brackets",
            _ => "",
        };
        // What points into an expression stays in its lines.
        let what = if error.message().contains("\n ") {
            error.message().to_owned()
        } else {
            plain(&error.message().replace('\n', " "))
        };
        self.wrong(&at, format!("{what}{hint}"))
    }

    /// A path of the file: relative ones are relative to the file's directory.
    pub(super) fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path.with_file_name(path.as_ref())
    }
}

/// What serde says, in the words of TOML, with the word that may have been meant.
fn plain(message: &str) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("missing field", "missing key"),
        ("expected a sequence", "expected a list"),
        ("expected a string", "expected a string in quotes"),
        ("expected a boolean", "expected true or false"),
        ("expected u16", "expected a whole number"),
    ];
    let found = WORDS.iter().find(|(serde, _)| message.contains(serde));
    let Some((serde, own)) = found else {
        return message.to_owned();
    };
    let message = message.replacen(serde, own, 1);
    let mut quoted = message.split('`').skip(1).step_by(2);
    let (written, known): (_, Vec<&str>) = (quoted.next().unwrap_or_default(), quoted.collect());
    match nearest(written, &known) {
        Some(one) => format!("{message}; did you mean `{one}`?"),
        None => message,
    }
}

/// The word that is most like another, if any is, as clap does for flags; of several alike the one that begins as it does.
pub(super) fn nearest<'a>(word: &str, all: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    let alike = all.iter().map(|one| (strsim::jaro(&lower, one), *one));
    let alike = alike.filter(|(alike, _)| *alike > 0.7);
    let begins = |one: &str| strsim::jaro_winkler(&lower, one);
    let nearest = alike.max_by(|(_, one), (_, other)| begins(one).total_cmp(&begins(other)));
    nearest.map(|(_, one)| one)
}

/// A string that `FromStr` reads.
#[derive(Debug, Clone)]
pub(super) struct Parsed<T>(pub(super) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_with(from, str::parse).map(Self)
    }
}

/// Reads a string by a function. The error has the place of the string, also in a list.
fn read_with<'de, D: Deserializer<'de>, T, E: Display>(
    from: D,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    struct Reading<F, T, E>(F, PhantomData<(T, E)>);

    impl<F: FnOnce(&str) -> Result<T, E>, T, E: Display> Visitor<'_> for Reading<F, T, E> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<G: serde::de::Error>(self, text: &str) -> Result<T, G> {
            (self.0)(text).map_err(G::custom)
        }
    }

    from.deserialize_str(Reading(read, PhantomData))
}

/// A size with a unit, bytes, in what holds it.
pub(super) fn size<'de, N: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<N, D::Error> {
    read_with(from, |text| {
        N::try_from(units::size(text)?).map_err(|_| format!("`{text}` is out of range"))
    })
}

/// A span of time with a unit.
pub(super) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    read_with(from, units::duration)
}

/// A span of time with a unit, in nanoseconds.
pub(super) fn nanos<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    duration(from).map(linkweir_wire::nanos)
}

/// A whole number from `MIN` to `MAX`, in what holds it.
pub(super) fn whole<'de, const MIN: u64, const MAX: u64, N: TryFrom<u64>, D: Deserializer<'de>>(
    from: D,
) -> Result<N, D::Error> {
    struct Whole<const MIN: u64, const MAX: u64>;

    impl<const MIN: u64, const MAX: u64> Visitor<'_> for Whole<MIN, MAX> {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number from {MIN} to {MAX}, without quotes")
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<u64, E> {
            if (MIN..=MAX).contains(&number) {
                Ok(number)
            } else {
                Err(E::invalid_value(Unexpected::Unsigned(number), &self))
            }
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u64, E> {
            match u64::try_from(number) {
                Ok(number) => self.visit_u64(number),
                Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
            }
        }
    }

    let number = from.deserialize_any(Whole::<MIN, MAX>)?;
    N::try_from(number).map_err(|_| D::Error::custom(format!("{number} is out of range")))
}

/// One value, or a list of them that is not empty; each with its place. No value where the key is not there.
#[derive(Debug, Clone)]
pub(super) struct List<T>(pub(super) Vec<Spanned<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = Spanned::<OneOrMany<T>>::deserialize(from)?;
        let at = read.span();
        Ok(match read.into_inner() {
            OneOrMany::One(one) => Self(vec![Spanned::new(at, one)]),
            OneOrMany::Many(many) => Self(many),
        })
    }
}

enum OneOrMany<T> {
    One(T),
    Many(Vec<Spanned<T>>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value, or a list of them")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(OneOrMany::One)
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(OneOrMany::One)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(OneOrMany::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                let many = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                if many.is_empty() {
                    let what = "the list is empty: name something, or leave the key out";
                    return Err(A::Error::custom(what));
                }
                Ok(OneOrMany::Many(many))
            }
        }

        from.deserialize_any(Items(PhantomData))
    }
}

/// A word, or the table that says more than it.
#[derive(Debug, Clone)]
pub(super) enum WordOr<W, T> {
    Word(W),
    Table(T),
}

impl<'de, W: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for WordOr<W, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either<W, T>(PhantomData<(W, T)>);

        impl<'de, W: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for Either<W, T> {
            type Value = WordOr<W, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a table")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                W::deserialize(text.into_deserializer()).map(WordOr::Word)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(WordOr::Table)
            }
        }

        from.deserialize_any(Either(PhantomData))
    }
}
