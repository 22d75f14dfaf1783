//! The filter expression of a run, compiled per link type when that first occurs.

use std::collections::{HashMap, HashSet};

use linkweir_engine::{Batch, FrameRef};
use linkweir_sys::{BpfError, BpfFilter};
use linkweir_wire::LinkType;

/// An expression and its programs.
#[derive(Debug)]
pub(crate) struct Filter {
    expression: String,
    snaplen: u32,
    programs: HashMap<LinkType, Result<BpfFilter, BpfError>>,
}

/// A link type for which the expression has no meaning.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
}

/// Link types tried in turn, so that an expression is refused early only where it is not an expression
/// at all: Ethernet, raw IP, 802.11 with and without radiotap, Linux cooked.
const COMMON: [LinkType; 5] = [
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::IEEE802_11,
    LinkType::IEEE802_11_RADIOTAP,
    LinkType::LINUX_SLL,
];

impl Filter {
    /// Checks the expression before anything is read.
    pub(crate) fn new(expression: String, snaplen: u32) -> Result<Self, BpfError> {
        let mut first_error = None;
        for link in COMMON {
            match BpfFilter::compile(&expression, link.0, snaplen) {
                Ok(program) => {
                    return Ok(Self {
                        expression,
                        snaplen,
                        programs: HashMap::from([(link, Ok(program))]),
                    });
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or(BpfError::LibraryMissing))
    }

    /// Keeps the frames that match. Those of a link type for which the expression does not compile
    /// are left out; the first time a file has any, the reason is returned.
    pub(crate) fn apply(
        &mut self,
        buffer: &[u8],
        frames: &mut Vec<FrameRef>,
        refused: &mut HashSet<LinkType>,
        unusable: &mut u64,
    ) -> Option<Refused> {
        let mut reason = None;
        frames.retain(|reference| {
            let link = reference.link;
            let program = self
                .programs
                .entry(link)
                .or_insert_with(|| BpfFilter::compile(&self.expression, link.0, self.snaplen));
            match program {
                Ok(program) => Batch::new(buffer, std::slice::from_ref(reference))
                    .frames()
                    .next()
                    .is_some_and(|frame| program.matches(frame.bytes, frame.wire_len)),
                Err(error) => {
                    *unusable += 1;
                    if refused.insert(link) {
                        let message = format!("link type {}: {error}", link.0);
                        reason.get_or_insert(Refused { message });
                    }
                    false
                }
            }
        });
        reason
    }
}
