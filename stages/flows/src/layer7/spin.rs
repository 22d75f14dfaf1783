//! The spin bit (RFC 9000 sec. 17.4): round-trip times from the first byte of packets that are encrypted.
//!
//! The server sends the bit as it came, the client turns it round, so that each side's value is an edge that goes
//! round the path once. An edge of the client that comes back from the server is the half of the path towards the
//! server; from there to the client's next edge it is the other half, and both together are a turn.
//!
//! A side need not take part: at least one connection in sixteen must not, and then has one value or any. Whoever
//! takes part may wait before sending. So no turn is believed by itself:
//! - Edges come in step: the client changes from the server's value, the server to the client's. A packet that
//!   was overtaken makes an edge that is out of step, at once or at the next packet. A turn counts only when the
//!   edge behind it is in step, and after an edge out of step the next one begins nothing. That is stricter than
//!   a least time between edges (RFC 9312 sec. 3.8.2 leaves the choice of what to reject), and needs no constant.
//! - A side that must have seen the other's edge and still sends the old value is out of step as well.
//! - The round trip of the handshake is the measure: a half that took longer, with no packet of that direction for
//!   longer, is a pause of the application; so is a turn of more than four times as long. Turns of less than half
//!   as long are not believed.
//! - Of two turns one behind the other the longer one counts.

use linkweir_record::flow::{Halves, SpinVerdict};
use linkweir_wire::Side;

use super::sessions::SinceStart;

/// The bit in the first byte of a short header.
const SPIN: u8 = 0x20;
/// One packet in so many with an edge, and the bit may be random,
const PACKETS_PER_EDGE: u64 = 5;
/// unless there are so many edges
const EDGES_OF_FEW_PACKETS: u64 = 16;
/// of which at most one in so many is out of step.
const EDGES_PER_BREAK: u64 = 16;
/// Edges below which nothing is called random,
const LEAST_EDGES: u64 = 8;
/// and of which more than one in so many is out of step.
const EDGES_PER_BREAK_BY_CHANCE: u64 = 4;
/// Packets of each side without an edge that say, where no time does, that there will be none.
const SURE_PACKETS: u32 = 32;

/// What one side sent.
#[derive(Debug, Clone, Copy, Default)]
struct Direction {
    packets: u32,
    edges: u32,
    value: bool,
    first: SinceStart,
    last: SinceStart,
}

impl Direction {
    /// Whether it could have changed its value, had it wanted to.
    fn is_long(&self, rtt_ns: Option<u64>) -> bool {
        let span = self.last.since(self.first);
        rtt_ns.map_or(self.packets >= SURE_PACKETS, |rtt_ns| {
            span >= rtt_ns.saturating_mul(2)
        })
    }
}

/// From one edge to the next one of the other side.
#[derive(Debug, Clone, Copy)]
struct Half {
    ns: u64,
    is_paused: bool,
}

/// What is remembered of the spin bit of one flow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spin {
    client: Direction,
    server: Direction,
    /// The last edge that was in step, and the half that it ended.
    edge: SinceStart,
    half: Option<Half>,
    /// A turn that waits for the edge behind it.
    turn: Option<(Halves, bool)>,
    /// Whether the last edge was out of step.
    is_broken: bool,
    breaks: u32,
    paused: u32,
    count: u32,
    /// The turn before, where it was believed.
    before: Option<Halves>,
    shortest: Option<Halves>,
}

impl Spin {
    /// A packet with a short header, by its first byte. `rtt_ns` is the round trip of the handshake, where it is
    /// known.
    pub(super) fn on_short(&mut self, side: Side, first: u8, now: SinceStart, rtt_ns: Option<u64>) {
        let value = first & SPIN != 0;
        let (own, other) = match side {
            Side::Client => (&mut self.client, &self.server),
            Side::Server => (&mut self.server, &self.client),
        };
        let gap = now.since(own.last);
        let is_first = own.packets == 0;
        let is_edge = !is_first && own.value != value;
        if is_first {
            own.first = now;
        }
        own.packets = own.packets.saturating_add(1);
        own.value = value;
        own.last = now;
        own.edges = own.edges.saturating_add(u32::from(is_edge));
        let is_answered = other.packets > 0;
        if is_edge {
            self.on_edge(side, now, gap, is_answered, rtt_ns);
        } else if let Some(rtt_ns) = rtt_ns
            && self.edge.get().is_some()
            && self.is_turn_of(side)
            && now.since(self.edge) > rtt_ns.saturating_add(rtt_ns / 2)
        {
            self.fall_out();
        }
    }

    /// Whether the other side's edge is the last one.
    const fn is_turn_of(&self, side: Side) -> bool {
        let is_same = self.client.value == self.server.value;
        match side {
            Side::Client => is_same,
            Side::Server => !is_same,
        }
    }

    fn on_edge(
        &mut self,
        side: Side,
        now: SinceStart,
        gap: u64,
        is_answered: bool,
        rtt_ns: Option<u64>,
    ) {
        if !is_answered {
            return;
        }
        // Its value is the new one by now.
        if self.is_turn_of(side) {
            self.fall_out();
            self.is_broken = true;
            return;
        }
        let Some(rtt_ns) = rtt_ns else {
            return;
        };
        if let Some(turn) = self.turn.take() {
            self.take(turn, rtt_ns);
        }
        if std::mem::take(&mut self.is_broken) {
            return;
        }
        if self.edge.get().is_none() {
            self.edge = now;
            return;
        }
        let ns = now.since(self.edge);
        let half = Half {
            ns,
            is_paused: ns.min(gap) > rtt_ns,
        };
        if let Some(before) = self.half {
            let (server_ns, client_ns) = match side {
                Side::Client => (before.ns, half.ns),
                Side::Server => (half.ns, before.ns),
            };
            let halves = Halves {
                server_ns,
                client_ns,
            };
            self.turn = Some((halves, before.is_paused || half.is_paused));
        }
        self.half = Some(half);
        self.edge = now;
    }

    /// What was measured since the last edge out of step is not continued.
    fn fall_out(&mut self) {
        self.breaks = self.breaks.saturating_add(1);
        self.edge = SinceStart::default();
        self.half = None;
        self.turn = None;
        self.before = None;
    }

    /// A turn whose edges are confirmed.
    fn take(&mut self, (halves, is_paused): (Halves, bool), rtt_ns: u64) {
        let ns = halves.sum();
        let before = self.before.take();
        if is_paused || ns > rtt_ns.saturating_mul(4) {
            self.paused = self.paused.saturating_add(1);
        } else if ns.saturating_mul(2) >= rtt_ns {
            self.count = self.count.saturating_add(1);
            self.before = Some(halves);
            // Of two turns one behind the other the longer one: an edge that came early shortens only one of them.
            let longer = before.map(|before| if before.sum() > ns { before } else { halves });
            let all = longer.into_iter().chain(self.shortest);
            self.shortest = all.min_by_key(|halves| halves.sum());
        }
    }

    /// What the bit is worth; `None` where too little was seen.
    pub(super) fn verdict(&self, rtt_ns: Option<u64>) -> Option<SpinVerdict> {
        let sides = [&self.client, &self.server];
        if sides.iter().any(|side| side.packets == 0) {
            return None;
        }
        if sides.iter().any(|side| side.edges == 0) {
            let is_sure = sides.iter().all(|side| side.is_long(rtt_ns));
            return is_sure.then_some(SpinVerdict::Off);
        }
        let edges = sides.iter().map(|side| u64::from(side.edges)).sum::<u64>();
        let breaks = u64::from(self.breaks);
        let is_frequent = sides.iter().any(|side| {
            u64::from(side.edges).saturating_mul(PACKETS_PER_EDGE) >= u64::from(side.packets)
        });
        let per_break = if is_frequent {
            EDGES_PER_BREAK_BY_CHANCE
        } else {
            2
        };
        if breaks.saturating_mul(per_break) > edges {
            return (edges >= LEAST_EDGES).then_some(SpinVerdict::Random);
        }
        let is_in_step = breaks.saturating_mul(EDGES_PER_BREAK) <= edges;
        if is_frequent && !(is_in_step && edges >= EDGES_OF_FEW_PACKETS) {
            return None;
        }
        if self.shortest.is_some() {
            Some(SpinVerdict::Ok)
        } else {
            let is_paused = self.paused > 0 && self.count == 0;
            is_paused.then_some(SpinVerdict::AppLimited)
        }
    }

    /// The shortest turn; to be believed where the verdict is [`SpinVerdict::Ok`].
    pub(super) const fn shortest(&self) -> Option<Halves> {
        self.shortest
    }

    /// Turns that were measured.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    /// From the client to the capture point, and from there to the server.
    const NEAR: u64 = 5 * MS;
    const FAR: u64 = 15 * MS;
    const RTT: u64 = 2 * (NEAR + FAR);

    /// What a side puts into the bit.
    #[derive(Debug, Clone, Copy)]
    enum Habit {
        Spins,
        Fixed(bool),
        Random,
    }

    /// What becomes of a packet on its way.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Fate {
        /// Later by so much before the capture point.
        Late(u64),
        Lost,
        /// It arrives, and is not captured.
        Unseen,
    }

    const IN_TIME: Fate = Fate::Late(0);

    fn noise(seed: usize, number: usize) -> bool {
        ((seed << 20 | number) as u64 + 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .count_ones()
            % 2
            == 1
    }

    /// Sends packets at these times over the path; what passes the capture point, in order.
    fn run(
        habits: [Habit; 2],
        times: [&[u64]; 2],
        mut fate: impl FnMut(Side, usize) -> Fate,
    ) -> Vec<(u64, Side, bool)> {
        let mut sends: Vec<(u64, Side)> = Vec::new();
        for (side, times) in [Side::Client, Side::Server].into_iter().zip(times) {
            sends.extend(times.iter().map(|time| (*time, side)));
        }
        sends.sort_by_key(|(time, side)| (*time, *side == Side::Server));
        // Of each direction: when it arrives, and the value; numbers are places.
        let mut sent: [Vec<(Option<u64>, bool)>; 2] = Default::default();
        let mut seen = Vec::new();
        for (time, side) in sends {
            let own = usize::from(side == Side::Server);
            let heard = sent[1 - own]
                .iter()
                .rfind(|(arrival, _)| arrival.is_some_and(|arrival| arrival <= time));
            let heard = heard.map(|(_, value)| *value);
            let number = sent[own].len();
            let value = match (habits[own], side) {
                (Habit::Spins, Side::Client) => heard.is_some_and(|value| !value),
                (Habit::Spins, Side::Server) => heard.unwrap_or_default(),
                (Habit::Fixed(value), _) => value,
                (Habit::Random, _) => noise(own, number),
            };
            let [before, behind] = match side {
                Side::Client => [NEAR, FAR],
                Side::Server => [FAR, NEAR],
            };
            let (late, arrives) = match fate(side, number) {
                Fate::Late(late) => (Some(late), true),
                Fate::Lost => (None, false),
                Fate::Unseen => (None, true),
            };
            let at = time + before + late.unwrap_or_default();
            sent[own].push((arrives.then_some(at + behind), value));
            if late.is_some() {
                seen.push((at, side, value));
            }
        }
        seen.sort_by_key(|(at, ..)| *at);
        seen
    }

    fn watch(seen: &[(u64, Side, bool)], rtt_ns: Option<u64>) -> Spin {
        let mut spin = Spin::default();
        for (at, side, value) in seen {
            let first = if *value { 0x60 } else { 0x40 };
            spin.on_short(*side, first, SinceStart::at(*at), rtt_ns);
        }
        spin
    }

    /// So many packets, one every `every`.
    fn steady(every: u64, count: u64) -> Vec<u64> {
        (0..count).map(|number| number * every).collect()
    }

    fn spinning(fate: impl FnMut(Side, usize) -> Fate) -> Spin {
        let times = steady(MS, 2000);
        let seen = run([Habit::Spins; 2], [&times, &times], fate);
        watch(&seen, Some(RTT))
    }

    #[test]
    fn a_turn_is_the_round_trip() {
        let spin = spinning(|_, _| IN_TIME);
        assert_eq!(spin.verdict(Some(RTT)), Some(SpinVerdict::Ok));
        let (best, count) = (spin.shortest().unwrap(), spin.count());
        assert!(
            (2 * FAR..=2 * FAR + MS).contains(&best.server_ns),
            "{best:?}"
        );
        assert!(
            (2 * NEAR..=2 * NEAR + MS).contains(&best.client_ns),
            "{best:?}"
        );
        assert!(count > 80, "{count}");
        assert_eq!(spin.breaks, 0);
    }

    #[test]
    fn a_packet_a_round_trip_is_enough_once_there_are_many() {
        // Both sides send when they have heard something: 80 edges in step.
        let client = steady(RTT, 40);
        let server: Vec<u64> = client.iter().map(|time| time + RTT / 2).collect();
        let turns = |count: usize| {
            let times = [client.get(..count).unwrap(), server.get(..count).unwrap()];
            watch(&run([Habit::Spins; 2], times, |_, _| IN_TIME), Some(RTT))
        };
        assert_eq!(turns(5).verdict(Some(RTT)), None);
        let spin = turns(40);
        assert_eq!(spin.verdict(Some(RTT)), Some(SpinVerdict::Ok));
        assert_eq!(spin.shortest().unwrap().sum(), RTT);
    }

    #[test]
    fn a_side_that_takes_no_part() {
        let times = steady(MS, 500);
        for fixed in [false, true] {
            for habits in [
                [Habit::Fixed(fixed), Habit::Spins],
                [Habit::Spins, Habit::Fixed(fixed)],
                [Habit::Fixed(fixed), Habit::Fixed(!fixed)],
            ] {
                let seen = run(habits, [&times, &times], |_, _| IN_TIME);
                let verdict = watch(&seen, Some(RTT)).verdict(Some(RTT));
                assert_eq!(verdict, Some(SpinVerdict::Off), "{habits:?}");
                assert_eq!(watch(&seen, None).verdict(None), Some(SpinVerdict::Off));
                // Within two round trips nothing need have changed.
                let few: Vec<_> = seen.iter().copied().filter(|one| one.0 < RTT).collect();
                assert_eq!(watch(&few, Some(RTT)).verdict(Some(RTT)), None);
            }
        }
    }

    #[test]
    fn values_by_chance_give_no_figure() {
        // From many packets a round trip to less than one.
        for every in [MS, 7 * MS, 17 * MS, 33 * MS, 45 * MS, 90 * MS] {
            let (times, quick) = (steady(every, 600), steady(MS, 2000));
            for (habits, times) in [
                ([Habit::Random, Habit::Random], [&times, &times]),
                ([Habit::Random, Habit::Spins], [&times, &times]),
                ([Habit::Random, Habit::Spins], [&times, &quick]),
                ([Habit::Spins, Habit::Random], [&times, &times]),
            ] {
                let seen = run(habits, [times[0], times[1]], |_, _| IN_TIME);
                let verdict = watch(&seen, Some(RTT)).verdict(Some(RTT));
                assert_ne!(verdict, Some(SpinVerdict::Ok), "{habits:?} {every}");
                if matches!(habits, [Habit::Random, Habit::Random]) {
                    assert_eq!(verdict, Some(SpinVerdict::Random), "{habits:?} {every}");
                }
            }
        }
    }

    #[test]
    fn an_application_that_waits() {
        // Three packets every fifth of a second, answered by six.
        let burst = |from: u64, count| (0..count).map(move |number| from + number * MS / 10);
        let client: Vec<u64> = (0..30).flat_map(|n| burst(n * 200 * MS, 3)).collect();
        let server = (0..30).flat_map(|n| burst(n * 200 * MS + NEAR + FAR + 2 * MS, 6));
        let server: Vec<u64> = server.collect();
        let seen = run([Habit::Spins; 2], [&client, &server], |_, _| IN_TIME);
        let spin = watch(&seen, Some(RTT));
        assert_eq!(spin.verdict(Some(RTT)), Some(SpinVerdict::AppLimited));
        assert_eq!(spin.shortest(), None);
    }

    #[test]
    fn packets_that_were_overtaken() {
        for late in [2 * MS, 11 * MS, 19 * MS, 38 * MS, 55 * MS] {
            for every in [3, 7, 11, 29] {
                let spin =
                    spinning(|_, number| Fate::Late(if number % every == 0 { late } else { 0 }));
                if let Some(best) = spin.shortest() {
                    assert!(best.sum() >= RTT, "{late} {every}: {best:?}");
                }
                if every == 29 && late == 2 * MS {
                    let verdict = spin.verdict(Some(RTT));
                    assert_eq!(verdict, Some(SpinVerdict::Ok), "{late} {every}");
                }
            }
        }
    }

    #[test]
    fn packets_that_were_lost() {
        let spin = spinning(|_, number| if number % 9 == 4 { Fate::Lost } else { IN_TIME });
        assert_eq!(spin.verdict(Some(RTT)), Some(SpinVerdict::Ok));
        assert!(spin.shortest().unwrap().sum() >= RTT);
        // What is not captured moves an edge by the distance of two packets.
        let spin = spinning(|_, number| {
            if number % 9 == 4 {
                Fate::Unseen
            } else {
                IN_TIME
            }
        });
        assert_eq!(spin.verdict(Some(RTT)), Some(SpinVerdict::Ok));
        assert!(spin.shortest().unwrap().sum() >= RTT - 2 * MS);
    }

    #[test]
    fn one_direction_says_nothing() {
        let times = steady(MS, 500);
        let seen = run([Habit::Spins; 2], [&times, &times], |_, _| IN_TIME);
        for side in [Side::Client, Side::Server] {
            let half: Vec<_> = seen.iter().copied().filter(|one| one.1 == side).collect();
            assert_eq!(watch(&half, Some(RTT)).verdict(Some(RTT)), None);
        }
        // Nor do both without a handshake to compare with.
        assert_eq!(watch(&seen, None).verdict(None), None);
    }

    #[test]
    fn a_handshake_that_took_the_server_long_is_no_measure() {
        let times = steady(MS, 2000);
        let seen = run([Habit::Spins; 2], [&times, &times], |_, _| IN_TIME);
        let spin = watch(&seen, Some(5 * RTT));
        assert_eq!((spin.verdict(Some(5 * RTT)), spin.count()), (None, 0));
    }

    /// Packets with a short header of the flow with this port of the client, in a file of the pcap format from Ethernet.
    fn captured(file: &[u8], port: u16) -> Vec<(u64, Side, u8)> {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let mut found = Vec::new();
        let mut at = 24;
        while at < file.len() {
            let time = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * 1000;
            let len = word(at + 8) as usize;
            let packet = &file[at + 16..at + 16 + len];
            at += 16 + len;
            // IPv4 without options, UDP.
            if packet.len() < 43 || packet[12..15] != [8, 0, 0x45] || packet[23] != 17 {
                continue;
            }
            let ports = [34, 36].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]]));
            let side = match ports {
                [from, _] if from == port => Side::Client,
                [_, to] if to == port => Side::Server,
                _ => continue,
            };
            if packet[42] & 0x80 == 0 {
                found.push((time, side, packet[42]));
            }
        }
        found
    }

    /// A long flow of spindump's captures: its periods are measured one by one there. The handshake is cut by the snapshot
    /// length; the round trips are those that spindump prints for it.
    #[test]
    fn turns_are_those_of_spindump() {
        let directory = std::env::var_os("LINKWEIR_SPINDUMP").map_or_else(
            || {
                concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/../../../shared/suites/spindump/test"
                )
                .into()
            },
            std::path::PathBuf::from,
        );
        let Ok(file) = std::fs::read(directory.join("trace_quic_titalia_qrloss.pcap")) else {
            linkweir_testkit::ran::skipped(&format!("no {}", directory.display()));
            return;
        };
        let text = directory.join("trace_quic_titalia_qrloss.expected");
        let text = std::fs::read_to_string(text).unwrap();
        let theirs = |word: &str| {
            let values = text.lines().filter_map(|line| line.split_once(word));
            let values = values.map(|(_, rest)| rest.split(' ').next().unwrap());
            let values = values.map(|value| value.parse::<u64>().unwrap());
            values.collect::<Vec<u64>>()
        };
        let full = [theirs(" full (initiator) "), theirs(" full (responder) ")].concat();
        let rtt = Some((11_112 + 15_099) * 1000);
        let mut spin = Spin::default();
        let packets = captured(&file, 58_184);
        for (time, side, first) in &packets {
            spin.on_short(*side, *first, SinceStart::at(time - packets[0].0), rtt);
        }
        let (shortest, count) = (spin.shortest().unwrap(), spin.count());
        println!(
            "{} packets: theirs {:?} to {:?} ({}), ours {shortest:?} ({count}), {} out of step",
            packets.len(),
            full.iter().min(),
            full.iter().max(),
            full.len(),
            spin.breaks
        );
        assert_eq!(spin.verdict(rtt), Some(SpinVerdict::Ok));
        let us = shortest.sum() / 1000;
        assert!(full.iter().any(|one| one.abs_diff(us) <= 2), "{us}");
        assert!(us.abs_diff(*full.iter().min().unwrap()) * 50 <= us, "{us}");
        let parts = (theirs(" right "), theirs(" left "));
        let near = |all: &[u64], ns: u64| all.iter().any(|one| one.abs_diff(ns / 1000) <= 2);
        assert!(near(&parts.0, shortest.server_ns) && near(&parts.1, shortest.client_ns));
        assert!(count as usize * 10 >= full.len() * 9, "{count}");
    }

    proptest! {
        /// Whatever the network does, no turn is shorter than the path by more than the distance of packets in order.
        #[test]
        fn no_turn_is_shorter_than_the_path(
            fates in proptest::collection::vec((0_u8..10, 0..RTT / 2), 64..256),
            every in (MS / 4..30 * MS, MS / 4..30 * MS),
        ) {
            let times = [steady(every.0, 400), steady(every.1, 400)];
            let seen = run([Habit::Spins; 2], [&times[0], &times[1]], |side, number| {
                let at = number * 2 + usize::from(side == Side::Server);
                match fates[at % fates.len()] {
                    (0, late) => Fate::Late(late),
                    (1, _) => Fate::Lost,
                    _ => IN_TIME,
                }
            });
            let spin = watch(&seen, Some(RTT));
            if spin.verdict(Some(RTT)) == Some(SpinVerdict::Ok) {
                let best = spin.shortest().unwrap();
                prop_assert!(best.sum() + 3 * every.0.max(every.1) >= RTT, "{best:?}");
            }
        }
    }
}
