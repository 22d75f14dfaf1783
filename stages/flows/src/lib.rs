//! TCP and UDP flows, persistently measured.
//!
//! What Tstat measures (Rossi, Mellia 2006), complete, correct where Tstat is not, in constant
//! space.
#![forbid(unsafe_code)]

pub mod config;
mod emit;
mod flow;
mod fragments;
mod key;
pub mod layer7;
mod lengths;
mod lifetime;
mod overhear;
mod partial;
pub mod side;
pub mod stage;
pub mod stats;
pub mod step;
pub mod subnets;
mod tcp;
mod wheel;

pub use config::{Classifier, FlowsConfig};
pub use stage::FlowsStage;
pub use stats::FlowsStats;
pub use subnets::{SubnetError, Subnets};
