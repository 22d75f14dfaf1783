//! A record kind as data: what statements and documents are made from.

use std::fmt::Write;

use crate::schema::{Field, RecordKind, ZeekColumn};
use crate::{DnsKind, FlowKind, GatewayKind, HalfKind, HttpKind, LoadKind, TlsKind};

/// The columns of one kind of records.
#[derive(Debug, Clone, Copy)]
pub struct KindSchema {
    /// [`RecordKind::NAME`].
    pub name: &'static str,
    /// [`RecordKind::VERSION`].
    pub version: u16,
    /// [`RecordKind::fields`].
    pub fields: &'static [Field],
    /// [`RecordKind::text_line`].
    pub text_line: &'static [&'static str],
    /// [`RecordKind::zeek_columns`].
    pub zeek_columns: &'static [(&'static str, ZeekColumn)],
}

impl KindSchema {
    /// The schema of kind `K`.
    #[must_use]
    pub fn of<K: RecordKind>() -> Self {
        Self {
            name: K::NAME,
            version: K::VERSION,
            fields: K::fields(),
            text_line: K::text_line(),
            zeek_columns: K::zeek_columns(),
        }
    }

    /// The schemas of all records that leave the program as results.
    #[must_use]
    pub fn all() -> [Self; 6] {
        [
            Self::of::<HttpKind>(),
            Self::of::<FlowKind>(),
            Self::of::<TlsKind>(),
            Self::of::<DnsKind>(),
            Self::of::<GatewayKind>(),
            Self::of::<LoadKind>(),
        ]
    }

    /// [`Self::all`], and that of what `linkweir halves` writes, which is no result.
    pub fn every() -> impl Iterator<Item = Self> {
        Self::all().into_iter().chain([Self::of::<HalfKind>()])
    }

    /// The schema of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::every().find(|schema| schema.name == name)
    }

    /// The column of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Adds formatted text. Writing to a string cannot fail.
pub(super) fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _unfailing = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_name() {
        for schema in KindSchema::all() {
            let found = KindSchema::named(schema.name).unwrap();
            assert_eq!(found.fields, schema.fields);
            assert!(
                found
                    .field("client_ip")
                    .or_else(|| found.field("c_ip"))
                    .is_some()
            );
            assert!(found.field("no_such_column").is_none());
        }
        assert!(KindSchema::named("http").is_none());
    }
}
