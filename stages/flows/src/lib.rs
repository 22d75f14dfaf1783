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
mod partial;
mod recording;
pub mod stage;
pub mod stats;
pub mod step;
mod tcp;
mod touch;
pub mod unknown;
mod wheel;

pub use config::{Classifier, FlowsConfig};
pub use config::{SubnetError, Subnets};
pub use stage::FlowsStage;
pub use stats::FlowsStats;
pub use unknown::{UnknownFlows, UnknownGroup};
