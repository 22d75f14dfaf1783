//! A record kind as data: what statements and documents are made from.

use linkweir_record::{Field, FlowKind, GatewayKind, HttpKind, LoadKind, RecordKind};

use crate::schema_doc::schema_markdown;

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

    /// The schema of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|schema| schema.name == name)
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
