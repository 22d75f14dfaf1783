//! Which number and which keys open a record, also behind a loss.

use linkweir_proto::tls::RecordHeader;
use linkweir_wire::Side;

use super::{Connection, HANDSHAKE, TRAFFIC};
use crate::Shared;
use crate::half::{Missing, State, Trials};
use crate::record::{Place, RecordKeys};

/// Records that a server that refuses early data passes over.
const MAX_REFUSED: u32 = 1024;

impl Connection {
    /// Decrypts a record in place.
    pub(super) fn open(
        &mut self,
        side: Side,
        header: RecordHeader,
        sealed: &mut [u8],
        shared: &Shared<'_>,
    ) -> Result<Place, Unread> {
        let half = self.half(side);
        if half.missing.is_some() {
            return self.search(side, header, sealed, shared);
        }
        match &half.state {
            State::Clear | State::GivenUp => return Err(Unread::WithoutSecret),
            State::Unknown => {
                half.number += 1;
                return Err(Unread::WithoutSecret);
            }
            State::Early(keys) => {
                let copy = sealed.to_vec();
                if let Some(place) = keys.place(half.number, header, sealed) {
                    half.number += 1;
                    return Ok(place);
                }
                // The server refused it: the handshake goes on without an end of early data.
                sealed.copy_from_slice(&copy);
                self.enter_handshake(side, shared);
            }
            State::Handshake(_) | State::Data(..) => {}
        }
        let half = self.half(side);
        if let State::Handshake(keys) | State::Data(keys, _) = &half.state
            && let Some(place) = keys.place(half.number, header, sealed)
        {
            half.number += 1;
            return Ok(place);
        }
        let is_of_handshake = matches!(half.state, State::Handshake(_));
        if is_of_handshake && self.offers_early && self.refused_early < MAX_REFUSED {
            // RFC 8446 sec. 4.2.10: who refuses early data passes over what it cannot open.
            self.refused_early += 1;
            return Err(Unread::Refused);
        }
        // The number may be another: of a record that was lost in the handshake nobody knows whether it was encrypted.
        let half = self.half(side);
        half.number = half.number.saturating_sub(1);
        half.missing = Some(Missing { most: 3, likely: 2 });
        Err(Unread::Refused)
    }

    /// Behind a loss: the number with which the record opens, and whether keys have changed meanwhile.
    fn search(
        &mut self,
        side: Side,
        header: RecordHeader,
        sealed: &mut [u8],
        shared: &Shared<'_>,
    ) -> Result<Place, Unread> {
        let copy = sealed.to_vec();
        let after = self.after(side, shared);
        let half = self.half(side);
        let missing = half.missing.unwrap_or_default();
        let (State::Early(keys) | State::Handshake(keys) | State::Data(keys, _)) = &half.state
        else {
            half.missing = None;
            half.number += 1;
            return Err(Unread::WithoutSecret);
        };
        let mut trials = half.trials;
        let numbers = missing.numbers(half.number);
        let found = first_that_opens(keys, numbers, &mut trials, header, &copy, sealed)
            .map(|found| (found, None))
            .or_else(|| {
                let state = after?;
                let (State::Handshake(keys) | State::Data(keys, _)) = &state else {
                    return None;
                };
                let since = Missing {
                    likely: 0,
                    ..missing
                };
                let numbers = since.numbers(0);
                let found = first_that_opens(keys, numbers, &mut trials, header, &copy, sealed)?;
                Some((found, Some(state)))
            });
        half.trials = trials;
        let Some(((number, place), state)) = found else {
            // It may not have been a record: the next place is looked for, as long as that is worth it.
            if half.trials.is_over() {
                half.switch_to(State::GivenUp);
                self.counters.given_up += 1;
            } else {
                half.lose_again(header);
            }
            return Err(Unread::Refused);
        };
        if let Some(state) = state {
            half.state = state;
        }
        half.missing = None;
        half.number = number + 1;
        self.counters.found_again += 1;
        Ok(place)
    }

    /// What may come after the keys that a direction is at, of TLS 1.3.
    fn after(&mut self, side: Side, shared: &Shared<'_>) -> Option<State> {
        match &self.half(side).state {
            State::Early(_) => {
                let (keys, _) = self.thirteen(HANDSHAKE, side, shared)?;
                Some(State::Handshake(keys))
            }
            State::Handshake(_) => {
                let (keys, secret) = self.thirteen(TRAFFIC, side, shared)?;
                Some(State::Data(keys, Some(secret)))
            }
            State::Data(_, Some(secret)) => {
                let secret = secret.clone();
                self.updated(&secret)
            }
            State::Data(_, None) | State::Clear | State::Unknown | State::GivenUp => None,
        }
    }
}

/// The first of `numbers` with which the record opens, of which `copy` is what it was; `sealed` is decrypted then.
fn first_that_opens(
    keys: &RecordKeys,
    numbers: impl Iterator<Item = u64>,
    trials: &mut Trials,
    header: RecordHeader,
    copy: &[u8],
    sealed: &mut [u8],
) -> Option<(u64, Place)> {
    numbers.take_while(|_| trials.take()).find_map(|number| {
        sealed.copy_from_slice(copy);
        Some((number, keys.place(number, header, sealed)?))
    })
}

/// Why a record was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    WithoutSecret,
    Refused,
}
