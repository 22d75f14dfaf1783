//! Who takes part in a conversation.

use linkweir_proto::msn::Command;

use crate::inspect::Side;
use crate::inspect::gather::bounded;

/// Most participants that are remembered.
const MAX_OTHERS: usize = 64;

/// The participants, as far as lines told.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The handle of the connection's client.
    own: Vec<u8>,
    others: Vec<Vec<u8>>,
}

/// A handle without the identifier of the place where its owner sits (MSNP16).
pub(super) fn handle(argument: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', argument).unwrap_or(argument.len());
    bounded(argument.get(..end).unwrap_or(argument))
}

impl Session {
    /// Learns from a line.
    pub(super) fn on_command(&mut self, sender: Side, command: &Command<'_>) {
        let argument = |index| command.argument(index).unwrap_or_default();
        match (sender, command.verb()) {
            // `USR TrID handle cookie` of a conversation, `USR TrID TWN I handle` of a login.
            (Side::Client, b"USR") => {
                let at = if argument(2) == b"I" { 3 } else { 1 };
                self.set_own(argument(at));
            }
            (Side::Client, b"ANS") => self.set_own(argument(1)),
            (Side::Server, b"USR") if argument(1) == b"OK" => self.set_own(argument(2)),
            (Side::Client, b"CAL") => self.add(argument(1)),
            (Side::Server, b"JOI") => self.add(argument(0)),
            // `IRO TrID number total handle nick`: who was there already.
            (Side::Server, b"IRO") => self.add(argument(3)),
            (Side::Server, b"BYE") => self.remove(argument(0)),
            _ => {}
        }
    }

    /// The handle of the client; empty where it is not known.
    pub(super) fn own(&self) -> &[u8] {
        &self.own
    }

    /// The client said who it is, if nobody knew.
    pub(super) fn learn_own(&mut self, argument: &[u8]) {
        if self.own.is_empty() {
            self.set_own(argument);
        }
    }

    fn set_own(&mut self, argument: &[u8]) {
        let handle = handle(argument);
        // Later steps of a login have other things there.
        if handle.contains(&b'@') {
            self.own = handle.to_vec();
            self.remove(argument);
        }
    }

    /// Somebody takes part.
    pub(super) fn add(&mut self, argument: &[u8]) {
        let handle = handle(argument);
        let is_known = self.everybody().any(|who| who.eq_ignore_ascii_case(handle));
        if !is_known && handle.contains(&b'@') && self.others.len() < MAX_OTHERS {
            self.others.push(handle.to_vec());
        }
    }

    fn remove(&mut self, argument: &[u8]) {
        let handle = handle(argument);
        self.others.retain(|who| !who.eq_ignore_ascii_case(handle));
    }

    fn everybody(&self) -> impl Iterator<Item = &[u8]> {
        let own = Some(self.own.as_slice()).filter(|own| !own.is_empty());
        own.into_iter().chain(self.others.iter().map(Vec::as_slice))
    }

    /// Everybody else, with commas between them.
    pub(super) fn others_than(&self, from: &[u8]) -> Vec<u8> {
        let others: Vec<&[u8]> = self
            .everybody()
            .filter(|who| !who.eq_ignore_ascii_case(from))
            .collect();
        others.join(&b", "[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(session: &mut Session, sender: Side, line: &str) {
        let command = Command::parse(line.as_bytes()).expect("a command");
        session.on_command(sender, &command);
    }

    #[test]
    fn lines_tell_who_takes_part() {
        let mut session = Session::default();
        learn(
            &mut session,
            Side::Client,
            "USR 1 a@x.test 17262740.1050826919",
        );
        learn(&mut session, Side::Server, "USR 1 OK a@x.test Anna");
        learn(&mut session, Side::Client, "CAL 2 b@x.test");
        learn(&mut session, Side::Server, "JOI B@x.test Bob");
        learn(&mut session, Side::Server, "JOI c@x.test;{1-2-3} Cid 5");
        assert_eq!(session.own(), b"a@x.test");
        assert_eq!(session.others_than(b"a@x.test"), b"b@x.test, c@x.test");
        assert_eq!(session.others_than(b"b@x.test"), b"a@x.test, c@x.test");
        learn(&mut session, Side::Server, "BYE b@x.test");
        assert_eq!(session.others_than(b"a@x.test"), b"c@x.test");
    }

    #[test]
    fn who_answers_hears_who_is_there() {
        let mut session = Session::default();
        learn(
            &mut session,
            Side::Client,
            "ANS 89 j@x.test 1115371039.15845 17069658",
        );
        learn(&mut session, Side::Server, "IRO 89 1 1 c@x.test choupi");
        assert_eq!(session.own(), b"j@x.test");
        assert_eq!(session.others_than(b"j@x.test"), b"c@x.test");
    }

    #[test]
    fn a_login_says_who_one_is() {
        let mut session = Session::default();
        learn(&mut session, Side::Client, "USR 3 TWN I a@x.test");
        learn(&mut session, Side::Client, "USR 4 TWN S t=token&p=");
        assert_eq!(session.own(), b"a@x.test");
    }

    #[test]
    fn participants_are_bounded() {
        let mut session = Session::default();
        for number in 0..1000 {
            learn(
                &mut session,
                Side::Server,
                &format!("JOI u{number}@x.test U"),
            );
        }
        assert_eq!(session.others.len(), MAX_OTHERS);
    }
}
