//! Lines of `log_http_complete`: requests and responses, each for itself, separated by tabs.

use linkweir_record::flow::{Message, MessageKind};

use crate::lines::push_header;
use linkweir_sink::escape::{is_unprintable, push_hex_escaped};
use linkweir_sink::number::{push_ip, push_seconds6, push_u64};

const REQUEST: [&str; 13] = [
    "c_ip",
    "c_port",
    "s_ip",
    "s_port",
    "time_abs",
    "method",
    "hostname",
    "fqdn",
    "path",
    "referer",
    "user_agent",
    "cookie",
    "dnt",
];
const RESPONSE: [&str; 13] = [
    "c_ip",
    "c_port",
    "s_ip",
    "s_port",
    "time_abs",
    "HTTP",
    "response",
    "content_len",
    "content_type",
    "server",
    "range",
    "location",
    "set_cookie",
];

/// Two lines: one for requests, one for responses.
pub(crate) fn header(out: &mut Vec<u8>) {
    push_header(out, "#C#", b'\t', REQUEST.into_iter());
    push_header(out, "#S#", b'\t', RESPONSE.into_iter());
}

/// A text after a tab, `-` where there is none. What could end the column or the line, and what is no
/// ASCII, is escaped.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\t');
    if text.is_empty() {
        out.push(b'-');
    } else {
        push_hex_escaped(out, text, |b| b == b'\\' || is_unprintable(b));
    }
}

/// The line of a message.
pub(crate) fn message(out: &mut Vec<u8>, message: &Message<'_>) {
    let row = message.row;
    let (client, server) = (row.client, row.server);
    push_ip(out, client.0);
    out.push(b'\t');
    push_u64(out, u64::from(client.1));
    out.push(b'\t');
    push_ip(out, server.0);
    out.push(b'\t');
    push_u64(out, u64::from(server.1));
    out.push(b'\t');
    push_seconds6(out, row.time_ns);
    match row.kind {
        MessageKind::Request => {
            let [method, host, path, referer, agent, cookie, dnt, fqdn] = message.texts;
            for text in [method, host, fqdn, path, referer, agent, cookie, dnt] {
                push_text(out, text);
            }
        }
        MessageKind::Response => {
            out.extend_from_slice(b"\tHTTP\t");
            push_u64(out, u64::from(row.status));
            let [len, kind, server, range, location, cookie, _, _] = message.texts;
            for text in [len, kind, server, range, location, cookie] {
                push_text(out, text);
            }
        }
    }
    out.push(b'\n');
}
