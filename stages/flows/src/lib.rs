//! TCP and UDP flows, persistently measured.
//!
//! What Tstat measures (Rossi, Mellia 2006), complete, correct where Tstat is not, in constant
//! space.
#![forbid(unsafe_code)]

pub mod config;
pub mod layer7;
pub mod side;
pub mod step;
pub mod subnets;

pub use config::{Classifier, FlowsConfig};
pub use subnets::{SubnetError, Subnets};
