//! The totals of a run: as JSON for programs, on one screen for people.

use std::time::Duration;

use linkweir_engine::RunReport;
use linkweir_http::HalfStage;
use linkweir_sink::human::{counted, thousands};
use serde_json::{Value, json};

use crate::screen::{lost, rows};
use crate::totals;

/// Everything a summary is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Totals<'a> {
    pub(super) report: &'a RunReport,
    pub(super) stage: &'a HalfStage,
    pub(super) elapsed: Duration,
}

impl Totals<'_> {
    /// Losses by cause, without those of outputs; every cause is there, also with zero.
    fn drops(&self) -> [(&'static str, u64); 3] {
        let drops = self.report.drops;
        [
            ("kernel", drops.kernel),
            ("ring", drops.ring),
            ("unusable_records", drops.unusable_records),
        ]
    }

    /// What was lost, for people.
    fn lost(&self) -> Vec<(String, u64)> {
        let (faults, fragments) = (self.stage.faults(), self.stage.fragments());
        totals::lost(self.report, &self.drops(), faults, &fragments)
    }

    /// Whether anything was lost.
    pub(super) fn is_lossy(&self) -> bool {
        !self.lost().is_empty() || totals::unread(self.report).next().is_some()
    }

    /// The JSON object of `--summary`.
    pub(super) fn to_json(self) -> Value {
        let counts = self.stage.counts();
        let faults = self.stage.faults();
        let mut json = totals::common(self.report, self.elapsed, &self.drops(), faults);
        json.insert(
            "fragments".to_owned(),
            totals::fragments_json(&self.stage.fragments()),
        );
        json.insert(
            "halves".to_owned(),
            json!({
                "requests": counts.requests,
                "responses": counts.responses,
                "plain": counts.plain,
                "others": counts.others,
                "possible": counts.possible,
            }),
        );
        Value::Object(json)
    }

    /// One screen for people; what was lost comes first.
    pub(super) fn to_screen(self) -> String {
        let (report, counts) = (self.report, self.stage.counts());
        let mut lines = vec![
            ("lost", lost(self.lost(), 6)),
            totals::read(report, self.elapsed),
            (
                "kept",
                format!(
                    "{}: {}, {} ({} plain), {} other, {} possible",
                    counted(report.records, "row"),
                    counted(counts.requests, "request"),
                    counted(counts.responses, "response"),
                    thousands(counts.plain),
                    thousands(counts.others),
                    thousands(counts.possible)
                ),
            ),
        ];
        lines.extend(totals::not_read(report));
        totals::tell_undecoded(self.stage.faults(), report.packets, &mut lines);
        lines.extend(totals::fragments(&self.stage.fragments()));
        rows(&lines)
    }
}
