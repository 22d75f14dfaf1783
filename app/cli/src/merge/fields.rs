//! Reads a JSON object strictly: every key must be there, be of its type, and be known. Errors name the
//! key by its path, for example `http.response_time_ns.sum`.

use serde_json::{Map, Value};

/// The keys of an object that were not read yet.
#[derive(Debug)]
pub(super) struct Fields {
    path: String,
    left: Map<String, Value>,
}

impl Fields {
    /// The object at the root.
    pub(super) fn root(value: Value) -> Result<Self, String> {
        match value {
            Value::Object(left) => Ok(Self {
                path: String::new(),
                left,
            }),
            _ => Err("is no JSON object".to_owned()),
        }
    }

    /// The path of a key, as errors name it.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() {
            format!("`{key}`")
        } else {
            format!("`{}.{key}`", self.path)
        }
    }

    fn bare_path(&self, key: &str) -> String {
        self.path(key).trim_matches('`').to_owned()
    }

    /// The value of a key.
    pub(super) fn value(&mut self, key: &str) -> Result<Value, String> {
        self.left
            .remove(key)
            .ok_or_else(|| format!("{} is missing", self.path(key)))
    }

    /// A whole number from 0 on.
    pub(super) fn count(&mut self, key: &str) -> Result<u64, String> {
        let value = self.value(key)?;
        value
            .as_u64()
            .ok_or_else(|| self.wrong(key, "a whole number from 0 on", &value))
    }

    /// A whole number, or null.
    pub(super) fn count_or_null(&mut self, key: &str) -> Result<Option<u64>, String> {
        match self.value(key)? {
            Value::Null => Ok(None),
            value => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| self.wrong(key, "a whole number from 0 on, or null", &value)),
        }
    }

    /// A text.
    pub(super) fn text(&mut self, key: &str) -> Result<String, String> {
        match self.value(key)? {
            Value::String(text) => Ok(text),
            value => Err(self.wrong(key, "a text", &value)),
        }
    }

    /// An object.
    pub(super) fn object(&mut self, key: &str) -> Result<Self, String> {
        match self.value(key)? {
            Value::Object(left) => Ok(Self {
                path: self.bare_path(key),
                left,
            }),
            value => Err(self.wrong(key, "an object", &value)),
        }
    }

    /// An object, if there is one.
    pub(super) fn object_if_there(&mut self, key: &str) -> Result<Option<Self>, String> {
        if self.left.contains_key(key) {
            self.object(key).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A list.
    pub(super) fn list(&mut self, key: &str) -> Result<Vec<Value>, String> {
        match self.value(key)? {
            Value::Array(list) => Ok(list),
            value => Err(self.wrong(key, "a list", &value)),
        }
    }

    /// A list of objects.
    pub(super) fn objects(&mut self, key: &str) -> Result<Vec<Self>, String> {
        let path = self.bare_path(key);
        let list = self.list(key)?.into_iter().zip(0_usize..);
        list.map(|(value, at)| match value {
            Value::Object(left) => Ok(Self {
                path: format!("{path}[{at}]"),
                left,
            }),
            value => Err(format!("`{path}[{at}]` is no object but {}", brief(&value))),
        })
        .collect()
    }

    /// All keys left, which are names of what was counted, with their counts.
    pub(super) fn counts(mut self) -> Result<Vec<(String, u64)>, String> {
        let names: Vec<String> = self.left.keys().cloned().collect();
        names
            .into_iter()
            .map(|name| self.count(&name).map(|count| (name, count)))
            .collect()
    }

    /// All keys left, with the objects under them.
    pub(super) fn each(mut self) -> Result<Vec<(String, Self)>, String> {
        let names: Vec<String> = self.left.keys().cloned().collect();
        names
            .into_iter()
            .map(|name| self.object(&name).map(|object| (name, object)))
            .collect()
    }

    /// Refuses keys that nothing has read.
    pub(super) fn end(self) -> Result<(), String> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(key) => Err(format!(
                "{} is not known to this version of linkweir",
                self.path(key)
            )),
        }
    }

    fn wrong(&self, key: &str, wanted: &str, value: &Value) -> String {
        format!("{} must be {wanted}, not {}", self.path(key), brief(value))
    }
}

/// A value in an error: what it is, and no more of it than fits.
fn brief(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("`{}`", text.chars().take(40).collect::<String>()),
        plain => plain.to_string(),
    }
}
