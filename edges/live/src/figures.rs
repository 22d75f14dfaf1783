//! What is counted of a kind of record, declared once.
//!
//! [`figures!`] makes of one list the counts of an interval, what readers get of them, how both add up, their
//! form in messages and the columns of files; [`rows!`] does the same for what is kept with the keys of a
//! table. What a figure of a type does is in its [`Figure`].

use std::collections::BTreeMap;
use std::fmt::Debug;

use linkweir_sketch::{BoundedCounts, LogLinear, Payload, TopEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use crate::sketch::wire::{Cause, are_bounded};
use crate::text::clean;
use crate::values::Percentiles;

/// Status codes; larger ones count as 0.
pub(crate) const CODES: u16 = 1000;

/// Columns of an interval in a file.
#[derive(Debug, Default)]
pub struct Columns {
    /// Those that every interval has.
    pub own: Vec<(String, Value)>,
    /// Those that only some have.
    pub further: Vec<(String, Value)>,
}

/// A figure while it is counted.
pub trait Figure: Debug + Default + Send + Sync {
    /// What readers get of it.
    type Shown: Debug + Clone + Default + PartialEq + Serialize + Send + Sync;
    /// Whether readers get it at all.
    const IS_SHOWN: bool = true;

    /// Adds that of another interval.
    fn merge(&mut self, other: &Self);

    /// What readers get.
    fn shown(&self) -> Self::Shown;

    /// Adds what was shown of another interval; what is too much for a long history is left out.
    fn add(mine: &mut Self::Shown, theirs: Self::Shown);

    /// Its columns in a file.
    fn columns(name: &str, shown: &Self::Shown, columns: &mut Columns);

    /// Writes it into a message.
    ///
    /// # Errors
    /// Those of the serializer.
    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error>;

    /// Takes it out of a message.
    ///
    /// # Errors
    /// It is not there, or its numbers are out of bounds.
    fn take(name: &'static str, message: &mut Map<String, Value>) -> Result<Self, Cause>;
}

/// An entry of a message.
pub(crate) fn entry<T: DeserializeOwned>(
    name: &str,
    message: &mut Map<String, Value>,
) -> Result<T, Cause> {
    let value = message.remove(name).ok_or(Cause::Malformed)?;
    serde_json::from_value(value).map_err(|_| Cause::Malformed)
}

/// `value` where all counts are in bounds.
pub(crate) fn checked<'a, T>(
    value: T,
    counts: impl IntoIterator<Item = &'a u64>,
) -> Result<T, Cause> {
    let mut counts = counts.into_iter();
    let is_sound = counts.all(|count| are_bounded(&[*count]));
    is_sound.then_some(value).ok_or(Cause::Contradictory)
}

/// A counter.
impl Figure for u64 {
    type Shown = Self;

    fn merge(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }

    fn shown(&self) -> Self {
        *self
    }

    fn add(mine: &mut Self, theirs: Self) {
        *mine = mine.saturating_add(theirs);
    }

    fn columns(name: &str, shown: &Self, columns: &mut Columns) {
        columns.own.push((name.to_owned(), (*shown).into()));
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        message.serialize_entry(name, self)
    }

    fn take(name: &'static str, message: &mut Map<String, Value>) -> Result<Self, Cause> {
        let count = entry(name, message)?;
        checked(count, &[count])
    }
}

/// A counter that follows from others: filled in where the figures are made.
#[derive(Debug, Default)]
pub struct Derived;

impl Figure for Derived {
    type Shown = u64;

    fn merge(&mut self, _other: &Self) {}

    fn shown(&self) -> u64 {
        0
    }

    fn add(mine: &mut u64, theirs: u64) {
        u64::add(mine, theirs);
    }

    fn columns(name: &str, shown: &u64, columns: &mut Columns) {
        u64::columns(name, shown, columns);
    }

    fn send<M: SerializeMap>(&self, _name: &'static str, _message: &mut M) -> Result<(), M::Error> {
        Ok(())
    }

    fn take(_name: &'static str, _message: &mut Map<String, Value>) -> Result<Self, Cause> {
        Ok(Self)
    }
}

/// A counter for the rules and for messages, which readers get in another form.
#[derive(Debug, Default)]
pub struct Hidden(pub u64);

impl Figure for Hidden {
    type Shown = ();
    const IS_SHOWN: bool = false;

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn shown(&self) {}

    fn add(_mine: &mut (), _theirs: ()) {}

    fn columns(_name: &str, _shown: &(), _columns: &mut Columns) {}

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        self.0.send(name, message)
    }

    fn take(name: &'static str, message: &mut Map<String, Value>) -> Result<Self, Cause> {
        u64::take(name, message).map(Self)
    }
}

/// Counts by status code.
#[derive(Debug, Default)]
pub struct Codes(BTreeMap<u16, u64>);

impl Codes {
    pub(crate) fn record(&mut self, code: u16) {
        *self
            .0
            .entry(if code < CODES { code } else { 0 })
            .or_default() += 1;
    }
}

impl Figure for Codes {
    type Shown = BTreeMap<u16, u64>;

    fn merge(&mut self, other: &Self) {
        Self::add(&mut self.0, other.0.clone());
    }

    fn shown(&self) -> Self::Shown {
        self.0.clone()
    }

    fn add(mine: &mut Self::Shown, theirs: Self::Shown) {
        for (code, count) in theirs {
            mine.entry(code).or_default().merge(&count);
        }
    }

    fn columns(_name: &str, shown: &Self::Shown, columns: &mut Columns) {
        let codes = shown.iter();
        let codes = codes.map(|(code, count)| (format!("code_{code}"), (*count).into()));
        columns.further.extend(codes);
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        message.serialize_entry(name, &self.0)
    }

    fn take(name: &'static str, message: &mut Map<String, Value>) -> Result<Self, Cause> {
        let mut counts: BTreeMap<u16, u64> = entry(name, message)?;
        if counts.keys().any(|code| *code >= CODES) {
            return Err(Cause::Contradictory);
        }
        checked((), counts.values())?;
        counts.retain(|_, count| *count > 0);
        Ok(Self(counts))
    }
}

/// Counts by a name, for at most `MAX` names; all others together are `other`. Only where `KEPT`, they
/// are in files and in a long history.
#[derive(Debug)]
pub struct Names<const MAX: usize, const KEPT: bool>(BoundedCounts);

impl<const MAX: usize, const KEPT: bool> Default for Names<MAX, KEPT> {
    fn default() -> Self {
        Self(BoundedCounts::new(MAX))
    }
}

impl<const MAX: usize, const KEPT: bool> Names<MAX, KEPT> {
    pub(crate) fn record(&mut self, name: &[u8]) {
        self.0.record(name);
    }

    fn cleaned(&self) -> BTreeMap<String, u64> {
        let mut names = BTreeMap::new();
        for (name, count) in self.0.iter() {
            *names.entry(clean(name)).or_default() += count;
        }
        names
    }
}

/// The entry of a message for what has no name of its own.
fn other(name: &str) -> String {
    format!("other_{name}")
}

impl<const MAX: usize, const KEPT: bool> Figure for Names<MAX, KEPT> {
    type Shown = BTreeMap<String, u64>;

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn shown(&self) -> Self::Shown {
        let mut names = self.cleaned();
        if self.0.other() > 0 {
            *names.entry("other".to_owned()).or_default() += self.0.other();
        }
        names
    }

    fn add(mine: &mut Self::Shown, theirs: Self::Shown) {
        if !KEPT {
            return;
        }
        for (name, count) in theirs {
            let is_known = mine.len() < MAX || mine.contains_key(&name);
            let name = if is_known { name } else { "other".to_owned() };
            mine.entry(name).or_default().merge(&count);
        }
    }

    fn columns(name: &str, shown: &Self::Shown, columns: &mut Columns) {
        if KEPT {
            let of = name.trim_end_matches('s');
            let names = shown.iter();
            let names = names.map(|(name, n)| (format!("events_{of}_{name}"), (*n).into()));
            columns.further.extend(names);
        }
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        message.serialize_entry(name, &self.cleaned())?;
        message.serialize_entry(&other(name), &self.0.other())
    }

    fn take(name: &'static str, message: &mut Map<String, Value>) -> Result<Self, Cause> {
        let names: BTreeMap<String, u64> = entry(name, message)?;
        let others = entry(&other(name), message)?;
        checked((), names.values().chain(&[others]))?;
        let mut counts = Self::default();
        for (name, count) in &names {
            counts.0.record_n(name.as_bytes(), *count);
        }
        counts.0.record_other(others);
        Ok(counts)
    }
}

/// One of a few classes that have names.
pub trait Class: Debug + Copy + PartialEq + Send + Sync + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// Its name.
    fn name(self) -> &'static str;
}

/// Counts by class.
#[derive(Debug)]
pub struct Classes<C>(Vec<(C, u64)>);

impl<C> Default for Classes<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Class> Classes<C> {
    /// The count of a class.
    #[must_use]
    pub fn get(&self, class: C) -> u64 {
        let mut counts = self.0.iter();
        counts
            .find_map(|(one, count)| (*one == class).then_some(*count))
            .unwrap_or(0)
    }

    /// Counts `times` of a class.
    pub fn record_n(&mut self, class: C, times: u64) {
        if times == 0 {
            return;
        }
        match self.0.iter_mut().find(|(one, _)| *one == class) {
            Some((_, count)) => count.merge(&times),
            None => self.0.push((class, times)),
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl<C: Class> Figure for Classes<C> {
    type Shown = BTreeMap<&'static str, u64>;

    fn merge(&mut self, other: &Self) {
        for (class, count) in &other.0 {
            self.record_n(*class, *count);
        }
    }

    fn shown(&self) -> Self::Shown {
        self.0
            .iter()
            .map(|(class, count)| (class.name(), *count))
            .collect()
    }

    fn add(mine: &mut Self::Shown, theirs: Self::Shown) {
        for (class, count) in theirs {
            mine.entry(class).or_default().merge(&count);
        }
    }

    fn columns(_name: &str, shown: &Self::Shown, columns: &mut Columns) {
        for class in C::ALL {
            let name = class.name();
            u64::columns(name, shown.get(name).unwrap_or(&0), columns);
        }
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        message.serialize_entry(name, &self.shown())
    }

    fn take(name: &'static str, message: &mut Map<String, Value>) -> Result<Self, Cause> {
        let names: BTreeMap<String, u64> = entry(name, message)?;
        checked((), names.values())?;
        let mut counts = Self::default();
        for (name, count) in names {
            let class = C::ALL.iter().find(|class| class.name() == name);
            counts.record_n(*class.ok_or(Cause::Contradictory)?, count);
        }
        Ok(counts)
    }
}

/// What [`figures!`] makes: the counts of an interval, of a run, or of what a rule looks at.
pub trait Counts: Debug + Default + Serialize + Send + Sync {
    /// What readers get.
    type Figures: Debug + Clone + Default + PartialEq + Serialize + Send + Sync;

    /// Adds those of another interval.
    fn merge(&mut self, other: &Self);

    /// What readers get.
    fn figures(&self) -> Self::Figures;

    /// Adds the figures of another interval, but for distributions.
    fn add(mine: &mut Self::Figures, theirs: Self::Figures);

    /// The distributions, in the order of [`Kind::Of`](crate::Kind::Of).
    fn distributions(&self) -> Vec<&LogLinear>;

    /// The same, to be written.
    fn distributions_mut(&mut self) -> Vec<&mut LogLinear>;

    /// What readers get of the distributions, with the names of the figures.
    fn percentiles(figures: &mut Self::Figures) -> Vec<(&'static str, &mut Option<Percentiles>)>;

    /// The columns of an interval in a file, without distributions.
    fn columns(figures: &Self::Figures) -> Columns;

    /// Reads the counts of a message; distributions come apart.
    ///
    /// # Errors
    /// Something is missing, unknown or out of bounds.
    fn take(message: Map<String, Value>) -> Result<Self, Cause>;
}

/// Declares the figures of a kind: documentation, name, type, and the name in messages where it is
/// another one; then its distributions. `derive` fills in what follows from other counts, `is_sound`
/// says whether counts of a message agree.
macro_rules! figures {
    (@wire $name:ident) => { stringify!($name) };
    (@wire $name:ident $wire:literal) => { $wire };
    (
        $(#[$meta:meta])*
        $counts:ident => $figures:ident { $($(#[$doc:meta])+ $name:ident: $type:ty $(= $wire:literal)?,)+ }
        distributions { $($(#[$of_doc:meta])+ $of:ident,)+ }
        derive $derive:expr;
        is_sound $is_sound:expr;
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub struct $counts {
            $($(#[$doc])+ pub $name: $type,)+
            $($(#[$of_doc])+ pub $of: linkweir_sketch::LogLinear,)+
        }

        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $figures {
            $($(#[$doc])+ pub $name: <$type as $crate::figures::Figure>::Shown,)+
            $($(#[$of_doc])+ pub $of: Option<$crate::values::Percentiles>,)+
        }

        impl serde::Serialize for $figures {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(if <$type as $crate::figures::Figure>::IS_SHOWN {
                    map.serialize_entry(stringify!($name), &self.$name)?;
                })+
                $(map.serialize_entry(stringify!($of), &self.$of)?;)+
                map.end()
            }
        }

        impl serde::Serialize for $counts {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $($crate::figures::Figure::send(
                    &self.$name,
                    $crate::figures::figures!(@wire $name $($wire)?),
                    &mut map,
                )?;)+
                map.end()
            }
        }

        impl $crate::figures::Counts for $counts {
            type Figures = $figures;

            fn merge(&mut self, other: &Self) {
                $($crate::figures::Figure::merge(&mut self.$name, &other.$name);)+
                $(self.$of.merge(&other.$of);)+
            }

            fn figures(&self) -> $figures {
                let mut figures = $figures {
                    $($name: $crate::figures::Figure::shown(&self.$name),)+
                    $($of: $crate::values::Percentiles::of(&self.$of),)+
                };
                let derive: fn(&Self, &mut $figures) = $derive;
                derive(self, &mut figures);
                figures
            }

            fn add(mine: &mut $figures, theirs: $figures) {
                $(<$type as $crate::figures::Figure>::add(&mut mine.$name, theirs.$name);)+
            }

            fn distributions(&self) -> Vec<&linkweir_sketch::LogLinear> {
                vec![$(&self.$of),+]
            }

            fn distributions_mut(&mut self) -> Vec<&mut linkweir_sketch::LogLinear> {
                vec![$(&mut self.$of),+]
            }

            fn percentiles(
                figures: &mut $figures,
            ) -> Vec<(&'static str, &mut Option<$crate::values::Percentiles>)> {
                vec![$((stringify!($of), &mut figures.$of)),+]
            }

            fn columns(figures: &$figures) -> $crate::figures::Columns {
                let mut columns = $crate::figures::Columns::default();
                $(<$type as $crate::figures::Figure>::columns(
                    stringify!($name),
                    &figures.$name,
                    &mut columns,
                );)+
                columns
            }

            fn take(
                mut message: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::sketch::wire::Cause> {
                let counts = Self {
                    $($name: $crate::figures::Figure::take(
                        $crate::figures::figures!(@wire $name $($wire)?),
                        &mut message,
                    )?,)+
                    ..Self::default()
                };
                if !message.is_empty() {
                    return Err($crate::sketch::wire::Cause::Malformed);
                }
                let is_sound: fn(&Self) -> bool = $is_sound;
                is_sound(&counts).then_some(counts).ok_or($crate::sketch::wire::Cause::Contradictory)
            }
        }
    };
}
pub(crate) use figures;

/// What [`rows!`] makes: what is kept with a key of a table.
pub trait Keyed: Payload + Debug + Send + Sync {
    /// What readers get of a key.
    type Row: Debug + Clone + PartialEq + Serialize + Send + Sync;
    /// Its form in messages.
    type Wire: Debug + Clone + Serialize + DeserializeOwned + Send;
    /// Names of the fields of a row.
    const COLUMNS: &'static [&'static str];

    /// The row of a key whose text is `key`.
    fn row(key: String, entry: &TopEntry<'_, Self>) -> Self::Row
    where
        Self: Sized;

    /// As it is sent.
    fn send(&self) -> Self::Wire;

    /// As it came.
    ///
    /// # Errors
    /// [`Cause::Contradictory`].
    fn take(sent: &Self::Wire) -> Result<Self, Cause>
    where
        Self: Sized;
}

/// Declares the rows of a table: the count that ranks keys, the further counts (`count`; `bytes` are what a
/// stranger declared, and may be any number), and figures of a small histogram.
macro_rules! rows {
    (@is_sound count $value:expr) => { $crate::sketch::wire::are_bounded(&[$value]) };
    (@is_sound bytes $value:expr) => { true };
    (
        $(#[$meta:meta])*
        $keyed:ident => $row:ident, $wire:ident {
            $(#[$key_doc:meta])+ key,
            $(#[$total_doc:meta])+ $total:ident,
            $($(#[$doc:meta])+ $name:ident: $type:ident,)+
        }
        $($(#[$of_doc:meta])+ histogram $of:ident { $($(#[$value_doc:meta])+ $value:ident = $get:expr,)+ })?
    ) => {
        /// What is kept with a key.
        #[derive(Debug, Clone, Default)]
        pub struct $keyed {
            $($(#[$doc])+ pub $name: u64,)+
            $($(#[$of_doc])+ pub $of: linkweir_sketch::Coarse,)?
        }

        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        pub struct $row {
            $(#[$key_doc])+ pub key: String,
            $(#[$total_doc])+ pub $total: u64,
            $($(#[$doc])+ pub $name: u64,)+
            $($($(#[$value_doc])+ pub $value: Option<u64>,)+)?
        }

        /// What is kept with a key, in a message.
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $wire {
            $(#[serde(default, skip_serializing_if = "crate::sketch::wire::is_zero")]
            $name: u64,)+
            $(#[serde(default, skip_serializing_if = "Option::is_none")]
            $of: Option<$crate::sketch::wire::Small>,)?
        }

        impl linkweir_sketch::Payload for $keyed {
            fn merge(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)+
                $(self.$of.merge(&other.$of);)?
            }

            fn reset(&mut self) {
                $(self.$name = 0;)+
                $(self.$of.reset();)?
            }
        }

        impl $crate::figures::Keyed for $keyed {
            type Row = $row;
            type Wire = $wire;
            const COLUMNS: &'static [&'static str] = &[
                "key",
                stringify!($total),
                $(stringify!($name),)+
                $($(stringify!($value),)+)?
            ];

            fn row(key: String, entry: &linkweir_sketch::TopEntry<'_, Self>) -> $row {
                let keyed = entry.payload;
                $row {
                    key,
                    $total: entry.count,
                    $($name: keyed.$name,)+
                    $($($value: {
                        let get: fn(&linkweir_sketch::Coarse) -> Option<u64> = $get;
                        get(&keyed.$of)
                    },)+)?
                }
            }

            fn send(&self) -> $wire {
                $wire {
                    $($name: self.$name,)+
                    $($of: $crate::sketch::wire::Small::of(&self.$of),)?
                }
            }

            fn take(sent: &$wire) -> Result<Self, $crate::sketch::wire::Cause> {
                let is_sound = true $(&& $crate::figures::rows!(@is_sound $type sent.$name))+;
                if !is_sound {
                    return Err($crate::sketch::wire::Cause::Contradictory);
                }
                Ok(Self {
                    $($name: sent.$name,)+
                    $($of: $crate::sketch::wire::Small::values(sent.$of.as_ref())
                        .ok_or($crate::sketch::wire::Cause::Contradictory)?,)?
                })
            }
        }
    };
}
pub(crate) use rows;
