//! `text`: the paper's line.
//!
//! The columns of [`RecordKind::text_line`] joined by `|`, one record a line, no header. Times and
//! spans are seconds with nine decimals; what is not there is empty. In text from the network `|`,
//! `\` and bytes outside printable ASCII are `\xHH` (lower-case digits), so that a line always has
//! the same number of fields and every byte can be read back.

use linkweir_record::{RecordKind, Value};

use crate::escape::{is_unprintable, push_digits, push_hex_escaped};
use crate::format::{Encoder, Shapes, own_column};
use crate::number::{Moments, push_ip, push_seconds9, push_u64};

/// Writes the columns of the text line.
#[derive(Debug)]
pub(crate) struct TextEncoder {
    columns: Shapes<usize>,
    moments: Moments,
}

impl TextEncoder {
    /// Lines of these columns.
    pub(crate) fn new<K: RecordKind>(chosen: &[usize]) -> Self {
        let columns = |shape: usize| {
            let columns = chosen.iter();
            columns.map(|at| own_column::<K>(shape, *at)).collect()
        };
        Self {
            columns: Shapes::new::<K>(columns),
            moments: Moments::new(),
        }
    }
}

/// The columns of the line of the kind.
pub(crate) fn own_line<K: RecordKind>() -> Vec<usize> {
    let names = K::text_line().iter();
    names.filter_map(|name| K::column(name)).collect()
}

/// Longest line that is checked as a whole: no lane of [`is_clean_line`] can overflow.
const WHOLE_LINE: usize = LANES * 255;

/// Bytes checked in one step.
const LANES: usize = 16;

#[inline]
const fn is_special(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'|') | (byte == b'\\')
}

/// Whether `line` holds exactly `separators` bytes `|`, no `\` and nothing outside printable ASCII:
/// then none of its fields needs an escape.
///
/// One pass over the line in steps of [`LANES`] bytes: cheaper than a check of each short field.
#[inline]
fn is_clean_line(line: &[u8], separators: usize) -> bool {
    let (steps, rest) = line.as_chunks::<LANES>();
    // Padding that is neither special nor a separator.
    let mut last = [b' '; LANES];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let (mut bars, mut bad) = ([0_u8; LANES], [0_u8; LANES]);
    for step in steps {
        check_lanes(step, &mut bars, &mut bad);
    }
    check_lanes(&last, &mut bars, &mut bad);
    let bars: usize = bars.iter().map(|n| usize::from(*n)).sum();
    bad == [0; LANES] && bars == separators
}

#[inline]
fn check_lanes(step: &[u8; LANES], bars: &mut [u8; LANES], bad: &mut [u8; LANES]) {
    for ((byte, bars), bad) in step.iter().zip(bars).zip(bad) {
        *bars += u8::from(*byte == b'|');
        *bad |= u8::from(is_unprintable(*byte) | (*byte == b'\\'));
    }
}

impl TextEncoder {
    #[inline]
    fn push_line<K: RecordKind>(
        &mut self,
        view: &K::View<'_>,
        out: &mut Vec<u8>,
        push_text: impl Fn(&mut Vec<u8>, &[u8]),
    ) {
        for &column in self.columns.of::<K>(view) {
            match K::value(view, column) {
                Value::Null => {}
                Value::U64(n) => push_u64(out, n),
                Value::TimeNs(n) => self.moments.push(out, n),
                Value::SpanNs(n) | Value::Millis(n) => push_seconds9(out, n),
                Value::Ip(address) => push_ip(out, address),
                Value::Port(port) => push_u64(out, u64::from(port)),
                Value::Text(bytes) => push_text(out, bytes),
                Value::Short(short) => push_text(out, short.as_bytes()),
                Value::Word(word) => out.extend_from_slice(word.as_bytes()),
                Value::Bytes(bytes) => push_digits(out, bytes),
            }
            out.push(b'|');
        }
        out.pop();
    }

    #[cold]
    #[inline(never)]
    fn push_escaped_line<K: RecordKind>(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        self.push_line::<K>(view, out, |out, bytes| {
            push_hex_escaped(out, bytes, is_special);
        });
    }
}

impl<K: RecordKind> Encoder<K> for TextEncoder {
    #[inline]
    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        self.push_line::<K>(view, out, |out, bytes| out.extend_from_slice(bytes));
        let line = out.get(start..).unwrap_or_default();
        let columns = self.columns.of::<K>(view).len();
        if line.len() >= WHOLE_LINE || !is_clean_line(line, columns.saturating_sub(1)) {
            out.truncate(start);
            self.push_escaped_line::<K>(view, out);
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::{HttpBatch, HttpKind, HttpRow, RecordBatch, Text};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_have_all_fields_and_come_back(
            uri in prop::collection::vec(any::<u8>(), 0..60),
            host in "[a-z|\\\\]{0,20}",
            long in prop_oneof![9 => Just(0_usize), 1 => 4000..9000_usize],
        ) {
            let mut agent = b"agent ".repeat(long / 6);
            agent.extend_from_slice(host.as_bytes());
            let mut batch = HttpBatch::default();
            let text = Text { uri: &uri, host: host.as_bytes(), user_agent: &agent, ..Text::default() };
            batch.push(HttpRow::default(), &text);
            let mut encoder = TextEncoder::new::<HttpKind>(&own_line::<HttpKind>());
            let mut out = Vec::new();
            for view in batch.views() {
                Encoder::<HttpKind>::record(&mut encoder, &view, &mut out);
            }
            let line = String::from_utf8(out).unwrap();
            let fields: Vec<&str> = line.strip_suffix('\n').unwrap().split('|').collect();
            prop_assert_eq!(fields.len(), HttpKind::text_line().len());
            let back = |field: &str| {
                let mut parts = field.split("\\x");
                let mut bytes = parts.next().unwrap().as_bytes().to_vec();
                for part in parts {
                    let (digits, rest) = part.split_at(2);
                    bytes.push(u8::from_str_radix(digits, 16).unwrap());
                    bytes.extend_from_slice(rest.as_bytes());
                }
                bytes
            };
            prop_assert_eq!(back(fields[10]), agent);
            prop_assert_eq!(back(fields[11]), host.as_bytes());
            prop_assert_eq!(back(fields[12]), uri);
        }
    }
}
