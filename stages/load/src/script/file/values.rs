//! Values of a script file that serde does not know: spans of time, fixed or drawn; objects of a page; header fields.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use toml::Spanned;

use super::RequestTable;
use crate::arrivals::whole_nanos;
use crate::script::span::{MAX_SECONDS, Span};

/// The cap of an exponential that gives none, against its mean: a draw in 500 million is beyond it.
const EXPONENTIAL_CAP: f64 = 20.0;

const UNITS: [(&str, f64); 6] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Whole<const MIN: i64, const MAX: i64>(pub(super) i64);

impl<const MIN: i64, const MAX: i64> TryFrom<i64> for Whole<MIN, MAX> {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        if (MIN..=MAX).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!(
                "{number} is not a whole number from {MIN} to {MAX}"
            ))
        }
    }
}

impl<const MIN: i64, const MAX: i64> Whole<MIN, MAX> {
    /// The number, or the largest that fits.
    pub(super) fn in_a_byte(self) -> u8 {
        u8::try_from(self.0).unwrap_or(u8::MAX)
    }
}

/// A span of time: a number of seconds, or a string with a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seconds(f64);

impl Seconds {
    /// Whole nanoseconds.
    pub(super) fn nanos(self) -> u64 {
        whole_nanos(self.0 * 1e9)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SecondsVisitor)
    }
}

struct SecondsVisitor;

impl Visitor<'_> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a span of time, like 1.5, \"250ms\" or \"2m\"")
    }

    #[expect(clippy::cast_precision_loss, reason = "a number that a person wrote")]
    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Seconds, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Seconds, E> {
        if (0.0..=MAX_SECONDS).contains(&seconds) {
            Ok(Seconds(seconds))
        } else {
            Err(E::invalid_value(Unexpected::Float(seconds), &self))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Seconds, E> {
        let seconds = with_unit(text).filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
        seconds
            .map(Seconds)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

fn with_unit(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(at)?;
    let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    Some(number.trim_end().parse::<f64>().ok()? * scale)
}

/// A span of time that may be drawn, as it is written.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawn {
    distribution: Distribution,
    mean: Option<Seconds>,
    scale: Option<Seconds>,
    shape: Option<f64>,
    mu: Option<f64>,
    sigma: Option<f64>,
    cap: Option<Seconds>,
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Distribution {
    Exponential,
    Pareto,
    Weibull,
    Lognormal,
}

impl Drawn {
    /// The span, or what is wrong with it.
    fn span(mut self) -> Result<Span, String> {
        let cap = self.cap.take().map(|cap| cap.0);
        // A heavy tail without a cap makes runs that do not repeat.
        let needed_cap = needed(cap, "cap", "the largest value, like \"60s\"");
        let span = match self.distribution {
            Distribution::Exponential => {
                let mean = needed_span(&mut self.mean, "mean")?;
                let cap = cap.unwrap_or(mean * EXPONENTIAL_CAP);
                Span::Exponential { mean, cap }
            }
            Distribution::Pareto => Span::Pareto {
                scale: needed_span(&mut self.scale, "scale")?,
                shape: needed(self.shape.take(), "shape", "a number")?,
                cap: needed_cap?,
            },
            Distribution::Weibull => Span::Weibull {
                scale: needed_span(&mut self.scale, "scale")?,
                shape: needed(self.shape.take(), "shape", "a number")?,
                cap: needed_cap?,
            },
            Distribution::Lognormal => Span::Lognormal {
                mu: needed(self.mu.take(), "mu", "a number")?,
                sigma: needed(self.sigma.take(), "sigma", "a number")?,
                cap: needed_cap?,
            },
        };
        // What the distribution needs has been taken.
        let left = [
            ("mean", self.mean.is_some()),
            ("scale", self.scale.is_some()),
            ("shape", self.shape.is_some()),
            ("mu", self.mu.is_some()),
            ("sigma", self.sigma.is_some()),
        ];
        if let Some((key, _)) = left.into_iter().find(|(_, is_left)| *is_left) {
            let of = match self.distribution {
                Distribution::Exponential => "`mean`, `cap`",
                Distribution::Pareto | Distribution::Weibull => "`scale`, `shape`, `cap`",
                Distribution::Lognormal => "`mu`, `sigma`, `cap`",
            };
            return Err(format!(
                "unknown key `{key}` for this distribution, expected {of}"
            ));
        }
        match span.fault() {
            Some(fault) => Err(fault.to_string()),
            None => Ok(span),
        }
    }
}

fn needed<T>(value: Option<T>, key: &str, what: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("this distribution needs `{key}`, {what}"))
}

fn needed_span(value: &mut Option<Seconds>, key: &str) -> Result<f64, String> {
    needed(value.take().map(|span| span.0), key, "like \"1.5s\"")
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct SpanVisitor;

        impl<'de> Visitor<'de> for SpanVisitor {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                SecondsVisitor.expecting(f)?;
                f.write_str(", or { distribution = ... }")
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Span, E> {
                let seconds = SecondsVisitor.visit_i64(seconds)?;
                Ok(Span::Constant(seconds.nanos()))
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Span, E> {
                let seconds = SecondsVisitor.visit_f64(seconds)?;
                Ok(Span::Constant(seconds.nanos()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                let seconds = SecondsVisitor.visit_str(text)?;
                Ok(Span::Constant(seconds.nanos()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Span, A::Error> {
                let drawn = Drawn::deserialize(MapAccessDeserializer::new(map))?;
                drawn.span().map_err(A::Error::custom)
            }
        }

        from.deserialize_any(SpanVisitor)
    }
}

/// An object of a page: a target alone, or a table.
#[derive(Debug)]
pub(super) enum PageObject {
    Target(String),
    Table(RequestTable),
}

impl<'de> Deserialize<'de> for PageObject {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = PageObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a target in quotes, or a table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PageObject, E> {
                Ok(PageObject::Target(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PageObject, A::Error> {
                RequestTable::deserialize(MapAccessDeserializer::new(map)).map(PageObject::Table)
            }
        }

        from.deserialize_any(ObjectVisitor)
    }
}

/// Header fields, with the places of their names; in the order of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Headers(pub(super) Vec<(Spanned<String>, String)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of names and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Headers(fields))
            }
        }

        from.deserialize_map(FieldsVisitor)
    }
}
