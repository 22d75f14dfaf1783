//! What a view prints: intervals, alerts, and what does not reach its receivers.

use linkweir_record::human::moment;

use super::{Shown, Viewed};
use crate::exit::{say, warn};
use crate::interval_line::line;

impl<K: Viewed> Shown<K> {
    /// Says that the webhook fails: once why, then how many alerts did not arrive, at every tenfold and at
    /// the end.
    pub(super) fn tell_of_webhook(&mut self, is_over: bool) {
        let (lost, why) = self.live.webhook_losses();
        if let Some(why) = why.filter(|_| !self.reported_webhook) {
            self.reported_webhook = true;
            warn(&format!("webhook: alerts cannot be delivered: {why}"));
        }
        if lost > self.reported_alerts && (is_over || lost >= 10 * self.reported_alerts.max(1)) {
            self.reported_alerts = lost;
            warn(&format!("webhook: alerts not delivered: {lost}"));
        }
    }

    /// Says once that the history is not written any more.
    fn tell_of_history(&mut self) {
        if !self.reported_history
            && let Some(why) = self.live.day_fault()
        {
            self.reported_history = true;
            warn(&format!(
                "--console-history: {why}; it is not written any more"
            ));
        }
    }

    /// Says once why metrics and spans are not taken, and at the end how many were not.
    pub(super) fn tell_of_otlp(&mut self, is_over: bool) {
        let ([metrics, spans], why) = self.live.export_counts().losses();
        if let Some(why) = why.filter(|_| !self.reported_otlp) {
            self.reported_otlp = true;
            warn(&format!(
                "otlp: metrics or spans cannot be delivered: {why}"
            ));
        }
        if is_over && metrics + spans > 0 {
            warn(&format!(
                "otlp: messages with metrics not delivered: {metrics}, spans: {spans}"
            ));
        }
    }

    /// Prints the intervals and alerts that are new.
    pub(super) fn tell(&mut self) {
        if self.is_covered {
            return;
        }
        self.tell_of_webhook(false);
        self.tell_of_history();
        self.tell_of_otlp(false);
        for (number, event) in self.live.events_after(self.reported_event) {
            self.reported_event = number;
            let time = moment(event.t_ms.saturating_mul(1_000_000));
            warn(&format!("{time}  {event}"));
        }
        if !self.has_lines {
            return;
        }
        for tick in self.live.ticks_after(self.reported_tick) {
            self.reported_tick = tick.id;
            say(&line::<K>(&tick));
        }
    }
}
