//! A record kind as data: what statements and documents are made from.

use linkweir_record::{Field, FlowKind, GatewayKind, HalfKind, HttpKind, LoadKind, RecordKind};

use crate::schema_doc::schema_markdown;
use crate::schema_types::types_markdown;

/// The columns of one kind of records.
#[derive(Debug, Clone, Copy)]
pub struct KindSchema {
    /// [`RecordKind::NAME`].
    pub name: &'static str,
    /// [`RecordKind::VERSION`].
    pub version: u16,
    /// [`RecordKind::fields`].
    pub fields: &'static [Field],
    /// [`schema_markdown`] of the kind.
    pub markdown: fn() -> String,
    /// [`types_markdown`] of the kind.
    pub types: fn() -> String,
}

impl KindSchema {
    /// The schema of kind `K`.
    #[must_use]
    pub fn of<K: RecordKind>() -> Self {
        Self {
            name: K::NAME,
            version: K::VERSION,
            fields: K::fields(),
            markdown: schema_markdown::<K>,
            types: types_markdown::<K>,
        }
    }

    /// The schemas of all records that leave the program as results.
    #[must_use]
    pub fn all() -> [Self; 4] {
        [
            Self::of::<HttpKind>(),
            Self::of::<FlowKind>(),
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
