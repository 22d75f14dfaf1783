//! A table of the file, taken key by key; every fault names its line and column.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

    /// A path of the file: relative ones are relative to the file's folder.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.with_file_name(path)
    }
}

/// A text and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

/// A table. Keys are taken out; what is left at the end is not known.
#[derive(Debug)]
pub(super) struct Section<'a, 'i> {
    place: Place<'a>,
    table: DeTable<'i>,
    /// Where the table begins.
    pub(super) at: Range<usize>,
    known: Vec<&'static str>,
}

type Result<T> = std::result::Result<T, Wrong>;

/// The word that is most like another, if any is, as clap does for flags.
pub(super) fn nearest<'a>(word: &str, all: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    let alike = all.iter().map(|one| (strsim::jaro(&lower, one), *one));
    let alike = alike.filter(|(alike, _)| *alike > 0.7);
    let nearest = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, one)| one)
}

impl<'a, 'i> Section<'a, 'i> {
    pub(super) fn new(place: Place<'a>, table: Spanned<DeTable<'i>>) -> Self {
        Self {
            place,
            at: table.span(),
            table: table.into_inner(),
            known: Vec::new(),
        }
    }

    pub(super) const fn place(&self) -> Place<'a> {
        self.place
    }

    fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'i>>> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// What is wrong with the table as a whole.
    pub(super) fn wrong(&self, what: impl Display) -> Wrong {
        self.place.wrong(&self.at, what)
    }

    /// Every key has been asked for: another one is an error.
    pub(super) fn end(self) -> Result<()> {
        self.no_others()
    }

    /// As [`Section::end`], before something is said that a misspelt key may be the reason of.
    pub(super) fn no_others(&self) -> Result<()> {
        let Some(key) = self.table.keys().next() else {
            return Ok(());
        };
        let mut known = self.known.clone();
        known.sort_unstable();
        let there = match nearest(key.get_ref(), &known) {
            Some(one) => format!("did you mean `{one}`? There"),
            None => "there".to_owned(),
        };
        let what = format!(
            "unknown key `{}`; {there} are {}",
            key.get_ref(),
            known.join(", ")
        );
        Err(self.place.wrong(&key.span(), what))
    }

    /// A text.
    pub(super) fn word(&mut self, key: &'static str) -> Result<Option<Word>> {
        self.take(key)
            .map(|value| self.text_of(key, &value))
            .transpose()
    }

    fn text_of(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Word> {
        let at = value.span();
        match value.get_ref().as_str() {
            Some(text) => Ok(Word {
                text: text.to_owned(),
                at,
            }),
            None => Err(self
                .place
                .wrong(&at, format!("`{key}` must be a text in quotes"))),
        }
    }

    /// One text or a list of them.
    pub(super) fn words(&mut self, key: &'static str) -> Result<Vec<Word>> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        match value.get_ref().as_array() {
            Some(list) if list.is_empty() => {
                let what = format!("`{key}` is empty: name something, or leave it out");
                Err(self.place.wrong(&value.span(), what))
            }
            Some(list) => list.iter().map(|item| self.text_of(key, item)).collect(),
            None => Ok(vec![self.text_of(key, &value)?]),
        }
    }

    /// true or false.
    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> Result<bool> {
        let Some(value) = self.take(key) else {
            return Ok(default);
        };
        let what = || format!("`{key}` must be true or false");
        let flag = value.get_ref().as_bool();
        flag.ok_or_else(|| self.place.wrong(&value.span(), what()))
    }

    /// A whole number in a range.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        default: u64,
        range: Range<u64>,
    ) -> Result<u64> {
        self.number_as(key, default, range, Ok::<_, Wrong>)
    }

    /// A whole number in a range that something reads.
    pub(super) fn number_as<T, E: Display>(
        &mut self,
        key: &'static str,
        default: u64,
        range: Range<u64>,
        read: impl Fn(u64) -> std::result::Result<T, E>,
    ) -> Result<T> {
        let Some(value) = self.take(key) else {
            return read(default).map_err(|error| self.wrong(error));
        };
        let at = value.span();
        let number = value.get_ref().as_integer();
        let number = number.and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
        let Some(number) = number.filter(|n| range.contains(n)) else {
            let (least, most) = (range.start, range.end - 1);
            let what =
                format!("`{key}` must be a whole number from {least} to {most}, without quotes");
            return Err(self.place.wrong(&at, what));
        };
        read(number).map_err(|error| self.place.wrong(&at, error))
    }

    /// A text that something reads.
    pub(super) fn parsed<T, E: Display>(
        &mut self,
        key: &'static str,
        default: T,
        parse: impl Fn(&str) -> std::result::Result<T, E>,
    ) -> Result<T> {
        let Some(word) = self.word(key)? else {
            return Ok(default);
        };
        parse(&word.text).map_err(|error| self.place.wrong(&word.at, format!("`{key}`: {error}")))
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        default: T,
        words: &[(&str, T)],
    ) -> Result<T> {
        let Some(word) = self.word(key)? else {
            return Ok(default);
        };
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == word.text) {
            return Ok(*value);
        }
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let what = format!(
            "`{key}` must be {}, not `{}`",
            names.join(" or "),
            word.text
        );
        Err(self.place.wrong(&word.at, what))
    }

    /// A size with a unit.
    pub(super) fn size(&mut self, key: &'static str, default: u64) -> Result<u64> {
        self.parsed(key, default, units::size)
    }

    /// A size that memory can have.
    pub(super) fn bytes(&mut self, key: &'static str, default: usize) -> Result<usize> {
        self.parsed(key, default, |text| {
            usize::try_from(units::size(text)?).map_err(|error| error.to_string())
        })
    }

    /// A span of time with a unit.
    pub(super) fn duration(&mut self, key: &'static str, default: Duration) -> Result<Duration> {
        self.parsed(key, default, units::duration)
    }

    /// A path, relative to the file.
    pub(super) fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>> {
        Ok(self.word(key)?.map(|word| self.place.resolve(&word.text)))
    }

    /// Whether a value is a table.
    pub(super) fn is_table(&self, key: &str) -> bool {
        let value = self.table.get(key).map(Spanned::get_ref);
        matches!(value, Some(DeValue::Table(_)))
    }

    /// A table in the table; an empty one where there is none.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Option<Self>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Some(Self {
                place: self.place,
                table,
                at,
                known: Vec::new(),
            })),
            _ => {
                let what = format!("`{key}` must be a table: [{key}]");
                Err(self.place.wrong(&at, what))
            }
        }
    }

    /// A list of tables.
    pub(super) fn sections(&mut self, key: &'static str) -> Result<Vec<Self>> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        let wrong = |at: &Range<usize>| {
            let what = format!("`{key}` is a list of tables: write [[{key}]], twice in brackets");
            self.place.wrong(at, what)
        };
        let at = value.span();
        let DeValue::Array(list) = value.into_inner() else {
            return Err(wrong(&at));
        };
        list.into_iter()
            .map(|item| {
                let at = item.span();
                match item.into_inner() {
                    DeValue::Table(table) => Ok(Self {
                        place: self.place,
                        table,
                        at,
                        known: Vec::new(),
                    }),
                    _ => Err(wrong(&at)),
                }
            })
            .collect()
    }
}
