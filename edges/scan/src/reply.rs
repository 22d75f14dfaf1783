//! What clamd answers.

/// Longest text of clamd that goes into a report, bytes.
const MAX_TEXT: usize = 256;

/// An answer to `INSTREAM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `stream: OK`.
    Clean,
    /// `stream: NAME FOUND`.
    Infected(String),
    /// The stream is longer than clamd's `StreamMaxLength`.
    SizeLimit,
    /// Another error of its own, in its words.
    Error(String),
}

/// Reads an answer without its end. `id` is the number of the command within a session; an answer to
/// another one is no answer. `None` where it is nothing that clamd says.
pub(crate) fn parse(answer: &[u8], id: Option<u32>) -> Option<Reply> {
    let text = std::str::from_utf8(answer).ok()?;
    let text = match id {
        Some(id) => match text.split_once(": ") {
            Some((number, rest)) if number.parse() == Ok(id) => rest,
            // An error that ends the session has no number.
            _ if text.ends_with("ERROR") => text,
            _ => return None,
        },
        None => text,
    };
    if let Some(result) = text.strip_prefix("stream: ") {
        if result == "OK" {
            return Some(Reply::Clean);
        }
        if let Some(name) = result
            .strip_suffix(" FOUND")
            .filter(|name| !name.is_empty())
        {
            return Some(Reply::Infected(printable(name)));
        }
    }
    if text.starts_with("INSTREAM size limit exceeded") {
        return Some(Reply::SizeLimit);
    }
    let error = text.strip_suffix("ERROR")?;
    let error = error.strip_prefix("stream: ").unwrap_or(error);
    Some(Reply::Error(printable(error.trim().trim_end_matches('.'))))
}

/// The text in printable characters and of bounded length: it goes into records and to terminals.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_TEXT));
    for character in text.chars() {
        if out.len() + character.len_utf8() > MAX_TEXT {
            break;
        }
        out.push(if character.is_control() {
            '?'
        } else {
            character
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_of_clamd_are_understood() {
        let infected = |name: &str| Some(Reply::Infected(name.to_owned()));
        let error = |text: &str| Some(Reply::Error(text.to_owned()));
        for (answer, id, expected) in [
            ("stream: OK", None, Some(Reply::Clean)),
            ("7: stream: OK", Some(7), Some(Reply::Clean)),
            ("7: stream: OK", Some(8), None),
            ("7: stream: OK", None, None),
            ("stream: OK", Some(1), None),
            (
                "stream: Gw.Eicar.Body.UNOFFICIAL FOUND",
                None,
                infected("Gw.Eicar.Body.UNOFFICIAL"),
            ),
            ("1: stream: A: B FOUND", Some(1), infected("A: B")),
            ("stream:  FOUND", None, None),
            (
                "INSTREAM size limit exceeded. ERROR",
                None,
                Some(Reply::SizeLimit),
            ),
            (
                "2: INSTREAM size limit exceeded. ERROR",
                Some(2),
                Some(Reply::SizeLimit),
            ),
            (
                "stream: Can't allocate memory ERROR",
                None,
                error("Can't allocate memory"),
            ),
            (
                "COMMAND READ TIMED OUT. ERROR",
                Some(3),
                error("COMMAND READ TIMED OUT"),
            ),
            ("UNKNOWN COMMAND", None, None),
            ("stream: OK FOUNDER", None, None),
            ("HTTP/1.1 400 Bad Request\r\n", None, None),
            ("", None, None),
        ] {
            assert_eq!(parse(answer.as_bytes(), id), expected, "{answer}");
        }
    }

    #[test]
    fn names_are_printable_and_bounded() {
        let answer = format!("stream: a\x1b[2J{} FOUND", "é".repeat(500));
        let Some(Reply::Infected(name)) = parse(answer.as_bytes(), None) else {
            panic!("found");
        };
        assert!(name.starts_with("a?[2J") && name.len() <= MAX_TEXT);
    }

    proptest! {
        #[test]
        fn nothing_but_ok_is_clean(answer in prop::collection::vec(any::<u8>(), 0..60), id in prop::option::of(0_u32..9)) {
            if parse(&answer, id) == Some(Reply::Clean) {
                prop_assert!(answer.ends_with(b"stream: OK"));
            }
        }

        #[test]
        fn a_cut_answer_is_not_taken(cut in 0_usize..24) {
            let whole = b"stream: Some.Virus FOUND";
            prop_assert_eq!(parse(&whole[..cut], None), None);
        }
    }
}
