//! What a record is by its length, as far as that says it: content without what encryption adds, by RFC 8446, 9112 and 9113.

/// Content from here on is data, whatever the version.
pub(super) const LARGE: u16 = 1000;
/// `HTTP/1.1 100 Continue` with its line ends.
pub(super) const CONTINUE: u16 = 25;
/// The shortest response head of HTTP/1.x begins with a status line of 17 bytes and has an empty line.
pub(super) const SHORTEST_RESPONSE: u16 = 19;
/// Less than this in one record is no request of HTTP/1.1, which has a target and a host.
pub(super) const SHORTEST_REQUEST: u16 = 30;
/// Requests of HTTP/1.1 by browsers and libraries are longer; those of HTTP/2, but for the first of a connection, are seldom.
pub(super) const COLD_REQUEST: u8 = 100;
/// Alert: level and description.
pub(super) const ALERT: u16 = 2;
/// `KeyUpdate`: a message header and one byte; also the last chunk of a body.
pub(super) const KEY_UPDATE: u16 = 5;
/// The longest SETTINGS that a server sends first, with a `WINDOW_UPDATE` and an acknowledgment of the client's.
pub(super) const LONGEST_SETTINGS: u16 = 80;
/// SETTINGS without content, that is its acknowledgment; also an empty DATA frame.
pub(super) const SETTINGS_ACK: u16 = 9;
/// The same with a `WINDOW_UPDATE`.
pub(super) const ACK_AND_UPDATE: u16 = 22;
/// `WINDOW_UPDATE`, and `RST_STREAM`.
pub(super) const UPDATE: u16 = 13;
/// Two of them, of a stream and of the connection.
pub(super) const TWO_UPDATES: u16 = 26;
/// PING, and GOAWAY without text.
pub(super) const PING: u16 = 17;

/// Whether so many bytes may be frames of HTTP/2 that belong to no stream's messages: SETTINGS without content,
/// `WINDOW_UPDATE`, `RST_STREAM`, PING, GOAWAY without text, or two of them.
pub(super) const fn is_control(content: u16) -> bool {
    matches!(content, SETTINGS_ACK | UPDATE | PING | TWO_UPDATES)
}

/// Whether so many bytes may be what a client of HTTP/2 sends first: the preface, alone or with SETTINGS of up to eight
/// values and a `WINDOW_UPDATE` (RFC 9113 sec. 3.4).
pub(super) fn is_preface(content: u16) -> bool {
    let Some(settings) = content.checked_sub(24 + 9) else {
        return content == 24;
    };
    let is_list = |len: u16| len.is_multiple_of(6) && len / 6 <= 8;
    is_list(settings) || (settings >= 13 && is_list(settings - 13))
}
