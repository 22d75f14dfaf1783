//! An event as the list of the last ones shows it.

use linkweir_record::gateway::GatewayEvent;

use crate::api::GatewayLine;
use crate::part::{address_text, socket_key};
use crate::text::clean;

/// Longest text of a line, bytes.
const LINE_BYTES: usize = 240;

/// At most [`LINE_BYTES`] of a text, fit for a screen; not cut inside a character.
fn short(text: &[u8]) -> String {
    if text.len() <= LINE_BYTES {
        return clean(text);
    }
    // A byte inside a character of UTF-8 is one of at most three after its first.
    let is_inside = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let behind = (LINE_BYTES - 3..=LINE_BYTES).rev().take_while(is_inside);
    let end = LINE_BYTES - behind.count();
    clean(text.get(..end).unwrap_or(text)) + "..."
}

/// The application of an event, which has one or is of none that is known; empty where it is about no connection.
pub(super) const fn application<'a>(event: &GatewayEvent<'a>) -> &'a [u8] {
    if event.text.application.is_empty() && event.row.event.has_connection() {
        b"unknown"
    } else {
        event.text.application
    }
}

/// The line of an event.
pub(super) fn line(view: &GatewayEvent<'_>) -> GatewayLine {
    let (row, text) = (view.row, &view.text);
    let socket = |address, port| {
        let has_one = row.event.has_connection();
        has_one.then(|| address_text(&socket_key(address, port)))
    };
    GatewayLine {
        t_ms: row.ts_ns / 1_000_000,
        event: row.event.as_str(),
        application: short(application(view)),
        rule: short(text.rule),
        client: socket(row.client_ip, row.client_port).unwrap_or_default(),
        server: socket(row.server_ip, row.server_port).unwrap_or_default(),
        protocol: row.protocol,
        action: row.action,
        verdict: row.verdict,
        file_name: short(text.file_name),
        message: short(text.message),
        detail: short(text.detail),
        from: short(text.from),
        to: short(text.to),
        size: row.size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(short(b"song.mp3"), "song.mp3");
        assert_eq!(short(&[b'a'; LINE_BYTES]), "a".repeat(LINE_BYTES));
        assert_eq!(
            short(&[b'a'; LINE_BYTES + 1]),
            "a".repeat(LINE_BYTES) + "..."
        );
        for before in 0..4 {
            let text = "a".repeat(LINE_BYTES - before) + "\u{1f40d}\u{e9}\u{20ac}";
            let cut = short(text.as_bytes());
            assert!(!cut.contains("\\x"), "{cut}");
            assert!(cut.ends_with("a..."), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_short_clean_text(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let text = short(&bytes);
            prop_assert!(text.len() <= 4 * LINE_BYTES + 3);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
