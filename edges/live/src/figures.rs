//! What is counted of a kind of record, declared once.
//!
//! [`figures!`] makes of one list the counts of an interval, what readers get of them, how both add up, their
//! form in messages and the columns of files; [`rows!`] does the same for what is kept with the keys of a
//! table. What a figure of a type does is in its [`Figure`](crate::figure::Figure).

use std::fmt::Debug;

use linkweir_sketch::{LogLinear, Payload, TopEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::figure::{Columns, Entries};
use crate::sketch::wire::Cause;
use crate::values::Percentiles;

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
    fn take(message: Entries) -> Result<Self, Cause>;
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
            $($(#[$doc])+ pub $name: <$type as $crate::figure::Figure>::Shown,)+
            $($(#[$of_doc])+ pub $of: Option<$crate::values::Percentiles>,)+
        }

        impl serde::Serialize for $figures {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(if <$type as $crate::figure::Figure>::IS_SHOWN {
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
                $($crate::figure::Figure::send(
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
                $($crate::figure::Figure::merge(&mut self.$name, &other.$name);)+
                $(self.$of.merge(&other.$of);)+
            }

            fn figures(&self) -> $figures {
                let mut figures = $figures {
                    $($name: $crate::figure::Figure::shown(&self.$name),)+
                    $($of: $crate::values::Percentiles::of(&self.$of),)+
                };
                let derive: fn(&Self, &mut $figures) = $derive;
                derive(self, &mut figures);
                figures
            }

            fn add(mine: &mut $figures, theirs: $figures) {
                $(<$type as $crate::figure::Figure>::add(&mut mine.$name, theirs.$name);)+
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

            fn columns(figures: &$figures) -> $crate::figure::Columns {
                let mut columns = $crate::figure::Columns::default();
                $(<$type as $crate::figure::Figure>::columns(
                    stringify!($name),
                    &figures.$name,
                    &mut columns,
                );)+
                columns
            }

            fn take(
                mut message: $crate::figure::Entries,
            ) -> Result<Self, $crate::sketch::wire::Cause> {
                use $crate::sketch::wire::Cause::Malformed;
                $(let $name = $crate::figure::Figure::take(
                    $crate::figures::figures!(@wire $name $($wire)?),
                    &mut message,
                );)+
                // What cannot be read is that, whatever the numbers beside it.
                if !message.is_empty() || [$($name.as_ref().err() == Some(&Malformed)),+].contains(&true) {
                    return Err(Malformed);
                }
                let counts = Self { $($name: $name?,)+ ..Self::default() };
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
/// stranger declared, and may be any number), figures of a small histogram, and what is known of a client.
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
        $(about $about:ident;)?
    ) => {
        /// What is kept with a key.
        #[derive(Debug, Clone, Default)]
        pub struct $keyed {
            $($(#[$doc])+ pub $name: u64,)+
            $($(#[$of_doc])+ pub $of: linkweir_sketch::Coarse,)?
            $(/// What is known of a client.
            pub $about: $crate::about::About,)?
        }

        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        pub struct $row {
            $(#[$key_doc])+ pub key: String,
            $(#[$total_doc])+ pub $total: u64,
            $($(#[$doc])+ pub $name: u64,)+
            $($($(#[$value_doc])+ pub $value: Option<u64>,)+)?
            $(/// What is known of a client, in tables of clients.
            #[serde(flatten)]
            pub $about: $crate::about::AboutRow,)?
        }

        /// What is kept with a key, in a message.
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $wire {
            $(#[serde(default, skip_serializing_if = "crate::sketch::wire::is_zero")]
            $name: u64,)+
            $(#[serde(default, skip_serializing_if = "Option::is_none")]
            $of: Option<$crate::sketch::wire::Small>,)?
            $(#[serde(default, skip_serializing_if = "Option::is_none")]
            $about: Option<$crate::about::AboutRow>,)?
        }

        impl linkweir_sketch::Payload for $keyed {
            fn merge(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)+
                $(self.$of.merge(&other.$of);)?
                $(self.$about.merge(&other.$about);)?
            }

            fn reset(&mut self) {
                $(self.$name = 0;)+
                $(self.$of.reset();)?
                $(self.$about.reset();)?
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
                    $($about: keyed.$about.row(),)?
                }
            }

            fn send(&self) -> $wire {
                $wire {
                    $($name: self.$name,)+
                    $($of: $crate::sketch::wire::Small::of(&self.$of),)?
                    $($about: self.$about.send(),)?
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
                    $($about: $crate::about::About::take(sent.$about.as_ref())
                        .ok_or($crate::sketch::wire::Cause::Contradictory)?,)?
                })
            }
        }
    };
}
pub(crate) use rows;
