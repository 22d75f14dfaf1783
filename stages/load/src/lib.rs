//! HTTP load from many emulated clients, as a pure state machine: frames and time come in, frames and
//! records go out.
//!
//! The rooms, in the order in which a session passes them: [`arrivals`] says when it begins,
//! [`population`] who its client is, [`script`] what it asks for; [`session`] drives it over
//! connections of [`tcp`]; [`path`] delays, limits and loses its frames as the client's line would;
//! [`neighbours`] finds the next hop and answers for the clients; [`measure`] counts and times it.
//! The [`stage`] joins them.
//!
//! Source: the Raw Packet Sender (Hryn, Jerzak, Chydzinski 2004).

#![forbid(unsafe_code)]

pub mod arrivals;
pub mod frames;
pub mod measure;
pub mod neighbours;
pub mod outcome;
pub mod path;
pub mod population;
pub mod script;
pub mod seam;
pub mod session;
pub mod stage;
pub mod tcp;
