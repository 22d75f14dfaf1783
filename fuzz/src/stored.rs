//! Lines of records that were stored.

use linkweir_record::stored::{Lines, members};
use linkweir_record::{
    Filter, FlowKind, HttpKind, RecordBatch as _, RecordKind, Stored, StoredBatch,
};

/// Reads lines as records of two kinds, and writes what was read into another batch.
pub(crate) fn lines(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        let _names = members(line);
        read::<HttpKind>(line, "status_code > 0 or host ~ .");
        read::<FlowKind>(line, "first > 2026-11-01T00:00:00Z");
    }
}

fn read<K: RecordKind>(line: &[u8], filter: &str) {
    let mut batch = StoredBatch::<K>::default();
    let read = Lines::<K>::new(|_| true).read(line, &mut batch);
    assert_eq!(batch.len(), usize::from(read.is_ok()));
    let filter = Filter::<Stored<K>>::read(filter).unwrap();
    let mut other = StoredBatch::<K>::default();
    for view in batch.views() {
        let _matched = filter.matches(&view);
        other.push_view(&view);
    }
    for (one, two) in batch.views().zip(other.views()) {
        assert!((0..K::fields().len()).all(|column| one.value(column) == two.value(column)));
        assert_eq!(Stored::<K>::shape(&one), Stored::<K>::shape(&two));
    }
}
