//! HTML reports: one self-contained page with plots, for any browser, without network.
//!
//! [`HttpReport`] and [`FlowReport`] collect bounded sketches from record batches and render them,
//! [`LoadReport`] renders what a load run has measured itself, [`LabReport`] what the laboratory has
//! compared;
//! [`plot`] and [`page`] are the parts that reports of all record kinds share.
#![forbid(unsafe_code)]

mod flow;
mod flow_page;
mod http;
mod http_page;
mod lab;
mod lab_page;
mod load;
mod load_page;
pub mod page;
pub mod plot;
pub mod stored;

pub use flow::FlowReport;
pub use http::HttpReport;
pub use lab::{LabMark, LabReport, LabRow, LabTable};
pub use load::{GroupTimes, LoadReport, SeriesBin, StageTimes};

/// What a report says of the run itself.
#[derive(Debug, Clone, Default)]
pub struct ReportMeta {
    /// The heading.
    pub title: String,
    /// The inputs, as the user named them.
    pub inputs: Vec<String>,
    /// The command line that made the report.
    pub command_line: String,
    /// Name and version of the program.
    pub program: String,
    /// Packets read.
    pub packets: u64,
    /// Bytes read, as on the wire.
    pub bytes: u64,
    /// Time of the first packet, nanoseconds since the epoch.
    pub first_ts_ns: Option<u64>,
    /// Time of the last packet, nanoseconds since the epoch.
    pub last_ts_ns: Option<u64>,
    /// What was lost, by cause; zeros are shown too.
    pub drops: Vec<(String, u64)>,
    /// What else belongs to the run, such as faults of the input: name and number.
    pub notes: Vec<(String, u64)>,
}
