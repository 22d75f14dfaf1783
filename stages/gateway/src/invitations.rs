//! Files offered in one connection that come over another (MSN and MSNFTP): their names by cookie.
//!
//! The two connections may belong to different workers, so all share one table. It is touched once an
//! invitation and once a transfer, never for other packets.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::inspect::FileInfo;

/// Invitations that are remembered.
const MAX_KEPT: usize = 4096;
/// Bytes of a cookie or name that are kept.
const MAX_BYTES: usize = 1024;

#[derive(Debug)]
struct Offered {
    cookie: Vec<u8>,
    name: Vec<u8>,
    from: Vec<u8>,
    to: Vec<u8>,
    size: Option<u64>,
}

/// Recent invitations; the oldest are evicted.
#[derive(Debug, Default)]
pub struct Invitations(Mutex<VecDeque<Offered>>);

impl Invitations {
    pub(crate) fn remember(&self, cookie: &[u8], file: &FileInfo<'_>) {
        let cut = |text: &[u8]| text.get(..MAX_BYTES).unwrap_or(text).to_vec();
        let offered = Offered {
            cookie: cut(cookie),
            name: cut(file.name),
            from: cut(file.from),
            to: cut(file.to),
            size: file.announced_size,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KEPT {
            all.pop_front();
        }
        all.push_back(offered);
    }

    /// Calls `use_it` with the newest offer of this cookie.
    pub(crate) fn find(&self, cookie: &[u8], use_it: &mut dyn FnMut(&FileInfo<'_>)) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offered) = all.iter().rev().find(|offered| offered.cookie == cookie) {
            use_it(&FileInfo {
                name: &offered.name,
                from: &offered.from,
                to: &offered.to,
                announced_size: offered.size,
                ..FileInfo::default()
            });
        }
    }
}
