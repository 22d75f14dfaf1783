//! Handshakes that say two things.

use linkweir_engine::effect::{Decision, Verdict};
use linkweir_wire::TcpFlags;

use super::bed::{Bed, CLIENT_FIRST, REQUEST, SERVER_FIRST, VIRUS, policy, response, scanning};
use crate::inspect::Side;
use crate::policy::Action;

/// Where the stream does not begin.
const OTHER: u32 = SERVER_FIRST + 500_000;

fn bed() -> Bed {
    Bed::new(policy(Action::Inspect, scanning(4096)))
}

fn syn(bed: &mut Bed) {
    bed.packet(Side::Client, CLIENT_FIRST, TcpFlags::SYN, &[]);
}

fn answer(bed: &mut Bed, first: u32) {
    bed.packet(Side::Server, first, TcpFlags::SYN | TcpFlags::ACK, &[]);
}

/// The client acknowledges the answer that it took.
fn client_goes_on(bed: &mut Bed) {
    let seq = CLIENT_FIRST.wrapping_add(1);
    bed.packet(Side::Client, seq, TcpFlags::ACK, &[]);
}

/// A virus that the client must not get whole.
fn is_caught(mut bed: Bed) {
    bed.send(Side::Client, 0, REQUEST);
    bed.send(Side::Server, 0, &response(VIRUS));
    bed.scan();
    assert!(!bed.at_client.stream().ends_with(VIRUS));
    assert_eq!(bed.decision(), Decision::Reject);
}

#[test]
fn an_answer_that_the_client_does_not_take_changes_nothing() {
    for answers in [
        [SERVER_FIRST, OTHER].as_slice(),
        &[OTHER, SERVER_FIRST],
        &[SERVER_FIRST, OTHER, OTHER],
        &[SERVER_FIRST, SERVER_FIRST],
    ] {
        let mut bed = bed();
        syn(&mut bed);
        for first in answers {
            answer(&mut bed, *first);
        }
        client_goes_on(&mut bed);
        is_caught(bed);
    }
}

#[test]
fn an_answer_behind_the_handshake_is_dropped() {
    let mut bed = bed();
    bed.open();
    answer(&mut bed, OTHER);
    let dropped = bed.answers.last().map(|answer| answer.verdict);
    assert_eq!(dropped, Some(Verdict::Drop));
    is_caught(bed);
}

#[test]
fn a_syn_sent_again_forgets_no_answer() {
    let mut bed = bed();
    syn(&mut bed);
    answer(&mut bed, SERVER_FIRST);
    syn(&mut bed);
    answer(&mut bed, OTHER);
    // Before the client has said which answer it took.
    bed.send(Side::Server, 0, &response(VIRUS));
    assert_eq!(bed.at_client.stream(), b"");
    client_goes_on(&mut bed);
    is_caught(bed);
}

#[test]
fn an_answer_to_another_syn_is_dropped() {
    let mut bed = bed();
    // The ends take the first one, the second has an option that was not agreed on.
    syn(&mut bed);
    bed.packet(
        Side::Client,
        CLIENT_FIRST.wrapping_add(9),
        TcpFlags::SYN,
        &[],
    );
    answer(&mut bed, SERVER_FIRST);
    let dropped = bed.answers.last().map(|answer| answer.verdict);
    assert_eq!(dropped, Some(Verdict::Drop));
}
