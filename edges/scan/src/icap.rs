//! ICAP (RFC 3507) on one connection: `OPTIONS` says what the service supports, `RESPMOD` gives it a response with the
//! bytes as its body. With a preview a service that needs no more answers after the first bytes. One may also begin to
//! answer while it is still sent the rest.

use std::io::IoSlice;

use crate::answered::Comparison;
use crate::link::{Link, LinkError, Sent, Until, read_block};
use crate::queue::Body;
use crate::reply::{Reply, printable};
use crate::session::Fault;

/// Bytes sent as one chunk, at most.
const BLOCK: usize = 64 << 10;
/// Longest preview that is sent, whatever the service would like.
const MAX_PREVIEW: usize = 64 << 10;

/// Where the service is, for its URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    /// Host and port, as in a URI.
    pub(crate) authority: String,
    /// Its name: `virus_scan`.
    pub(crate) name: String,
}

impl Service {
    fn request(&self, method: &str) -> String {
        let Self { authority, name } = self;
        format!(
            "{method} icap://{authority}/{name} ICAP/1.0\r\nHost: {authority}\r\nUser-Agent: linkweir\r\n"
        )
    }
}

/// What a service says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Bytes that it wants first (RFC 3507 sec. 4.5).
    pub(crate) preview: Option<usize>,
}

/// The head of a response: its status code, and the value of each field by name.
#[derive(Debug)]
struct Head<'a> {
    code: u16,
    reason: &'a str,
    fields: &'a str,
}

impl<'a> Head<'a> {
    /// Of bytes that begin with it.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
        let text = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let (line, fields) = text.split_once("\r\n").unwrap_or((text, ""));
        let mut words = line.splitn(3, ' ');
        if !words.next()?.starts_with("ICAP/1.") {
            return None;
        }
        let code = words.next()?.parse().ok()?;
        let reason = words.next().unwrap_or_default();
        Some(Self {
            code,
            reason,
            fields,
        })
    }

    fn field(&self, name: &str) -> Option<&'a str> {
        let mut fields = self
            .fields
            .split("\r\n")
            .filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| field.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }
}

/// Asks what a service supports; gives that, and what it is.
pub(crate) fn options(
    link: &Link,
    service: &Service,
    until: Until<'_>,
) -> Result<(Offer, String), LinkError> {
    let question = service.request("OPTIONS") + "Encapsulated: null-body=0\r\n\r\n";
    link.send(&mut [IoSlice::new(question.as_bytes())], until)?;
    let mut answer = Vec::new();
    link.receive_until(&mut answer, has_head, until)?;
    let head = Head::read(&answer).ok_or(LinkError::Garbage)?;
    if head.code != 200 {
        let what = format!(
            "OPTIONS of {}: {} {}",
            service.name,
            head.code,
            printable(head.reason)
        );
        return Err(std::io::Error::other(what).into());
    }
    let methods = head.field("Methods").unwrap_or_default();
    if !methods.split(',').any(|method| method.trim() == "RESPMOD") {
        let what = format!("the service {} does not support RESPMOD", service.name);
        return Err(std::io::Error::other(what).into());
    }
    let preview = head.field("Preview").and_then(|value| value.parse().ok());
    let offer = Offer {
        preview: preview.map(|preview: usize| preview.min(MAX_PREVIEW)),
    };
    let names = [head.field("Server"), head.field("Service")];
    let version: Vec<&str> = names.into_iter().flatten().collect();
    Ok((offer, printable(&version.join(", "))))
}

/// Has `body` scanned; whether the connection may be used again.
pub(crate) fn scan(
    link: &Link,
    (service, offer): (&Service, Offer),
    body: &Body,
    until: Until<'_>,
) -> Result<(Reply, bool), Fault> {
    let length = length_of(body);
    // The service sees a response to a request of which nothing more is known.
    let request = format!("GET /file HTTP/1.1\r\nHost: {}\r\n\r\n", service.authority);
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    );
    let preview = offer
        .preview
        .map_or(String::new(), |bytes| format!("Preview: {bytes}\r\n"));
    let head = format!(
        "{}Allow: 204\r\n{preview}Encapsulated: req-hdr=0, res-hdr={}, res-body={}\r\n\r\n{request}{response}",
        service.request("RESPMOD"),
        request.len(),
        request.len() + response.len(),
    );
    let first = offer
        .preview
        .map_or(length, |bytes| (bytes as u64).min(length));
    let end: &[u8] = match offer.preview {
        Some(_) if first == length => b"0; ieof\r\n\r\n",
        _ => b"0\r\n\r\n",
    };
    let mut answer = Vec::new();
    let mut sent = link.send(&mut [IoSlice::new(head.as_bytes())], until)?;
    if sent == Sent::All {
        sent = send_range(link, body, 0..first, end, (&mut answer, until))?;
    }
    hear(link, &mut answer, has_head, until)?;
    if Head::read(&answer).is_some_and(|head| head.code == 100) && sent == Sent::All {
        let end = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(0, |at| at + 4);
        answer.drain(..end);
        send_range(
            link,
            body,
            first..length,
            b"0\r\n\r\n",
            (&mut answer, until),
        )?;
        hear(link, &mut answer, has_head, until)?;
    }
    let code = Head::read(&answer).map(|head| head.code);
    if code == Some(200) {
        hear(link, &mut answer, has_both_heads, until)?;
    }
    let mut reply = parse(&answer, length).ok_or(Fault::Link(LinkError::Garbage))?;
    let mut is_over = code == Some(204);
    if code == Some(200) && reply == Reply::Clean {
        let mut rest = answer.clone();
        if is_given_back(link, &mut rest, body, until)? {
            is_over = rest.is_empty();
        } else {
            reply = Reply::Infected("replaced by the ICAP service (another body)".to_owned());
        }
    }
    Ok((reply, is_over && !closes(&answer)))
}

/// Receives until `is_enough` is there, if it is not yet.
fn hear(
    link: &Link,
    answer: &mut Vec<u8>,
    is_enough: impl Fn(&[u8]) -> bool,
    until: Until<'_>,
) -> Result<(), LinkError> {
    if is_enough(answer) {
        return Ok(());
    }
    link.receive_more_until(answer, is_enough, until)
}

/// Whether the body behind the heads of an answer is the one that was sent; leaves what comes behind it.
fn is_given_back(
    link: &Link,
    answer: &mut Vec<u8>,
    body: &Body,
    until: Until<'_>,
) -> Result<bool, Fault> {
    let parts = Head::read(answer).and_then(|head| head.field("Encapsulated"));
    if !parts.is_some_and(|parts| parts.contains("res-body")) {
        return Ok(length_of(body) == 0);
    }
    for _ in 0..2 {
        let end = memchr::memmem::find(answer, b"\r\n\r\n").map_or(0, |at| at + 4);
        answer.drain(..end);
    }
    let mut comparison = Comparison::new(body);
    loop {
        if let Some(known) = comparison.take(answer)? {
            return Ok(known);
        }
        if body.is_abandoned() {
            return Err(Fault::Abandoned);
        }
        link.receive_some(answer, until)?;
    }
}

/// Whether no more needs to be sent: the answer is of a kind that the rest cannot change.
fn is_final(answer: &[u8]) -> bool {
    let Some(head) = Head::read(answer) else {
        return false;
    };
    !matches!(head.code, 100 | 200) || head.field("X-Infection-Found").is_some()
}

fn has_head(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\r\n\r\n").is_some()
}

/// Whether the head of the response inside is there too.
fn has_both_heads(bytes: &[u8]) -> bool {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n");
    let rest = end.and_then(|end| bytes.get(end + 4..)).unwrap_or_default();
    has_head(rest)
}

fn closes(answer: &[u8]) -> bool {
    let connection = Head::read(answer).and_then(|head| head.field("Connection"));
    connection.is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// What an answer says of a body of so many bytes. `None` where it is none.
fn parse(answer: &[u8], length: u64) -> Option<Reply> {
    let head = Head::read(answer)?;
    if head.code == 204 {
        return Some(Reply::Clean);
    }
    // `X-Infection-Found: Type=0; Resolution=2; Threat=NAME;`, and what other services send.
    if let Some(found) = head.field("X-Infection-Found") {
        let threat = found
            .split(';')
            .find_map(|part| part.trim().strip_prefix("Threat="));
        return Some(Reply::Infected(printable(threat.unwrap_or(found))));
    }
    if let Some(name) = ["X-Virus-ID", "X-Virus-Name"]
        .iter()
        .find_map(|name| head.field(name))
    {
        return Some(Reply::Infected(printable(name)));
    }
    // Also 206, which nobody asked for: it leaves out what it does not change.
    if head.code != 200 {
        let what = format!("{} {}", head.code, head.reason);
        return Some(Reply::Error(printable(what.trim())));
    }
    // It is another response than the one that was sent, or that one again.
    let inner = answer.get(memchr::memmem::find(answer, b"\r\n\r\n")? + 4..)?;
    let inner = inner.get(..memchr::memmem::find(inner, b"\r\n\r\n")?)?;
    let inner = std::str::from_utf8(inner).ok()?;
    let mut lines = inner.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?;
    let same_length = lines
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| {
            name.eq_ignore_ascii_case("content-length") && value.trim().parse() == Ok(length)
        });
    Some(if status == "200" && same_length {
        Reply::Clean
    } else {
        Reply::Infected(printable(&format!(
            "replaced by the ICAP service (status code {status})"
        )))
    })
}

pub(crate) fn length_of(body: &Body) -> u64 {
    let spooled = body.spooled.as_ref().map_or(0, |spooled| spooled.length);
    spooled + body.parts.iter().map(|part| part.len() as u64).sum::<u64>()
}

/// Sends a range of the body in chunks (RFC 9112 sec. 7.1), and `end` behind them; stops early where nobody listens.
/// What the service says meanwhile goes into `heard`.
fn send_range(
    link: &Link,
    body: &Body,
    range: std::ops::Range<u64>,
    end: &[u8],
    (heard, until): (&mut Vec<u8>, Until<'_>),
) -> Result<Sent, Fault> {
    let mut at = 0;
    if let Some(spooled) = &body.spooled {
        let mut buffer = vec![0; BLOCK];
        let mut offset = range.start.min(spooled.length);
        let last = range.end.min(spooled.length);
        while offset < last {
            let left = usize::try_from(last - offset).unwrap_or(BLOCK);
            let block = buffer.get_mut(..left.min(BLOCK)).unwrap_or_default();
            read_block(&spooled.file, block, offset).map_err(Fault::Spool)?;
            offset += block.len() as u64;
            if send_chunk(link, block, body, (heard, until))? == Sent::Refused {
                return Ok(Sent::Refused);
            }
        }
        at = spooled.length;
    }
    for part in &body.parts {
        let place = |offset: u64| {
            let offset = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
            offset.min(part.len())
        };
        let wanted = part
            .get(place(range.start)..place(range.end))
            .unwrap_or_default();
        at += part.len() as u64;
        for block in wanted.chunks(BLOCK) {
            if send_chunk(link, block, body, (heard, until))? == Sent::Refused {
                return Ok(Sent::Refused);
            }
        }
    }
    Ok(link.send_hearing(&mut [IoSlice::new(end)], (heard, is_final), until)?)
}

fn send_chunk(
    link: &Link,
    block: &[u8],
    body: &Body,
    (heard, until): (&mut Vec<u8>, Until<'_>),
) -> Result<Sent, Fault> {
    if body.is_abandoned() {
        return Err(Fault::Abandoned);
    }
    let head = format!("{:x}\r\n", block.len());
    let mut parts = [
        IoSlice::new(head.as_bytes()),
        IoSlice::new(block),
        IoSlice::new(b"\r\n"),
    ];
    Ok(link.send_hearing(&mut parts, (heard, is_final), until)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_of_services_are_understood() {
        let infected = |name: &str| Some(Reply::Infected(name.to_owned()));
        for (answer, expected) in [
            (
                "ICAP/1.0 204 No Content\r\nServer: x\r\n\r\n",
                Some(Reply::Clean),
            ),
            ("ICAP/1.0 204 Unmodified\r\n\r\n", Some(Reply::Clean)),
            (
                "ICAP/1.0 200 OK\r\nX-Infection-Found: Type=0; Resolution=2; Threat=Gw.Eicar;\r\n\r\nHTTP/1.1 403 Forbidden\r\n\r\n",
                infected("Gw.Eicar"),
            ),
            (
                "ICAP/1.0 200 OK\r\nx-virus-id: Some.Virus\r\n\r\n",
                infected("Some.Virus"),
            ),
            (
                "ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body=20\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\n",
                infected("replaced by the ICAP service (status code 403)"),
            ),
            (
                "ICAP/1.0 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n",
                infected("replaced by the ICAP service (status code 200)"),
            ),
            (
                "ICAP/1.0 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n",
                Some(Reply::Clean),
            ),
            (
                "ICAP/1.0 206 Partial Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
                Some(Reply::Error("206 Partial Content".to_owned())),
            ),
            (
                "ICAP/1.0 404 Service not found\r\n\r\n",
                Some(Reply::Error("404 Service not found".to_owned())),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", None),
            ("ICAP/1.0 204 No Content\r\n", None),
            ("ICAP/1.0 200 OK\r\n\r\n", None),
        ] {
            assert_eq!(parse(answer.as_bytes(), 7), expected, "{answer}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_answer_is_not_clean(cut in 0_usize..46) {
            let whole = b"ICAP/1.0 204 No modifications needed\r\nA: b\r\n\r\n";
            prop_assert_eq!(parse(&whole[..cut], 7), None);
        }
    }
}
