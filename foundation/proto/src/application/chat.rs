//! XMPP, IRC, Yahoo! Messenger, Direct Connect.

use super::bytes::{
    begins, begins_any_case, contains_any_case, digits, first_line, is_text, line_so_far,
};
use super::{Application, Verdict, View};

/// Bytes of a stream within which its header says what it is.
const HEADER: usize = 512;
const IRC_PORTS: [u16; 4] = [6667, 6666, 6668, 6669];

/// A stream header (RFC 6120 section 4.7), after white space and the XML declaration.
pub(super) fn xmpp(view: &View<'_>) -> Verdict {
    let head = view
        .own
        .get(..HEADER)
        .unwrap_or(view.own)
        .trim_ascii_start();
    let is_stream = |head: &[u8]| {
        let at = head
            .windows(8)
            .position(|w| matches!(w, b"<stream:" | b"<flash:s"));
        at.is_some()
            || (contains_any_case(head, b"'JABBER:") || contains_any_case(head, b"\"JABBER:"))
    };
    if head.is_empty() {
        // Only blanks: a keep-alive of a stream that began before.
        return if view.own.len() < 8 {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    if head.starts_with(b"<stream:stream")
        || head.starts_with(b"</stream:stream>")
        || head.starts_with(b"<?xml") && is_stream(head)
    {
        return Verdict::Is(Application::Xmpp);
    }
    let may_become = head.starts_with(b"<?xml")
        || b"<stream:stream".starts_with(head)
        || b"<?xml".starts_with(head);
    if may_become && view.own.len() < HEADER {
        return Verdict::More;
    }
    // The middle of a stream: a stanza of a client (RFC 6120 section 8).
    let stanzas: [&[u8]; 3] = [b"<iq ", b"<presence ", b"<message "];
    let is_stanza = stanzas.iter().any(|stanza| head.starts_with(stanza));
    Verdict::when(
        is_stanza && (is_stream(head) || view.has_port_of(&[5222, 5269])),
        Application::Xmpp,
    )
}

/// A client that registers (RFC 2812 section 3.1): `NICK` and `USER` with four parameters, or
/// the negotiation of capabilities before them.
pub(super) fn irc(view: &View<'_>) -> Verdict {
    let own = view.own;
    let commands: [&[u8]; 4] = [b"NICK ", b"USER ", b"PASS ", b"CAP "];
    if !commands.iter().any(|command| begins_any_case(own, command)) {
        let is_prefix =
            |command: &&[u8]| own.len() < command.len() && begins_any_case(command, own);
        return if commands.iter().any(is_prefix) {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    let mut seen = [false; 4];
    let mut is_registration = false;
    for line in own.split_inclusive(|byte| *byte == b'\n').take(8) {
        for (command, seen) in commands.iter().zip(&mut seen) {
            *seen |= begins_any_case(line, command);
        }
        // Colon before the real name, which has blanks.
        is_registration |= begins_any_case(line, b"USER ") && is_user(line);
        is_registration |= ["CAP LS", "CAP REQ :", "CAP END"]
            .iter()
            .any(|command| begins_any_case(line, command.as_bytes()));
    }
    let [nick, _, pass, _] = seen;
    if is_registration && (nick || pass || view.has_port_of(&IRC_PORTS)) {
        return Verdict::Is(Application::Irc);
    }
    if irc_server_line(view.other) {
        return Verdict::Is(Application::Irc);
    }
    if nick || is_registration || pass {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// `USER <user> <mode> <unused> :<real name>`.
fn is_user(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_end().split(|byte| *byte == b' ').skip(1);
    let some = |word: Option<&[u8]>| word.is_some_and(|word| !word.is_empty());
    some(words.next()) && some(words.next()) && some(words.next()) && some(words.next())
}

/// What a server says first: `:<server> NOTICE AUTH :...`, `:<server> 001 ...`.
pub(super) fn irc_server(view: &View<'_>) -> Verdict {
    if first_line(view.own).is_none() && view.own.len() < HEADER {
        return Verdict::More;
    }
    Verdict::when(irc_server_line(view.own), Application::Irc)
}

/// What old servers say before they know themselves.
pub(super) fn irc_notice(view: &View<'_>) -> Verdict {
    Verdict::when(irc_server_line(view.own), Application::Irc)
}

fn irc_server_line(bytes: &[u8]) -> bool {
    let line = line_so_far(bytes);
    if begins_any_case(line, b"NOTICE AUTH :") {
        return true;
    }
    let Some(line) = line.strip_prefix(b":") else {
        return false;
    };
    let mut words = line.split(|byte| *byte == b' ');
    let (prefix, command, target) = (words.next(), words.next(), words.next());
    let is_name =
        prefix.is_some_and(|prefix| !prefix.is_empty() && prefix.iter().all(u8::is_ascii_graphic));
    let is_command = command.is_some_and(|command| {
        matches!(command, b"NOTICE" | b"PRIVMSG" | b"JOIN" | b"MODE" | b"CAP")
            || command.len() == 3 && digits(command) == 3
    });
    is_name && is_command && target.is_some_and(|target| !target.is_empty())
}

/// Yahoo! Messenger: its name, then version, vendor and a length.
pub(super) fn ymsg(view: &View<'_>) -> Verdict {
    begins(view.own, b"YMSG\x00", Application::Ymsg).or(|| {
        let is_versioned = matches!(view.own, [b'Y', b'M', b'S', b'G', 1..=20, 0, ..]);
        Verdict::when(is_versioned, Application::Ymsg)
    })
}

/// Direct Connect (NMDC): commands between `$` and `|`; the first one whole, and behind it its key or
/// another one.
pub(super) fn direct_connect(view: &View<'_>) -> Verdict {
    let starts: [&[u8]; 2] = [b"$Lock ", b"$MyNick "];
    let own = view.own;
    let Some(start) = starts.iter().find(|start| own.starts_with(start)) else {
        let may_become = starts.iter().any(|start| start.starts_with(own));
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let rest = own.get(start.len()..).unwrap_or_default();
    let Some(end) = memchr::memchr(b'|', rest) else {
        return if rest.len() < HEADER && is_text(rest) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let (first, behind) = rest.split_at_checked(end).unwrap_or_default();
    let is_command =
        |bytes: &[u8]| matches!(bytes, [b'$', letter, ..] if letter.is_ascii_alphabetic());
    let is_followed = memchr::memmem::find(first, b" Pk=").is_some()
        || is_command(behind.get(1..).unwrap_or_default())
        || is_command(view.other);
    if is_followed {
        Verdict::Is(Application::DirectConnect)
    } else if behind.len() <= 2 && view.other.len() < 2 {
        Verdict::More
    } else {
        Verdict::No
    }
}
