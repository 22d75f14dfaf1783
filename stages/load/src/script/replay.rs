//! Sessions of recorded requests, with their timing: records of `linkweir http` played again.

use std::collections::HashMap;
use std::net::IpAddr;

use super::plan::{Method, PagePlan, Plan, RequestPlan, SessionPlan, header_fault, target_fault};

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// When it was seen, nanoseconds since any origin.
    pub at_ns: u64,
    /// Who asked.
    pub client: IpAddr,
    /// Method token.
    pub method: String,
    /// Request target, also in absolute form.
    pub target: String,
    /// `Host`; empty where it is not known.
    pub host: String,
}

/// How recorded requests become sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySettings {
    /// A client that was silent for so long begins a new session, nanoseconds.
    pub timeout_ns: u64,
    /// Whether requests keep their recorded `Host`; else they have that of the site.
    pub keeps_hosts: bool,
    /// Connections and keep-alive of each session.
    pub like: SessionPlan,
}

/// Recorded sessions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replayed {
    /// One session for each, in the order of their beginnings.
    pub plan: Plan,
    /// When each begins, nanoseconds from the first: for [`Replay::new`](crate::arrivals::Replay::new).
    pub starts_ns: Vec<u64>,
    /// Requests that could not be played: other methods, targets that are none.
    pub skipped: u64,
}

/// Groups records, in any order, into sessions.
///
/// The requests of a session become one page with times of its own: each is due at its recorded
/// distance from the first, and goes out then if one of the session's connections is free, else as soon
/// as one is; what it waited counts, as everywhere. Bodies were not recorded: `POST` and `PUT` go without.
#[must_use]
pub fn sessions_of(mut records: Vec<RecordedRequest>, settings: &ReplaySettings) -> Replayed {
    records.sort_by_key(|record| record.at_ns);
    let mut replayed = Replayed::default();
    // Of each client: its session, its page and when it was seen last.
    let mut open: HashMap<IpAddr, (usize, u64)> = HashMap::new();
    let mut first_ns = None;
    for record in &records {
        let Some(request) = request_of(record, settings.keeps_hosts) else {
            replayed.skipped += 1;
            continue;
        };
        let begin_ns = record.at_ns - *first_ns.get_or_insert(record.at_ns);
        let going_on = open
            .get_mut(&record.client)
            .filter(|(_, last)| record.at_ns - *last < settings.timeout_ns);
        if let Some((session, last)) = going_on {
            *last = record.at_ns;
            let page = replayed
                .plan
                .sessions
                .get_mut(*session)
                .and_then(|session| session.pages.first_mut());
            let start_ns = replayed.starts_ns.get(*session).copied();
            if let (Some(page), Some(start_ns)) = (page, start_ns) {
                page.objects.push(request);
                page.offsets_ns.push(begin_ns - start_ns);
            }
            continue;
        }
        open.insert(record.client, (replayed.plan.sessions.len(), record.at_ns));
        let page = PagePlan {
            base: request,
            ..PagePlan::default()
        };
        replayed.starts_ns.push(begin_ns);
        replayed.plan.sessions.push(SessionPlan {
            pages: vec![page],
            ..settings.like.clone()
        });
    }
    replayed
}

/// The request as it can be sent.
fn request_of(record: &RecordedRequest, keeps_hosts: bool) -> Option<RequestPlan> {
    let method = Method::of(&record.method)?;
    let target = record.target.as_str();
    // Absolute form, to a proxy (RFC 9112 sec. 3.2.2): the path alone.
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => match rest.find('/') {
            Some(slash) => rest.get(slash..)?,
            None => "/",
        },
        _ => target,
    };
    if target_fault(target).is_some() {
        return None;
    }
    let mut request = RequestPlan {
        method,
        ..RequestPlan::get(target)
    };
    if keeps_hosts && !record.host.is_empty() && header_fault("Host", &record.host).is_none() {
        request
            .headers
            .push(("Host".to_owned(), record.host.clone()));
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn record(at_ns: u64, client: u8, method: &str, target: &str) -> RecordedRequest {
        RecordedRequest {
            at_ns,
            client: IpAddr::V4(Ipv4Addr::new(10, 0, 0, client)),
            method: method.to_owned(),
            target: target.to_owned(),
            host: "old.test".to_owned(),
        }
    }

    #[test]
    fn a_client_that_was_silent_begins_a_session() {
        let records = vec![
            record(110 * SECOND, 1, "GET", "/late"),
            record(100 * SECOND, 1, "GET", "/"),
            record(100 * SECOND + 7, 1, "GET", "http://old.test/a.png"),
            record(101 * SECOND, 2, "POST", "/form"),
            record(102 * SECOND, 2, "OPTIONS", "*"),
            record(102 * SECOND, 2, "GET", "http://old.test"),
            record(109 * SECOND + 9, 1, "GET", "/in time"),
        ];
        let settings = ReplaySettings {
            timeout_ns: 9 * SECOND,
            keeps_hosts: true,
            like: SessionPlan::default(),
        };
        let replayed = sessions_of(records, &settings);
        assert_eq!(replayed.skipped, 2, "OPTIONS, and a target with a blank");
        assert_eq!(replayed.starts_ns, [0, SECOND, 10 * SECOND]);
        let page = |session: usize| &replayed.plan.sessions[session].pages[0];
        assert_eq!(page(0).base.target, "/");
        assert_eq!(
            page(0).base.headers,
            [("Host".to_owned(), "old.test".to_owned())]
        );
        assert_eq!(page(0).objects[0].target, "/a.png");
        assert_eq!(page(0).offsets_ns, [7]);
        assert_eq!(page(1).base.method, Method::Post);
        assert_eq!(page(1).objects[0].target, "/");
        assert_eq!(page(1).offsets_ns, [SECOND]);
        assert_eq!(page(2).base.target, "/late");
        assert_eq!(sessions_of(Vec::new(), &settings), Replayed::default());
    }
}
