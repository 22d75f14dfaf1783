//! The vault as a queue thread sees it.

use std::sync::Arc;

use linkweir_engine::effect::FileOp;

use crate::vault::{Shared, locked};

/// Hands steps in; one for each thread that has a stage. Dropping it ends its files as parts.
#[derive(Debug)]
pub struct VaultClient {
    shared: Arc<Shared>,
    number: u64,
}

impl VaultClient {
    pub(crate) const fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self { shared, number }
    }

    /// Takes a step in without waiting for the disk. What breaks a bound is counted: a file that
    /// cannot begin is not recorded, one that cannot go on is cut and ends as a part.
    pub fn submit(&self, op: FileOp) {
        let mut intake = locked(&self.shared.intake);
        let has_grown = intake.add(self.number, op);
        drop(intake);
        if has_grown {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for VaultClient {
    fn drop(&mut self) {
        locked(&self.shared.intake).end_all(self.number);
        self.shared.work.notify_one();
    }
}
