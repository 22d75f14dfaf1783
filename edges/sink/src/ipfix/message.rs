//! A message of IPFIX (RFC 7011 sec. 3).

/// Bytes of a message header.
const HEADER: usize = 16;

/// Bytes of a set header.
const SET_HEADER: usize = 4;

/// Longest message: fits an Ethernet frame with IPv6, UDP and a tunnel around it, so that it is
/// never cut into fragments (RFC 7011 sec. 10.3.3).
pub(super) const MAX_MESSAGE: usize = 1_400;

/// Longest record that fits a message.
pub(super) const MAX_RECORD: usize = MAX_MESSAGE - HEADER - SET_HEADER;

/// A message being filled.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
    /// The open set: its id and where it begins.
    set: Option<(u16, usize)>,
    /// Flow records in it.
    flows: u32,
    /// Data records in it, those of options included.
    records: u32,
}

impl Message {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() <= HEADER
    }

    pub(super) const fn flows(&self) -> u32 {
        self.flows
    }

    /// Data records in it: what the sequence number counts.
    pub(super) const fn records(&self) -> u32 {
        self.records
    }

    /// Appends a record to the set of this id; `false` where it does not fit: send first.
    ///
    /// Templates are records of sets 2 and 3 here, but no data records.
    pub(super) fn add(&mut self, set: u16, record: &[u8], is_flow: bool) -> bool {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER, 0);
        }
        let is_new = self.set.is_none_or(|(open, _)| open != set);
        let header = if is_new { SET_HEADER } else { 0 };
        if self.bytes.len() + header + record.len() > MAX_MESSAGE {
            return false;
        }
        if is_new {
            self.close_set();
            self.set = Some((set, self.bytes.len()));
            self.bytes.extend_from_slice(&set.to_be_bytes());
            self.bytes.extend_from_slice(&[0, 0]);
        }
        self.bytes.extend_from_slice(record);
        self.records += u32::from(set >= 256);
        self.flows += u32::from(is_flow);
        true
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn put_length(&mut self, at: usize, length: usize) {
        // At most MAX_MESSAGE.
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        self.put(at, &length.to_be_bytes());
    }

    fn close_set(&mut self) {
        if let Some((_, at)) = self.set.take() {
            self.put_length(at + 2, self.bytes.len() - at);
        }
    }

    /// The message with its header: version 10, export time in seconds, the data records sent
    /// before, the observation domain (RFC 7011 sec. 3.1).
    pub(super) fn complete(&mut self, export_s: u32, sequence: u32, domain: u32) -> &[u8] {
        self.close_set();
        self.put(0, &10_u16.to_be_bytes());
        self.put_length(2, self.bytes.len());
        self.put(4, &export_s.to_be_bytes());
        self.put(8, &sequence.to_be_bytes());
        self.put(12, &domain.to_be_bytes());
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.set = None;
        self.flows = 0;
        self.records = 0;
    }
}
