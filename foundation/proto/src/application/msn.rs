//! MSN Messenger (MSNP) and its file transfer (MSNFTP).
//!
//! Source: draft-movva-msn-messenger-protocol-00; the documented MSNFTP. Both begin with `VER`.

use super::bytes::{begins, begins_any_case, contains_any_case, digits, first_line};
use super::{Application, Verdict, View};

/// `VER MSNFTP`, or `VER <id> MSNP<version> ...`.
pub(super) fn version(view: &View<'_>) -> Verdict {
    let Some(rest) = view.own.strip_prefix(b"VER ") else {
        return if b"VER ".starts_with(view.own) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let id = digits(rest);
    let file = begins(rest, b"MSNFTP", Application::MsnFtp);
    if id == 0 {
        return file;
    }
    let Some(dialect) = rest.get(id..).and_then(|rest| rest.strip_prefix(b" ")) else {
        return if rest.len() == id {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    // A file transfer by the client's numbering, or a list of dialects.
    match begins(dialect, b"MSNFTP", Application::MsnFtp) {
        Verdict::No => begins(dialect, b"MSNP", Application::Msn)
            .or(|| begins(dialect, b"CVR0", Application::Msn)),
        decided => decided,
    }
}

/// The switchboard: `USR <id> <handle> <cookie>` and `ANS <id> <handle> <cookie> <session>`.
pub(super) fn switchboard(view: &View<'_>) -> Verdict {
    let is_command = |command: &[u8]| begins_any_case(view.own, command);
    if !is_command(b"USR ") && !is_command(b"ANS ") {
        return Verdict::No;
    }
    let Some(line) = first_line(view.own) else {
        return Verdict::More;
    };
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    let (id, handle, cookie) = (words.next(), words.next(), words.next());
    let is_number =
        |word: Option<&[u8]>| word.is_some_and(|w| !w.is_empty() && digits(w) == w.len());
    let is_handle = handle.is_some_and(|word| contains_any_case(word, b"@"));
    let is_login = handle.is_some_and(|word| matches!(word, b"TWN" | b"MD5" | b"SSO"));
    Verdict::when(
        is_number(id) && cookie.is_some() && (is_handle || is_login && view.has_port(1863)),
        Application::Msn,
    )
}
