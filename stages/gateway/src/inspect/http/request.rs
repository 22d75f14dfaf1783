//! Requests: what is asked for, of whom, and what is sent along.

use std::borrow::Cow;

use linkweir_proto::http1::{BodyLength, RequestHead, authority, path, target_name, without_port};

use super::body::Body;
use super::facts::Facts;
use super::multipart::Multipart;
use super::pending::{Asked, Kind};
use super::{HttpInspector, State};
use crate::inspect::{Coding, FileInfo, Found, RequestInfo, Side};

/// A path of FastTrack names its file by hash.
const FASTTRACK: &[u8] = b"/.hash=";
/// A path of Gnutella does (HUGE 0.94).
const GNUTELLA: &[u8] = b"/uri-res/";

impl HttpInspector {
    /// A request of a side.
    pub(super) fn request<F: Found>(
        &mut self,
        sender: Side,
        head: &[u8],
        request: &RequestHead<'_>,
        found: &mut F,
    ) {
        let facts = Facts::of(head);
        let host = host(request);
        let (name, identifier) = asked_for(request.target);
        let asked = Asked {
            name: &name,
            host,
            identifier,
            user: facts.user,
        };
        if !host.is_empty() {
            found.host(host);
        }
        let info = RequestInfo {
            method: request.method,
            target: request.target,
            host,
            user_agent: request.user_agent,
            head,
            is_multiplexed: false,
        };
        found.request(sender, &info);
        let kind = match request.method {
            b"HEAD" => Kind::Head,
            b"CONNECT" => Kind::Connect,
            _ if facts.is_upgrade => Kind::Upgrade,
            _ => Kind::Ordinary,
        };
        let has_name = !name.is_empty() || !identifier.is_empty();
        if has_name && matches!(request.method, b"GET" | b"HEAD") {
            let file = FileInfo {
                name: &name,
                host,
                identifier,
                to: facts.user,
                ..FileInfo::default()
            };
            found.file_named(sender.other(), &file);
        }
        if self.stream(sender).asked.push(kind, &asked).is_err() {
            return self.malformed(sender, "more requests wait than are kept", found);
        }
        if kind == Kind::Connect {
            self.stream(sender).state = State::Tunnel;
            return;
        }
        match facts.framing.request(request.minor) {
            Ok(length) => self.request_body(sender, &facts, &asked, length, found),
            Err(fault) => self.malformed(sender, fault.as_str(), found),
        }
    }

    fn request_body<F: Found>(
        &mut self,
        sender: Side,
        facts: &Facts<'_>,
        asked: &Asked<'_>,
        length: BodyLength,
        found: &mut F,
    ) {
        let coding = facts.coding();
        let form = match coding {
            Coding::Identity => Multipart::new(&facts.form_boundary(), asked.host),
            _ => None,
        };
        let Some(body) = Body::new(length, form) else {
            return;
        };
        let mut names = facts.names().into_iter();
        let name = names.next().unwrap_or(Cow::Borrowed(asked.name));
        tell_others(sender, names, asked.host, found);
        let file = FileInfo {
            name: &name,
            announced_size: known(length),
            host: asked.host,
            identifier: asked.identifier,
            from: asked.user,
            to: &[],
            coding,
            is_until_close: false,
            is_part: false,
        };
        found.file_begin(sender, &file);
        self.stream(sender).state = State::Body(body);
    }
}

/// Tells of the other names that a file may get.
pub(in crate::inspect) fn tell_others<'a, F: Found>(
    sender: Side,
    names: impl Iterator<Item = Cow<'a, [u8]>>,
    host: &[u8],
    found: &mut F,
) {
    for name in names {
        let file = FileInfo {
            name: &name,
            host,
            ..FileInfo::default()
        };
        found.file_named(sender, &file);
    }
}

/// The bytes that a head announces.
pub(in crate::inspect) const fn known(length: BodyLength) -> Option<u64> {
    match length {
        BodyLength::Known(length) => Some(length),
        BodyLength::Chunked | BodyLength::UntilClose => None,
    }
}

/// The host that is asked: that of the target goes before the field (RFC 9112 sec. 3.2.2).
fn host<'a>(request: &RequestHead<'a>) -> &'a [u8] {
    let authority = authority(request.method, request.target);
    without_port(if authority.is_empty() {
        request.host
    } else {
        authority
    })
}

/// Name and identifier of what a target asks for.
pub(in crate::inspect) fn asked_for(target: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let path = path(target);
    if let Some(hash) = path.strip_prefix(FASTTRACK) {
        let end = memchr::memchr(b'/', hash);
        let name = if end.is_some() {
            target_name(path)
        } else {
            Cow::default()
        };
        return (
            name,
            hash.get(..end.unwrap_or(hash.len())).unwrap_or_default(),
        );
    }
    if path.starts_with(GNUTELLA) {
        let query = memchr::memchr(b'?', target).map_or(target.len(), |at| at + 1);
        return (Cow::default(), target.get(query..).unwrap_or_default());
    }
    (target_name(target), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_identifiers_of_targets() {
        for (target, name, identifier) in [
            ("/a/song%20one.mp3?x=1", "song one.mp3", ""),
            ("/.hash=00ff", "", "00ff"),
            ("/.hash=00ff/a%20b.mp3", "a b.mp3", "00ff"),
            ("/uri-res/N2R?urn:sha1:ABC", "", "urn:sha1:ABC"),
            ("/uri-res/N2R", "", ""),
            ("/get/12/x.avi", "x.avi", ""),
            ("/", "", ""),
        ] {
            let (found, id) = asked_for(target.as_bytes());
            assert_eq!(
                (&*found, id),
                (name.as_bytes(), identifier.as_bytes()),
                "{target}"
            );
        }
    }
}
