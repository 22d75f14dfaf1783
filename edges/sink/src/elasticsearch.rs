//! Records as documents of Elasticsearch or OpenSearch: `elasticsearch://HOST:PORT/INDEX`, `elasticsearch+https://`.
//!
//! Requests of the bulk API with `create`, which data streams take too. A document is the object of a message of a broker
//! ([`crate::message`]) with `@timestamp` before it; its `_id` is the `record_id`, so that a request that is sent again adds nothing
//! twice: what is there already is answered with 409, and counts as delivered.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linkweir_engine::{Sink, SinkError};
use linkweir_post::{Client, Response, may_pass};
use linkweir_record::{RecordBatch as _, RecordKind};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::delivery::{Backoff, Delivery, GIVEN_UP, without_password};
use crate::message::{Message, run_number};
use crate::number::push_moment;
use crate::options::OutputOptions;
use crate::queued::{Deliver, Queued};

/// Limits of a request.
const MAX_DOCUMENTS: usize = 2_000;
const MAX_BYTES: usize = 5 << 20;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the first word of the destination may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What is asked for of each answer.
const FILTER: &str = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason";

/// Longest word of the destination that is shown.
const MAX_WORD: usize = 200;

/// Where documents go.
#[derive(Debug, PartialEq, Eq)]
struct Address<'a> {
    is_tls: bool,
    user: Option<String>,
    password: Option<String>,
    host: &'a str,
    index: &'a str,
}

/// Whether a destination is Elasticsearch.
pub(crate) fn is_elasticsearch(destination: &str) -> bool {
    let scheme = destination.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("elasticsearch" | "elasticsearch+https"))
}

/// The index or data stream of a destination `elasticsearch://HOST:PORT/INDEX`.
#[must_use]
pub fn index_of(destination: &str) -> Option<&str> {
    address(destination).map(|address| address.index)
}

fn address(destination: &str) -> Option<Address<'_>> {
    let (scheme, rest) = destination.split_once("://")?;
    let is_tls = match scheme {
        "elasticsearch" => false,
        "elasticsearch+https" => true,
        _ => return None,
    };
    let (authority, index) = rest.split_once('/')?;
    let (userinfo, host) = match authority.rsplit_once('@') {
        Some((userinfo, host)) => (Some(userinfo), host),
        None => (None, authority),
    };
    let decoded = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .ok()
            .map(String::from)
    };
    let (user, password) = match userinfo.map(|all| all.split_once(':').unwrap_or((all, ""))) {
        Some((user, "")) => (Some(decoded(user)?), None),
        Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
        None => (None, None),
    };
    // As Elasticsearch names indices: no path, no pattern, no query.
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let is_index =
        index.bytes().all(is_name) && index.len() <= 255 && !index.starts_with(['-', '_', '.']);
    (!index.is_empty() && is_index && !host.is_empty()).then_some(Address {
        is_tls,
        user,
        password,
        host,
        index,
    })
}

/// The settings of `--elasticsearch`.
#[derive(Debug, Default)]
struct Settings<'a> {
    api_key: Option<&'a str>,
    user: Option<&'a str>,
    password: Option<&'a str>,
    ca_file: Option<&'a Path>,
    is_gzip: bool,
}

impl<'a> Settings<'a> {
    fn read(given: &'a [(String, String)]) -> Result<Self, String> {
        let mut settings = Self::default();
        for (name, value) in given {
            match name.as_str() {
                "api-key" => settings.api_key = Some(value),
                "user" => settings.user = Some(value),
                "password" => settings.password = Some(value),
                "ca-file" => settings.ca_file = Some(Path::new(value)),
                "compression" => {
                    settings.is_gzip = match value.as_str() {
                        "gzip" => true,
                        "none" => false,
                        _ => return Err("setting `compression`: one of gzip, none".to_owned()),
                    }
                }
                _ => {
                    return Err(format!(
                        "setting `{name}`: there are api-key, user, password, ca-file and compression"
                    ));
                }
            }
        }
        Ok(settings)
    }

    /// The value of the field Authorization, if there are credentials.
    fn authorization(&self, address: &Address<'_>) -> Option<String> {
        if let Some(key) = self.api_key {
            return Some(format!("ApiKey {key}"));
        }
        let user = address.user.as_deref().or(self.user)?;
        let password = address.password.as_deref().or(self.password);
        let both = format!("{user}:{}", password.unwrap_or_default());
        Some(format!("Basic {}", STANDARD.encode(both)))
    }
}

/// Sends records of kind `K` to the index that `destination` names, on a thread of its own.
///
/// # Errors
/// [`SinkError::Refused`] where `destination` names no host and index, a setting is wrong or the credentials are;
/// [`SinkError::Io`] where nobody answers a run over files.
pub(crate) fn open_elasticsearch<K: RecordKind>(
    destination: &str,
    options: &OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let shown = without_password(destination);
    let refuse = |message: String| SinkError::Refused {
        destination: shown.clone().into_owned(),
        message,
    };
    let Some(address) = address(destination) else {
        return Err(refuse(
            "a host and an index in lower case, for example elasticsearch://search.example:9200/web".to_owned(),
        ));
    };
    if options.rotation.is_some() {
        return Err(refuse("only a file can be rotated".to_owned()));
    }
    let settings = Settings::read(&options.elasticsearch)
        .map_err(|message| refuse(format!("--elasticsearch: {message}")))?;
    let authorization = settings.authorization(&address);
    let client = |timeout| {
        let client = Client::new(timeout, settings.ca_file)
            .map_err(|error| refuse(format!("--elasticsearch: {error}")))?;
        let client = match &authorization {
            Some(value) => client.with("authorization", value.clone()),
            None => client,
        };
        Ok(match settings.is_gzip {
            true => client.gzip(),
            false => client,
        })
    };
    let scheme = if address.is_tls { "https" } else { "http" };
    let root = format!("{scheme}://{}/", address.host);
    if !linkweir_post::is_http(&root) {
        return Err(refuse("it names no host".to_owned()));
    }
    match client(CHECK_TIMEOUT)?.get(&root) {
        // Who may only create documents gets 403 here.
        Ok(Response { status: 401, .. }) => {
            return Err(refuse(
                "it does not accept the credentials (status 401); see --elasticsearch".to_owned(),
            ));
        }
        Ok(_) => {}
        Err(why) if !options.is_live || is_for_ever(&why) => {
            return Err(SinkError::Io {
                destination: shown.into_owned(),
                source: std::io::Error::other(why),
            });
        }
        // The thread says it, and tries again.
        Err(_) => {}
    }
    let bulk = Bulk {
        client: client(TIMEOUT)?,
        url: format!("{root}{}/_bulk?{FILTER}", address.index),
        message: Message::new::<K>(&options.probe, run_number(options.wall_clock_ns)),
        body: Vec::new(),
        ends: Vec::new(),
        limit: MAX_DOCUMENTS,
        backoff: Backoff::default(),
        refusal: None,
        has_said: false,
    };
    Ok(Box::new(Queued::<K>::start(&shown, bulk, options)?))
}

/// Whether an attempt that failed so will always fail: a wrong host name, a certificate that is not trusted.
fn is_for_ever(why: &str) -> bool {
    ["lookup", "certificate", "host not found"]
        .iter()
        .any(|word| why.contains(word))
}

/// Documents of the next request.
struct Bulk {
    client: Client,
    url: String,
    message: Message,
    body: Vec<u8>,
    /// Where each document ends in the body.
    ends: Vec<usize>,
    /// Documents of a request at most; fewer after one that was too large.
    limit: usize,
    backoff: Backoff,
    /// Why it takes nothing from this run, for good.
    refusal: Option<String>,
    /// Whether the reason of a refused document was said.
    has_said: bool,
}

/// The answer to a request, as far as it is asked for.
#[derive(Debug, Deserialize)]
struct Answer {
    errors: bool,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    create: ItemResult,
}

#[derive(Debug, Deserialize)]
struct ItemResult {
    status: u16,
    error: Option<ItemError>,
}

#[derive(Debug, Deserialize)]
struct ItemError {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
}

/// What the destination says, as far as it is shown.
fn shown(word: &[u8]) -> String {
    let word = String::from_utf8_lossy(word);
    let letters = word.chars().filter(|c| !c.is_control());
    letters.take(MAX_WORD).collect()
}

impl Bulk {
    fn add<K: RecordKind>(&mut self, view: &K::View<'_>) {
        self.message.encode::<K>(view);
        let (_, value) = self.message.parts();
        self.body.extend_from_slice(b"{\"create\":{\"_id\":\"");
        self.body.extend_from_slice(self.message.id());
        self.body.extend_from_slice(b"\"}}\n{\"@timestamp\":\"");
        push_moment(&mut self.body, K::time_ns(view));
        self.body.extend_from_slice(b"\",");
        self.body
            .extend_from_slice(value.get(1..).unwrap_or_default());
        self.body.push(b'\n');
        self.ends.push(self.body.len());
    }

    /// Sends all documents, for as long as somebody waits for that.
    fn post(&mut self, delivery: &Delivery) {
        while !self.ends.is_empty() {
            let why = match &self.refusal {
                Some(why) => Some(why.as_str()),
                None => delivery.is_given_up().then_some(GIVEN_UP),
            };
            if let Some(why) = why {
                delivery.lose(why, self.ends.len() as u64);
                self.body.clear();
                self.ends.clear();
                return;
            }
            let count = self.limit.min(self.ends.len());
            let end = count.checked_sub(1).and_then(|last| self.ends.get(last));
            let end = end.copied().unwrap_or(0);
            let body = self.body.get(..end).unwrap_or_default();
            match self.client.post(&self.url, "application/x-ndjson", body) {
                Ok(response) if response.status == 413 => {
                    if count == 1 {
                        delivery.lose("larger than it accepts (status 413)", 1);
                        self.keep(&[], 1);
                    }
                    self.limit = (count / 2).max(1);
                }
                // No time makes another user of this one: nothing waits for it.
                Ok(response) if matches!(response.status, 401 | 403) => {
                    let status = response.status;
                    let why = format!("it refuses the user or key (status {status})");
                    delivery.say(&format!("{why}: {}", shown(&response.body)));
                    self.refusal = Some(why);
                }
                Ok(response) => self.answered(&response, count, delivery),
                Err(why) => self.wait(&why, delivery),
            }
        }
    }

    /// Accounts for the first `count` documents by the answer.
    fn answered(&mut self, response: &Response, count: usize, delivery: &Delivery) {
        let answer: Option<Answer> = match response.status {
            200 => serde_json::from_slice(&response.body).ok(),
            _ => None,
        };
        let Some(answer) = answer.filter(|answer| !answer.errors || answer.items.len() == count)
        else {
            let word = shown(&response.body);
            let status = response.status;
            self.wait(
                &format!("it answers with status {status}: {word}"),
                delivery,
            );
            return;
        };
        if !answer.errors {
            delivery.deliver(count as u64);
            self.keep(&[], count);
            self.went_well();
            return;
        }
        let mut again = Vec::new();
        let mut delivered = 0;
        let mut busy = None;
        for (at, Item { create }) in answer.items.iter().enumerate() {
            match create.status {
                // 409: a request before this one has arrived, but not its answer.
                200..=299 | 409 => delivered += 1,
                status if may_pass(status) => {
                    busy = Some(status);
                    again.push(at);
                }
                status => {
                    let error = create.error.as_ref();
                    let reason = error.map_or("", |error| &error.reason);
                    if !reason.is_empty() && !std::mem::replace(&mut self.has_said, true) {
                        let reason = shown(reason.as_bytes());
                        delivery.say(&format!("the first refused document: {reason}"));
                    }
                    let kind = error.map_or("", |error| &error.kind);
                    let kind: String = kind
                        .chars()
                        .filter(char::is_ascii_graphic)
                        .take(MAX_WORD)
                        .collect();
                    delivery.lose(&format!("refused with status {status} ({kind})"), 1);
                }
            }
        }
        if delivered > 0 {
            delivery.deliver(delivered);
        }
        self.keep(&again, count);
        match busy {
            Some(status) => self.wait(
                &format!("it has no room for some documents (status {status})"),
                delivery,
            ),
            None => self.went_well(),
        }
    }

    fn went_well(&mut self) {
        self.backoff.reset();
        self.limit = self.limit.saturating_mul(2).min(MAX_DOCUMENTS);
    }

    fn wait(&mut self, why: &str, delivery: &Delivery) {
        delivery.away(why);
        self.backoff.rest(delivery);
    }

    /// Forgets the first `count` documents, but for those at `again`.
    fn keep(&mut self, again: &[usize], count: usize) {
        let (mut body, mut ends) = (Vec::new(), Vec::new());
        let mut begin = 0;
        for (at, end) in self.ends.iter().enumerate() {
            if at >= count || again.contains(&at) {
                body.extend_from_slice(self.body.get(begin..*end).unwrap_or_default());
                ends.push(body.len());
            }
            begin = *end;
        }
        (self.body, self.ends) = (body, ends);
    }
}

impl<K: RecordKind> Deliver<K> for Bulk {
    fn deliver(&mut self, batch: &K::Batch, delivery: &Delivery) {
        for view in batch.views() {
            self.add::<K>(&view);
            if self.ends.len() >= MAX_DOCUMENTS || self.body.len() >= MAX_BYTES {
                self.post(delivery);
            }
        }
    }

    fn flush(&mut self, delivery: &Delivery) {
        self.post(delivery);
    }

    fn finish(&mut self, delivery: &Delivery) {
        self.post(delivery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_an_index() {
        let all = address("elasticsearch+https://me:p%40ss@[::1]:9200/web-1").unwrap();
        assert_eq!(
            (all.is_tls, all.host, all.index),
            (true, "[::1]:9200", "web-1")
        );
        let both = (all.user.as_deref(), all.password.as_deref());
        assert_eq!(both, (Some("me"), Some("p@ss")));
        assert_eq!(index_of("elasticsearch://h/web"), Some("web"));
        for wrong in [
            "elasticsearch://h",
            "elasticsearch://h/",
            "elasticsearch:///web",
            "elasticsearch://h/Web",
            "elasticsearch://h/web/_doc",
            "elasticsearch://h/web?x",
            "elasticsearch://h/_all",
            "http://h/web",
        ] {
            assert_eq!(index_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn credentials_come_from_settings_or_the_address() {
        let given = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
            all.iter().map(own).collect()
        };
        let none = address("elasticsearch://h/i").unwrap();
        let user = address("elasticsearch://me@h/i").unwrap();
        let key = given(&[("api-key", "abc=")]);
        let key = Settings::read(&key).unwrap();
        assert_eq!(key.authorization(&user).as_deref(), Some("ApiKey abc="));
        let password = given(&[("password", "open sesame")]);
        let password = Settings::read(&password).unwrap();
        assert_eq!(password.authorization(&none), None);
        // printf 'me:open sesame' | base64
        let basic = Some("Basic bWU6b3BlbiBzZXNhbWU=");
        assert_eq!(password.authorization(&user).as_deref(), basic);
        let wrong = given(&[("apikey", "x")]);
        assert!(Settings::read(&wrong).unwrap_err().contains("api-key"));
    }
}
