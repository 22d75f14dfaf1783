//! What the fields of a head say of the file behind it, in one walk.

use std::borrow::Cow;

use linkweir_proto::http1::{
    Field, Fields, Framing, OtherCoding, disposition_names, parameter_value, range_total,
};

use crate::inspect::Coding;

/// The fields that matter here. Absent texts are empty.
#[derive(Debug, Default)]
pub(in crate::inspect) struct Facts<'a> {
    /// Length of the body.
    pub framing: Framing,
    content: Coding,
    /// The first and the last one.
    dispositions: [&'a [u8]; 2],
    content_type: &'a [u8],
    range: &'a [u8],
    /// `X-Kazaa-Username`.
    pub user: &'a [u8],
    /// Title in the tags of FastTrack.
    title: &'a [u8],
    /// Hash in the tags of FastTrack, or the name by hash of Gnutella.
    pub identifier: &'a [u8],
    /// Whether another protocol is asked for or agreed on.
    pub is_upgrade: bool,
}

/// Numbers of the tags in `X-KazaaTag: n=value`.
const TAG_HASH: &[u8] = b"3";
const TAG_TITLE: &[u8] = b"4";

impl<'a> Facts<'a> {
    /// Reads a whole head.
    pub(in crate::inspect) fn of(head: &'a [u8]) -> Self {
        let mut facts = Self::default();
        for field in Fields::of_head(head) {
            facts.add(&field);
        }
        facts
    }

    fn add(&mut self, field: &Field<'a>) {
        let value = field.value;
        // Most names differ in length already.
        match field.name.len() {
            7 if field.is(b"upgrade") => self.is_upgrade = true,
            10 if field.is(b"x-kazaatag") => self.tag(value),
            11 if field.is(b"content-urn") => self.identifier = value,
            12 if field.is(b"content-type") => self.content_type = value,
            13 if field.is(b"content-range") => {
                // Of two that differ none is sure.
                let is_other = !self.range.is_empty() && self.range != value;
                self.range = if is_other { b"?" } else { value };
            }
            16 if field.is(b"content-encoding") => {
                self.content = self.content.then(Coding::of(value));
            }
            16 if field.is(b"x-kazaa-username") => self.user = value,
            19 if field.is(b"content-disposition") => {
                let [first, last] = &mut self.dispositions;
                if first.is_empty() {
                    *first = value;
                }
                *last = value;
            }
            22 if field.is(b"x-gnutella-content-urn") => self.identifier = value,
            14 | 17 => {
                self.framing.add(field);
            }
            _ => {}
        }
    }

    /// `number=value`. A hash in base64 has another `=` in front.
    fn tag(&mut self, value: &'a [u8]) {
        let mut parts = value.splitn(2, |&byte| byte == b'=');
        let (Some(number), Some(text)) = (parts.next(), parts.next()) else {
            return;
        };
        match number.trim_ascii() {
            TAG_TITLE if self.title.is_empty() => self.title = text.trim_ascii(),
            TAG_HASH if self.identifier.is_empty() => {
                self.identifier = text.strip_prefix(b"=").unwrap_or(text).trim_ascii();
            }
            _ => {}
        }
    }

    /// The names that the fields may give the file; the one that most clients take first.
    pub(in crate::inspect) fn names(&self) -> Vec<Cow<'a, [u8]>> {
        let [first, last] = self.dispositions;
        let mut names = disposition_names(first);
        if last != first {
            names.extend(disposition_names(last));
        }
        if names.is_empty() && !self.title.is_empty() {
            names.push(Cow::Borrowed(self.title));
        }
        names
    }

    /// How the body is coded once its chunks are joined.
    pub(in crate::inspect) const fn coding(&self) -> Coding {
        let transfer = match self.framing.other_coding() {
            OtherCoding::None => Coding::Identity,
            OtherCoding::Gzip => Coding::Gzip,
            OtherCoding::Deflate => Coding::Deflate,
        };
        self.content.then(transfer)
    }

    /// The length of the whole of which the body is a part, where it says so.
    pub(in crate::inspect) fn range_total(&self) -> Option<u64> {
        range_total(self.range)
    }

    /// The delimiter of the parts of a form; empty where the body is none.
    pub(in crate::inspect) fn form_boundary(&self) -> Cow<'a, [u8]> {
        const FORM: &[u8] = b"multipart/form-data";
        let is_form = self
            .content_type
            .get(..FORM.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(FORM));
        if is_form {
            parameter_value(self.content_type, b"boundary")
        } else {
            Cow::Borrowed(&[])
        }
    }
}
