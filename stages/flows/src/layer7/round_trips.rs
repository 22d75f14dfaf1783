//! The round trips of a QUIC handshake (RFC 9312 sec. 3.8.1), Retry and Version Negotiation.
//!
//! Which packet answers which is not to be read, so a half is given only where there is no choice: a client that
//! sends its hello again before the server is heard gives none, as with Karn's rule for TCP.

use linkweir_proto::quic::Kind;
use linkweir_wire::Side;

use super::sessions::SinceStart;

/// It makes no difference which Initial was answered, if all were sent within this part of the time.
const SPREADS: u64 = 16;

/// Kinds of packets in one datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u8);

impl Kinds {
    const fn bit(kind: Kind) -> u8 {
        1 << kind as u8
    }

    pub(super) const fn add(&mut self, kind: Kind) {
        self.0 |= Self::bit(kind);
    }

    const fn has(self, kind: Kind) -> bool {
        self.0 & Self::bit(kind) != 0
    }
}

/// What is remembered of the handshake of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RoundTrips {
    /// The client's first Initial since the beginning, a Retry or a list of versions.
    client_initial: SinceStart,
    /// The last one before the server was heard.
    last_initial: SinceStart,
    /// Datagrams with Initials of the client since then.
    initials: u8,
    /// Datagrams that its hello takes; zero while it is not read.
    hello: u8,
    is_server_heard: bool,
    server_handshake: SinceStart,
    is_client_done: bool,
    pub(super) initial_ns: Option<u64>,
    pub(super) handshake_ns: Option<u64>,
    pub(super) retries: u32,
    pub(super) version_negotiations: u32,
}

impl RoundTrips {
    /// A datagram with packets of these kinds; `is_hello_whole` where the client's hello has been read by now.
    pub(super) fn on_datagram(
        &mut self,
        side: Side,
        kinds: Kinds,
        is_hello_whole: bool,
        now: SinceStart,
    ) {
        match side {
            Side::Client => {
                if kinds.has(Kind::Initial) && !self.is_server_heard {
                    if self.client_initial.get().is_none() {
                        self.client_initial = now;
                    }
                    self.last_initial = now;
                    self.initials = self.initials.saturating_add(1);
                    if is_hello_whole && self.hello == 0 {
                        self.hello = self.initials;
                    }
                }
                if kinds.has(Kind::Handshake) && !self.is_client_done {
                    self.is_client_done = true;
                    let since = self.server_handshake.get();
                    self.handshake_ns = since.map(|_| now.since(self.server_handshake));
                }
            }
            Side::Server => {
                if kinds.has(Kind::Retry) {
                    if self.retries == 0 {
                        self.begin_again();
                    }
                    self.retries = self.retries.saturating_add(1);
                }
                if kinds.has(Kind::VersionNegotiation) {
                    if self.version_negotiations == 0 && self.retries == 0 {
                        self.begin_again();
                    }
                    self.version_negotiations = self.version_negotiations.saturating_add(1);
                }
                let is_begun = kinds.has(Kind::Initial) || kinds.has(Kind::Handshake);
                if is_begun && !self.is_server_heard {
                    self.is_server_heard = true;
                    let ns = now.since(self.client_initial);
                    let spread = self.last_initial.since(self.client_initial);
                    let is_clear =
                        self.initials <= self.hello.max(1) || spread.saturating_mul(SPREADS) <= ns;
                    if kinds.has(Kind::Initial) && is_clear {
                        self.initial_ns = self.client_initial.get().map(|_| ns);
                    }
                }
                if kinds.has(Kind::Handshake) && self.server_handshake.get().is_none() {
                    self.server_handshake = now;
                }
            }
        }
    }

    /// The client sends another Initial: once for a list of versions and once for a Retry behind it (RFC 9000 sec. 6.2,
    /// 17.2.5.2).
    const fn begin_again(&mut self) {
        if !self.is_server_heard {
            self.client_initial = SinceStart::NEVER;
            self.initials = 0;
        }
    }

    /// The round trip of the handshake.
    pub(super) fn rtt_ns(&self) -> Option<u64> {
        Some(self.initial_ns?.saturating_add(self.handshake_ns?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation: at which time, who, which kinds (`I` Initial, `H` Handshake, `R` Retry, `V` Version
    /// Negotiation; `P` the first part of a hello).
    fn of(script: &[(u64, Side, &str)]) -> RoundTrips {
        let mut trips = RoundTrips::default();
        for (time, side, letters) in script {
            let mut kinds = Kinds::default();
            for letter in letters.chars() {
                kinds.add(match letter {
                    'I' | 'P' => Kind::Initial,
                    'H' => Kind::Handshake,
                    'R' => Kind::Retry,
                    _ => Kind::VersionNegotiation,
                });
            }
            let is_whole = !letters.contains('P');
            trips.on_datagram(*side, kinds, is_whole, SinceStart::at(*time));
        }
        trips
    }

    use Side::{Client as C, Server as S};

    #[test]
    fn both_halves() {
        let trips = of(&[(0, C, "I"), (30, S, "IH"), (31, S, "H"), (35, C, "IH")]);
        assert_eq!((trips.initial_ns, trips.handshake_ns), (Some(30), Some(5)));
        assert_eq!(trips.rtt_ns(), Some(35));
        // The server's packets behind its Initial come later.
        let trips = of(&[
            (0, C, "I"),
            (30, S, "I"),
            (34, C, "I"),
            (60, S, "H"),
            (66, C, "H"),
        ]);
        assert_eq!((trips.initial_ns, trips.handshake_ns), (Some(30), Some(6)));
    }

    #[test]
    fn a_hello_of_two_datagrams_is_not_one_sent_twice() {
        let trips = of(&[(0, C, "P"), (2, C, "I"), (30, S, "IH")]);
        assert_eq!(trips.initial_ns, Some(30));
        let trips = of(&[(0, C, "P"), (2, C, "I"), (20, C, "I"), (30, S, "IH")]);
        assert_eq!(trips.initial_ns, None);
        // Two copies one behind the other.
        let trips = of(&[(0, C, "I"), (1, C, "I"), (30, S, "IH")]);
        assert_eq!(trips.initial_ns, Some(30));
        // Where it cannot be read, the second may be either.
        let trips = of(&[(0, C, "P"), (2, C, "P"), (30, S, "PH")]);
        assert_eq!(trips.initial_ns, None);
        let trips = of(&[(0, C, "P"), (30, S, "PH")]);
        assert_eq!(trips.initial_ns, Some(30));
    }

    #[test]
    fn a_hello_sent_again_gives_no_half() {
        let trips = of(&[(0, C, "I"), (1000, C, "I"), (1030, S, "IH"), (1035, C, "H")]);
        assert_eq!((trips.initial_ns, trips.handshake_ns), (None, Some(5)));
        assert_eq!(trips.rtt_ns(), None);
    }

    #[test]
    fn one_direction_gives_no_half() {
        let trips = of(&[(0, C, "I"), (40, C, "H"), (50, C, "H")]);
        assert_eq!((trips.initial_ns, trips.handshake_ns), (None, None));
        let trips = of(&[(0, S, "IH"), (40, S, "H")]);
        assert_eq!((trips.initial_ns, trips.handshake_ns), (None, None));
        // The Initial of the server was lost before the capture point.
        let trips = of(&[(0, C, "I"), (30, S, "H"), (31, C, "H"), (900, S, "I")]);
        assert_eq!((trips.initial_ns, trips.handshake_ns), (None, Some(1)));
    }

    #[test]
    fn a_retry_and_a_list_of_versions_begin_again() {
        let script = [(0, C, "I"), (20, S, "V"), (25, C, "I"), (50, S, "R")];
        let trips = of(&script);
        assert_eq!((trips.retries, trips.version_negotiations), (1, 1));
        assert_eq!(trips.initial_ns, None);
        let trips = of(&[&script[..], &[(55, C, "I"), (90, S, "IH"), (95, C, "H")]].concat());
        assert_eq!((trips.initial_ns, trips.handshake_ns), (Some(35), Some(5)));
        // A client takes one Retry.
        let again = [(55, C, "I"), (57, S, "R"), (58, S, "V"), (90, S, "IH")];
        let trips = of(&[&script[..], &again].concat());
        assert_eq!((trips.initial_ns, trips.retries), (Some(35), 2));
        // Behind the handshake both are forged (RFC 9000 sec. 6.2, 17.2.5.2): counted, and nothing else.
        let script = [(0, C, "I"), (30, S, "IH"), (32, S, "R"), (35, C, "IH")];
        let trips = of(&script);
        assert_eq!((trips.rtt_ns(), trips.retries), (Some(35), 1));
    }
}
