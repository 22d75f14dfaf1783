//! What is shown of a gateway.

mod board;
mod status;

pub use board::StatusBoard;
pub use status::{
    ApplicationStatus, GatewayStatus, Held, KernelCount, QueueStatus, ScannerStatus, VaultStatus,
};
