//! What a rule asks of a connection besides its application and its addresses.
//!
//! Each condition is for the connections that have what it asks for: those of HTTP for requests in clear, those of TLS
//! for TLS and QUIC. A rule with both is for either; one with any is for no other application.

use linkweir_proto::tls::Ja4;

use super::NamePatterns;

/// What the handshake of TLS or QUIC shows. All that are given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConditions {
    /// Server names (RFC 6066 sec. 3).
    pub server_names: NamePatterns,
    /// Fingerprints of the client (JA4).
    pub ja4: NamePatterns,
    /// Protocols that the client offers (RFC 7301).
    pub alpn: NamePatterns,
    /// Names in the server's certificate: the common name and the DNS names (RFC 5280 sec. 4.2.1.6); TLS 1.2 and before.
    pub certificates: NamePatterns,
    /// Whether the client's hello has the extension of an encrypted one (RFC 9849).
    pub has_ech: Option<bool>,
}

impl TlsConditions {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Whether more of the client's hello is asked for than the server name.
    pub(super) fn needs_hello(&self) -> bool {
        !self.ja4.0.is_empty() || !self.alpn.0.is_empty() || self.has_ech.is_some()
    }

    fn matches(&self, shown: &Shown, why: &mut Why<'_>) -> bool {
        let ja4 = shown.ja4.as_ref().map(|ja4| &ja4.as_bytes()[..]);
        let alpn = shown.alpn.iter().map(Vec::as_slice);
        let names = shown.certificate.iter().map(Vec::as_slice);
        let name = [shown.server_name.as_slice()];
        let mut is_ech = || match self.has_ech {
            None => true,
            Some(wanted) => {
                why.add("ech", if wanted { b"true" } else { b"false" }, b"");
                shown.has_ech == Some(wanted)
            }
        };
        is_ech()
            && any(&self.server_names, "sni", name, why)
            && any(&self.ja4, "ja4", ja4, why)
            && any(&self.alpn, "alpn", alpn, why)
            && any(&self.certificates, "certificate", names, why)
    }
}

/// What a request in clear asks for. All that are given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestConditions {
    /// Hosts (RFC 9110 sec. 7.2), without port.
    pub hosts: NamePatterns,
    /// URLs without scheme: host, path and query, as they are and with `%XX` decoded.
    pub urls: NamePatterns,
    /// Methods.
    pub methods: NamePatterns,
    /// Values of `User-Agent`.
    pub user_agents: NamePatterns,
}

/// What a response in clear brings. All that are given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseConditions {
    /// Media types (RFC 9110 sec. 8.3.1), without parameters.
    pub mime_types: NamePatterns,
    /// Bytes that its body has at least, as they come.
    pub min_body: Option<u64>,
}

/// A request, as far as rules ask for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Requested<'a> {
    pub(crate) host: &'a [u8],
    /// Host, path and query.
    pub(crate) url: &'a [u8],
    /// The same, decoded.
    pub(crate) plain_url: &'a [u8],
    pub(crate) method: &'a [u8],
    pub(crate) user_agent: &'a [u8],
}

impl RequestConditions {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    fn matches(&self, request: &Requested<'_>, why: &mut Why<'_>) -> bool {
        any(&self.hosts, "hosts", [request.host], why)
            && any(&self.urls, "urls", [request.url, request.plain_url], why)
            && any(&self.methods, "methods", [request.method], why)
            && any(&self.user_agents, "user-agents", [request.user_agent], why)
    }
}

impl ResponseConditions {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a response matches; `length` is that of its body as far as it is known.
    pub(crate) fn matches(&self, mime_type: &[u8], length: Option<u64>, why: &mut Why<'_>) -> bool {
        let mut is_long = || match (self.min_body, length) {
            (None, _) => true,
            (Some(least), Some(length)) => {
                let (least, length) = (least.to_string(), length.to_string());
                why.add("min-body", length.as_bytes(), least.as_bytes());
                self.min_body <= Some(length.parse().unwrap_or(0))
            }
            (Some(_), None) => false,
        };
        is_long() && any(&self.mime_types, "mime-types", [mime_type], why)
    }
}

/// Conditions that only the traffic itself answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Of TLS and QUIC.
    pub tls: TlsConditions,
    /// Of requests of HTTP in clear.
    pub request: RequestConditions,
    /// Of their responses.
    pub response: ResponseConditions,
}

impl Conditions {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.tls.is_any() && !self.has_http()
    }

    /// Whether something is asked of HTTP.
    #[must_use]
    pub fn has_http(&self) -> bool {
        !self.request.is_any() || !self.response.is_any()
    }

    pub(super) fn match_tls(&self, shown: &Shown, why: &mut Why<'_>) -> bool {
        self.tls.matches(shown, why)
    }

    pub(crate) fn match_request(&self, request: &Requested<'_>, why: &mut Why<'_>) -> bool {
        self.request.matches(request, why)
    }
}

/// Whether one of the values matches one of the patterns, where there are any.
fn any<'v>(
    patterns: &NamePatterns,
    key: &str,
    values: impl IntoIterator<Item = &'v [u8]>,
    why: &mut Why<'_>,
) -> bool {
    if patterns.0.is_empty() {
        return true;
    }
    values.into_iter().any(|value| {
        let found = patterns.find(value).filter(|_| !value.is_empty());
        if let Some(pattern) = found {
            why.add(key, value, pattern.as_bytes());
        }
        found.is_some()
    })
}

/// What a connection shows of itself before it is decided. Absent texts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// What TLS or QUIC asks for.
    pub(crate) server_name: Vec<u8>,
    /// Only where a rule asks for it.
    pub(crate) ja4: Option<Ja4>,
    /// Only where a rule asks for it.
    pub(crate) alpn: Vec<Vec<u8>>,
    /// `None` where no hello was seen.
    pub(crate) has_ech: Option<bool>,
    /// Only where a rule asks for it.
    pub(crate) certificate: Vec<Vec<u8>>,
}

/// Bytes of a value in a reason.
const MAX_VALUE: usize = 120;

/// Says which conditions matched, where somebody wants to know.
#[derive(Debug, Default)]
pub(crate) struct Why<'a>(Option<&'a mut Vec<u8>>);

impl<'a> Why<'a> {
    /// Nobody wants to know.
    pub(crate) const fn unasked() -> Self {
        Self(None)
    }

    pub(crate) const fn to(text: &'a mut Vec<u8>) -> Self {
        Self(Some(text))
    }

    /// `key=value (pattern)`.
    pub(crate) fn add(&mut self, key: &str, value: &[u8], pattern: &[u8]) {
        let Some(text) = &mut self.0 else { return };
        if !text.is_empty() {
            text.extend_from_slice(b"; ");
        }
        text.extend_from_slice(key.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.get(..MAX_VALUE).unwrap_or(value));
        if value.len() > MAX_VALUE {
            text.extend_from_slice(b"...");
        }
        if !pattern.is_empty() && pattern != value {
            text.extend_from_slice(b" (");
            text.extend_from_slice(pattern);
            text.push(b')');
        }
    }
}

// When and where, without a look at the payload.

/// Minutes of a week.
pub const WEEK_MINUTES: u16 = 7 * 24 * 60;

/// Times of a week, local time; empty means always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times(
    /// From, and until which minute it does not hold any more; minutes since Monday 00:00. Where the second is not
    /// later, it goes on in the next week.
    pub Vec<(u16, u16)>,
);

impl Times {
    /// Whether a minute of the week is in one of them.
    #[must_use]
    pub fn hold(&self, minute: u16) -> bool {
        let within = |(from, until): &(u16, u16)| {
            if from < until {
                (*from..*until).contains(&minute)
            } else {
                minute >= *from || minute < *until
            }
        };
        self.0.is_empty() || self.0.iter().any(within)
    }
}

/// A set of ports; empty means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(
    /// The first and the last of each range.
    pub Vec<(u16, u16)>,
);

impl Ports {
    /// Whether a port is one of them.
    #[must_use]
    pub fn hold(&self, port: u16) -> bool {
        let within = |(first, last): &(u16, u16)| (*first..=*last).contains(&port);
        self.0.is_empty() || self.0.iter().any(within)
    }

    /// Whether each of another set is in this one, as far as single ranges show.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let within = |inner: &(u16, u16)| {
            let around = |outer: &(u16, u16)| outer.0 <= inner.0 && inner.1 <= outer.1;
            self.0.iter().any(around)
        };
        self.0.is_empty() || !other.0.is_empty() && other.0.iter().all(within)
    }
}

/// What a client of HTTP gets instead of a response. Others get a RST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A page with this text, status code 403.
    Page(String),
    /// Another URL, status code 302.
    Location(String),
}

impl Reply {
    /// The response as it is sent (RFC 9112); `has_body` says whether the method of the request allows one.
    #[must_use]
    pub fn response(&self, has_body: bool) -> Vec<u8> {
        let (status, field, text) = match self {
            Self::Page(text) => ("403 Forbidden", String::new(), text.as_str()),
            Self::Location(url) => ("302 Found", format!("Location: {url}\r\n"), url.as_str()),
        };
        let page = format!(
            "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{status}</title></head>\n\
             <body><h1>{status}</h1><p>{}</p></body></html>\n",
            escaped(text)
        );
        let mut response = format!(
            "HTTP/1.1 {status}\r\n{field}Content-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            page.len()
        );
        if has_body {
            response.push_str(&page);
        }
        response.into_bytes()
    }
}

/// A text without characters that mean something in HTML; lines stay lines.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.trim().chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("<br>\n"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::NamePattern;

    fn patterns(texts: &[&str]) -> NamePatterns {
        NamePatterns(texts.iter().map(|text| NamePattern::new(text)).collect())
    }

    #[test]
    fn a_reason_names_each_condition_with_its_value_and_pattern() {
        let request = Requested {
            host: b"www.ads.example",
            url: b"www.ads.example/%61d?x=1",
            plain_url: b"www.ads.example/ad?x=1",
            method: b"GET",
            user_agent: b"curl/8",
        };
        let mut conditions = Conditions::default();
        conditions.request.hosts = patterns(&["ads.example", "*.ads.example"]);
        conditions.request.urls = patterns(&["*/ad?*"]);
        conditions.request.methods = patterns(&["get"]);
        let mut why = Vec::new();
        assert!(conditions.match_request(&request, &mut Why::to(&mut why)));
        let said = String::from_utf8(why).expect("text");
        assert_eq!(
            said,
            "hosts=www.ads.example (*.ads.example); urls=www.ads.example/ad?x=1 (*/ad?*); methods=GET (get)"
        );
        conditions.request.user_agents = patterns(&["wget*"]);
        assert!(!conditions.match_request(&request, &mut Why::unasked()));
        // What is not there matches no pattern, not even `*`.
        conditions.request.user_agents = patterns(&["*"]);
        let without = Requested {
            user_agent: b"",
            ..request
        };
        assert!(!conditions.match_request(&without, &mut Why::unasked()));
    }

    #[test]
    fn a_response_matches_by_type_and_length() {
        let conditions = ResponseConditions {
            mime_types: patterns(&["video/*"]),
            min_body: Some(1000),
        };
        let matches = |kind: &[u8], length| conditions.matches(kind, length, &mut Why::unasked());
        assert!(matches(b"video/mp4", Some(1000)));
        assert!(!matches(b"video/mp4", Some(999)));
        assert!(!matches(b"video/mp4", None));
        assert!(!matches(b"text/html", Some(5000)));
    }

    #[test]
    fn tls_matches_by_all_that_is_given() {
        let mut conditions = Conditions::default();
        conditions.tls.alpn = patterns(&["h2"]);
        conditions.tls.has_ech = Some(true);
        let mut shown = Shown {
            alpn: vec![b"http/1.1".to_vec(), b"h2".to_vec()],
            has_ech: Some(true),
            ..Shown::default()
        };
        let mut why = Vec::new();
        assert!(conditions.match_tls(&shown, &mut Why::to(&mut why)));
        assert_eq!(why, b"ech=true; alpn=h2");
        shown.has_ech = None;
        assert!(!conditions.match_tls(&shown, &mut Why::unasked()));
    }

    #[test]
    fn times_go_on_into_the_next_week_and_ports_are_ranges() {
        let day = 24 * 60;
        let times = Times(vec![(8 * 60, 17 * 60), (6 * day + 22 * 60, 6 * 60)]);
        for (minute, holds) in [
            (8 * 60, true),
            (17 * 60, false),
            (0, true),
            (6 * 60, false),
            (WEEK_MINUTES - 1, true),
            (3 * day, false),
        ] {
            assert_eq!(times.hold(minute), holds, "{minute}");
        }
        assert!(Times::default().hold(77));
        let ports = Ports(vec![(80, 80), (8000, 8999)]);
        assert!(ports.hold(80) && ports.hold(8999) && !ports.hold(9000));
        assert!(ports.covers(&Ports(vec![(8080, 8081)])) && !ports.covers(&Ports::default()));
    }

    #[test]
    fn a_page_has_the_text_and_its_length() {
        let response = Reply::Page("No <games> here\nAsk & see".to_owned()).response(true);
        let text = String::from_utf8(response).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{head}");
        assert!(
            body.contains("No &lt;games&gt; here<br>\nAsk &amp; see"),
            "{body}"
        );
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        let other = Reply::Location("http://portal.example/x".to_owned()).response(false);
        let text = String::from_utf8(other).expect("text");
        assert!(text.contains("\r\nLocation: http://portal.example/x\r\n"));
        assert!(text.ends_with("\r\n\r\n"));
    }
}
