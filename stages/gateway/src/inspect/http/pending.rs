//! Requests that wait for their responses.

use std::collections::VecDeque;

/// Requests of one side that may wait at a time.
const MAX_WAITING: usize = 128;

/// Longest name that is kept, bytes. Of a longer one its end is, where the extension is.
const MAX_NAME: usize = 512;

/// Longest host, identifier or user that is kept, bytes: what a DNS name may have.
const MAX_WORD: usize = 255;

/// What the method of a request means for its response (RFC 9112 sec. 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::inspect) enum Kind {
    /// The response has the body that its head says.
    #[default]
    Ordinary,
    /// `HEAD`: it has none.
    Head,
    /// `CONNECT`: after a 2xx there is no more HTTP.
    Connect,
    /// It asks to go on in another protocol: after a 101 there is no more HTTP (RFC 9110 sec. 7.8).
    Upgrade,
}

/// What is asked for, as texts; absent ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::inspect) struct Asked<'a> {
    /// Name of the file.
    pub name: &'a [u8],
    /// Host that is asked.
    pub host: &'a [u8],
    /// Identifier of the file.
    pub identifier: &'a [u8],
    /// Who asks.
    pub user: &'a [u8],
}

/// A request that waits: its texts in one piece.
#[derive(Debug, Default)]
pub(in crate::inspect) struct Waiting {
    pub(in crate::inspect) kind: Kind,
    text: Box<[u8]>,
    /// Where each of the first three texts ends.
    ends: [u16; 3],
}

impl Waiting {
    pub(in crate::inspect) fn new(kind: Kind, asked: &Asked<'_>) -> Self {
        let word = |text: &'_ [u8]| text.len().min(MAX_WORD);
        let name = last(asked.name, MAX_NAME);
        let (host, identifier, user) = (
            asked.host.get(..word(asked.host)).unwrap_or_default(),
            asked
                .identifier
                .get(..word(asked.identifier))
                .unwrap_or_default(),
            asked.user.get(..word(asked.user)).unwrap_or_default(),
        );
        let mut at = 0;
        let ends = [name, host, identifier].map(|text| {
            at += text.len();
            u16::try_from(at).unwrap_or(u16::MAX)
        });
        Self {
            kind,
            text: [name, host, identifier, user].concat().into_boxed_slice(),
            ends,
        }
    }

    /// What was asked for.
    pub(in crate::inspect) fn asked(&self) -> Asked<'_> {
        let [name, host, identifier] = self.ends.map(usize::from);
        let part = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        Asked {
            name: part(0, name),
            host: part(name, host),
            identifier: part(host, identifier),
            user: part(identifier, self.text.len()),
        }
    }
}

fn last(text: &[u8], bound: usize) -> &[u8] {
    text.get(text.len().saturating_sub(bound)..)
        .unwrap_or_default()
}

/// The requests of one side, in their order.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<Waiting>);

/// More requests wait than are kept: the next response cannot be told to be whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

impl Pending {
    /// Adds a request.
    pub(super) fn push(&mut self, kind: Kind, asked: &Asked<'_>) -> Result<(), TooMany> {
        if self.0.len() >= MAX_WAITING {
            return Err(TooMany);
        }
        self.0.push_back(Waiting::new(kind, asked));
        Ok(())
    }

    /// Takes the request that the next final response is for.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.0.pop_front()
    }

    /// Whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let texts: usize = self.0.iter().map(|waiting| waiting.text.len()).sum();
        texts + self.0.capacity() * size_of::<Waiting>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_in_order_and_within_bounds() {
        let mut pending = Pending::default();
        let name = [&[b'a'; 600][..], b".exe"].concat();
        let asked = Asked {
            name: &name,
            host: &[b'h'; 300],
            identifier: b"urn",
            user: b"",
        };
        assert_eq!(pending.push(Kind::Head, &asked), Ok(()));
        assert_eq!(pending.push(Kind::Ordinary, &Asked::default()), Ok(()));
        let first = pending.pop().expect("a request");
        assert_eq!(first.kind, Kind::Head);
        let kept = first.asked();
        assert_eq!((kept.name.len(), kept.host.len()), (MAX_NAME, MAX_WORD));
        assert!(kept.name.ends_with(b".exe"));
        assert_eq!((kept.identifier, kept.user), (&b"urn"[..], &b""[..]));
        assert_eq!(pending.pop().map(|next| next.kind), Some(Kind::Ordinary));
        assert!(pending.pop().is_none());
        for _ in 0..MAX_WAITING {
            assert_eq!(pending.push(Kind::Ordinary, &asked), Ok(()));
        }
        assert_eq!(pending.push(Kind::Ordinary, &asked), Err(TooMany));
        assert!(pending.held_bytes() < 256 * 1024);
    }
}
