//! Live capture: interfaces as [`Source`]s.
//!
//! ```text
//! eth0, lo, any ─► AF_PACKET, ring of blocks (TPACKET_V3) ─► index ─► Batch
//! xdp:eth0 ─────► AF_XDP, memory of the card's queues ─────► copy ──► Batch
//! ```
//! Frames borrow from the ring block that the kernel wrote; the block goes back to the kernel when
//! the next event is asked for. What is written to it here is only what the kernel took out: the
//! VLAN tag, and the cooked header of [`ANY`].
//!
//! Several interfaces are one source too ([`joined`]): their frames are merged by time.
//!
//! Several sockets share one interface as a fanout group: the kernel runs the program of
//! [`fanout`] on every frame, whose result is Eq. (3) of the HTTPanalyzer paper, so both halves of
//! a transaction reach the same [`LiveSource`] with no thread in between.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linkweir_engine::{Drops, InputCounts, Source, SourceError, SourceEvent};
use linkweir_wire::{LinkType, Timestamp};

mod block;
mod cooked;
pub mod fanout;
mod group;
mod joined;
mod open;
mod packet;
mod watch;
mod xdp;

pub use linkweir_sys::interface::Interface;

use joined::{Joined, Waited};
use packet::PacketSource;
use xdp::{Refusal, XdpSource};

pub use xdp::PREFIX as XDP_PREFIX;

/// The name that stands for all interfaces.
pub const ANY: &str = "any";

/// How the frames of an interface are shared out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fanout {
    /// One socket takes all.
    #[default]
    None,
    /// Every frame goes to socket `TransactionSplitter::hash % sockets`, computed in the kernel.
    Transaction,
}

/// How an interface is captured.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Name of the interface, [`ANY`], or [`XDP_PREFIX`] and a name.
    pub interface: String,
    /// A libpcap filter expression; the kernel leaves out what it does not match.
    pub filter: Option<String>,
    /// Bytes kept of a frame.
    pub snaplen: u32,
    /// Whether frames for other machines are asked for.
    pub promiscuous: bool,
    /// Bytes of the ring of one socket.
    pub buffer_bytes: usize,
    /// How frames are shared out among the sockets.
    pub fanout: Fanout,
    /// Number of sockets, hence of sources; more than one needs a [`Fanout`].
    pub sockets: usize,
    /// How long nothing comes before [`SourceEvent::Idle`].
    pub idle: Duration,
    /// How often an interface that went away is looked for.
    pub retry: Duration,
    /// Whether the stamps of the network card are used where it makes any.
    pub hardware_stamps: bool,
    /// Set from outside to end the capture after what is in the ring.
    pub stop: Arc<AtomicBool>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            interface: String::new(),
            filter: None,
            snaplen: 256 << 10,
            promiscuous: true,
            buffer_bytes: 64 << 20,
            fanout: Fanout::None,
            sockets: 1,
            idle: Duration::from_millis(100),
            retry: Duration::from_secs(1),
            hardware_stamps: false,
            stop: Arc::default(),
        }
    }
}

/// Opens interfaces.
#[derive(Debug, Clone, Copy)]
pub struct LiveCapture;

impl LiveCapture {
    /// Opens an interface as `options.sockets` sources, source K being shard K.
    ///
    /// Nothing is captured before all sources are ready to take their share.
    ///
    /// # Errors
    /// Where there is no such interface, it is down, the filter is no valid expression (then the
    /// input named is `-f`), or the privilege is missing; the message says what to do.
    pub fn open(options: &LiveOptions) -> Result<Vec<LiveSource>, SourceError> {
        let Some(name) = options.interface.strip_prefix(XDP_PREFIX) else {
            return packet_sources(options);
        };
        let options = LiveOptions {
            interface: name.to_owned(),
            ..options.clone()
        };
        match XdpSource::open(&options) {
            Ok(sources) => Ok(sources.into_iter().map(LiveSource::from).collect()),
            Err(Refusal::Wrong(error)) => Err(error),
            Err(Refusal::Unsuitable(why)) => {
                let mut sources = packet_sources(&options)?;
                if let Some(first) = sources.first_mut() {
                    first.notices.push(format!(
                        "AF_XDP is not used on {name}: {why}; it is captured through AF_PACKET"
                    ));
                }
                Ok(sources)
            }
        }
    }
}

impl LiveCapture {
    /// Opens several interfaces, each as of [`Self::open`] with `options`: source K has what all of them give to
    /// shard K, in the order of time.
    ///
    /// # Errors
    /// As of [`Self::open`], for the first interface that cannot be opened.
    pub fn open_all(
        interfaces: &[String],
        options: &LiveOptions,
    ) -> Result<Vec<LiveSource>, SourceError> {
        let of = |name: &String, idle| LiveOptions {
            interface: name.clone(),
            idle,
            ..options.clone()
        };
        if let [only] = interfaces {
            return Self::open(&of(only, options.idle));
        }
        let mut shards: Vec<Vec<(String, LiveSource)>> = Vec::new();
        for name in interfaces {
            // None waits for itself: they are waited for together.
            let sources = Self::open(&of(name, Duration::ZERO))?;
            shards.resize_with(shards.len().max(sources.len()), Vec::new);
            for (shard, source) in shards.iter_mut().zip(sources) {
                shard.push((name.clone(), source));
            }
        }
        let joined = |mut lanes: Vec<(String, LiveSource)>| LiveSource {
            notices: lanes
                .iter_mut()
                .flat_map(|(_, source)| source.take_notices())
                .collect(),
            inner: Inner::Joined(Box::new(Joined::new(lanes, options.idle))),
        };
        Ok(shards.into_iter().map(joined).collect())
    }
}

fn packet_sources(options: &LiveOptions) -> Result<Vec<LiveSource>, SourceError> {
    let sources = PacketSource::open(options)?;
    Ok(sources.into_iter().map(LiveSource::from).collect())
}

/// One share of what passes an interface.
#[derive(Debug)]
pub struct LiveSource {
    inner: Inner,
    notices: Vec<String>,
}

#[derive(Debug)]
enum Inner {
    Packet(Box<PacketSource>),
    Xdp(Box<XdpSource>),
    Joined(Box<Joined<LiveSource>>),
}

impl From<PacketSource> for LiveSource {
    fn from(mut inner: PacketSource) -> Self {
        Self {
            notices: inner.take_notices(),
            inner: Inner::Packet(Box::new(inner)),
        }
    }
}

impl From<XdpSource> for LiveSource {
    fn from(mut inner: XdpSource) -> Self {
        Self {
            notices: inner.take_notices(),
            inner: Inner::Xdp(Box::new(inner)),
        }
    }
}

impl LiveSource {
    /// What to tell the user of how the capture was opened; empty the second time.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// How often the kernel found the ring full, each time perhaps for many frames; what was lost
    /// then is in [`Source::drops`]. Always 0 for `AF_XDP`, which counts frames only.
    #[must_use]
    pub fn times_full(&self) -> u64 {
        match &self.inner {
            Inner::Packet(source) => source.times_full(),
            Inner::Xdp(_) => 0,
            Inner::Joined(joined) => joined.sources().map(Self::times_full).sum(),
        }
    }
}

impl Source for LiveSource {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        match &mut self.inner {
            Inner::Packet(source) => source.next_event(),
            Inner::Xdp(source) => source.next_event(),
            Inner::Joined(source) => source.next_event(),
        }
    }

    fn drops(&self) -> Drops {
        match &self.inner {
            Inner::Packet(source) => source.drops(),
            Inner::Xdp(source) => source.drops(),
            Inner::Joined(source) => source.drops(),
        }
    }

    fn inputs(&self) -> Vec<InputCounts> {
        match &self.inner {
            Inner::Packet(_) | Inner::Xdp(_) => Vec::new(),
            Inner::Joined(source) => source.inputs(),
        }
    }

    fn now(&self) -> Option<Timestamp> {
        // A frame of the last moment may still be in a block that the kernel has not handed over.
        let now = Timestamp::from_nanos(linkweir_sys::wait::wall_clock_ns());
        Some(now - open::RETIRE * 2)
    }
}

impl Waited for LiveSource {
    fn files(&self) -> Vec<BorrowedFd<'_>> {
        match &self.inner {
            Inner::Packet(source) => source.file().into_iter().collect(),
            Inner::Xdp(source) => source.files(),
            Inner::Joined(joined) => joined.sources().flat_map(Self::files).collect(),
        }
    }
}

/// The link type of the frames that capturing this interface gives.
#[must_use]
pub const fn link_type(interface: &Interface) -> LinkType {
    open::layout_of(interface).link_type()
}

/// The interfaces of the machine: names, state, link types, addresses; for a list.
///
/// # Errors
/// Where the system does not tell.
pub fn interfaces() -> Result<Vec<Interface>, SourceError> {
    linkweir_sys::interface::interfaces().map_err(|error| SourceError {
        input: "interfaces".to_owned(),
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_as_ethernet() {
        let all = interfaces().unwrap();
        let lo = all.iter().find(|one| one.is_loopback()).unwrap();
        assert_eq!(link_type(lo), LinkType::ETHERNET);
        let odd = Interface {
            hardware_type: 512,
            ..lo.clone()
        };
        assert_eq!(link_type(&odd), LinkType::LINUX_SLL2);
    }
}
