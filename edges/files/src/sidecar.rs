//! The text beside a file: where it comes from and what became of it, as one JSON object (RFC 8259).
//!
//! The name that the protocol gave need not be UTF-8, JSON must be: a byte that is not part of a valid
//! UTF-8 sequence becomes `\xHH` in the string, and so does a backslash that is followed by `x` and two
//! hexadecimal digits, as in the records.

use std::fmt::Write as _;

use linkweir_engine::effect::FileOrigin;

use crate::status::LossCause;

/// How a file ended, in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The run did, before the file.
    Interrupted,
    Kept,
    Part,
    Quarantined,
}

impl Ended {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Kept => "kept",
            Self::Part => "part",
            Self::Quarantined => "quarantined",
        }
    }
}

/// The text. `size` is not known before the end.
pub(crate) fn text(
    origin: &FileOrigin,
    ended: Ended,
    size: Option<u64>,
    cut: Option<LossCause>,
) -> String {
    let mut out = String::with_capacity(256);
    let size = size.map_or_else(|| "null".to_owned(), |size| size.to_string());
    let cut = cut.map_or_else(
        || "null".to_owned(),
        |cause| format!("\"{}\"", cause.as_str()),
    );
    // OpenFile to a string cannot fail.
    write!(
        out,
        "{{\"ts_ns\":{},\"sender\":\"{}\",\"receiver\":\"{}\",\"application\":",
        origin.time.as_nanos(),
        origin.sender,
        origin.receiver
    )
    .unwrap_or_default();
    push_string(&mut out, origin.application.as_bytes());
    out.push_str(",\"name\":");
    push_string(&mut out, &origin.name);
    let end = ended.as_str();
    writeln!(out, ",\"size\":{size},\"end\":\"{end}\",\"cut\":{cut}}}").unwrap_or_default();
    out
}

/// The text made at least as long as it was before, so that it can be written over the older one.
pub(crate) fn padded(mut text: String, length: usize) -> String {
    if text.len() < length {
        text.pop();
        let blanks = length - text.len() - 1;
        text.extend(std::iter::repeat_n(' ', blanks));
        text.push('\n');
    }
    text
}

fn push_string(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid().chars();
        while let Some(character) = rest.next() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' if is_like_escape(rest.as_str().as_bytes()) => out.push_str("\\\\x5c"),
                '\\' => out.push_str("\\\\"),
                // Control characters, those of terminals among them.
                '\0'..='\x1f' | '\x7f'..='\u{9f}' => {
                    write!(out, "\\u{:04x}", u32::from(character)).unwrap_or_default();
                }
                _ => out.push(character),
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\\\x{byte:02x}").unwrap_or_default();
        }
    }
    out.push('"');
}

const fn is_like_escape(after: &[u8]) -> bool {
    matches!(after, [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_wire::Timestamp;
    use proptest::prelude::*;
    use serde_json::Value;

    fn origin(name: &[u8]) -> FileOrigin {
        FileOrigin {
            time: Timestamp::from_nanos(1_700_000_000_000_000_001),
            sender: "[2001:db8::1]:80".parse().expect("an address"),
            receiver: "10.0.0.1:4000".parse().expect("an address"),
            application: "http".to_owned(),
            name: name.to_vec(),
            stored_name: "x".to_owned(),
        }
    }

    #[test]
    fn it_says_where_a_file_comes_from() {
        let text = text(
            &origin(b"a\\xffb\xff\"\n"),
            Ended::Part,
            Some(7),
            Some(LossCause::NoSpace),
        );
        assert_eq!(
            text,
            "{\"ts_ns\":1700000000000000001,\"sender\":\"[2001:db8::1]:80\",\"receiver\":\"10.0.0.1:4000\",\
             \"application\":\"http\",\"name\":\"a\\\\x5cxffb\\\\xff\\\"\\u000a\",\"size\":7,\"end\":\"part\",\
             \"cut\":\"no_space\"}\n"
        );
    }

    proptest! {
        #[test]
        fn any_name_gives_json_and_padding_keeps_it(name in prop::collection::vec(any::<u8>(), 0..40), more in 0_usize..50) {
            let text = text(&origin(&name), Ended::Kept, None, None);
            let value: Value = serde_json::from_str(&text).expect("JSON");
            prop_assert_eq!(&value["end"], "kept");
            if let Ok(name) = std::str::from_utf8(&name)
                && !name.contains('\\')
            {
                prop_assert_eq!(&value["name"], name);
            }
            let length = text.len() + more;
            let padded = padded(text, length);
            prop_assert_eq!(padded.len(), length);
            prop_assert_eq!(serde_json::from_str::<Value>(&padded).expect("JSON"), value);
        }
    }
}
