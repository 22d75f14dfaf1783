//! What generators say becomes intervals and a status.

use linkweir_engine::seams::{Drops, TableFill};
use linkweir_engine::{Loss, RunReport};
use linkweir_live::api::LoadCounts;
use linkweir_live::load::{GeneratorStatus, LoadPart, LoadState, LoadStatus, LoadStep};
use linkweir_load::measure::{GroupProgress, MAX_GROUPS, Progress, Times};
use linkweir_load::outcome::Failure;
use linkweir_sketch::LogLinear;
use linkweir_wire::Timestamp;

use super::LoadView;
use crate::load::args::LoadArgs;

/// The generators of a run and what was last known of each.
pub(in crate::load) struct Board {
    view: LoadView,
    status: LoadStatus,
    begun: Option<Timestamp>,
    /// Sessions that may be open at a time; 0 where that is not known here.
    capacity: u64,
    /// One for each of `status.generators`.
    last: Vec<Last>,
}

/// The last look at a generator.
#[derive(Default)]
struct Last {
    at_ns: u64,
    progress: Progress,
}

impl Board {
    /// No generator yet.
    pub(in crate::load) fn new(
        args: &LoadArgs,
        view: LoadView,
        role: &'static str,
        capacity: u64,
    ) -> Self {
        Self {
            view,
            status: LoadStatus {
                role,
                target: args.url.clone(),
                arrivals: args.schedule.arrivals.to_string(),
                duration_s: args.schedule.duration.map(|length| length.as_secs_f64()),
                may_control: args.roles.console_control,
                ..LoadStatus::default()
            },
            begun: None,
            capacity,
            last: Vec::new(),
        }
    }

    /// A generator has come.
    pub(in crate::load) fn add(&mut self, name: String) {
        self.last.push(Last::default());
        self.status.generators.push(GeneratorStatus {
            name,
            ..GeneratorStatus::default()
        });
    }

    /// How many there are.
    pub(in crate::load) const fn generators(&self) -> usize {
        self.status.generators.len()
    }

    /// Whether one has begun and has not ended.
    pub(in crate::load) fn runs(&self, generator: usize) -> bool {
        let state = self.status.generators.get(generator).map(|one| one.state);
        matches!(state, Some(LoadState::Running | LoadState::Stopping))
    }

    /// When the schedule began.
    pub(in crate::load) const fn begun(&self) -> Option<Timestamp> {
        self.begun
    }

    /// The schedule begins, with all generators.
    pub(in crate::load) fn begin(&mut self, at: Timestamp) {
        self.begun = Some(at);
        self.status.begun_ms = Some(at.as_nanos() / 1_000_000);
        for (one, last) in self.status.generators.iter_mut().zip(&mut self.last) {
            one.state = LoadState::Running;
            last.at_ns = at.as_nanos();
        }
        self.judge();
    }

    /// All that run were asked to end.
    pub(in crate::load) fn stopping(&mut self) {
        let running = self.status.generators.iter_mut();
        for one in running.filter(|one| one.state == LoadState::Running) {
            one.state = LoadState::Stopping;
        }
        self.judge();
    }

    /// A generator has ended, or is gone for a reason.
    pub(in crate::load) fn ended(&mut self, generator: usize, fault: Option<&str>) {
        if let Some(one) = self.status.generators.get_mut(generator) {
            one.state = match fault {
                None => LoadState::Ended,
                Some(_) => LoadState::Gone,
            };
            one.fault = fault.map(str::to_owned);
            (one.sessions_per_s, one.responses_per_s) = (0.0, 0.0);
        }
        self.judge();
    }

    /// Where the run stands: as far as the generator that is least far.
    fn judge(&mut self) {
        let states = self.status.generators.iter().map(|one| one.state);
        let order = |state: &LoadState| LoadState::ALL.iter().position(|one| one == state);
        let least = states.min_by_key(order).unwrap_or_default();
        self.status.state = match least {
            LoadState::Gone => LoadState::Ended,
            other => other,
        };
    }

    /// A look at a generator, which counts at `at_ns`.
    pub(in crate::load) fn look(&mut self, generator: usize, at_ns: u64, progress: Progress) {
        let (Some(last), Some(status)) = (
            self.last.get_mut(generator),
            self.status.generators.get_mut(generator),
        ) else {
            return;
        };
        let step = LoadStep {
            at_ns,
            generator: status.name.clone(),
            counts: counts(&last.progress, &progress),
            groups: groups(&last.progress, &progress),
        };
        let nanos = at_ns.saturating_sub(last.at_ns);
        let per_second = |count: u64| {
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let rate = count as f64 * 1e9 / nanos.max(1) as f64;
            rate
        };
        status.started = progress.started;
        status.completed = progress.completed;
        status.failed = progress.failed.total();
        status.open = progress.open;
        status.responses = progress.responses;
        status.sessions_per_s = per_second(step.counts.started);
        status.responses_per_s = per_second(step.counts.responses);
        status.response_p99_ns = step.counts.response_time_ns.quantile(0.99);
        status.lag_p99_ns = step.counts.schedule_lag_ns.quantile(0.99);
        self.view.take(step);
        *last = Last { at_ns, progress };
        let all = self.last.iter().map(|last| &last.progress);
        let (open, peak) = all.fold((0, 0), |(open, peak): (u64, u64), one| {
            (
                open.saturating_add(one.open),
                peak.saturating_add(one.peak_open),
            )
        });
        (self.status.open, self.status.peak_open) = (open, peak);
    }

    /// Shows where everything stands at `now`; wanted some times a second.
    pub(in crate::load) fn show(&mut self, now: Timestamp) {
        let has_begun = self.begun.filter(|begun| *begun <= now);
        let report = has_begun.map(|_| self.report(now));
        self.view
            .show_load(report.as_ref(), self.status.clone(), now);
    }

    /// What every run has, of the generators together.
    fn report(&self, now: Timestamp) -> RunReport {
        let sum = |of: fn(&Progress) -> u64| {
            let all = self.last.iter().map(|last| of(&last.progress));
            all.fold(0, u64::saturating_add)
        };
        RunReport {
            packets: sum(|one| one.frames),
            bytes: sum(|one| one.frame_bytes),
            first: self.begun,
            last: Some(now),
            drops: Drops {
                kernel: sum(|one| one.dropped),
                ..Drops::default()
            },
            fill: TableFill {
                entries: self.status.open,
                capacity: self.capacity,
                evicted: sum(|one| one.failed.of(Failure::NoRoom)),
            },
            ..RunReport::default()
        }
    }

    /// The run is over; gives the alerts that a webhook did not deliver.
    pub(in crate::load) fn finish(mut self, now: Timestamp) -> Vec<Loss> {
        self.show(now);
        self.view.finish(&self.report(now))
    }
}

/// What was counted between two looks. A generator elsewhere may say anything: counts never go back.
fn counts(before: &Progress, now: &Progress) -> LoadCounts {
    let grown = |of: fn(&Progress) -> u64| of(now).saturating_sub(of(before));
    let times = |times: &Times| -> LogLinear { times.histogram().clone() };
    let recent = &now.recent;
    let mut counts = LoadCounts {
        planned: grown(|one| one.planned),
        started: grown(|one| one.started),
        completed: grown(|one| one.completed),
        requests: grown(|one| one.requests),
        responses: grown(|one| one.responses),
        unanswered: grown(|one| one.unanswered),
        pages: grown(|one| one.pages),
        connections: grown(|one| one.connections),
        request_bytes: grown(|one| one.request_bytes),
        response_bytes: grown(|one| one.response_bytes),
        response_time_ns: times(&recent.response),
        service_time_ns: times(&recent.service),
        connect_ns: times(&recent.connect),
        schedule_lag_ns: times(&recent.lag),
        ..LoadCounts::default()
    };
    for (cause, count) in now.failed.iter() {
        let grown = count.saturating_sub(before.failed.of(cause));
        counts.causes.record_n(cause.as_str(), grown);
    }
    for (code, count) in now.statuses.iter() {
        let grown = count.saturating_sub(before.statuses.of(code));
        counts.codes.record_n(code, grown);
    }
    counts
}

/// The same for the groups of clients.
fn groups(before: &Progress, now: &Progress) -> Vec<LoadPart> {
    let none = GroupProgress::default();
    let all = now.groups.iter().take(MAX_GROUPS).enumerate();
    all.map(|(at, group)| {
        let earlier = before.groups.get(at).unwrap_or(&none);
        let grown = |of: fn(&GroupProgress) -> u64| of(group).saturating_sub(of(earlier));
        LoadPart {
            name: group.name.clone(),
            bytes: grown(|one| one.response_bytes),
            sessions: grown(|one| one.started),
            completed: grown(|one| one.completed),
            failed: grown(|one| one.failed),
            requests: grown(|one| one.requests),
            responses: grown(|one| one.responses),
        }
    })
    .collect()
}
