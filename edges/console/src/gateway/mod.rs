//! What is shown of a gateway.

mod status;

pub use status::{
    ApplicationStatus, GatewayStatus, Held, KernelCount, QueueStatus, ScannerStatus, VaultStatus,
};
