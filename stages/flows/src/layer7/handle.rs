//! The handle of a flow: its stage, and where its state is.

use linkweir_proto::application::Application;
use linkweir_wire::Side;

/// Where a flow stands; also in its handle, so that most packets need no look at the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// Not yet known what it is.
    Opening,
    /// HTTP/1: heads are counted.
    Http,
    /// TLS: records are walked.
    Tls,
    /// QUIC, until its first packets are understood.
    Quic,
    /// eDonkey: messages are counted.
    Ed2k,
    /// DNS: names are taken from all messages.
    Dns,
    /// RTP and RTCP: streams are measured.
    Media,
    /// Nothing more to learn.
    Settled,
    /// QUIC behind the handshake: the spin bit is watched.
    Spin,
    /// Nothing more to learn, and nothing to say but the label: it stands in the handle in place of
    /// an index.
    Labelled,
}

/// Per-flow handle: 4 bytes, all zero where there is nothing yet.
///
/// The stage of the flow and whether a head waits for its end are in it, so that a segment in the
/// middle of a body touches no state. Must be given back with `Layer7::release`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Handle(u32);

const STAGE_SHIFT: u32 = 28;
const WAITS_SHIFT: u32 = 26;
const INDEX: u32 = (1 << WAITS_SHIFT) - 1;

/// States at most: the bits of the index.
pub(super) const MAX_STATES: u32 = INDEX - 1;

impl Handle {
    #[inline]
    pub(super) const fn stage(self) -> Stage {
        match self.0 >> STAGE_SHIFT {
            0 => Stage::Opening,
            1 => Stage::Http,
            2 => Stage::Tls,
            3 => Stage::Quic,
            4 => Stage::Ed2k,
            5 => Stage::Dns,
            6 => Stage::Media,
            7 => Stage::Settled,
            8 => Stage::Spin,
            _ => Stage::Labelled,
        }
    }

    pub(super) const fn set_stage(&mut self, stage: Stage) {
        self.0 = self.0 & ((1 << STAGE_SHIFT) - 1) | (stage as u32) << STAGE_SHIFT;
    }

    /// Whether bytes of this side wait for more.
    #[inline]
    pub(super) const fn waits(self, side: Side) -> bool {
        self.0 & 1 << (WAITS_SHIFT + side as u32) != 0
    }

    pub(super) const fn set_waits(&mut self, side: Side, waits: bool) {
        let bit = 1 << (WAITS_SHIFT + side as u32);
        self.0 = if waits { self.0 | bit } else { self.0 & !bit };
    }

    /// Where its state is, if it has one.
    #[inline]
    pub(super) fn index(self) -> Option<u32> {
        if matches!(self.stage(), Stage::Labelled) {
            return None;
        }
        (self.0 & INDEX).checked_sub(1)
    }

    /// The label of a flow that has no state.
    pub(super) fn label(self) -> Option<Application> {
        match self.stage() {
            Stage::Labelled => Application::ALL.get((self.0 & INDEX) as usize).copied(),
            Stage::Dns if self.index().is_none() => Some(Application::Dns),
            _ => None,
        }
    }

    /// Keeps the label of a flow whose state was given back.
    pub(super) fn set_label(&mut self, label: Option<Application>) {
        match label {
            Some(Application::Dns) if matches!(self.stage(), Stage::Dns) => {}
            Some(label) => {
                self.set_stage(Stage::Labelled);
                self.0 = self.0 & !INDEX | label as u32;
            }
            None => {}
        }
    }

    pub(super) fn set_index(&mut self, index: Option<u32>) {
        let bits = index.map_or(0, |at| at + 1);
        self.0 = self.0 & !INDEX | bits & INDEX;
    }
}
