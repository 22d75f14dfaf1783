//! The header fields of messages that records keep: trace, forwarding, and those that a run chooses.

use linkweir_proto::http1::{Fields, unfold};
use linkweir_record::header::{self, HeaderNames, MAX_VALUE, Slot};

/// `traceparent` and `X-Forwarded-For`, of every run.
const ALWAYS: [&[u8]; 2] = [b"traceparent", b"x-forwarded-for"];

/// A field of the message at hand.
#[derive(Debug, Default)]
struct Kept {
    /// Its values, joined (RFC 9110 sec. 5.3).
    value: Vec<u8>,
    /// Lines that it has.
    lines: u32,
    /// Whether a line of it is not known.
    is_unknown: bool,
}

/// Which fields are kept, and what the message at hand has of them; the buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    names: HeaderNames,
    always: [Kept; 2],
    chosen: Vec<Kept>,
    /// Whether anything was taken since the last message.
    has_any: bool,
}

impl Chosen {
    pub(crate) fn new(names: &HeaderNames) -> Self {
        Self {
            chosen: names.iter().map(|_| Kept::default()).collect(),
            names: names.clone(),
            ..Self::default()
        }
    }

    /// Whether the run has chosen none.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a field with this name, in lower case, is kept of every run.
    pub(crate) fn is_always(name: &[u8]) -> bool {
        ALWAYS.contains(&name)
    }

    /// Takes note of a field line; without a value, of one whose value is not known. Whether it is one that is kept.
    pub(crate) fn take(&mut self, name: &[u8], value: Option<&[u8]>) -> bool {
        let is_it = |one: &[u8]| one.eq_ignore_ascii_case(name);
        let always = ALWAYS.iter().position(|one| is_it(one));
        let chosen = self.names.iter().position(|one| is_it(one.as_bytes()));
        let always = always.and_then(|at| self.always.get_mut(at));
        let chosen = chosen.and_then(|at| self.chosen.get_mut(at));
        let is_kept = always.is_some() || chosen.is_some();
        self.has_any |= is_kept;
        for kept in [always, chosen].into_iter().flatten() {
            kept.is_unknown |= value.is_none();
            if kept.lines > 0 && kept.value.len() <= MAX_VALUE {
                // RFC 9113 sec. 8.2.3: HTTP/2 may divide this one.
                let is_cookie = name.eq_ignore_ascii_case(b"cookie");
                let between = if is_cookie { b"; " } else { b", " };
                kept.value.extend_from_slice(between);
            }
            kept.lines = kept.lines.saturating_add(1);
            // One more shows that it was longer.
            let room = (MAX_VALUE + 1).saturating_sub(kept.value.len());
            let value = value.unwrap_or_default();
            kept.value
                .extend_from_slice(value.get(..room).unwrap_or(value));
        }
        is_kept
    }

    /// Appends what was taken since the last message, of a request or of a response, as records have it, and is empty
    /// again.
    pub(crate) fn finish(&mut self, is_request: bool, into: &mut Vec<u8>) {
        if !std::mem::take(&mut self.has_any) {
            return;
        }
        let mut slots = [Slot::Trace, Slot::Forwarded]
            .into_iter()
            .zip(&mut self.always)
            .map(|(slot, kept)| (slot, kept, is_request))
            .chain(
                self.chosen
                    .iter_mut()
                    .enumerate()
                    .map(|(at, kept)| (Slot::Chosen(at), kept, true)),
            );
        for (slot, kept, is_kept) in &mut slots {
            if is_kept && !kept.is_unknown && kept.lines > 0 {
                match slot {
                    Slot::Trace => {
                        if let Some(trace) = header::trace_of(&kept.value) {
                            header::push(into, slot, &trace);
                        }
                    }
                    _ => header::push(into, slot, &kept.value),
                }
            }
            kept.value.clear();
            (kept.lines, kept.is_unknown) = (0, false);
        }
    }

    /// Forgets what was taken since the last message.
    pub(crate) fn forget(&mut self) {
        if self.has_any {
            self.finish(true, &mut Vec::new());
        }
    }

    /// Appends what the field lines of HTTP/1.x have.
    #[cold]
    pub(crate) fn read(&mut self, section: &[u8], is_request: bool, into: &mut Vec<u8>) {
        let mut unfolded = Vec::new();
        for field in Fields::of_section(section) {
            if field.is_folded {
                unfolded.clear();
                unfold(field.value, &mut unfolded);
                self.take(field.name, Some(&unfolded));
            } else {
                self.take(field.name, Some(field.value));
            }
        }
        self.finish(is_request, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen() -> Chosen {
        let names = ["X-Id", "server"].map(str::to_owned);
        Chosen::new(&HeaderNames::new(&names).unwrap())
    }

    #[test]
    fn lines_of_one_name_are_one_value() {
        let mut chosen = chosen();
        let section = b"x-ID: 1\r\nX-Forwarded-For: 192.0.2.1\r\nX-Id:2\r\nother: 3\r\nX-Forwarded-For: ::1,\r\n unknown\r\n\r\nx-id: 9";
        let mut values = Vec::new();
        chosen.read(section, true, &mut values);
        assert_eq!(header::find(&values, Slot::Chosen(0)), b"1, 2");
        assert_eq!(
            header::find(&values, Slot::Forwarded),
            b"192.0.2.1, ::1, unknown"
        );
        assert!(header::find(&values, Slot::Chosen(1)).is_empty());
        values.clear();
        chosen.read(section, false, &mut values);
        assert!(header::find(&values, Slot::Forwarded).is_empty());
        assert_eq!(header::find(&values, Slot::Chosen(0)), b"1, 2");
        values.clear();
        chosen.read(b"Date: now\r\n\r\n", true, &mut values);
        assert!(values.is_empty());
    }

    #[test]
    fn what_is_not_known_is_not_written() {
        let mut chosen = chosen();
        let mut values = Vec::new();
        chosen.take(b"x-id", Some(b"1"));
        chosen.take(b"x-id", None);
        chosen.take(b"server", Some(&[b'a'; 3000]));
        chosen.finish(false, &mut values);
        assert!(header::find(&values, Slot::Chosen(0)).is_empty());
        assert_eq!(header::find(&values, Slot::Chosen(1)), [b'a'; MAX_VALUE]);
    }

    #[test]
    fn two_traces_are_none() {
        let trace = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (lines, len) in [(1, 48), (2, 0)] {
            let mut chosen = chosen();
            let mut values = Vec::new();
            for _ in 0..lines {
                chosen.take(b"Traceparent", Some(trace));
            }
            chosen.finish(true, &mut values);
            assert_eq!(header::find(&values, Slot::Trace).len(), len);
        }
    }
}
