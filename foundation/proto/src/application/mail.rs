//! SMTP, POP3, IMAP and FTP: a greeting, then commands in words.
//!
//! A greeting names its protocol, or the first command does, or else the port.
//! Sources: RFC 5321, RFC 1939, RFC 9051, RFC 959.

use super::bytes::{begins_any_case, contains_any_case, digits, first_line, line_so_far};
use super::{Application, Verdict, View};

const SMTP_PORTS: [u16; 3] = [25, 587, 2525];
/// The longest reply line (RFC 5321 section 4.5.3.1.5), and some room.
const LINE: usize = 600;

/// What a first command belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Smtp,
    Pop3,
    Imap,
    Ftp,
    /// `USER`, `AUTH`, `QUIT`, ...: of more than one.
    Shared,
    None,
}

/// The protocol of a line that a client sends.
fn command_of(bytes: &[u8]) -> Command {
    let line = line_so_far(bytes);
    if is_tagged(line) {
        return Command::Imap;
    }
    let verb_len = line.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let is_end = matches!(line.get(verb_len), None | Some(b' '));
    let verb = line.get(..verb_len).unwrap_or_default();
    let arguments = line.get(verb_len..).unwrap_or_default();
    if !is_end
        || !line
            .iter()
            .all(|b| *b == b'\t' || (b' '..0x7F).contains(b) || *b >= 0x80)
    {
        return Command::None;
    }
    let is = |words: &[&str]| {
        words
            .iter()
            .any(|word| verb.eq_ignore_ascii_case(word.as_bytes()))
    };
    if is(&["EHLO", "HELO", "LHLO"]) && arguments.len() > 1 {
        Command::Smtp
    } else if is(&["CAPA", "APOP", "STLS", "UIDL"]) {
        Command::Pop3
    } else if is(&[
        "FEAT", "SYST", "CWD", "PASV", "EPSV", "PBSZ", "PROT", "RETR",
    ]) || is(&["AUTH"])
        && (contains_any_case(arguments, b"TLS") || contains_any_case(arguments, b"SSL"))
    {
        Command::Ftp
    } else if is(&["USER", "AUTH", "QUIT", "NOOP", "PASS", "HELP", "STAT"]) {
        Command::Shared
    } else {
        Command::None
    }
}

/// `<tag> <command>` of IMAP before a login.
fn is_tagged(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    let (tag, command) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let is_tag = (1..=12).contains(&tag.len())
        && tag.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'.')
        && tag.iter().any(u8::is_ascii_digit);
    let commands = [
        "CAPABILITY",
        "LOGIN",
        "STARTTLS",
        "AUTHENTICATE",
        "ID",
        "NAMESPACE",
    ];
    is_tag
        && commands
            .iter()
            .any(|known| command.eq_ignore_ascii_case(known.as_bytes()))
}

/// A client's first line: sure where only one protocol has the command, else by the other side.
pub(super) fn command(view: &View<'_>) -> Verdict {
    if view.own.len() < 5 && first_line(view.own).is_none() {
        return Verdict::More;
    }
    match command_of(view.own) {
        Command::Smtp if first_line(view.own).is_some() => Verdict::Is(Application::Smtp),
        Command::Pop3 if is_whole_or_answered(view, b"+OK") => Verdict::Is(Application::Pop3),
        Command::Imap => Verdict::Is(Application::Imap),
        Command::Ftp if is_whole_or_answered(view, b"220") && view.other.starts_with(b"2") => {
            Verdict::Is(Application::Ftp)
        }
        Command::None => Verdict::No,
        _ if view.other.is_empty() => by_port(view),
        // Its greeting says what it is: that side is asked next.
        _ => Verdict::More,
    }
}

fn is_whole_or_answered(view: &View<'_>, greeting: &[u8]) -> bool {
    first_line(view.own).is_some() && (view.other.is_empty() || view.other.starts_with(greeting))
}

/// A client's line in a capture without the other side.
fn by_port(view: &View<'_>) -> Verdict {
    let known = [
        (21, Application::Ftp),
        (25, Application::Smtp),
        (587, Application::Smtp),
        (110, Application::Pop3),
        (143, Application::Imap),
    ];
    let by_port = known.iter().find(|(port, _)| view.has_port(*port));
    match by_port {
        Some((_, application)) if first_line(view.own).is_some() => Verdict::Is(*application),
        _ => Verdict::More,
    }
}

/// A line that begins with a digit: a reply of SMTP or FTP, or a tag of IMAP in numbers.
pub(super) fn numbered(view: &View<'_>) -> Verdict {
    if digits(view.own) != 3 {
        return match command_of_tag(view) {
            true => Verdict::Is(Application::Imap),
            false => Verdict::No,
        };
    }
    match view.own.get(3) {
        Some(b' ' | b'-') => {}
        None => return Verdict::More,
        Some(_) => return Verdict::No,
    }
    let Some(line) = first_line(view.own) else {
        return if view.own.len() < LINE {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    if !matches!(line.first_chunk(), Some(b"220" | b"421" | b"554" | b"120")) {
        return Verdict::when(command_of_tag(view), Application::Imap);
    }
    // The greeting may have several lines.
    let greeting = view.own.get(..LINE).unwrap_or(view.own);
    match command_of(view.other) {
        Command::Smtp => return Verdict::Is(Application::Smtp),
        Command::Ftp => return Verdict::Is(Application::Ftp),
        Command::Shared if begins_any_case(view.other, b"USER ") => {
            return Verdict::Is(Application::Ftp);
        }
        _ => {}
    }
    let names_smtp =
        contains_any_case(greeting, b"SMTP") || contains_any_case(greeting, b"POSTFIX");
    let names_ftp = contains_any_case(greeting, b"FTP");
    if view.has_port_of(&SMTP_PORTS) || names_smtp && !names_ftp {
        Verdict::Is(Application::Smtp)
    } else if view.has_port(21) || names_ftp && !names_smtp {
        Verdict::Is(Application::Ftp)
    } else {
        Verdict::More
    }
}

fn command_of_tag(view: &View<'_>) -> bool {
    command_of_line(view.own) && first_line(view.own).is_some()
}

fn command_of_line(bytes: &[u8]) -> bool {
    is_tagged(line_so_far(bytes))
}

/// `+OK`: the greeting of POP3, and an answer of other protocols.
pub(super) fn pop3_greeting(view: &View<'_>) -> Verdict {
    const OK: &[u8] = b"+OK";
    if !view.own.starts_with(OK) {
        return if OK.starts_with(view.own) {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    let Some(line) = first_line(view.own) else {
        return if view.own.len() < LINE {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let is_its = view.has_port(110)
        || contains_any_case(line, b"POP")
        // The time stamp that APOP signs (RFC 1939 section 7).
        || line.ends_with(b">") && line.contains(&b'<') && line.contains(&b'@');
    if is_its || command_of(view.other) == Command::Pop3 {
        return Verdict::Is(Application::Pop3);
    }
    match command_of(view.other) {
        Command::Shared if begins_any_case(view.other, b"USER ") => Verdict::Is(Application::Pop3),
        _ if view.other.is_empty() => Verdict::More,
        _ => Verdict::No,
    }
}

/// `* OK`: the greeting of IMAP.
pub(super) fn imap_greeting(view: &View<'_>) -> Verdict {
    let own = view.own;
    let starts: [&[u8]; 3] = [b"* OK", b"* PREAUTH", b"* BYE"];
    if !starts.iter().any(|start| begins_any_case(own, start)) {
        let may_become = starts.iter().any(|start| start.starts_with(own));
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    let Some(line) = first_line(own) else {
        return if own.len() < LINE {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let is_its = view.has_port(143)
        || contains_any_case(line, b"IMAP")
        || contains_any_case(line, b"[CAPABILITY ")
        || command_of_line(view.other);
    if is_its {
        Verdict::Is(Application::Imap)
    } else if view.other.is_empty() {
        Verdict::More
    } else {
        Verdict::No
    }
}
