//! What the lines of the clients are like.

use std::time::Duration;

use linkweir_record::Prefix;

/// One direction of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Direction {
    /// Bits of frames in a second; `None` is without limit.
    pub bits_per_second: Option<u64>,
    /// Longest wait for the frames ahead in the queue; what would wait longer is dropped at the tail.
    pub queue: Duration,
    /// Share of frames that are lost on the way, 0 to 1.
    pub loss: f64,
    /// Mean number of frames that are lost in a row; 1 leaves each loss independent of the other.
    pub burst: f64,
}

impl Default for Direction {
    /// Nothing limited and nothing lost.
    fn default() -> Self {
        Self {
            bits_per_second: None,
            queue: Duration::from_millis(100),
            loss: 0.0,
            burst: 1.0,
        }
    }
}

impl Direction {
    fn check(&self) -> Result<(), &'static str> {
        if self.bits_per_second == Some(0) {
            return Err("a bandwidth of 0 lets nothing through");
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err("a loss is between 0 and 1");
        }
        if !(self.burst >= 1.0 && self.burst.is_finite()) {
            return Err("the mean length of a burst of losses is at least 1");
        }
        // Between two bursts at least one frame comes through.
        if self.burst > 1.0 && self.loss * (self.burst + 1.0) > self.burst {
            return Err("so much loss needs longer bursts: at least loss / (1 - loss)");
        }
        Ok(())
    }

    fn is_plain(&self) -> bool {
        self.bits_per_second.is_none() && self.loss == 0.0
    }
}

/// The line of a client, from it to the interface of this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Round-trip time that is added, half of it each way.
    pub rtt: Duration,
    /// Spread of the round-trip time: each way takes up to a quarter of it more or less, uniform.
    /// At most twice the round-trip time.
    pub jitter: Duration,
    /// Whether jitter may change the order of frames.
    pub reorder: bool,
    /// From the client to the server.
    pub up: Direction,
    /// From the server to the client.
    pub down: Direction,
    /// Time to live, or hop limit, of the client's packets.
    pub ttl: u8,
    /// Longest packet that the client announces room for (through its MSS); `None` is that of the
    /// interface.
    pub mtu: Option<u16>,
}

impl Default for Profile {
    /// A host on the link itself.
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            jitter: Duration::ZERO,
            reorder: false,
            up: Direction::default(),
            down: Direction::default(),
            ttl: 64,
            mtu: None,
        }
    }
}

impl Profile {
    /// Whether frames pass at once and whole: such a client needs no emulation.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.rtt.is_zero() && self.jitter.is_zero() && self.up.is_plain() && self.down.is_plain()
    }

    /// Says what cannot be.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.up.check()?;
        self.down.check()?;
        if self.jitter > self.rtt.saturating_mul(2) {
            return Err("a jitter above twice the RTT would let frames arrive before they leave");
        }
        if self.rtt > Duration::from_secs(60) {
            return Err("an RTT is at most 60 s");
        }
        if self.ttl == 0 {
            return Err("a TTL of 0 reaches nobody");
        }
        // RFC 791 sec. 3.2: every host takes 576 bytes; 68 is the least that a link may have.
        if self.mtu.is_some_and(|mtu| mtu < 68) {
            return Err("an MTU is at least 68");
        }
        Ok(())
    }
}

/// A named share of the population.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name in reports.
    pub name: String,
    /// Which clients: those in one of these prefixes. Where prefixes of several groups hold a client,
    /// the longest decides.
    pub members: Vec<Prefix>,
    /// Their line.
    pub profile: Profile,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let good = Profile::default();
        assert_eq!(good.check(), Ok(()));
        assert!(good.is_plain());
        let with_loss = |loss, burst| Profile {
            down: Direction {
                loss,
                burst,
                ..Direction::default()
            },
            ..good
        };
        for wrong in [
            with_loss(1.5, 1.0),
            with_loss(f64::NAN, 1.0),
            with_loss(-0.1, 1.0),
            with_loss(0.1, 0.5),
            with_loss(0.1, f64::INFINITY),
            with_loss(0.9, 2.0),
            with_loss(1.0, 2.0),
            Profile { ttl: 0, ..good },
            Profile {
                mtu: Some(20),
                ..good
            },
            Profile {
                jitter: Duration::from_millis(1),
                ..good
            },
            Profile {
                up: Direction {
                    bits_per_second: Some(0),
                    ..Direction::default()
                },
                ..good
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        for good in [
            with_loss(0.9, 9.5),
            with_loss(0.9, 1.0),
            with_loss(1.0, 1.0),
        ] {
            assert_eq!(good.check(), Ok(()));
        }
        assert!(!with_loss(0.01, 1.0).is_plain());
    }
}
