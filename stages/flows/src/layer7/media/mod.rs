//! Streams of RTP and what RTCP reports of them, within a UDP flow that was recognised as such.
//!
//! A flow may carry several streams and, of WebRTC, other protocols beside them: the first bytes of a datagram
//! tell them apart (RFC 7983, RFC 5761). Measuring begins with the first datagram that looks like media, so that
//! nothing is missing when enough have agreed; where they do not, it is forgotten. A stream counts from two
//! packets whose numbers follow each other (RFC 3550 A.1).
//!
//! Bounds: [`STREAMS`] streams and as many reporters per flow, and a common budget. What finds no room is
//! counted and not measured.

mod reporter;
mod sender;
mod stream;
#[cfg(test)]
mod tests;

use linkweir_proto::rtp::{Compound, MediaPacket, is_control};
use linkweir_record::flow::{FlowRow, FlowSide, StreamEnd, StreamRow};
use linkweir_table::Slab;
use linkweir_wire::Side;

use self::reporter::Reporter;
use self::stream::Stream;
use super::handle::{Handle, Stage};
use super::state::State;
use super::{Datagram, Layer7, Shared};
use crate::config::FlowsConfig;
use crate::step::MediaSample;

/// Streams of one flow at most, of both sides together; as many reporters.
const STREAMS: usize = 16;
/// The same until the flow is recognised: other protocols fit now and then, each time with another source.
const STREAMS_AT_FIRST: usize = 4;
/// Flows with media at the same time.
const MAX_FLOWS: u32 = 1 << 16;
/// Streams and reporters of all flows at the same time: some 350 bytes each.
const MAX_STREAMS: u32 = 1 << 17;
/// Values that one datagram can add to the histograms: reports on 62 sources.
const MAX_SAMPLES: usize = 256;

/// What a flow has of media; zero: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MediaId(u32);

/// The streams of one flow.
#[derive(Debug, Default)]
struct Media {
    streams: Vec<Stream>,
    reporters: Vec<Reporter>,
    /// What each side sent in the flow: bits of [`StreamEnd::shares`].
    shares: [u8; 2],
}

/// The streams of all flows of a worker.
#[derive(Debug)]
pub(super) struct MediaPool {
    flows: Slab<Media>,
    /// Streams and reporters that still find room.
    room: u32,
    /// Streams, reporters and flows that found none.
    pub(super) refused: u64,
    /// Values for the histograms of the current step, of the last datagram or of the flow that ends; only
    /// where steps are measured.
    samples: Samples,
    /// Whether anything is made of streams: steps, or Tstat's logs.
    pub(super) is_wanted: bool,
}

/// Values for the histograms of the current step.
#[derive(Debug, Default)]
pub(super) struct Samples {
    values: Vec<MediaSample>,
    is_wanted: bool,
}

impl Samples {
    #[inline]
    fn push(&mut self, sample: MediaSample) {
        if self.is_wanted && self.values.len() < MAX_SAMPLES {
            self.values.push(sample);
        }
    }
}

impl MediaPool {
    /// Nothing seen yet; the settings say what is made of streams.
    pub(super) fn new(states: usize, config: &FlowsConfig) -> Self {
        let flows = u32::try_from(states).unwrap_or(MAX_FLOWS).min(MAX_FLOWS);
        Self {
            flows: Slab::with_capacity(flows),
            room: MAX_STREAMS,
            refused: 0,
            samples: Samples {
                values: Vec::new(),
                is_wanted: config.step.is_some(),
            },
            is_wanted: config.step.is_some() || config.with_messages,
        }
    }

    /// Forgets what a flow has.
    pub(super) fn release(&mut self, id: &mut MediaId) {
        let at = std::mem::take(id).0;
        let Some(at) = at.checked_sub(1) else {
            return;
        };
        if let Some(media) = self.flows.get_mut(at) {
            self.room += media.clear();
            self.flows.give_back(at);
        }
    }

    /// Flows that have some.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> (usize, u32) {
        (self.flows.len(), MAX_STREAMS - self.room)
    }
}

/// What a flow has; a new one where it has none. `None` where there is no room.
fn take<'a>(flows: &'a mut Slab<Media>, id: &mut MediaId) -> Option<&'a mut Media> {
    if id.0 == 0 {
        *id = MediaId(flows.take()? + 1);
    }
    flows.get_mut(id.0.checked_sub(1)?)
}

impl Media {
    /// Forgets all; gives how many streams and reporters there were.
    fn clear(&mut self) -> u32 {
        let count = self.streams.len() + self.reporters.len();
        self.streams.clear();
        self.reporters.clear();
        self.shares = [0; 2];
        u32::try_from(count).unwrap_or(0)
    }
}

/// A datagram of a flow that may carry media: measured where it is of RTP or RTCP. `is_sure`: the flow
/// was recognised.
pub(super) fn look(
    state: &mut State,
    shared: &mut Shared,
    side: Side,
    datagram: &Datagram<'_>,
    is_sure: bool,
) {
    let Some(first) = datagram.payload.first() else {
        return;
    };
    let share = match first {
        0..=3 => 1,
        16..=19 => 2,
        20..=63 => 4,
        64..=79 => 8,
        128..=191 if is_control(datagram.payload) => 32,
        128..=191 => 16,
        _ => return,
    };
    if share < 16 && state.media() == MediaId::default() {
        return;
    }
    let MediaPool {
        flows,
        room,
        refused,
        samples,
        ..
    } = &mut shared.media;
    let Some(media) = take(flows, state.media_mut()) else {
        *refused += 1;
        return;
    };
    if !is_sure && media.streams.len() >= STREAMS_AT_FIRST {
        *room += media.clear();
    }
    let [client, server] = &mut media.shares;
    *match side {
        Side::Client => client,
        Side::Server => server,
    } |= share;
    let is_kept = match share {
        16 => media.on_media(side, datagram, room, samples),
        32 => media.on_reports(side, datagram, room, samples),
        _ => true,
    };
    *refused += u64::from(!is_kept);
}

impl Media {
    /// A packet of RTP. False where its stream finds no room.
    fn on_media(
        &mut self,
        side: Side,
        datagram: &Datagram<'_>,
        room: &mut u32,
        samples: &mut Samples,
    ) -> bool {
        let Some(packet) = MediaPacket::parse(datagram.payload) else {
            return true;
        };
        let mut streams = self.streams.iter_mut();
        if let Some(stream) = streams.find(|one| one.is(side, packet.source)) {
            stream.on_packet(&packet, datagram, samples);
            return true;
        }
        // One that never was proven makes room for the next.
        if self.streams.len() >= STREAMS
            && let Some(at) = self.streams.iter().position(|one| !one.is_proven())
        {
            self.streams.remove(at);
            *room += 1;
        }
        if self.streams.len() >= STREAMS || *room == 0 {
            return false;
        }
        *room -= 1;
        let stream = Stream::new(side, &packet, datagram);
        self.streams.push(stream);
        true
    }

    /// A compound packet of RTCP. False where its reporter finds no room.
    fn on_reports(
        &mut self,
        side: Side,
        datagram: &Datagram<'_>,
        room: &mut u32,
        samples: &mut Samples,
    ) -> bool {
        let Some(source) = reporter::source_of(datagram.payload) else {
            return true;
        };
        let place = |one: &Reporter| one.is(side, source);
        let at = match self.reporters.iter().position(place) {
            Some(at) => at,
            None if self.reporters.len() >= STREAMS || *room == 0 => return false,
            None => {
                *room -= 1;
                self.reporters.push(Reporter::new(side, source, datagram));
                self.reporters.len() - 1
            }
        };
        // What was captured of it in part, or is encrypted, says nothing.
        let compound = (datagram.len as usize <= datagram.payload.len())
            .then(|| Compound::parse(datagram.payload))
            .flatten();
        let (before, rest) = self.reporters.split_at_mut(at);
        let Some((reporter, behind)) = rest.split_first_mut() else {
            return true;
        };
        reporter.on_datagram(datagram);
        let Some(compound) = compound else {
            reporter.unread += 1;
            return true;
        };
        let sent_at = |ntp: u32| {
            let mut others = before.iter().chain(behind.iter());
            others.find_map(|one| one.sent_to(side, ntp))
        };
        reporter.on_compound(compound, datagram.ts_ns, sent_at, samples);
        true
    }
}

impl Layer7 {
    /// A datagram of a flow that carries media.
    pub(super) fn on_media(&mut self, handle: Handle, side: Side, datagram: &Datagram<'_>) {
        if let Some(state) = self.slab.get_mut(handle) {
            look(state, &mut self.shared, side, datagram, true);
        }
    }

    /// The values for the histograms of the step that came since this was last asked.
    #[inline]
    pub fn take_samples(&mut self, mut then: impl FnMut(MediaSample)) {
        for sample in self.shared.media.samples.values.drain(..) {
            then(sample);
        }
    }

    /// Whether there are such values.
    #[inline]
    #[must_use]
    pub const fn has_samples(&self) -> bool {
        !self.shared.media.samples.values.is_empty()
    }

    /// Whether the flow has streams.
    #[inline]
    #[must_use]
    pub fn has_streams(&self, handle: Handle) -> bool {
        handle.stage() == Stage::Media
    }

    /// The streams of a flow that has ended, whose final record is `row`.
    pub fn streams(&mut self, handle: Handle, row: &FlowRow, mut then: impl FnMut(StreamRow)) {
        let Some(state) = self.slab.get(handle) else {
            return;
        };
        let id = state.media();
        let MediaPool { flows, samples, .. } = &mut self.shared.media;
        let Some(media) = id.0.checked_sub(1).and_then(|at| flows.get_mut(at)) else {
            return;
        };
        let [client, server] = media.shares;
        let end = |side: &FlowSide, shares| StreamEnd {
            ip: side.ip,
            port: side.port,
            is_internal: side.is_internal,
            is_encrypted: side.is_encrypted,
            shares,
        };
        let ends = (end(&row.client, client), end(&row.server, server));
        for stream in media.streams.iter_mut().filter(|one| one.is_proven()) {
            stream.finish(samples);
            then(stream.row(row, ends));
        }
        for reporter in &media.reporters {
            then(reporter.row(row, ends));
        }
    }

    /// Flows with media, and their streams and reporters.
    #[cfg(test)]
    pub(super) fn media_in_use(&self) -> (usize, u32) {
        self.shared.media.in_use()
    }
}

/// The unit of jitter and gaps in logs.
const NS_PER_MS: f64 = 1_000_000.0;

#[expect(
    clippy::cast_precision_loss,
    reason = "a count or a time of 2^53 is beyond any stream"
)]
const fn float(value: u64) -> f64 {
    value as f64
}
