//! The rooms joined: frames and time come in, frames and records go out.
//!
//! A frame passes the checks of the link, the client's line and TCP, and becomes an event that a
//! session hears; what the session then wants done is carried out at once, before anything else is
//! looked at. Nothing here asks the clock or touches an interface: [`LoadStage::on_frame`] and
//! [`LoadStage::on_tick`] are reported the time, and [`LoadStage::next_deadline`] says when the next tick is
//! wanted.

mod frames;
mod schedule;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linkweir_wire::{LinkType, Packet, Timestamp, Transport, checksum, decode};

use crate::arrivals::{RateSource, Schedule};
use crate::frames::Frames;
use crate::measure::{Figures, Measure, Options};
use crate::neighbours::{Moved, NeighbourCounts, NeighbourState, Neighbours};
use crate::outcome::{Failure, Observer as _};
use crate::path::{DelayLine, Fate, Paths, take_apart};
use crate::population::Population;
use crate::script::Script;
use crate::seam::{Client, ConnId};
use crate::session::{Action, SessionSettings, SessionStats, Sessions};
use crate::tcp::{ConnectError, Opening, TcpClients, TcpCounts, TcpSettings};

use frames::Line;
pub use frames::{Checksum, FrameCounts};
use schedule::Planned;
pub use schedule::{Part, Share};

/// What a run is made of.
#[derive(Debug)]
pub struct LoadOptions<R> {
    /// Who the clients are.
    pub population: Population,
    /// What they ask for.
    pub script: Script,
    /// When they begin.
    pub schedule: Schedule<R>,
    /// The server.
    pub server: SocketAddr,
    /// Who takes the frames for it: itself where it is on the link, or a router.
    pub next_hop: IpAddr,
    /// How the clients do TCP.
    pub tcp: TcpSettings,
    /// Bounds of sessions.
    pub sessions: SessionSettings,
    /// Draws everything that is not the schedule.
    pub seed: u64,
    /// Whether records are made.
    pub has_records: bool,
    /// Which of two hosts this is.
    pub part: Part,
    /// Which sessions of the schedule are this generator's.
    pub share: Share,
}

/// A run of load.
#[derive(Debug)]
pub struct LoadStage<R> {
    population: Arc<Population>,
    neighbours: Neighbours,
    paths: Paths,
    /// Frames of clients that are on their way to the link.
    outgoing: DelayLine,
    /// Frames of the server that are on their way to clients.
    incoming: DelayLine,
    tcp: TcpClients,
    sessions: Sessions<Measure<Arc<Population>>>,
    planned: Planned<R>,
    server: SocketAddr,
    next_hop: IpAddr,
    part: Part,
    counts: FrameCounts,
    /// Frames of `incoming` that are due, and a request that does not stand ready.
    arrived: Frames,
    arrived_at: Vec<Timestamp>,
    /// Those of a joined frame.
    pieces: Frames,
    request: Vec<u8>,
}

/// Sessions that are begun in one go.
const STARTS: usize = 1024;
/// Bytes of the longest packet of a line that says nothing else.
const ETHERNET_MTU: u16 = 1500;
/// Frames that are on their way over the lines of clients, each way: a second of a million a second.
const DELAYED_FRAMES: usize = 1 << 20;
/// Their bytes.
const DELAYED_BYTES: usize = 256 << 20;

impl<R: RateSource> LoadStage<R> {
    /// A run that has not begun.
    pub fn new(options: LoadOptions<R>) -> Self {
        let population = Arc::new(options.population);
        let measured = Options::of(&population, options.server, options.has_records);
        let measure = Measure::new(Arc::clone(&population), measured);
        let sessions = Sessions::new(
            options.sessions,
            Arc::new(options.script),
            options.seed,
            measure,
        );
        Self {
            neighbours: Neighbours::default(),
            paths: Paths::new(&population, options.seed),
            outgoing: DelayLine::new(DELAYED_FRAMES, DELAYED_BYTES),
            incoming: DelayLine::new(DELAYED_FRAMES, DELAYED_BYTES),
            tcp: TcpClients::new(options.tcp, options.seed, population.len()),
            sessions,
            planned: Planned::new(options.schedule, options.share),
            population,
            server: options.server,
            next_hop: options.next_hop,
            part: options.part,
            counts: FrameCounts::default(),
            arrived: Frames::default(),
            arrived_at: Vec::new(),
            pieces: Frames::default(),
            request: Vec::new(),
        }
    }

    /// Asks for the hardware address of the next hop; whether it is known.
    pub fn resolve(&mut self, now: Timestamp, out: &mut Frames) -> NeighbourState {
        self.neighbours
            .resolve(self.server.ip(), self.next_hop, now, &self.population, out)
    }

    /// The schedule begins at this time; before, only [`LoadStage::resolve`] does anything.
    pub fn begin(&mut self, at: Timestamp) {
        if self.part != Part::All {
            self.tcp.split(at);
        }
        self.planned.begin(at);
    }

    /// When the schedule began, if it has.
    #[must_use]
    pub const fn begun(&self) -> Option<Timestamp> {
        self.planned.begun()
    }

    /// Takes a frame of the interface, which arrived `at`.
    pub fn on_frame(
        &mut self,
        frame: &[u8],
        checksum: Checksum,
        at: Timestamp,
        now: Timestamp,
        out: &mut Frames,
    ) {
        if self.neighbours.on_frame(frame, now, &self.population, out) {
            self.counts.neighbour += 1;
            return;
        }
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let Ok(packet) = decode(LinkType::ETHERNET, frame, length) else {
            self.counts.malformed += 1;
            return;
        };
        let Some(client) = self.client_of(&packet) else {
            self.counts.others += 1;
            return;
        };
        if checksum == Checksum::Unknown && !is_intact(&packet) {
            self.counts.bad_checksum += 1;
            return;
        }
        if self.paths.is_plain() {
            self.deliver(&packet, client, at, now, out);
        } else {
            self.pass_line(&packet, frame, client, at);
            self.end_lines(now, out);
        }
    }

    /// A frame of the server enters the line of a client, joined ones in the pieces in which they would
    /// have come over a cable.
    fn pass_line(&mut self, packet: &Packet<'_>, frame: &[u8], client: Client, at: Timestamp) {
        let mtu = self.population.profile(client).mtu.unwrap_or(ETHERNET_MTU);
        let mut pieces = std::mem::take(&mut self.pieces);
        if !take_apart(packet, mtu, &mut pieces) {
            pieces.push(frame);
        }
        for piece in pieces.iter() {
            let length = piece.len();
            let release = match self.paths.incoming(&self.population, client, length, at) {
                Fate::Now => at,
                Fate::At(release) => release,
                Fate::Lost => {
                    self.counts.lost_down += 1;
                    continue;
                }
            };
            // One that finds no room is counted there.
            self.incoming.put(release, piece);
        }
        pieces.clear();
        self.pieces = pieces;
    }

    /// The client that a segment of the server is for.
    fn client_of(&self, packet: &Packet<'_>) -> Option<Client> {
        let Transport::Tcp(tcp) = packet.transport else {
            return None;
        };
        let is_of_server = packet.network.src() == self.server.ip()
            && tcp.src_port() == self.server.port()
            && packet.vlan == self.population.vlan()
            && packet.tunnels == 0;
        if is_of_server {
            self.population.find(packet.network.dst())
        } else {
            None
        }
    }

    fn deliver(
        &mut self,
        packet: &Packet<'_>,
        client: Client,
        at: Timestamp,
        now: Timestamp,
        out: &mut Frames,
    ) {
        self.counts.segments += 1;
        let (tcp, mut line, sessions) = self.split(out);
        tcp.on_segment(packet, client, at, now, &mut line, sessions);
        self.act(now, out);
    }

    /// Time has come to `now`.
    pub fn on_tick(&mut self, now: Timestamp, out: &mut Frames) {
        self.neighbours.on_tick(now, &self.population, out);
        self.outgoing.pop_due(now, |_, frame| out.push(frame));
        self.end_lines(now, out);
        self.start_due(now, out);
        let (tcp, mut line, sessions) = self.split(out);
        tcp.on_tick(now, &mut line, sessions);
        self.sessions.on_tick(now);
        self.act(now, out);
    }

    /// Begins the sessions that are due `now`; [`LoadStage::on_tick`] does so too. Their frames may pass those of other
    /// sessions, which those of timers may not.
    pub fn start_due(&mut self, now: Timestamp, out: &mut Frames) {
        // Bounded: where more is due than can be begun, frames, signals and the clock have their turn.
        for _ in 0..STARTS {
            let Some((number, planned)) = self.planned.due(now + self.lead()) else {
                break;
            };
            let client = self.population.pick(number);
            if self.part == Part::Init {
                self.only_begin(client, planned, now, out);
                continue;
            }
            self.sessions
                .start(number, client, planned, now.max(planned));
            self.act(now, out);
        }
    }

    /// When the next session is to be begun.
    #[must_use]
    pub fn next_start(&self) -> Option<Timestamp> {
        self.planned.next().map(|planned| planned - self.lead())
    }

    /// How much before its time a session is made ready: where another host sends its SYN, by a clock
    /// of its own, the answer must not come before the connection is there.
    const fn lead(&self) -> Duration {
        match self.part {
            Part::Stat => Duration::from_millis(50),
            Part::All | Part::Init => Duration::ZERO,
        }
    }

    /// Delivers what comes out of the lines of the clients.
    fn end_lines(&mut self, now: Timestamp, out: &mut Frames) {
        if self.incoming.is_empty() {
            return;
        }
        let mut frames = std::mem::take(&mut self.arrived);
        let mut times = std::mem::take(&mut self.arrived_at);
        self.incoming.pop_due(now, |at, frame| {
            frames.push(frame);
            times.push(at);
        });
        for (frame, at) in frames.iter().zip(&times) {
            let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            // It has decoded before, and was a client's.
            if let Ok(packet) = decode(LinkType::ETHERNET, frame, length)
                && let Some(client) = self.client_of(&packet)
            {
                self.deliver(&packet, client, *at, now, out);
            }
        }
        frames.clear();
        times.clear();
        self.arrived = frames;
        self.arrived_at = times;
    }

    /// When [`LoadStage::on_tick`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let deadlines = [
            self.next_start(),
            self.outgoing.next_deadline(),
            self.incoming.next_deadline(),
            self.tcp.next_deadline(),
            self.sessions.next_deadline(),
            self.neighbours.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Carries out what sessions want.
    fn act(&mut self, now: Timestamp, out: &mut Frames) {
        while let Some(action) = self.sessions.next_action(now) {
            match action {
                Action::Connect {
                    user,
                    client,
                    planned,
                } => {
                    let opened = self.connect(user, client, planned, now, out);
                    // What is made ready early begins at its time.
                    let begun = planned.map_or(now, |planned| now.max(planned));
                    self.sessions.on_opened(user, opened, begun);
                }
                Action::Send { conn, request } => {
                    let mut room = std::mem::take(&mut self.request);
                    let (tcp, mut line, sessions) = self.split(out);
                    let bytes = sessions.request_bytes(request, &mut room);
                    if !tcp.send(conn, bytes, now, &mut line) {
                        sessions.on_unsent(request, Failure::NoRoom, now);
                    }
                    self.request = room;
                }
                Action::Close(conn) => {
                    let (tcp, mut line, _) = self.split(out);
                    tcp.close(conn, now, &mut line);
                }
                Action::CloseAfterPeer(conn) => {
                    let (tcp, mut line, _) = self.split(out);
                    tcp.close_after_peer(conn, now, &mut line);
                }
                Action::Abort(conn) => {
                    let (tcp, mut line, sessions) = self.split(out);
                    tcp.abort(conn, now, &mut line, sessions);
                }
            }
        }
    }

    fn connect(
        &mut self,
        user: u32,
        client: Client,
        planned: Option<Timestamp>,
        now: Timestamp,
        out: &mut Frames,
    ) -> Result<(ConnId, u16), Failure> {
        if self.neighbours.next_hop(self.server.ip()).is_none() {
            return Err(Failure::Unreachable);
        }
        // The first SYN of a session is the other host's: with its planned time both make the same.
        let planned = planned.filter(|_| self.part == Part::Stat);
        let opening = Opening {
            user,
            sends_syn: planned.is_none(),
            ..self.opening(client)
        };
        let (tcp, mut line, _) = self.split(out);
        match tcp.connect(&opening, planned.unwrap_or(now), &mut line) {
            Ok(conn) => Ok((conn, tcp.local_port(conn))),
            Err(ConnectError::NoPort) => Err(Failure::NoPort),
            Err(ConnectError::NoRoom) => Err(Failure::NoRoom),
        }
    }

    fn opening(&self, client: Client) -> Opening {
        Opening {
            client,
            local: self.population.address(client),
            remote: self.server,
            user: 0,
            mss: self.mss(client),
            sends_syn: true,
        }
    }

    /// The first SYN of a session that the other host takes over.
    fn only_begin(&mut self, client: Client, planned: Timestamp, now: Timestamp, out: &mut Frames) {
        let opening = self.opening(client);
        let (tcp, mut line, sessions) = self.split(out);
        // There is no such client only where there is no such number: it came from the population.
        if tcp.syn_only(&opening, planned, &mut line).is_ok() {
            sessions.observer_mut().on_start(client, planned, now);
        }
    }

    /// What a client announces whose line has an MTU of its own (RFC 9293 sec. 3.7.1).
    fn mss(&self, client: Client) -> Option<u16> {
        let headers = if self.server.is_ipv4() { 40 } else { 60 };
        let mtu = self.population.profile(client).mtu?;
        Some(mtu.saturating_sub(headers).max(1))
    }

    /// TCP, the way of its segments, and who hears its events.
    fn split<'a>(
        &'a mut self,
        out: &'a mut Frames,
    ) -> (
        &'a mut TcpClients,
        Line<'a>,
        &'a mut Sessions<Measure<Arc<Population>>>,
    ) {
        let line = Line {
            population: &self.population,
            paths: &mut self.paths,
            delayed: &mut self.outgoing,
            // It was known when the connection was made.
            next_hop: self
                .neighbours
                .next_hop(self.server.ip())
                .unwrap_or_default(),
            out,
        };
        (&mut self.tcp, line, &mut self.sessions)
    }

    /// Whether the schedule is at its end, no session is open, and all connections are closed on both
    /// sides: a server whose last FIN nobody acknowledged would send it again and again.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.planned.is_done()
            && self.sessions.open_sessions() == 0
            && self.tcp.open() == 0
            && self.outgoing.is_empty()
    }

    /// Whether the schedule is at its end and no session is open; connections may still be closing.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.planned.is_done() && self.sessions.open_sessions() == 0
    }

    /// Whether sessions are due that have not begun.
    #[must_use]
    pub fn is_behind(&self, now: Timestamp) -> bool {
        self.planned.next().is_some_and(|planned| planned <= now)
    }

    /// Whether the schedule is at its end.
    #[must_use]
    pub fn is_planned_out(&self) -> bool {
        self.planned.is_done()
    }

    /// The run ends now: no session begins any more, those that are open fail as
    /// [`Failure::RunEnded`], their connections are reset.
    pub fn end(&mut self, now: Timestamp, out: &mut Frames) {
        self.planned.end();
        self.sessions.fail_all(Failure::RunEnded, now);
        self.act(now, out);
    }

    /// The clients.
    #[must_use]
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// What was measured, and the records.
    pub const fn measure(&mut self) -> &mut Measure<Arc<Population>> {
        self.sessions.observer_mut()
    }

    /// What was measured.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        self.sessions.observer().figures()
    }

    /// Sessions that are open.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.sessions.open_sessions()
    }

    /// Connections that are open.
    #[must_use]
    pub const fn open_connections(&self) -> u32 {
        self.tcp.open()
    }

    /// What TCP met with.
    #[must_use]
    pub const fn tcp_counts(&self) -> &TcpCounts {
        self.tcp.counts()
    }

    /// What the link had to say.
    #[must_use]
    pub const fn neighbour_counts(&self) -> NeighbourCounts {
        self.neighbours.counts()
    }

    /// The last time that the next hop came to have another hardware address.
    #[must_use]
    pub const fn last_move(&self) -> Option<Moved> {
        self.neighbours.last_move()
    }

    /// Frames that were lost because the delay lines were full: not by the emulated lines.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.outgoing.overflows() + self.incoming.overflows()
    }

    /// Counts that no session tells.
    #[must_use]
    pub const fn session_stats(&self) -> SessionStats {
        self.sessions.stats()
    }

    /// Bytes of memory of connections, sessions and their tables.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.tcp.memory_bytes() + self.sessions.memory_bytes()
    }

    /// Frames that came.
    #[must_use]
    pub const fn frame_counts(&self) -> FrameCounts {
        self.counts
    }
}

fn is_intact(packet: &Packet<'_>) -> bool {
    match packet.transport {
        // One that cannot be told is cut: TCP would not acknowledge it anyway.
        Transport::Tcp(tcp) => checksum::verify_tcp(&packet.network, &tcp).unwrap_or(true),
        _ => false,
    }
}
