//! What the server needs of the statistics, whatever the records are.

use std::fmt::Debug;

use linkweir_live::What;
use linkweir_live::alert::Scope;
use linkweir_live::api::{UnknownWord, Window, Word};
use linkweir_live::{Behind, Kind, LiveOf, RecentOrder};

/// A query that cannot be answered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadQuery(pub(crate) String);

/// Rows of a table when the request does not say, and at most.
const ROWS: usize = 50;
const MAX_ROWS: usize = 1000;
/// Records behind a row or a rule.
const RECORDS: usize = 100;
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// The value of `name` in a query string, as it stands there.
pub(crate) fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// A value of a query with its percent signs read (RFC 3986 sec. 2.1); what is not UTF-8 becomes replacement characters.
pub(crate) fn decode(value: &str) -> String {
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let mut ahead = bytes.clone();
        match (byte, hex(ahead.next()), hex(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                out.extend(u8::try_from(high * 16 + low));
                bytes = ahead;
            }
            (b'+', _, _) => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The word of a parameter, `default` where it is not given.
fn word<T: std::str::FromStr<Err = UnknownWord>>(
    query: &str,
    name: &str,
    default: T,
) -> Result<T, BadQuery> {
    match parameter(query, name) {
        None => Ok(default),
        Some(word) => word
            .parse()
            .map_err(|error| BadQuery(format!("{name}: {error}"))),
    }
}

/// The first word of a choice.
fn first<T: Word>() -> Result<T, BadQuery> {
    let first = T::ALL.first().copied();
    first.ok_or_else(|| BadQuery("there is nothing to choose".to_owned()))
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // A value of ours has no key that JSON could not have.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Statistics that can be served. The bytes are JSON.
pub(crate) trait Served: Debug + Send + Sync {
    /// Keeps the last records from now on: somebody may ask for them.
    fn keep_records(&self);
    fn last_id(&self) -> u64;
    fn is_finished(&self) -> bool;
    fn snapshot(&self) -> Vec<u8>;
    /// At most `most` intervals after `id`, with their ids, and whether these are all.
    fn ticks_after(&self, id: u64, most: usize) -> (Vec<(u64, String)>, bool);
    /// The last seconds of a day that is kept in a file; `None` where it is not.
    fn past(&self, query: &str) -> Option<Result<Vec<u8>, BadQuery>>;
    /// The last records behind a row of a table or a rule; `None` where there is nothing to look at.
    fn records(&self, query: &str) -> Option<Result<Vec<u8>, BadQuery>>;
    fn top(&self, query: &str) -> Result<Vec<u8>, BadQuery>;
    fn ccdf(&self, query: &str) -> Result<Vec<u8>, BadQuery>;
    fn csv(&self, query: &str) -> Result<Vec<u8>, BadQuery>;
    fn json(&self, query: &str) -> Result<Vec<u8>, BadQuery>;
    /// What there is beside the intervals; `None` where the kind has nothing.
    fn status(&self) -> Option<Vec<u8>>;
    /// The probes that they are merged from; `None` where they are of one run.
    fn probes(&self) -> Option<Vec<u8>>;
    fn metrics(&self) -> String;
}

impl<K: Kind> Served for LiveOf<K> {
    fn keep_records(&self) {
        Self::keep_records(self);
    }

    fn last_id(&self) -> u64 {
        Self::last_id(self)
    }

    fn is_finished(&self) -> bool {
        Self::is_finished(self)
    }

    fn snapshot(&self) -> Vec<u8> {
        json(&Self::snapshot(self))
    }

    fn ticks_after(&self, id: u64, most: usize) -> (Vec<(u64, String)>, bool) {
        let ticks = Self::ticks_after(self, id);
        let is_all = ticks.len() <= most;
        let texts = ticks.iter().take(most).filter_map(|tick| {
            let text = serde_json::to_string(tick.as_ref()).ok()?;
            Some((tick.id, text))
        });
        (texts.collect(), is_all)
    }

    fn past(&self, query: &str) -> Option<Result<Vec<u8>, BadQuery>> {
        let span = match parameter(query, "span") {
            None => Ok(DAY_S),
            Some(span) => span.parse::<u64>().map_err(drop),
        };
        let Some(span) = span.ok().filter(|span| (1..=DAY_S).contains(span)) else {
            let why = format!("span: expected seconds, 1 to {DAY_S}");
            return Self::past(self, 0).map(|_| Err(BadQuery(why)));
        };
        Self::past(self, span).map(|past| Ok(json(&past)))
    }

    fn records(&self, query: &str) -> Option<Result<Vec<u8>, BadQuery>> {
        let decoded = |name| parameter(query, name).map(decode);
        if ["rule", "where", "key"]
            .iter()
            .all(|name| parameter(query, name).is_none())
        {
            return Some(Err(BadQuery(
                "say which records: by=COLUMN&key=KEY, rule=RULE or where=EXPR".to_owned(),
            )));
        }
        let behind = if let Some(rule) = decoded("rule") {
            K::behind_rule(&K::rule(&rule).ok()?)?
        } else if let Some(condition) = decoded("where") {
            Behind {
                condition,
                scope: Scope::Run,
            }
        } else {
            let by = word(query, "by", first::<K::By>().ok()?);
            match by {
                Ok(by) => K::behind(by, &decoded("key")?)?,
                Err(wrong) => return Some(Err(wrong)),
            }
        };
        let order = match parameter(query, "order") {
            None | Some("newest") => RecentOrder::Newest,
            Some("slowest") => RecentOrder::Slowest,
            Some(_) => return Some(Err(BadQuery("order: newest or slowest".to_owned()))),
        };
        let found = Self::records(self, &behind, order, RECORDS).map_err(BadQuery);
        Some(found.map(|found| json(&found)))
    }

    fn top(&self, query: &str) -> Result<Vec<u8>, BadQuery> {
        let by = word(query, "by", first::<K::By>()?)?;
        let sort = word(query, "sort", first::<K::Sort>()?)?;
        let window = word(query, "window", Window::Minute)?;
        let n = match parameter(query, "n") {
            None => ROWS,
            Some(n) => n
                .parse::<usize>()
                .map_err(|_| BadQuery("n: expected a whole number".to_owned()))?
                .min(MAX_ROWS),
        };
        Ok(json(&Self::top(self, by, sort, window, n)))
    }

    fn ccdf(&self, query: &str) -> Result<Vec<u8>, BadQuery> {
        let of = word(query, "of", first::<K::Of>()?)?;
        let window = word(query, "window", Window::Minute)?;
        Ok(json(&self.ccdf_of(of, window)))
    }

    fn csv(&self, query: &str) -> Result<Vec<u8>, BadQuery> {
        let what = what::<K>(query)?;
        Ok(Self::csv(self, what).into_bytes())
    }

    fn json(&self, query: &str) -> Result<Vec<u8>, BadQuery> {
        let what = what::<K>(query)?;
        Ok(json(&Self::json(self, what)))
    }

    fn status(&self) -> Option<Vec<u8>> {
        K::HAS_STATUS.then(|| json(&self.now()))
    }

    fn probes(&self) -> Option<Vec<u8>> {
        Self::probes(self).map(|probes| json(probes.as_ref()))
    }

    fn metrics(&self) -> String {
        Self::metrics(self)
    }
}

/// What a file is to hold.
fn what<K: Kind>(query: &str) -> Result<What<K::By>, BadQuery> {
    match parameter(query, "what") {
        None => Ok(What::Series),
        Some(word) => What::of::<K>(word).map_err(|error| BadQuery(format!("what: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        assert_eq!(parameter("a=1&b=2", "b"), Some("2"));
        assert_eq!(parameter("a=1&b=2", "c"), None);
        assert_eq!(parameter("", "a"), None);
        assert_eq!(parameter("a&b=x=y", "b"), Some("x=y"));
    }

    #[test]
    fn percent_signs_are_read_and_wrong_ones_stay() {
        for (text, wanted) in [
            ("a%20b%2Fc", "a b/c"),
            ("a+b", "a b"),
            ("%e2%82%ac", "\u{20ac}"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(decode(text), wanted, "{text}");
        }
    }
}
