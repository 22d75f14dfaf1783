//! Both directions of an HTTP/2 connection.

use linkweir_proto::http2::PREFACE;
use linkweir_proto::http2::direction::Direction;
use linkweir_proto::http2::frame::{DEFAULT_LENGTH, FrameHeader, Kind};
use linkweir_wire::Side;

use super::streams::Streams;

/// A connection whose bytes come in order.
#[derive(Debug)]
pub(super) struct Http2 {
    client: Direction,
    server: Direction,
    pub(super) streams: Streams,
}

impl Http2 {
    /// From the preface on.
    pub(super) fn new() -> Self {
        Self {
            client: Direction::of_client(),
            server: Direction::of_server(),
            streams: Streams::default(),
        }
    }

    /// From somewhere on.
    pub(super) fn joined_late() -> Self {
        Self {
            client: Direction::joined_late(),
            server: Direction::joined_late(),
            streams: Streams::default(),
        }
    }

    /// Bytes that it keeps.
    pub(super) fn held(&self) -> usize {
        self.client.held() + self.server.held() + self.streams.held()
    }

    /// Losses of the server's direction.
    pub(super) const fn losses(&self) -> u64 {
        self.server.counters().lost
    }

    /// Frames and header blocks that no receiver takes.
    pub(super) fn bad_frames(&self) -> u64 {
        let sides = [&self.client, &self.server].map(Direction::counters);
        sides
            .iter()
            .map(|side| side.bad_frames + side.bad_blocks)
            .sum()
    }

    /// What a side says, and the streams.
    pub(super) const fn split(&mut self, side: Side) -> (&mut Direction, &mut Streams) {
        let direction = match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        (direction, &mut self.streams)
    }
}

/// Whether these may be the first bytes of a side: a client's preface, a server's SETTINGS (RFC 9113 sec. 3.4).
pub(super) fn begins(side: Side, bytes: &[u8]) -> bool {
    match side {
        Side::Client => bytes.starts_with(PREFACE) || PREFACE.starts_with(bytes),
        Side::Server => bytes.first_chunk().is_some_and(|header| {
            let header = FrameHeader::parse(header);
            header.kind == Kind::Settings && header.is_valid(DEFAULT_LENGTH)
        }),
    }
}
