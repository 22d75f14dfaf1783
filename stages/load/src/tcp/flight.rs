//! What is under way to the server: exists while something is unacknowledged or waits to be sent.

use linkweir_wire::{SeqNumber, Timestamp};

use super::run::{Cursor, Run};
use super::scoreboard::Scoreboard;

/// The sending side of a connection that has something to send.
#[derive(Debug)]
pub(super) struct Flight {
    /// Data from `SND.UNA` on, sent or not; our FIN stands behind it.
    pub(super) data: Run,
    pub(super) cursor: Cursor,
    /// Highest sequence number sent, plus one.
    pub(super) snd_max: SeqNumber,
    /// `cwnd` (RFC 5681), bytes.
    pub(super) cwnd: u32,
    /// `RecoveryPoint` (RFC 6675): what was sent when the last loss was noticed.
    pub(super) recover: SeqNumber,
    /// `HighRxt` (RFC 6675): what was sent again in this recovery lies before it.
    pub(super) high_rxt: SeqNumber,
    pub(super) sacked: Scoreboard,
    /// When the first SYN was sent.
    pub(super) begun: Timestamp,
    /// When the retransmission timer, the probe or the end of FIN-WAIT-2 is due; `MAX`: it is not set.
    pub(super) due: Timestamp,
    /// The segment that is timed (RFC 6298 sec. 3): its end and when it was sent; `ZERO`: none is.
    pub(super) timed_end: SeqNumber,
    pub(super) timed_at: Timestamp,
    pub(super) duplicate_acks: u32,
    /// Timeouts since the server was last heard to go on.
    pub(super) retries: u8,
    /// Whether lost segments are sent again without waiting for the timer.
    pub(super) is_recovering: bool,
}

impl Flight {
    /// Nothing under way: the next byte is `seq`.
    pub(super) fn at(seq: SeqNumber, cwnd: u32) -> Self {
        Self {
            data: Run::at(seq),
            cursor: Cursor::default(),
            snd_max: seq,
            cwnd,
            recover: seq - 1,
            high_rxt: seq,
            sacked: Scoreboard::default(),
            begun: Timestamp::ZERO,
            due: Timestamp::MAX,
            timed_end: seq,
            timed_at: Timestamp::ZERO,
            duplicate_acks: 0,
            retries: 0,
            is_recovering: false,
        }
    }

    /// Stops timing: what is timed was sent again (Karn's algorithm, RFC 6298 sec. 3).
    pub(super) const fn forget_timing(&mut self) {
        self.timed_at = Timestamp::ZERO;
    }
}
