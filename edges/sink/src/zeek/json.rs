//! `zeek-json`: Zeek's log as one JSON object a line, as it writes it with `LogAscii::use_json=T`.
//!
//! Keys are Zeek's (`"id.orig_h"`, flat); what is not there has no key. Times are seconds since 1970 and
//! intervals seconds, as numbers with six decimals; vectors and sets are arrays. Text that is not UTF-8 is
//! written by the rule of `jsonl`, which is Zeek's too.

use linkweir_record::RecordKind;

use super::{Cell, Column, cell, columns, push_uid};
use crate::escape::push_digits;
use crate::format::Encoder;
use crate::jsonl::push_string;
use crate::number::{push_ip, push_seconds6, push_u64};

/// Writes objects; no header, no footer.
#[derive(Debug)]
pub(crate) struct ZeekJsonEncoder {
    columns: Vec<Column>,
}

impl ZeekJsonEncoder {
    pub(crate) fn new<K: RecordKind>(has_internal_networks: bool) -> Self {
        Self {
            columns: columns::<K>(has_internal_networks),
        }
    }
}

impl<K: RecordKind> Encoder<K> for ZeekJsonEncoder {
    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        let mut lead = b'{';
        for column in &self.columns {
            let cell = cell::<K>(view, column);
            if cell == Cell::Unset {
                continue;
            }
            out.extend_from_slice(&[lead, b'"']);
            lead = b',';
            out.extend_from_slice(column.name.as_bytes());
            out.extend_from_slice(b"\":");
            if column.is_list {
                out.push(b'[');
            }
            push_cell(out, cell);
            if column.is_list {
                out.push(b']');
            }
        }
        out.extend_from_slice(if lead == b'{' { b"{}\n" } else { b"}\n" });
    }
}

fn push_cell(out: &mut Vec<u8>, cell: Cell<'_>) {
    let quoted = |out: &mut Vec<u8>, push: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        push(out);
        out.push(b'"');
    };
    match cell {
        Cell::Unset => out.extend_from_slice(b"null"),
        Cell::Number(number) => push_u64(out, number),
        Cell::Time(nanos) => push_seconds6(out, nanos),
        Cell::Bool(is_true) => out.extend_from_slice(if is_true { b"true" } else { b"false" }),
        Cell::Uid(number) => quoted(out, &|out| push_uid(out, number)),
        Cell::Address(address) => quoted(out, &|out| push_ip(out, address)),
        Cell::Text(bytes) => push_string(out, bytes),
        Cell::Word(word) => push_string(out, word.as_bytes()),
        Cell::Bytes(bytes) => quoted(out, &|out| push_digits(out, bytes)),
    }
}
