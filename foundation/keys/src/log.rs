//! The key log: secrets by the random of the `ClientHello` (RFC 9850, the format of NSS).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use zeroize::{Zeroize, Zeroizing};

/// The longest secret: a hash of 48 bytes (SHA-384), and the master secret of TLS 1.2.
pub const MAX_SECRET: usize = 48;
/// Sessions whose secrets are kept; the oldest leave.
pub const MAX_SESSIONS: usize = 1 << 18;
/// The longest line with a meaning has some 210 bytes.
const MAX_LINE: usize = 512;

/// What a secret is for (RFC 9850 sec. 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Label {
    /// TLS 1.2 and before: the master secret.
    Master,
    /// TLS 1.3: what a client sends before it has an answer.
    ClientEarly,
    /// TLS 1.3: the client's part of the handshake.
    ClientHandshake,
    /// TLS 1.3: the server's part of the handshake.
    ServerHandshake,
    /// TLS 1.3: the client's data.
    ClientTraffic,
    /// TLS 1.3: the server's data.
    ServerTraffic,
}

/// Labels in the file.
const LABELS: [(&[u8], Label); 6] = [
    (b"CLIENT_RANDOM", Label::Master),
    (b"CLIENT_EARLY_TRAFFIC_SECRET", Label::ClientEarly),
    (b"CLIENT_HANDSHAKE_TRAFFIC_SECRET", Label::ClientHandshake),
    (b"SERVER_HANDSHAKE_TRAFFIC_SECRET", Label::ServerHandshake),
    (b"CLIENT_TRAFFIC_SECRET_0", Label::ClientTraffic),
    (b"SERVER_TRAFFIC_SECRET_0", Label::ServerTraffic),
];

/// A secret. It is not printed, and wiped when it goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    bytes: [u8; MAX_SECRET],
    len: u8,
}

impl Secret {
    /// Takes a copy; `None` where it is empty or longer than any secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_SECRET];
        bytes.get_mut(..secret.len())?.copy_from_slice(secret);
        let len = u8::try_from(secret.len()).ok()?;
        (len > 0).then_some(Self { bytes, len })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The secrets of one session.
#[derive(Debug, Clone, Default)]
pub struct Secrets([Option<Box<Secret>>; LABELS.len()]);

impl Secrets {
    /// The secret for this.
    #[must_use]
    pub fn get(&self, label: Label) -> Option<&Secret> {
        self.0.get(label as usize)?.as_deref()
    }
}

/// Lines, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyLogCounters {
    /// Lines with a secret that is used.
    pub secrets: u64,
    /// Lines with a label that is not: exporters, secrets of ECH.
    pub others: u64,
    /// Lines that are not of the format.
    pub bad: u64,
    /// Sessions that left because newer ones needed their place.
    pub evicted: u64,
}

/// The key log as far as it was read; it may grow.
///
/// Shape: up to [`MAX_SESSIONS`] sessions, some 400 bytes each with TLS 1.3. Cost: one look-up a line.
#[derive(Default)]
pub struct KeyLog {
    sessions: HashMap<[u8; 32], Secrets>,
    by_age: VecDeque<[u8; 32]>,
    /// A line whose end is still to come.
    line: Zeroizing<Vec<u8>>,
    /// Whether the line is longer than any with a meaning.
    is_long: bool,
    counters: KeyLogCounters,
}

impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyLog")
            .field("sessions", &self.sessions.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl KeyLog {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            // It does not grow: growing would leave a copy behind.
            line: Zeroizing::new(Vec::with_capacity(MAX_LINE)),
            ..Self::default()
        }
    }

    /// Sessions of which there is a secret.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether it holds no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// What became of the lines.
    #[must_use]
    pub const fn counters(&self) -> KeyLogCounters {
        self.counters
    }

    /// The secrets of the session whose first `ClientHello` has this random.
    #[must_use]
    pub fn find(&self, client_random: &[u8; 32]) -> Option<&Secrets> {
        self.sessions.get(client_random)
    }

    /// The next bytes of the file. The last line counts when its end is there, or at [`KeyLog::end`].
    pub fn push(&mut self, bytes: &[u8]) {
        // A line ends in LF, CR LF or CR; between CR and LF there is an empty one, which means nothing.
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, ends) = match part.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (part, false),
            };
            if self.line.len() + text.len() > MAX_LINE {
                self.is_long = true;
                self.line.zeroize();
            }
            if !self.is_long {
                self.line.extend_from_slice(text);
            }
            if ends {
                self.end();
            }
        }
    }

    /// The file ends, or pauses behind a line: what is there of the last one is a line.
    pub fn end(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        let is_empty = line.is_empty() || line.starts_with(b"#");
        if std::mem::take(&mut self.is_long) || (!is_empty && self.take(&line).is_none()) {
            self.counters.bad += 1;
        }
        line.zeroize();
        self.line = line;
    }

    /// The file ends for now, perhaps behind a line without an end: it counts if it is one.
    pub fn pause(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if !self.is_long && self.take(&line).is_some() {
            line.zeroize();
        }
        self.line = line;
    }

    fn take(&mut self, line: &[u8]) -> Option<()> {
        let mut words = line.trim_ascii().split(|byte| *byte == b' ');
        let (label, random, secret) = (words.next()?, words.next()?, words.next()?);
        let mut client_random = [0; 32];
        let mut bytes = [0; MAX_SECRET];
        let has_random = decode(random, &mut client_random) == Some(32);
        let len = decode(secret, &mut bytes);
        // As long as the hashes in use: a line that is not complete is none.
        let len = len.filter(|len| matches!(len, 32 | 48));
        let secret = len.and_then(|len| Secret::new(bytes.get(..len)?));
        bytes.zeroize();
        if words.next().is_some() || !has_random || label.is_empty() {
            return None;
        }
        let Some((_, label)) = LABELS.iter().find(|(name, _)| *name == label) else {
            self.counters.others += 1;
            return Some(());
        };
        self.put(client_random, *label, secret?);
        Some(())
    }

    fn put(&mut self, client_random: [u8; 32], label: Label, secret: Secret) {
        self.counters.secrets += 1;
        if !self.sessions.contains_key(&client_random) {
            if self.by_age.len() >= MAX_SESSIONS
                && let Some(oldest) = self.by_age.pop_front()
            {
                self.sessions.remove(&oldest);
                self.counters.evicted += 1;
            }
            self.by_age.push_back(client_random);
        }
        let secrets = self.sessions.entry(client_random).or_default();
        if let Some(place) = secrets.0.get_mut(label as usize) {
            *place = Some(Box::new(secret));
        }
    }
}

/// A key log that grows while connections are opened with it, by any number of threads.
///
/// Cost: a lock when a connection changes its keys, none else.
#[derive(Debug, Default)]
pub struct LiveLog {
    log: RwLock<KeyLog>,
    secrets: AtomicU64,
}

impl LiveLog {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            log: RwLock::new(KeyLog::new()),
            secrets: AtomicU64::new(0),
        }
    }

    /// The next bytes of a file, as [`KeyLog::push`].
    pub fn push(&self, bytes: &[u8]) {
        self.change(|log| log.push(bytes));
    }

    /// As [`KeyLog::end`].
    pub fn end(&self) {
        self.change(KeyLog::end);
    }

    /// As [`KeyLog::pause`].
    pub fn pause(&self) {
        self.change(KeyLog::pause);
    }

    fn change(&self, change: impl FnOnce(&mut KeyLog)) {
        let mut log = self.log.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut log);
        self.secrets
            .store(log.counters().secrets, Ordering::Release);
    }

    /// Secrets that were read so far: where it is as it was, nothing new is to be found.
    #[must_use]
    pub fn grown(&self) -> u64 {
        self.secrets.load(Ordering::Acquire)
    }

    /// What became of the lines.
    #[must_use]
    pub fn counters(&self) -> KeyLogCounters {
        let log = self.log.read().unwrap_or_else(PoisonError::into_inner);
        log.counters()
    }

    /// The lines of the session whose first `ClientHello` has this random, as a key log has them; `None` where there are
    /// none. They are to be written: nobody wipes them.
    #[must_use]
    pub fn lines(&self, client_random: &[u8; 32]) -> Option<String> {
        let log = self.log.read().unwrap_or_else(PoisonError::into_inner);
        let secrets = log.find(client_random)?;
        let mut lines = String::new();
        for (name, label) in LABELS {
            let Some(secret) = secrets.get(label) else {
                continue;
            };
            lines.extend(name.iter().copied().map(char::from));
            lines.push(' ');
            encode(client_random, &mut lines);
            lines.push(' ');
            encode(secret.bytes(), &mut lines);
            lines.push('\n');
        }
        Some(lines)
    }

    /// A copy of a secret of the session whose first `ClientHello` has this random.
    #[must_use]
    pub fn secret(&self, client_random: &[u8; 32], label: Label) -> Option<Secret> {
        let log = self.log.read().unwrap_or_else(PoisonError::into_inner);
        log.find(client_random)?.get(label).cloned()
    }
}

/// Hexadecimal digits in either case; how many bytes they are, `None` where they are none or do not fit.
fn decode(digits: &[u8], into: &mut [u8]) -> Option<usize> {
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = into.get_mut(..pairs.len())?;
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
    }
    Some(pairs.len())
}

/// Appends lower-case hexadecimal digits.
fn encode(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.extend(char::from_digit(u32::from(digit), 16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, random: u8, secret: &str) -> String {
        format!("{label} {} {secret}", format!("{random:02x}").repeat(32))
    }

    fn read(text: &str) -> KeyLog {
        let mut log = KeyLog::new();
        log.push(text.as_bytes());
        log.end();
        log
    }

    #[test]
    fn lines_end_as_they_like_and_digits_have_either_case() {
        let master = "0aF1".repeat(24);
        let all = [
            "# a comment",
            "",
            &line("CLIENT_RANDOM", 1, &master),
            &line("CLIENT_TRAFFIC_SECRET_0", 2, &"ab".repeat(32)),
            &line("SERVER_TRAFFIC_SECRET_0", 2, &"cd".repeat(48)),
            &line("EXPORTER_SECRET", 2, &"ef".repeat(32)),
        ];
        for end in ["\n", "\r\n", "\r"] {
            let log = read(&all.join(end));
            let counters = log.counters();
            assert_eq!((counters.secrets, counters.others, counters.bad), (3, 1, 0));
            let secrets = log.find(&[1; 32]).unwrap();
            assert_eq!(
                secrets.get(Label::Master).unwrap().bytes(),
                [0x0a, 0xf1].repeat(24)
            );
            let secrets = log.find(&[2; 32]).unwrap();
            assert_eq!(
                secrets.get(Label::ServerTraffic).unwrap().bytes(),
                [0xcd; 48]
            );
            assert_eq!(
                secrets.get(Label::ClientTraffic).unwrap().bytes(),
                [0xab; 32]
            );
            assert!(secrets.get(Label::Master).is_none());
        }
    }

    #[test]
    fn what_is_no_line_is_counted_and_the_next_is_read() {
        let good = line("CLIENT_RANDOM", 1, &"00".repeat(48));
        for bad in [
            "CLIENT_RANDOM",
            "CLIENT_RANDOM 00 11",
            &line("CLIENT_RANDOM", 1, "0g"),
            &line("CLIENT_RANDOM", 1, "123"),
            &line("CLIENT_RANDOM", 1, ""),
            &line("CLIENT_RANDOM", 1, &"00".repeat(49)),
            &format!("{good} and more"),
            &"x".repeat(MAX_LINE + 1),
        ] {
            let log = read(&format!("{bad}\n{good}\n"));
            let counters = log.counters();
            assert_eq!((counters.secrets, counters.bad), (1, 1), "{bad}");
        }
    }

    #[test]
    fn it_grows_by_any_pieces() {
        let text = [
            line("CLIENT_RANDOM", 1, &"00".repeat(48)),
            line("SERVER_HANDSHAKE_TRAFFIC_SECRET", 2, &"00".repeat(32)),
        ]
        .join("\n");
        for size in 1..text.len() {
            let mut log = KeyLog::new();
            for piece in text.as_bytes().chunks(size) {
                log.push(piece);
            }
            assert_eq!(log.len(), 1, "the last line has no end yet");
            log.push(b"\n");
            assert_eq!((log.len(), log.counters().bad), (2, 0));
        }
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let text = line("CLIENT_RANDOM", 1, &"ab".repeat(48));
        let mut log = KeyLog::new();
        log.push(text.as_bytes());
        log.pause();
        assert_eq!((log.len(), log.counters().bad), (1, 0));
        log.push(b"\n");
        log.end();
        assert_eq!((log.len(), log.counters().bad), (1, 0));
        // One that is still being written is not one yet.
        let (begin, rest) = text.split_at(text.len() - 10);
        let mut log = KeyLog::new();
        log.push(begin.as_bytes());
        log.pause();
        assert!(log.is_empty());
        log.push(rest.as_bytes());
        log.pause();
        assert_eq!((log.len(), log.counters().bad), (1, 0));
    }

    #[test]
    fn lines_of_a_session_are_those_that_were_read() {
        let own = [
            line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 2, &"0f".repeat(32)),
            line("SERVER_TRAFFIC_SECRET_0", 2, &"a9".repeat(48)),
        ];
        let other = line("CLIENT_RANDOM", 1, &"00".repeat(48));
        let log = LiveLog::new();
        log.push(format!("{}\n{other}\n{}\n", own[1], own[0]).as_bytes());
        let lines = log.lines(&[2; 32]).unwrap();
        assert_eq!(lines, format!("{}\n{}\n", own[0], own[1]));
        assert!(log.lines(&[3; 32]).is_none());
    }

    #[test]
    fn it_is_bounded_and_says_nothing_of_what_it_holds() {
        let mut log = KeyLog::new();
        for number in 0..=u32::try_from(MAX_SESSIONS).unwrap() {
            let random = format!("{number:08x}").repeat(8);
            log.push(format!("CLIENT_RANDOM {random} {}\n", "5e".repeat(48)).as_bytes());
        }
        assert_eq!((log.len(), log.counters().evicted), (MAX_SESSIONS, 1));
        assert!(log.find(&[0; 32]).is_none());
        let secrets = log.find(&[0, 0, 0, 1].repeat(8).try_into().unwrap());
        let shown = format!("{log:?} {secrets:?}");
        assert!(!shown.contains("5e") && !shown.contains("94"), "{shown}");
    }
}
