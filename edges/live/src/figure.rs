//! The figures that there are: counters, counts by code, by name, by class.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use linkweir_sketch::BoundedCounts;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::sketch::wire::{Cause, are_bounded};
use crate::text::clean;

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
    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause>;
}

/// Entries of a message by name, each once; what is in them is read when it is taken.
#[derive(Debug, Default)]
pub struct Entries(BTreeMap<String, Box<RawValue>>);

impl Entries {
    /// Takes one out.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Cause> {
        let value = self.0.remove(name).ok_or(Cause::Malformed)?;
        serde_json::from_str(value.get()).map_err(|_| Cause::Malformed)
    }

    /// Whether all are taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if entries.insert(name, value).is_some() {
                return Err(A::Error::custom("an entry that comes twice"));
            }
        }
        Ok(Entries(entries))
    }
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

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        let count = message.take(name)?;
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

    fn take(_name: &'static str, _message: &mut Entries) -> Result<Self, Cause> {
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

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        u64::take(name, message).map(Self)
    }
}

/// Counts by status code.
#[derive(Debug, Default)]
pub struct Codes(BTreeMap<u16, u64>);

impl Codes {
    pub(crate) fn record(&mut self, code: u16) {
        self.record_n(code, 1);
    }

    /// Counts `times` responses with a code.
    pub fn record_n(&mut self, code: u16, times: u64) {
        if times > 0 {
            let code = if code < CODES { code } else { 0 };
            self.0.entry(code).or_default().merge(&times);
        }
    }

    /// Those of a class: the first digit of their codes.
    pub(crate) fn in_class(&self, first: u16) -> u64 {
        let class = self.0.range(first * 100..first * 100 + 100);
        class.fold(0, |sum, (_, count)| sum.saturating_add(*count))
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

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        let mut counts: BTreeMap<u16, u64> = message.take(name)?;
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

    pub(crate) fn record_n(&mut self, name: &[u8], times: u64) {
        self.0.record_n(name, times);
    }

    pub(crate) fn total(&self) -> u64 {
        let named = self.0.iter();
        named.fold(self.0.other(), |sum, (_, count)| sum.saturating_add(count))
    }

    pub(crate) fn count(&self, name: &[u8]) -> u64 {
        let mut named = self.0.iter();
        named
            .find_map(|(one, count)| (one == name).then_some(count))
            .unwrap_or(0)
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

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        let names: BTreeMap<String, u64> = message.take(name)?;
        let others = message.take(&other(name))?;
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

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        let names: BTreeMap<String, u64> = message.take(name)?;
        checked((), names.values())?;
        let mut counts = Self::default();
        for (name, count) in names {
            let class = C::ALL.iter().find(|class| class.name() == name);
            counts.record_n(*class.ok_or(Cause::Contradictory)?, count);
        }
        Ok(counts)
    }
}
