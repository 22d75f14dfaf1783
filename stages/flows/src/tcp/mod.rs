//! One segment of a TCP flow: what it says of its sender, and of what it acknowledges.

mod ack;
mod answers;
mod classify;
mod data;
pub(crate) mod direction;
mod extras;

use linkweir_table::{NONE, Pieces, Slab};
use linkweir_wire::tcp::SackBlocks;
use linkweir_wire::{SeqNumber, Tcp, TcpFlags, TcpOption};

use crate::config::Classifier;
use direction::{Direction, flag, option};
pub(crate) use extras::Extras;
pub(crate) use extras::SegmentList;

/// Sequence numbers further apart than this are not of one connection: more than any window.
const IMPOSSIBLE: u32 = 1 << 30;

/// Whether sequence number `a` comes before `b`.
#[inline]
pub(crate) const fn before(a: u32, b: u32) -> bool {
    SeqNumber(a).before(SeqNumber(b))
}

/// The later sequence number of the two.
#[inline]
pub(crate) const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// Bits of [`Pools::marks`].
pub(crate) mod mark {
    /// SYN, FIN or RST.
    pub(crate) const CONTROLS: u8 = 1;
    /// The first acknowledgment that is nothing else.
    pub(crate) const ACK: u8 = 2;
    /// The first payload.
    pub(crate) const DATA: u8 = 4;
    /// Payload that was seen before.
    pub(crate) const RETRANSMISSION: u8 = 8;
    /// A window of zero.
    pub(crate) const ZERO_WINDOW: u8 = 16;
    /// An acknowledgment of bytes that were never seen.
    pub(crate) const GAP_OF_PEER: u8 = 32;
}

/// Memory that only flows with something outstanding or in trouble take.
#[derive(Debug)]
pub(crate) struct Pools {
    pub(crate) lists: Slab<SegmentList, Pieces<SegmentList>>,
    pub(crate) extras: Slab<Extras, Pieces<Extras>>,
    pub(crate) classifier: Classifier,
    /// Segments whose numbers cannot be of their connection.
    pub(crate) impossible: u64,
    /// Segments in flight that were forgotten because a list was full.
    pub(crate) forgotten: u64,
    /// What a segment did that a history has a letter for, where it may be for the first time.
    pub(crate) marks: u8,
}

impl Pools {
    pub(crate) fn new(classifier: Classifier) -> Self {
        Self {
            lists: Slab::with_capacity(u32::MAX),
            extras: Slab::with_capacity(u32::MAX),
            classifier,
            impossible: 0,
            forgotten: 0,
            marks: 0,
        }
    }

    /// The extras of a direction, taken where it has none.
    pub(crate) fn extras_of(&mut self, direction: &mut Direction) -> Option<&mut Extras> {
        if direction.extras == NONE {
            direction.extras = self.extras.take().unwrap_or(NONE);
            *self.extras.get_mut(direction.extras)? = Extras::default();
        }
        self.extras.get_mut(direction.extras)
    }

    /// A direction passed over this many sequence numbers.
    #[cold]
    pub(crate) fn miss(&mut self, direction: &mut Direction, count: u32) {
        if let Some(extras) = self.extras_of(direction) {
            extras.missed += u64::from(count);
        }
    }

    /// Gives back what a direction took.
    pub(crate) fn release(&mut self, direction: &mut Direction) {
        if direction.extras != NONE {
            self.extras.give_back(direction.extras);
            direction.extras = NONE;
        }
        self.release_list(direction);
    }

    pub(crate) fn release_list(&mut self, direction: &mut Direction) {
        if direction.list != NONE {
            if let Some(list) = self.lists.get_mut(direction.list) {
                list.reset();
            }
            self.lists.give_back(direction.list);
            direction.list = NONE;
        }
    }
}

/// A segment as it arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    /// The segment.
    pub(crate) tcp: &'a Tcp<'a>,
    /// When, nanoseconds since the epoch.
    pub(crate) now: u64,
    /// Bytes of the IP packet.
    pub(crate) ip_len: u32,
    /// Time to live or hop limit.
    pub(crate) ttl: u8,
    /// The identification field, of version 4.
    pub(crate) ip_id: Option<u16>,
}

/// What a segment says in its options.
#[derive(Debug, Clone, Copy, Default)]
struct Options<'a> {
    tsval: Option<u32>,
    tsecr: u32,
    sack: Option<SackBlocks<'a>>,
}

/// What came of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Payload bytes in front that were known already.
    pub(crate) known: u32,
    /// Payload bytes behind those that are new and in order.
    pub(crate) fresh: u32,
    /// Bytes that were never seen between what came before and this.
    pub(crate) lost: u32,
    /// Bytes of the other side in flight when it acknowledged the first of them; 0 otherwise.
    pub(crate) flight: u32,
    /// Bits of the evidence that classified it.
    pub(crate) evidence: u8,
    /// Whether the flow is over: both FINs acknowledged.
    pub(crate) is_closed: bool,
}

/// Takes a segment sent by `me` and received by `peer`.
#[inline]
pub(crate) fn on_segment(
    me: &mut Direction,
    peer: &mut Direction,
    arrival: &Arrival<'_>,
    pools: &mut Pools,
) -> Outcome {
    let tcp = arrival.tcp;
    let flags = tcp.flags();
    let is_syn = flags.contains(TcpFlags::SYN);
    let is_ack = flags.contains(TcpFlags::ACK);
    let controls = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
    let len = tcp.payload_len;

    me.pkts_all += 1;
    me.ip_bytes += u64::from(arrival.ip_len);
    me.ttl_max = me.ttl_max.max(arrival.ttl);
    me.ttl_min = if me.ttl_min == 0 {
        arrival.ttl
    } else {
        me.ttl_min.min(arrival.ttl)
    };
    if is_ack {
        if len == 0 && !flags.intersects(controls) {
            me.pure_acks += 1;
            if me.pure_acks == 1 {
                pools.marks |= mark::ACK;
            }
        }
        if me.first_ack == 0 && !is_syn {
            me.first_ack = arrival.now;
        }
    } else {
        me.without_ack = me.without_ack.saturating_add(1);
    }
    if flags.intersects(controls) && !on_controls(me, flags, arrival, pools) {
        return Outcome::default();
    }
    let options = read_options(me, tcp);
    if len > 0 {
        on_payload(me, len, flags, arrival.now, pools);
    }

    let mut outcome = Outcome::default();
    let mut was_again = false;
    if len > 0 || flags.intersects(TcpFlags::SYN | TcpFlags::FIN) {
        was_again = data::on_data(me, peer, arrival, options.tsval, pools, &mut outcome);
    }
    if let Some(tsval) = options.tsval
        && (me.tsval == 0 || before(me.tsval, tsval))
    {
        me.tsval = tsval;
    }
    if is_ack
        && peer.options & option::DISPUTED != 0
        && !flags.intersects(TcpFlags::SYN | TcpFlags::RST)
    {
        answers::settle(peer, tcp.ack().0, pools);
    }
    let window = window_of(me, peer, tcp, is_syn);
    if len > 0 || flags.intersects(controls) {
        me.options |= option::SENT;
    }
    if is_ack {
        if peer.options & option::SENT != 0 {
            peer.options &= !option::SENT;
            outcome.flight = peer.next.wrapping_sub(peer.una);
        }
        let packet = ack::Acknowledgment {
            ack: tcp.ack().0,
            now: arrival.now,
            window,
            tsecr: options.tsval.map(|_| options.tsecr),
            sack: options.sack,
            is_syn,
            is_pure: len == 0 && !flags.intersects(controls),
        };
        outcome.evidence |= ack::on_ack(me, peer, &packet, pools);
    }
    if flags.contains(TcpFlags::RST) {
        return outcome;
    }
    if is_ack || is_syn {
        on_window(me, window, is_ack, pools);
    }
    if !is_syn && !was_again && me.has(flag::ACKED) && me.has(flag::STARTED) {
        on_flight(me, tcp.seq().0.wrapping_add(tcp.sequence_len()), len);
    } else if len > 0 && !was_again && !me.has(flag::DATA_ACKED) {
        me.cwin_ini = me.cwin_ini.saturating_add(len);
    }
    outcome.is_closed = me.has(flag::CLOSED) && peer.has(flag::CLOSED);
    outcome
}

/// Bytes in flight: from the last acknowledgment to the end of this segment.
#[inline]
fn on_flight(me: &mut Direction, end: u32, len: u32) {
    let flight = end.wrapping_sub(me.una);
    if flight > 0 && flight < IMPOSSIBLE {
        me.cwin_max = me.cwin_max.max(flight);
        me.cwin_min = if me.cwin_min == 0 {
            flight
        } else {
            me.cwin_min.min(flight)
        };
    }
    if len > 0 && !me.has(flag::DATA_ACKED) {
        me.cwin_ini = me.cwin_ini.saturating_add(len);
    }
}

#[inline]
fn on_payload(me: &mut Direction, len: u32, flags: TcpFlags, now: u64, pools: &mut Pools) {
    me.pkts_data += 1;
    me.bytes_all += u64::from(len);
    if flags.contains(TcpFlags::PSH) {
        me.pkts_push += 1;
    }
    let short = u16::try_from(len).unwrap_or(u16::MAX);
    me.mss_max = me.mss_max.max(short);
    me.mss_min = if me.mss_min == 0 {
        short
    } else {
        me.mss_min.min(short)
    };
    if me.first_data == 0 {
        me.first_data = now;
        // With SYN, FIN or RST it is the letter of those.
        if !flags.intersects(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
            pools.marks |= mark::DATA;
        }
    }
    me.last_data = me.last_data.max(now);
}

/// SYN, FIN, RST. Whether the segment says anything else of the connection.
#[cold]
fn on_controls(
    me: &mut Direction,
    flags: TcpFlags,
    arrival: &Arrival<'_>,
    pools: &mut Pools,
) -> bool {
    let tcp = arrival.tcp;
    pools.marks |= mark::CONTROLS;
    if flags.contains(TcpFlags::SYN) {
        me.syn = me.syn.saturating_add(1);
        if !me.has(flag::SYN) {
            me.flags |= flag::SYN;
            me.isn = tcp.seq().0;
        } else if flags.contains(TcpFlags::ACK) && me.isn != tcp.seq().0 {
            answers::on_other(me, arrival, pools);
            return false;
        }
        read_offer(me, tcp);
    }
    if flags.contains(TcpFlags::RST) && me.fin == 0 {
        me.options |= option::RST_FIRST;
    }
    if flags.contains(TcpFlags::FIN) {
        me.fin = me.fin.saturating_add(1);
    }
    if flags.contains(TcpFlags::RST)
        && let Some(extras) = pools.extras_of(me)
    {
        extras.rst += 1;
    }
    true
}

/// What a SYN offers.
fn read_offer(me: &mut Direction, tcp: &Tcp<'_>) {
    for one in tcp.options() {
        match one {
            TcpOption::MaximumSegmentSize(mss) => me.mss = mss,
            TcpOption::WindowScale(shift) => {
                me.options |= option::WINDOW_SCALE;
                // RFC 7323 sec. 2.3: a larger shift counts as 14.
                me.window_scale = shift.min(14);
            }
            TcpOption::SackPermitted => me.options |= option::SACK,
            // RFC 8684 sec. 3.1, 3.2.
            TcpOption::Other { kind: 30, .. } => me.options |= option::MULTIPATH,
            _ => {}
        }
    }
}

/// Timestamps and selective acknowledgments. The usual layout (two no-operations, timestamps) is
/// read without a walk.
#[inline]
fn read_options<'a>(me: &mut Direction, tcp: &Tcp<'a>) -> Options<'a> {
    let mut found = Options::default();
    match tcp.options {
        [] => return found,
        [1, 1, 8, 10, a, b, c, d, e, f, g, h] => {
            found.tsval = Some(u32::from_be_bytes([*a, *b, *c, *d]));
            found.tsecr = u32::from_be_bytes([*e, *f, *g, *h]);
        }
        _ => {
            for one in tcp.options() {
                match one {
                    TcpOption::Timestamps { value, echo } => {
                        found.tsval = Some(value);
                        found.tsecr = echo;
                    }
                    TcpOption::Sack(blocks) => found.sack = Some(blocks),
                    _ => {}
                }
            }
        }
    }
    if found.tsval.is_some() {
        me.options |= option::TIMESTAMPS;
    }
    found
}

/// The announced window in bytes. Scaled only when both SYNs offered it, and never in a SYN (RFC
/// 7323 sec. 2.2).
#[inline]
fn window_of(me: &Direction, peer: &Direction, tcp: &Tcp<'_>, is_syn: bool) -> u32 {
    let window = u32::from(tcp.window());
    if !is_syn && me.options & peer.options & option::WINDOW_SCALE != 0 {
        window << me.window_scale
    } else {
        window
    }
}

#[inline]
fn on_window(me: &mut Direction, window: u32, is_ack: bool, pools: &mut Pools) {
    me.window = window;
    me.win_max = me.win_max.max(window);
    if window > 0 {
        me.win_min = if me.win_min == 0 {
            window
        } else {
            me.win_min.min(window)
        };
    } else if is_ack && let Some(extras) = pools.extras_of(me) {
        extras.win_0 += 1;
        pools.marks |= mark::ZERO_WINDOW;
    }
}
