//! What is looked at while a run goes on.

use linkweir_engine::{RunReport, Sink};
use linkweir_record::HttpKind;

use crate::http::HttpArgs;
use crate::signals::Signals;

/// The live view of a run.
#[derive(Debug)]
pub(crate) struct View;

impl View {
    pub(crate) fn start(_args: &HttpArgs, _signals: &Signals) -> anyhow::Result<Self> {
        Ok(Self)
    }
    pub(crate) fn sink(&self) -> Option<Box<dyn Sink<HttpKind>>> {
        None
    }
    pub(crate) fn tick(&mut self, _report: &RunReport) {}
    pub(crate) fn finish(&mut self, _report: &RunReport) {}
}
