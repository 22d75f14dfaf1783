//! A SYN that was answered twice, with different numbers.
//!
//! One of the answers is not of the connection: its client takes one, and its first acknowledgment says
//! which. Until then the first answer counts and the other is kept beside it.

use super::direction::{Direction, flag, option};
use super::extras::Segment;
use super::{Arrival, Pools, before, read_offer, read_options};

/// What an answer sets.
const OFFERED: u8 = option::WINDOW_SCALE | option::TIMESTAMPS | option::SACK | option::MULTIPATH;

/// An answer that differs from the one that counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answer {
    /// When it was seen, nanoseconds since the epoch; 0: none.
    pub(crate) at: u64,
    isn: u32,
    tsval: u32,
    window: u16,
    mss: u16,
    ip_id: u16,
    window_scale: u8,
    options: u8,
}

impl Answer {
    fn of(arrival: &Arrival<'_>) -> Self {
        let tcp = arrival.tcp;
        let mut sender = Direction::default();
        read_offer(&mut sender, tcp);
        let tsval = read_options(&mut sender, tcp).tsval;
        Self {
            at: arrival.now,
            isn: tcp.seq().0,
            tsval: tsval.unwrap_or(0),
            window: tcp.window(),
            mss: sender.mss,
            ip_id: arrival.ip_id.unwrap_or(0),
            window_scale: sender.window_scale,
            options: sender.options,
        }
    }
}

/// Takes a SYN-ACK of `me` whose number is not that of the one before.
#[cold]
pub(super) fn on_other(me: &mut Direction, arrival: &Arrival<'_>, pools: &mut Pools) {
    let number = arrival.tcp.seq().0;
    let is_open = !me.has(flag::ACKED);
    if let Some(extras) = pools.extras_of(me).filter(|_| is_open) {
        if extras.other.at != 0 && extras.other.isn == number {
            extras.syn_retx += 1;
            return;
        }
        extras.other = Answer::of(arrival);
        me.options |= option::DISPUTED;
    }
    pools.impossible += 1;
}

/// The peer of `me` acknowledges one of its answers, which from here on is the only one.
#[cold]
pub(super) fn settle(me: &mut Direction, ack: u32, pools: &mut Pools) {
    me.options &= !option::DISPUTED;
    if before(me.isn, ack) && !before(me.next, ack) {
        return;
    }
    let Some(extras) = pools.extras_of(me) else {
        return;
    };
    let isn = ack.wrapping_sub(1);
    // Of more than two it may be one that was forgotten.
    let taken = Some(extras.other).filter(|other| other.isn == isn);
    extras.missed = 0;
    extras.syn_ack_at = Some(taken.map_or(0, |answer| answer.at));
    begin_at(me, isn, pools);
    match taken {
        Some(answer) => take(me, &answer),
        None => me.una = ack,
    }
}

/// The numbers of `me` begin anew: what was seen of them was not of the connection.
fn begin_at(me: &mut Direction, isn: u32, pools: &mut Pools) {
    pools.release_list(me);
    me.clear_one_segment();
    me.flags &= !flag::FIN;
    me.isn = isn;
    me.una = isn;
    me.next = isn.wrapping_add(1);
}

fn take(me: &mut Direction, answer: &Answer) {
    me.mss = answer.mss;
    me.window_scale = answer.window_scale;
    me.options = me.options & !OFFERED | answer.options;
    me.tsval = answer.tsval;
    let window = u32::from(answer.window);
    (me.window, me.win_max, me.win_min) = (window, window, window);
    let segment = Segment {
        time: answer.at,
        start: me.isn,
        end: me.next,
        tsval: answer.tsval,
        ip_id: answer.ip_id,
        class: 0,
        was_sent_again: false,
    };
    me.set_one_segment(&segment);
}
