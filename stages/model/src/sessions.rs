//! Requests become sessions.
//!
//! A request begins a new session of its client when nothing came from that client in the timeout
//! before it: when the gap is longer than the timeout. Source: Hryn, Jerzak, Chydzinski 2004,
//! sec. 3.2 ("if no prior requests from the same IP have been issued in a given amount of time").
//!
//! Servers write a line when a request is answered, with the time at which it came, so lines are a
//! little out of order. Requests are put in order within [`Rule::disorder_ns`]; the result is then
//! that of the sorted log. One that comes still later is `late`: it counts with its own time, and
//! begins a session only if its client has made no request since the timeout before it.

use std::cmp::Reverse;
use std::collections::hash_map::RandomState;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::BuildHasher;

use crate::log::{Client, Request};

/// What a session is, and how much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The longest gap between two requests of a session, nanoseconds.
    pub timeout_ns: u64,
    /// How much later than its place a request may come, nanoseconds.
    pub disorder_ns: u64,
    /// Clients remembered at once, and counted apart; about 100 bytes each.
    pub most_clients: usize,
}

impl Default for Rule {
    /// 30 minutes, 60 seconds of disorder, 4 Mi clients.
    fn default() -> Self {
        Self {
            timeout_ns: 1_800_000_000_000,
            disorder_ns: 60_000_000_000,
            most_clients: 4 << 20,
        }
    }
}

/// What has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Requests.
    pub requests: u64,
    /// Sessions.
    pub sessions: u64,
    /// Different clients.
    pub clients: u64,
    /// Whether there are more clients than could be distinguished.
    pub is_clients_least: bool,
    /// Requests that came later than the disorder that is put right.
    pub late: u64,
    /// Clients forgotten within their timeout because there were too many: their next request
    /// begins a session that may be none.
    pub forgotten: u64,
    /// Time of the first request, nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// Time of the last request.
    pub last_ns: Option<u64>,
}

/// Finds the beginnings of sessions.
#[derive(Debug)]
pub struct Sessions {
    rule: Rule,
    /// Requests that wait for earlier ones: time, place in the log, client.
    waiting: BinaryHeap<Reverse<(u64, u64, Client)>>,
    /// Time of the last request that left `waiting`.
    ordered_ns: u64,
    /// The last request of each client; those past their timeout are swept out now and then.
    last_of: HashMap<Client, u64>,
    sweep_ns: u64,
    /// Hashes of the clients seen.
    known: HashSet<u64>,
    hasher: RandomState,
    totals: Totals,
}

/// Requests that wait at once: beyond it the earliest goes on.
const MOST_WAITING: usize = 1 << 20;

impl Sessions {
    /// Nothing seen.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            waiting: BinaryHeap::new(),
            ordered_ns: 0,
            last_of: HashMap::new(),
            sweep_ns: 0,
            known: HashSet::new(),
            hasher: RandomState::new(),
            totals: Totals::default(),
        }
    }

    /// Takes a request; `begin` gets the time of every session that begins, in order but for late
    /// requests.
    pub fn request(&mut self, request: Request, begin: &mut impl FnMut(u64)) {
        let Request {
            time_ns, client, ..
        } = request;
        let newest = self
            .totals
            .last_ns
            .map_or(time_ns, |last| last.max(time_ns));
        let oldest = self
            .totals
            .first_ns
            .map_or(time_ns, |first| first.min(time_ns));
        self.totals.last_ns = Some(newest);
        self.totals.first_ns = Some(oldest);
        self.totals.requests += 1;
        if time_ns < self.ordered_ns {
            self.totals.late += 1;
            self.settle(time_ns, client, begin);
            return;
        }
        let place = self.totals.requests;
        self.waiting.push(Reverse((time_ns, place, client)));
        let until = newest.saturating_sub(self.rule.disorder_ns);
        while let Some(Reverse((time_ns, ..))) = self.waiting.peek()
            && (*time_ns < until || self.waiting.len() > MOST_WAITING)
        {
            self.next(begin);
        }
    }

    /// The log has ended.
    pub fn finish(&mut self, begin: &mut impl FnMut(u64)) {
        while !self.waiting.is_empty() {
            self.next(begin);
        }
    }

    /// What has been seen; sessions of requests that wait are not among it before the end.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    fn next(&mut self, begin: &mut impl FnMut(u64)) {
        if let Some(Reverse((time_ns, _, client))) = self.waiting.pop() {
            self.ordered_ns = time_ns;
            self.settle(time_ns, client, begin);
        }
    }

    fn settle(&mut self, time_ns: u64, client: Client, begin: &mut impl FnMut(u64)) {
        let timeout = self.rule.timeout_ns;
        if self.ordered_ns >= self.sweep_ns {
            self.forget(self.ordered_ns.saturating_sub(timeout));
            self.sweep_ns = self.ordered_ns.saturating_add(timeout);
        }
        if let Some(last) = self.last_of.get_mut(&client) {
            let is_new = time_ns > last.saturating_add(timeout);
            *last = time_ns.max(*last);
            if !is_new {
                return;
            }
        } else {
            self.make_room();
            self.last_of.insert(client, time_ns);
            self.count(client);
        }
        self.totals.sessions += 1;
        begin(time_ns);
    }

    /// Counts a client that is not remembered, the first time.
    fn count(&mut self, client: Client) {
        if self.known.len() < self.rule.most_clients {
            if self.known.insert(self.hasher.hash_one(client)) {
                self.totals.clients += 1;
            }
        } else if !self.known.contains(&self.hasher.hash_one(client)) {
            self.totals.is_clients_least = true;
        }
    }

    /// Forgets clients whose last request was before this.
    fn forget(&mut self, before_ns: u64) {
        self.last_of.retain(|_, last| *last >= before_ns);
        // A sweep looks at the whole room.
        if self.last_of.len() < self.last_of.capacity() / 8 {
            self.last_of.shrink_to(self.last_of.len() * 2);
        }
    }

    /// Of too many clients the quietest are forgotten, a quarter at least, so that this is seldom.
    fn make_room(&mut self) {
        if self.last_of.len() < self.rule.most_clients.max(1) {
            return;
        }
        let enough = self.rule.most_clients / 4 * 3;
        let mut span = self.rule.timeout_ns;
        self.forget(self.ordered_ns.saturating_sub(span));
        let remembered = self.last_of.len();
        while self.last_of.len() > enough && span > 0 {
            span /= 2;
            self.forget(self.ordered_ns.saturating_sub(span));
        }
        if self.last_of.len() > enough {
            self.last_of.clear();
        }
        self.totals.forgotten += (remembered - self.last_of.len()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const RULE: Rule = Rule {
        timeout_ns: 100,
        disorder_ns: 10,
        most_clients: 1000,
    };

    fn of(number: u32, time_ns: u64) -> Request {
        Request {
            time_ns,
            client: Client::Number(number),
            line: 0,
        }
    }

    fn starts(rule: Rule, requests: &[Request]) -> (Vec<u64>, Totals) {
        let mut sessions = Sessions::new(rule);
        let mut starts = Vec::new();
        let mut begin = |time_ns| starts.push(time_ns);
        for request in requests {
            sessions.request(*request, &mut begin);
        }
        sessions.finish(&mut begin);
        (starts, sessions.totals())
    }

    /// The paper's rule as it is reported: for each request look back through the log.
    fn by_looking_back(rule: Rule, requests: &[Request]) -> Vec<u64> {
        let mut sorted = requests.to_vec();
        sorted.sort_by_key(|request| request.time_ns);
        let mut last = BTreeMap::new();
        sorted
            .iter()
            .filter(|request| {
                let before = last.insert(request.client, request.time_ns);
                before.is_none_or(|before| request.time_ns - before > rule.timeout_ns)
            })
            .map(|request| request.time_ns)
            .collect()
    }

    #[test]
    fn a_gap_longer_than_the_timeout_begins_a_session() {
        let requests = [
            of(1, 0),
            of(2, 50),
            of(1, 100),
            of(1, 201),
            of(2, 150),
            of(2, 400),
        ];
        let (begun, totals) = starts(
            Rule {
                disorder_ns: 60,
                ..RULE
            },
            &requests,
        );
        assert_eq!(begun, [0, 50, 201, 400]);
        let expected = Totals {
            requests: 6,
            sessions: 4,
            clients: 2,
            first_ns: Some(0),
            last_ns: Some(400),
            ..Totals::default()
        };
        assert_eq!(totals, expected);
        assert_eq!(starts(RULE, &[]).1, Totals::default());
    }

    #[test]
    fn a_late_request_joins_the_session_it_belongs_to() {
        // The third is 500 late; client 1 was there since.
        let requests = [of(1, 550), of(2, 1000), of(1, 500), of(3, 500)];
        let (begun, totals) = starts(RULE, &requests);
        assert_eq!((begun, totals.late), (vec![550, 500, 1000], 2));
    }

    #[test]
    fn too_many_clients_are_forgotten_and_told() {
        let rule = Rule {
            most_clients: 8,
            ..RULE
        };
        let crowd: Vec<Request> = (0..40).map(|at| of(at, u64::from(at))).collect();
        let mut sessions = Sessions::new(rule);
        for request in &crowd {
            sessions.request(*request, &mut |_| {});
            assert!(sessions.last_of.len() <= 8);
        }
        sessions.finish(&mut |_| {});
        let totals = sessions.totals();
        assert_eq!((totals.sessions, totals.clients), (40, 8));
        assert!(totals.is_clients_least && totals.forgotten >= 32);
        // At one moment all of them have the same age.
        let crowd: Vec<Request> = (0..40).map(|at| of(at, 5)).collect();
        assert_eq!(starts(rule, &crowd).1.sessions, 40);
    }

    #[test]
    fn who_is_gone_takes_no_room() {
        let mut sessions = Sessions::new(RULE);
        for at in 0..10_000 {
            sessions.request(of(at, u64::from(at) * 3), &mut |_| {});
            assert!(sessions.last_of.len() <= 70, "two timeouts of 33 clients");
        }
        assert_eq!(sessions.totals().forgotten, 0);
    }

    proptest! {
        #[test]
        fn the_result_is_that_of_the_sorted_log(
            steps in prop::collection::vec((0..5_u32, 0..60_u64, 0..=10_u64), 0..300),
        ) {
            let mut now = 1000;
            let requests: Vec<Request> = steps
                .into_iter()
                .map(|(client, step, early)| {
                    now += step;
                    of(client, now - early)
                })
                .collect();
            let (begun, totals) = starts(RULE, &requests);
            prop_assert_eq!(begun, by_looking_back(RULE, &requests));
            prop_assert_eq!((totals.late, totals.forgotten), (0, 0));
        }

        #[test]
        fn no_order_is_too_strange(
            steps in prop::collection::vec((0..5_u32, any::<u64>()), 0..100),
            timeout_ns in any::<u64>(),
            disorder_ns in any::<u64>(),
        ) {
            let rule = Rule { timeout_ns, disorder_ns, most_clients: 3 };
            let requests: Vec<Request> = steps.iter().map(|(c, t)| of(*c, *t)).collect();
            let (begun, totals) = starts(rule, &requests);
            prop_assert_eq!(totals.sessions, begun.len() as u64);
            prop_assert!(totals.sessions <= totals.requests);
        }
    }
}
