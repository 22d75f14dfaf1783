//! Looks at a run between batches: progress, signals, live view.

use std::time::Duration;

use linkweir_engine::{Directive, Fault, IntervalEnd, Loss, Progress, RunReport};
use linkweir_live::alert::AlertEvent;

use crate::clock;
use crate::exit::{Exit, warn};
use crate::outputs::ReportedLosses;
use crate::packets::{PacketTotals, Packets};
use crate::passive::args::InputArgs;
use crate::progress::Meter;
use crate::signals::Signals;
use crate::view::{View, Viewed};

/// A live view of a run.
pub(crate) trait Viewer {
    /// Called between batches.
    fn tick(&mut self, report: &RunReport);

    /// Where the interval ends in which the run is, where its batches are to be cut there.
    fn interval_end(&self) -> Option<IntervalEnd>;

    /// The run has ended; gives what it could not deliver itself.
    fn finish(&mut self, report: &RunReport) -> Vec<Loss>;

    /// Whether the terminal is taken: nothing else may write to it.
    fn is_covered(&self) -> bool;

    /// The alert events behind number `after`, with their numbers.
    fn events_after(&self, after: u64) -> Vec<(u64, AlertEvent)>;

    /// Everything is written: stays while there is something to look at.
    fn stay(&self, signals: &Signals);
}

impl<K: Viewed> Viewer for View<K> {
    fn tick(&mut self, report: &RunReport) {
        Self::tick(self, report);
    }

    fn interval_end(&self) -> Option<IntervalEnd> {
        Self::interval_end(self)
    }

    fn finish(&mut self, report: &RunReport) -> Vec<Loss> {
        Self::finish(self, report)
    }

    fn is_covered(&self) -> bool {
        Self::is_covered(self)
    }

    fn events_after(&self, after: u64) -> Vec<(u64, AlertEvent)> {
        Self::events_after(self, after)
    }

    fn stay(&self, signals: &Signals) {
        Self::stay(self, signals);
    }
}

/// What is looked at between batches.
pub(super) struct Watcher {
    signals: Signals,
    meter: Meter,
    reported: usize,
    losses: ReportedLosses,
    view: Option<Box<dyn Viewer>>,
    pub(super) packets: Packets,
    /// The source looks at the signal too, and ends when it has given what it still holds.
    ends_itself: bool,
}

impl Watcher {
    pub(super) fn new(
        signals: Signals,
        meter: Meter,
        view: Option<Box<dyn Viewer>>,
        packets: Packets,
        ends_itself: bool,
    ) -> Self {
        Self {
            signals,
            meter,
            reported: 0,
            losses: ReportedLosses::default(),
            view,
            packets,
            ends_itself,
        }
    }

    pub(super) fn look(&mut self, report: &RunReport, progress: Progress) -> Directive {
        if let Some(first) = report.first {
            clock::begin(first);
        }
        if !self.view.as_ref().is_some_and(|view| view.is_covered()) {
            for fault in report.faults.iter().skip(self.reported) {
                warn(&describe(fault));
            }
            self.reported = report.faults.len();
            self.losses.tell(&report.losses);
        }
        let due = self.meter.tick(report, progress);
        if let Some(view) = &mut self.view {
            view.tick(report);
            self.packets.alerts(|after| view.events_after(after));
        }
        if self.signals.take_report() {
            self.meter.say(report, progress);
        }
        if self.signals.stop() && !self.ends_itself {
            Directive::Stop
        } else if self.signals.take_rotate() {
            self.packets.rotate();
            Directive::Rotate
        } else if due {
            self.packets.flush();
            Directive::Flush
        } else {
            Directive::Continue
        }
    }

    /// Where the run cuts its batches, where somebody looks at intervals.
    pub(super) fn interval_end(&self) -> Option<IntervalEnd> {
        self.view.as_ref()?.interval_end()
    }

    /// Ends as `ended` says, once nobody needs the view any more: at once where the run failed.
    pub(super) fn stay_with(self, ended: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
        if let (Ok(_), Some(view)) = (&ended, &self.view) {
            view.stay(&self.signals);
        }
        ended
    }

    /// Says what is still to be said, and adds to the report what the view could not deliver; gives the time
    /// that the run took.
    pub(super) fn finish(&mut self, report: &mut RunReport) -> Duration {
        self.meter.clear();
        let undelivered = self.view.as_mut().map(|view| view.finish(report));
        if let Some(view) = &self.view {
            self.packets.alerts(|after| view.events_after(after));
        }
        report.losses.extend(undelivered.into_iter().flatten());
        for fault in report.faults.iter().skip(self.reported) {
            warn(&describe(fault));
        }
        self.losses.tell(&report.losses);
        self.meter.elapsed()
    }

    /// The packets that were chosen, once all records are written.
    pub(super) fn finish_packets(
        &self,
        input: &InputArgs,
        report: &mut RunReport,
    ) -> Option<PacketTotals> {
        let totals = self.packets.finish(input, &self.signals, report.packets)?;
        totals.warn();
        report.losses.push(totals.loss());
        Some(totals)
    }
}

/// A fault as it is reported: input, place, cause.
pub(crate) fn describe(fault: &Fault) -> String {
    match fault.offset {
        Some(offset) => format!("{}: at byte {offset}: {}", fault.input, fault.message),
        None => format!("{}: {}", fault.input, fault.message),
    }
}
