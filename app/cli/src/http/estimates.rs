//! `--check-estimates`: estimates beside what the secrets say of the same transactions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::human::{percent, span, thousands};
use linkweir_record::schema::Endpoint;
use linkweir_record::{Confidence, HttpBatch, HttpKind, HttpTransaction, RecordBatch as _, Source};
use linkweir_sketch::LogLinear;

use crate::table::lines;

/// Requests that may wait for their other record; with more, the oldest is judged as it is.
const MOST: usize = 1 << 17;
/// Errors are parts of a million of the response time.
const WHOLE: u64 = 1_000_000;

/// A request: when it was seen, and between whom.
type Key = (u64, Endpoint, Endpoint);

/// What is said of the requests of one packet.
#[derive(Debug, Default)]
struct Said {
    /// Times of the responses, by keys.
    keyed: Vec<Option<u64>>,
    estimated: Vec<(Class, Option<u64>)>,
}

/// Estimates are counted by version and confidence.
type Class = (&'static str, Confidence);

/// What became of the estimates of a class.
#[derive(Debug, Default)]
struct Tally {
    estimates: u64,
    /// With both times as the keys say.
    right: u64,
    /// Without a request in that packet.
    invented: u64,
    /// Without a response time.
    untimed: u64,
    /// Of those with a response time and a request in that packet, parts of a million of the true response time.
    relative: LogLinear,
    /// The same in nanoseconds.
    absolute: LogLinear,
}

/// Estimates and records with keys, while they come.
#[derive(Debug, Default)]
pub(crate) struct Check {
    waiting: BTreeMap<Key, Said>,
    tallies: BTreeMap<Class, Tally>,
    keyed: u64,
    /// With keys only.
    missed: u64,
}

impl Check {
    fn add(&mut self, view: &HttpTransaction<'_>) {
        let (Some(web), Some(request_ns)) = (view.web(), view.row.request_ts_ns) else {
            return;
        };
        let row = view.row;
        let client = (row.client_ip, row.client_port);
        let key = (request_ns, client, (row.server_ip, row.server_port));
        match (web.source, web.confidence) {
            (Source::Keys, _) => {
                self.keyed += 1;
                let said = self.waiting.entry(key).or_default();
                said.keyed.push(row.response_ts_ns);
            }
            (Source::Estimate, Some(confidence)) => {
                let said = self.waiting.entry(key).or_default();
                let class = (row.version_name(), confidence);
                said.estimated.push((class, row.response_ts_ns));
            }
            _ => return,
        }
        if self.waiting.len() > MOST
            && let Some((key, said)) = self.waiting.pop_first()
        {
            self.judge(key, said);
        }
    }

    fn judge(&mut self, (request_ns, ..): Key, mut said: Said) {
        for (class, response) in said.estimated {
            let tally = self.tallies.entry(class).or_default();
            tally.estimates += 1;
            let near = |keyed: &Option<u64>| match (keyed, response) {
                (Some(keyed), Some(response)) => keyed.abs_diff(response),
                (None, None) => 0,
                _ => u64::MAX,
            };
            let nearest = said.keyed.iter().enumerate();
            let nearest = nearest
                .min_by_key(|(_, keyed)| near(keyed))
                .map(|(at, _)| at);
            let Some(at) = nearest else {
                tally.invented += 1;
                continue;
            };
            let keyed = said.keyed.swap_remove(at);
            let Some(response) = response else {
                tally.untimed += 1;
                continue;
            };
            let Some(truth) = keyed else {
                // There was no response to this request.
                tally.relative.record(WHOLE);
                continue;
            };
            let error = truth.abs_diff(response);
            tally.right += u64::from(error == 0);
            tally.absolute.record(error);
            let took = truth.saturating_sub(request_ns).max(1);
            let part = u128::from(error) * u128::from(WHOLE) / u128::from(took);
            tally
                .relative
                .record(u64::try_from(part).unwrap_or(u64::MAX));
        }
        self.missed += said.keyed.len() as u64;
    }

    /// The table, when everything was said.
    fn text(&mut self) -> String {
        while let Some((key, said)) = self.waiting.pop_first() {
            self.judge(key, said);
        }
        if self.keyed == 0 {
            return "estimates beside keys: nothing to compare, no transaction was decrypted"
                .to_owned();
        }
        let estimates: u64 = self.tallies.values().map(|tally| tally.estimates).sum();
        let mut text = format!(
            "estimates beside keys: {} transactions with keys, {} estimated; {} with keys only\n",
            thousands(self.keyed),
            thousands(estimates),
            thousands(self.missed)
        );
        let head = [
            "http",
            "confidence",
            "estimates",
            "timed",
            "right",
            "error p50",
            "p90",
            "p99",
            "max",
            "max error",
            "no request",
        ];
        let mut rows = Vec::new();
        for ((version, confidence), tally) in &self.tallies {
            let timed = tally.estimates - tally.untimed - tally.invented;
            let quantile = |q: f64| match tally.relative.quantile(q) {
                Some(error) => percent(error, WHOLE),
                None => "-".to_owned(),
            };
            let largest = tally.absolute.max().map_or_else(|| "-".to_owned(), span);
            rows.push(vec![
                if version.is_empty() { "?" } else { version }.to_owned(),
                confidence.as_str().to_owned(),
                thousands(tally.estimates),
                thousands(timed),
                if timed == 0 {
                    "-".to_owned()
                } else {
                    percent(tally.right, timed)
                },
                quantile(0.5),
                quantile(0.9),
                quantile(0.99),
                quantile(1.0),
                largest,
                thousands(tally.invented),
            ]);
        }
        text.push_str(&lines(&head, &rows).join("\n"));
        text
    }
}

/// The comparison of a run, which ends after its outputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks(Rc<RefCell<Check>>);

impl Checks {
    /// The table of all records that came.
    pub(crate) fn text(&self) -> String {
        self.0.borrow_mut().text()
    }
}

impl Sink<HttpKind> for Checks {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        let mut check = self.0.borrow_mut();
        batch.views().for_each(|view| check.add(&view));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::{HttpRow, Text, Web};

    fn push(batch: &mut HttpBatch, request: u64, response: Option<u64>, web: &Web<'_>) {
        let row = HttpRow {
            request_ts_ns: Some(request),
            response_ts_ns: response,
            ..HttpRow::default()
        };
        batch.push_web(row, &Text::default(), web);
    }

    #[test]
    fn each_estimate_is_judged_once() {
        let keys = Web {
            source: Source::Keys,
            ..Web::default()
        };
        let estimate = |confidence| Web {
            source: Source::Estimate,
            confidence: Some(confidence),
            ..Web::default()
        };
        let exact = estimate(Confidence::Exact);
        let mut batch = HttpBatch::default();
        push(&mut batch, 100, Some(1100), &keys);
        push(&mut batch, 100, Some(1100), &exact);
        // Late by a tenth, and before its record with keys.
        push(&mut batch, 200, Some(1300), &exact);
        push(&mut batch, 200, Some(1200), &keys);
        // Two streams in a packet; one that nobody asked for; one that was missed.
        push(&mut batch, 300, Some(400), &keys);
        push(&mut batch, 300, Some(500), &keys);
        push(&mut batch, 300, Some(500), &exact);
        push(&mut batch, 350, Some(500), &exact);
        push(&mut batch, 400, Some(500), &keys);
        push(&mut batch, 400, None, &estimate(Confidence::CannotTell));
        let mut checks = Checks::default();
        checks.write(&batch).unwrap();
        let text = checks.text();
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .collect();
        assert!(
            text.starts_with(
                "estimates beside keys: 5 transactions with keys, 5 estimated; 1 with"
            ),
            "{text}"
        );
        assert_eq!(lines[2][..5], ["1.1", "exact", "4", "3", "66.7"], "{text}");
        assert_eq!(lines[3][..4], ["1.1", "cannot_tell", "1", "0"], "{text}");
        assert!(text.contains("10.0 %"), "{text}");
    }
}
