//! Names that mean the same of every kind: both ends, and the URL.

use super::Op;
use crate::schema::{Field, FieldType, Value};

/// Names of one thing in different kinds, of which each has one.
const SAME: [&[&str]; 4] = [
    &["client", "client_ip", "c_ip"],
    &["server", "server_ip", "s_ip"],
    &["client_port", "c_port"],
    &["server_port", "s_port"],
];

/// The name under which these columns have what another kind, or a report, calls `name`.
pub(super) fn same(name: &str, fields: &[Field]) -> Option<usize> {
    let names = SAME.iter().find(|names| names.contains(&name))?;
    fields.iter().position(|field| names.contains(&field.name))
}

/// Host and request target of a kind that has both, by their places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Url {
    host: usize,
    target: usize,
}

/// What errors and values say of it.
pub(super) const URL: Field = Field {
    name: "url",
    kind: FieldType::Text,
    unit: "",
    ipfix: None,
    doc: "",
};

impl Url {
    pub(super) fn of_fields(fields: &[Field]) -> Option<Self> {
        let place = |name: &str| fields.iter().position(|field| field.name == name);
        Some(Self {
            host: place("host")?,
            target: place("uri")?,
        })
    }

    pub(super) const fn columns(self) -> [usize; 2] {
        [self.host, self.target]
    }

    /// The URL of a record; none where it has neither host nor target. `~` searches all of it. What is compared is what
    /// `report --by url` groups by: the host in lower case, and the target without the query.
    ///
    /// Cost: an allocation, of filters with `url` alone.
    pub(super) fn of<'a>(self, op: Op, value: &impl Fn(usize) -> Value<'a>) -> Option<Vec<u8>> {
        let (host, target) = (value(self.host), value(self.target));
        if host == Value::Null && target == Value::Null {
            return None;
        }
        let text = |value: &Value<'a>| match *value {
            Value::Text(bytes) => bytes,
            _ => &[],
        };
        let mut url = text(&host).to_vec();
        if op == Op::Matches {
            url.extend_from_slice(text(&target));
        } else {
            url.make_ascii_lowercase();
            url.extend_from_slice(path_of(text(&target)));
        }
        Some(url)
    }
}

/// The path of a request target: without the scheme and authority of an absolute-form target (the
/// host is known from elsewhere), without query and fragment.
#[must_use]
pub fn path_of(target: &[u8]) -> &[u8] {
    let mut path = target;
    if let Some(scheme_end) = target
        .iter()
        .take(16)
        .position(|b| !b.is_ascii_alphanumeric())
        && scheme_end > 0
        && let Some(rest) = target
            .get(scheme_end..)
            .and_then(|rest| rest.strip_prefix(b"://"))
    {
        let start = rest
            .iter()
            .position(|b| matches!(b, b'/' | b'?'))
            .unwrap_or(rest.len());
        path = rest.get(start..).unwrap_or_default();
    }
    let end = path
        .iter()
        .position(|b| matches!(b, b'?' | b'#'))
        .unwrap_or(path.len());
    path.get(..end).unwrap_or_default()
}
