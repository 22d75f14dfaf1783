use std::net::Ipv4Addr;

use linkweir_record::RecordBatch as _;
use proptest::prelude::*;

use super::*;
use crate::outcome::Failure;

/// Even clients are in the first group.
struct TwoGroups;

impl Roll for TwoGroups {
    fn address(&self, client: Client) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + client))
    }

    fn group(&self, client: Client) -> usize {
        (client % 2) as usize
    }
}

fn measure() -> Measure<TwoGroups> {
    let options = Options {
        server: "192.0.2.1:80".parse().unwrap(),
        groups: vec!["dsl".to_owned(), "mobile".to_owned()],
        has_records: true,
    };
    Measure::new(TwoGroups, options)
}

fn us(micros: u64) -> Timestamp {
    Timestamp::from_nanos(1_700_000_000_000_000_000 + micros * 1000)
}

/// A session of one request.
#[derive(Debug, Clone, Copy)]
struct Plan {
    session: u64,
    client: Client,
    planned: u64,
    lag: u64,
    service: u64,
    failure: Option<Failure>,
}

impl Plan {
    fn run(self, measure: &mut Measure<TwoGroups>) {
        let Self {
            session, client, ..
        } = self;
        let (planned, started) = (us(self.planned), us(self.planned + self.lag));
        let (sent, first) = (us(self.planned + self.lag + 10), self.lag + self.service);
        let ended = us(self.planned + self.lag + 10 + self.service);
        let is_complete = self.failure.is_none();
        if self.failure != Some(Failure::NoRoom) {
            measure.on_start(client, planned, started);
            measure.on_connect(client, 9_000, 0);
            let exchange = Exchange {
                session,
                client,
                is_page: true,
                intended: planned,
                sent: Some(sent),
                first_byte: is_complete.then(|| us(self.planned + first)),
                last_byte: is_complete.then_some(ended),
                status: if is_complete { 200 } else { 0 },
                request_bytes: 100,
                response_bytes: if is_complete { 1000 } else { 7 },
                failure: self.failure,
            };
            measure.on_exchange(&exchange, b"/", 40_000);
            // A second one, which the record does not show.
            let later = Exchange {
                is_page: false,
                intended: ended,
                sent: None,
                first_byte: None,
                last_byte: None,
                response_bytes: 0,
                failure: Some(Failure::ClosedEarly),
                ..exchange
            };
            measure.on_exchange(&later, b"/x", 40_001);
            if is_complete {
                measure.on_page(client, planned, ended);
            }
        }
        let is_started = self.failure != Some(Failure::NoRoom);
        measure.on_session(&SessionEnd {
            session,
            client,
            planned,
            started: is_started.then_some(started),
            ended: if is_started { ended } else { planned },
            pages: u32::from(is_complete),
            requests: u32::from(is_started),
            responses: u32::from(is_complete),
            connections: 1,
            request_bytes: 100,
            response_bytes: 1000,
            last_status: if is_complete { 200 } else { 0 },
            statuses: [0, u32::from(is_complete), 0, 0, 0],
            failure: self.failure,
        });
    }
}

const GOOD: Plan = Plan {
    session: 0,
    client: 4,
    planned: 1_000,
    lag: 5,
    service: 300,
    failure: None,
};

#[test]
fn every_stage_is_timed_from_where_it_ought_to_be() {
    let mut measure = measure();
    GOOD.run(&mut measure);
    let stages = &measure.figures().stages;
    let one = |times: &Times| (times.count(), times.sum_ns());
    // 5 us late, 10 us until it was sent, 300 us until the last byte.
    assert_eq!(one(&stages.response), (1, 315_000));
    assert_eq!(one(&stages.service), (1, 300_000));
    assert_eq!(one(&stages.first_byte), (1, 290_000));
    assert_eq!(one(&stages.connect), (1, 9_000));
    assert_eq!(one(&stages.page), (1, 315_000));
    assert_eq!(one(&stages.session), (1, 315_000));
    assert_eq!(one(&stages.lag), (1, 5_000));
    assert_eq!(measure.take_recent().max(), Some(315_000));
    assert_eq!(measure.take_recent().max(), None);
}

#[test]
fn what_happened_is_in_its_second() {
    let mut measure = measure();
    let slow = Plan {
        service: 1_500_000,
        ..GOOD
    };
    slow.run(&mut measure);
    let bins: Vec<Bin> = measure
        .figures()
        .series
        .bins()
        .map(|(_, bin)| bin.clone())
        .collect();
    let [first, second] = bins.as_slice() else {
        panic!("two seconds: {bins:?}");
    };
    assert_eq!((first.planned, first.started, first.requests), (1, 1, 1));
    assert_eq!((first.responses, second.responses), (0, 1));
    assert_eq!((second.completed, second.response_bytes), (1, 1000));
    // The response time stands where the request was wanted.
    assert_eq!(first.response_mean_ns(), Some(1_500_015_000));
    assert_eq!(second.response_mean_ns(), None);
    let open = |bin: &Bin| measure.figures().series.open(bin);
    assert!((open(first) - 0.998_995).abs() < 1e-9 && (open(second) - 0.501_015).abs() < 1e-9);
}

#[test]
fn sessions_become_records() {
    let mut measure = measure();
    GOOD.run(&mut measure);
    let refused = Plan {
        session: 1,
        client: 5,
        failure: Some(Failure::NoRoom),
        ..GOOD
    };
    refused.run(&mut measure);
    assert_eq!(measure.waiting_records(), 2);
    let mut batch = LoadBatch::default();
    measure.take_records(&mut batch);
    assert_eq!(measure.waiting_records(), 0);
    let rows: Vec<_> = batch.views().collect();
    let [good, bad] = rows.as_slice() else {
        panic!("two records: {rows:?}");
    };
    assert_eq!(
        (good.row.client_port, good.row.failure, good.group),
        (40_000, "", &b"dsl"[..])
    );
    assert_eq!(good.row.client_ip, IpAddr::from([10, 0, 0, 4]));
    assert_eq!(good.row.response_time_ns, Some(315_000));
    assert_eq!(good.row.lag_ns(), Some(5_000));
    assert_eq!(
        (good.row.status_code, good.row.server_port),
        (Some(200), 80)
    );
    assert_eq!(
        (bad.row.client_port, bad.row.failure, bad.group),
        (0, "no_room", &b"mobile"[..])
    );
    assert_eq!((bad.row.started_ts_ns, bad.row.status_code), (None, None));
    let records = measure.records.as_ref().unwrap();
    assert!(records.is_idle(), "nothing is kept of sessions that ended");
}

#[test]
fn a_session_that_never_started_is_planned_and_failed() {
    let mut measure = measure();
    let refused = Plan {
        failure: Some(Failure::NoRoom),
        ..GOOD
    };
    refused.run(&mut measure);
    let figures = measure.figures();
    assert_eq!(
        (figures.planned, figures.started, figures.completed),
        (1, 0, 0)
    );
    assert_eq!(figures.failed.of(Failure::NoRoom), 1);
    assert_eq!(figures.open.little(), None);
    assert!(!figures.verdict(&Limits::default()).is_valid());
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let failure = prop::sample::select(vec![
        None,
        None,
        None,
        Some(Failure::Reset),
        Some(Failure::NoRoom),
        Some(Failure::ResponseTimeout),
    ]);
    let plan = (
        0_u32..6,
        0_u64..9_000_000,
        0_u64..2_000,
        20_u64..5_000_000,
        failure,
    );
    prop::collection::vec(plan, 0..40).prop_map(|plans| {
        let numbered = (0_u64..).zip(plans);
        numbered
            .map(|(session, (client, planned, lag, service, failure))| Plan {
                session,
                client,
                planned,
                lag,
                service,
                failure,
            })
            .collect()
    })
}

proptest! {
    /// Every session is in one count of each kind, whoever has which share of them, and what travels
    /// as JSON arrives as it was.
    #[test]
    fn shares_of_generators_merge_to_the_whole(plans in plans()) {
        let mut all = measure();
        let mut shares = [measure(), measure()];
        for plan in &plans {
            plan.run(&mut all);
            plan.run(&mut shares[usize::from(plan.session % 2 == 1)]);
        }
        let all = all.into_figures();
        prop_assert_eq!(all.planned, plans.len() as u64);
        prop_assert_eq!(all.completed + all.failed.total(), all.planned);
        prop_assert_eq!(all.open.now(), 0);
        if let Some(little) = all.open.little() {
            prop_assert!(little.error < 1e-9, "{:?}", little);
        }
        let binned = |of: fn(&Bin) -> u64| all.series.bins().map(|(_, bin)| of(bin)).sum::<u64>();
        prop_assert_eq!(binned(|bin| bin.planned), all.planned);
        prop_assert_eq!(binned(|bin| bin.started), all.started);
        prop_assert_eq!(binned(|bin| bin.completed + bin.failed), all.planned);
        prop_assert_eq!(binned(|bin| bin.responses), all.responses);

        let [one, two] = shares.map(|share| {
            let text = serde_json::to_string(share.figures()).unwrap();
            serde_json::from_str::<Figures>(&text).unwrap()
        });
        let mut merged = one.clone();
        merged.merge(&two);
        let mut other_way = two;
        other_way.merge(&one);
        prop_assert_eq!(&merged, &other_way);
        // Only the peak is that of nobody: the shares have theirs at different times.
        let peak = all.open.peak();
        prop_assert!(merged.open.peak() >= peak);
        prop_assert_eq!(merged.open.little().map(|l| l.error < 1e-9), all.open.little().map(|_| true));
        prop_assert_eq!(&merged.stages, &all.stages);
        prop_assert_eq!(&merged.groups, &all.groups);
        prop_assert_eq!(&merged.series, &all.series);
    }
}

#[test]
fn a_look_has_what_came_since_the_last_one() {
    let plan = |session, failure| Plan {
        session,
        client: u32::try_from(session).unwrap(),
        planned: session * 1000,
        lag: 20,
        service: 500 * (session + 1),
        failure,
    };
    let mut measure = measure();
    plan(0, None).run(&mut measure);
    // Nobody looked so far: the counts are there, the times are not.
    let before = measure.progress();
    assert_eq!((before.started, before.recent.lag.count()), (1, 0));
    measure.watch();
    plan(1, None).run(&mut measure);
    let mut first = measure.progress();
    plan(2, Some(Failure::Reset)).run(&mut measure);
    plan(3, None).run(&mut measure);
    let second = measure.progress();
    assert_eq!((first.started, second.started), (2, 4));
    assert_eq!(
        (first.recent.lag.count(), second.recent.lag.count()),
        (1, 2)
    );
    assert_eq!(second.recent.service.count(), 1, "one was reset");
    assert_eq!(second.groups.iter().map(|one| one.failed).sum::<u64>(), 1);
    // A look that nobody took is joined with the next: no time is lost, no count is there twice.
    first.join(second);
    assert_eq!((first.started, first.failed.total()), (4, 1));
    assert_eq!(first.recent.lag.count(), 3);
    assert_eq!(first.recent.response.count(), 2);
    let text = serde_json::to_string(&first).unwrap();
    assert_eq!(serde_json::from_str::<Progress>(&text).unwrap(), first);
    // All together they are what the end says.
    assert_eq!(measure.figures().stages.lag.count(), 4);
}
