//! A table of a script file, taken key by key; every fault has its line and column.

use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::script::fault::ScriptError;

pub(super) type Result<T> = std::result::Result<T, ScriptError>;
/// A value and where it stands.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// A table. Keys are taken out; what is left at the end is not known.
#[derive(Debug)]
pub(super) struct Section<'i> {
    text: &'i str,
    at: Range<usize>,
    table: DeTable<'i>,
    known: Vec<&'static str>,
}

impl<'i> Section<'i> {
    pub(super) fn new(text: &'i str, table: Spanned<DeTable<'i>>) -> Self {
        Self {
            text,
            at: table.span(),
            table: table.into_inner(),
            known: Vec::new(),
        }
    }

    /// The table that a value is.
    pub(super) fn of(text: &'i str, value: Value<'i>, name: &str) -> Result<Self> {
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::new(text, Spanned::new(at, table))),
            _ => Err(ScriptError::at(
                text,
                at.start,
                format!("`{name}` must be a table"),
            )),
        }
    }

    pub(super) const fn text(&self) -> &'i str {
        self.text
    }

    /// A fault of the table as a whole.
    pub(super) fn wrong(&self, what: impl Display) -> ScriptError {
        self.wrong_at(&self.at, what)
    }

    pub(super) fn wrong_at(&self, at: &Range<usize>, what: impl Display) -> ScriptError {
        ScriptError::at(self.text, at.start, what)
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Value<'i>> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Every key has been asked for: another one is a fault.
    pub(super) fn end(mut self) -> Result<()> {
        let Some(key) = self.table.keys().next() else {
            return Ok(());
        };
        self.known.sort_unstable();
        let what = format!(
            "unknown key `{}`; there are {}",
            key.get_ref(),
            self.known.join(", ")
        );
        Err(self.wrong_at(&key.span(), what))
    }

    /// The keys that nobody asked for, with their values: fields of a head.
    pub(super) fn into_pairs(self) -> impl Iterator<Item = (Spanned<String>, Value<'i>)> {
        self.table.into_iter().map(|(key, value)| {
            let at = key.span();
            (Spanned::new(at, key.into_inner().into_owned()), value)
        })
    }

    /// A text.
    pub(super) fn word(&mut self, key: &'static str) -> Result<Option<Spanned<String>>> {
        let value = self.take(key);
        value.map(|value| self.word_of(key, &value)).transpose()
    }

    pub(super) fn word_of(&self, key: &str, value: &Value<'i>) -> Result<Spanned<String>> {
        let at = value.span();
        match value.get_ref().as_str() {
            Some(word) => Ok(Spanned::new(at, word.to_owned())),
            None => Err(self.wrong_at(&at, format!("`{key}` must be a text in quotes"))),
        }
    }

    /// true or false.
    pub(super) fn flag(&mut self, key: &'static str) -> Result<Option<bool>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let what = || self.wrong_at(&value.span(), format!("`{key}` must be true or false"));
        value.get_ref().as_bool().map(Some).ok_or_else(what)
    }

    /// A whole number from `least` to `most`.
    pub(super) fn whole(
        &mut self,
        key: &'static str,
        least: u32,
        most: u32,
    ) -> Result<Option<u32>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let number = value.get_ref().as_integer();
        let number = number.and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        let number = number.filter(|n| (least..=most).contains(n));
        let what = || {
            let what = format!("`{key}` must be a whole number from {least} to {most}");
            self.wrong_at(&value.span(), what)
        };
        number.map(Some).ok_or_else(what)
    }

    /// A number, whole or not.
    pub(super) fn number(&mut self, key: &'static str) -> Result<Option<f64>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let what = || self.wrong_at(&value.span(), format!("`{key}` must be a number"));
        number_of(value.get_ref()).map(Some).ok_or_else(what)
    }

    /// A list.
    pub(super) fn list(&mut self, key: &'static str) -> Result<Vec<Value<'i>>> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        let at = value.span();
        match value.into_inner() {
            DeValue::Array(list) => Ok(list.into_iter().collect()),
            _ => Err(self.wrong_at(&at, format!("`{key}` must be a list: [ ... ] or [[{key}]]"))),
        }
    }
}

/// The number that a value is.
pub(super) fn number_of(value: &DeValue<'_>) -> Option<f64> {
    let whole = value
        .as_integer()
        .and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok());
    #[expect(clippy::cast_precision_loss, reason = "a number that a person wrote")]
    let whole = whole.map(|whole| whole as f64);
    whole.or_else(|| value.as_float()?.as_str().replace('_', "").parse().ok())
}
