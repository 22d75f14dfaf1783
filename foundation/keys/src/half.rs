//! One direction: its records from bytes in order, and the keys it is at.

use linkweir_proto::tls::{ContentType, RecordHeader};

use crate::log::Secret;
use crate::messages::Messages;
use crate::record::{RecordKeys, TAG};

/// A record has at least a header, the type and the tag.
const SHORTEST: u64 = (RecordHeader::LEN + 1 + TAG) as u64;
/// What a long record has at least. Shorter ones are read whole: they cost little, and most header blocks are in them.
const LONG: u16 = 4096;
/// Times that are kept of one record; segments behind share the last.
const MAX_TIMES: usize = 64;
/// Attempts to find the number of a record again, of one direction in its life.
const MAX_TRIALS: u32 = 1 << 14;
/// Attempts for one record.
const MAX_TRIALS_ONCE: usize = 4096;

/// When the bytes of a record were seen.
#[derive(Debug, Default)]
pub(crate) struct Times {
    first_ns: u64,
    /// Later segments: where each begins in the record, and its time.
    later: Vec<(usize, u64)>,
}

impl Times {
    /// Bytes from `at` on were seen at `ts_ns`.
    fn note(&mut self, at: usize, ts_ns: u64) {
        if at == 0 {
            self.first_ns = ts_ns;
            self.later.clear();
        } else if self.later.len() < MAX_TIMES {
            let last = self.later.last().map_or(self.first_ns, |(_, ns)| *ns);
            if last != ts_ns {
                self.later.push((at, ts_ns));
            }
        }
    }

    /// Gives the bytes of a record from `at` on, each piece with its time.
    pub(crate) fn pieces(&self, at: usize, bytes: &[u8], mut piece: impl FnMut(&[u8], u64)) {
        let (mut rest, mut here, mut ns) = (bytes, at, self.first_ns);
        for (next, next_ns) in &self.later {
            if *next > here {
                let (before, behind) = rest.split_at((next - here).min(rest.len()));
                if !before.is_empty() {
                    piece(before, ns);
                }
                (rest, here) = (behind, *next);
            }
            ns = *next_ns;
        }
        if !rest.is_empty() {
            piece(rest, ns);
        }
    }
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A header, of which so many bytes are there.
    Header(usize),
    /// The rest of a record.
    Body(RecordHeader),
    /// The rest of a record that is read as it comes, from this byte on.
    Long(RecordHeader, usize),
    /// So many bytes of a record that is not read.
    Passed(u32),
    /// Where records begin is not known.
    Lost,
}

/// What a direction is encrypted with.
#[derive(Debug)]
pub(crate) enum State {
    /// Not at all.
    Clear,
    /// TLS 1.3: what the client sent before it had an answer.
    Early(RecordKeys),
    /// TLS 1.3: the handshake.
    Handshake(RecordKeys),
    /// Data; of TLS 1.3 with the secret of which the next keys come.
    Data(RecordKeys, Option<Secret>),
    /// With a secret that is not in the log, or not yet.
    Unknown,
    /// The number of the record is not found any more.
    GivenUp,
}

/// What was lost before the record that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Missing {
    /// Records at most.
    pub(crate) most: u64,
    /// Records, as it seems by the length of the others.
    pub(crate) likely: u64,
}

/// Attempts to find the number of a record again that a direction has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trials(u32);

impl Trials {
    /// Takes one; `false` where none is left.
    pub(crate) const fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }

    /// Whether none is left.
    pub(crate) const fn is_over(self) -> bool {
        self.0 == 0
    }
}

impl Missing {
    /// The numbers that the record behind may have, which without a loss is `next`; the likely ones first.
    pub(crate) fn numbers(self, next: u64) -> impl Iterator<Item = u64> {
        let most = self.most;
        let likely = self.likely.min(most);
        (0..=most)
            .flat_map(move |step| {
                let below = likely.checked_sub(step).filter(|_| step > 0);
                [likely.checked_add(step), below]
            })
            .flatten()
            .filter(move |lost| *lost <= most)
            .take(MAX_TRIALS_ONCE)
            .map(move |lost| next.saturating_add(lost))
    }
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) framing: Framing,
    header: [u8; RecordHeader::LEN],
    /// A record that is not complete.
    pub(crate) sealed: Vec<u8>,
    pub(crate) times: Times,
    pub(crate) state: State,
    /// The number of the record that is due.
    pub(crate) number: u64,
    pub(crate) missing: Option<Missing>,
    pub(crate) messages: Messages,
    /// Records and their bytes so far.
    records: u64,
    bytes: u64,
    pub(crate) trials: Trials,
    /// Whether records have been padded: nobody knows where the data of one ends before its end is there.
    pub(crate) is_padded: bool,
    /// How far the log was when it had no secret for this direction.
    pub(crate) looked_at: u64,
}

impl Half {
    pub(crate) fn new() -> Self {
        Self {
            framing: Framing::Header(0),
            header: [0; RecordHeader::LEN],
            sealed: Vec::new(),
            times: Times::default(),
            state: State::Clear,
            number: 0,
            missing: None,
            messages: Messages::default(),
            records: 0,
            bytes: 0,
            trials: Trials(MAX_TRIALS),
            is_padded: false,
            looked_at: 0,
        }
    }

    /// Goes on with these keys, from their first record on.
    pub(crate) fn switch_to(&mut self, state: State) {
        self.state = state;
        self.number = 0;
        self.missing = None;
    }

    /// Notes the header of a record, from the next bytes; how many of them it took.
    pub(crate) fn read_header(&mut self, had: usize, rest: &[u8], ts_ns: u64) -> usize {
        let due = self.header.get_mut(had..).unwrap_or_default();
        let taken = due.len().min(rest.len());
        for (to, from) in due.iter_mut().zip(rest) {
            *to = *from;
        }
        self.framing = if had + taken < RecordHeader::LEN {
            Framing::Header(had + taken)
        } else if let Some(header) = RecordHeader::parse(self.header) {
            self.records += 1;
            self.bytes += RecordHeader::LEN as u64 + u64::from(header.len);
            Framing::Body(header)
        } else {
            Framing::Lost
        };
        self.times.note(0, ts_ns);
        taken
    }

    /// Notes that the bytes of the record from `at` on were seen now.
    pub(crate) fn seen(&mut self, at: usize, ts_ns: u64) {
        self.times.note(at, ts_ns);
    }

    /// So many bytes are missing.
    pub(crate) fn lose(&mut self, bytes: u32) {
        let bytes = u64::from(bytes);
        match self.framing {
            Framing::Header(had) => self.lose_place(bytes + had as u64),
            Framing::Body(header) => {
                let left = self.spoil(header, self.sealed.len());
                self.lose_of_record(bytes, left);
            }
            Framing::Long(header, at) => {
                let left = self.spoil(header, at);
                self.lose_of_record(bytes, left);
            }
            Framing::Passed(left) => self.lose_of_record(bytes, u64::from(left)),
            Framing::Lost => self.lose_place(bytes),
        }
    }

    /// The record, of which so many bytes are there, will not be read: the next has the next number. How many are left.
    pub(crate) fn spoil(&mut self, header: RecordHeader, have: usize) -> u64 {
        let left = usize::from(header.len).saturating_sub(have);
        self.framing = Framing::Passed(u32::try_from(left).unwrap_or_default());
        self.sealed = Vec::new();
        self.messages.forget();
        self.number += 1;
        left as u64
    }

    /// The keys, if a record of this length can be read as it comes; the first with them shows that they fit.
    pub(crate) fn peeks(&self, header: RecordHeader) -> Option<&RecordKeys> {
        match &self.state {
            State::Data(keys, _) => {
                let can = keys.can_peek()
                    && header.content == ContentType::ApplicationData
                    && header.len >= LONG
                    && self.missing.is_none()
                    && self.number > 0
                    && !self.is_padded;
                can.then_some(keys)
            }
            _ => None,
        }
    }

    fn lose_of_record(&mut self, bytes: u64, left: u64) {
        match left.checked_sub(bytes) {
            Some(left) => self.framing = Framing::Passed(u32::try_from(left).unwrap_or_default()),
            None => self.lose_place(bytes - left),
        }
    }

    fn lose_place(&mut self, bytes: u64) {
        self.framing = Framing::Lost;
        self.messages.forget();
        let mean = self.bytes.checked_div(self.records).unwrap_or(0);
        let missing = self.missing.get_or_insert_default();
        // The last of them may be cut.
        missing.most = missing.most.saturating_add(bytes / SHORTEST + 1);
        missing.likely += bytes / mean.max(SHORTEST);
    }

    /// What was taken for a record behind a loss is none that opens: it counts as lost too.
    pub(crate) fn lose_again(&mut self, header: RecordHeader) {
        self.lose_place(RecordHeader::LEN as u64 + u64::from(header.len));
    }

    /// Bytes that are kept.
    pub(crate) const fn held(&self) -> usize {
        self.sealed.capacity() + self.messages.held()
    }
}

/// Where a record may begin: a header of data, which by chance stands at one place of a hundred million, or any header
/// whose record ends in another one or with the bytes. A weak sign: the tag of the record is the proof.
pub(crate) fn find_header(bytes: &[u8]) -> Option<usize> {
    let header_at = |at: usize| {
        let header = RecordHeader::parse(*bytes.get(at..)?.first_chunk()?)?;
        (header.len > 0 && header.version >= 0x0301).then_some(header)
    };
    (0..bytes.len()).find(|at| {
        let Some(header) = header_at(*at) else {
            return false;
        };
        let is_data = header.content == ContentType::ApplicationData
            && header.version == 0x0303
            && usize::from(header.len) > TAG;
        let end = at + RecordHeader::LEN + usize::from(header.len);
        is_data || end == bytes.len() || header_at(end).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_of_a_record_has_its_time() {
        let mut times = Times::default();
        for (at, ns) in [(0, 10), (3, 10), (5, 20), (8, 30)] {
            times.note(at, ns);
        }
        let pieces = |at, bytes: &[u8]| {
            let mut all = Vec::new();
            times.pieces(at, bytes, |piece, ns| all.push((piece.to_vec(), ns)));
            all
        };
        let expected = vec![
            (b"abcde".to_vec(), 10),
            (b"fgh".to_vec(), 20),
            (b"i".to_vec(), 30),
        ];
        assert_eq!(pieces(0, b"abcdefghi"), expected);
        // Behind a nonce of six bytes.
        assert_eq!(
            pieces(6, b"ghi"),
            [(b"gh".to_vec(), 20), (b"i".to_vec(), 30)]
        );
        assert_eq!(pieces(8, b"i"), [(b"i".to_vec(), 30)]);
        assert_eq!(pieces(0, b"abc"), [(b"abc".to_vec(), 10)]);
    }

    #[test]
    fn records_begin_where_one_leads_to_another() {
        let alert = [21, 3, 3, 0, 4, 1, 2, 3, 4];
        let two = [[9, 9].as_slice(), &alert, &alert].concat();
        assert_eq!(find_header(&two), Some(2));
        assert_eq!(find_header(&alert), Some(0));
        assert_eq!(find_header(&alert[..7]), None);
        // Data goes beyond the segment.
        let data = [9, 9, 23, 3, 3, 0x40, 0, 1, 2];
        assert_eq!(find_header(&data), Some(2));
        let short = [9, 9, 23, 3, 3, 0, 16, 1, 2];
        assert_eq!(find_header(&short), None);
        assert_eq!(find_header(&[]), None);
    }
}
