//! Figures for tests.

use std::net::{IpAddr, Ipv4Addr};

use linkweir_load::measure::{Figures, Measure, Options, Roll};
use linkweir_load::outcome::{Exchange, Failure, Observer as _, SessionEnd};
use linkweir_load::seam::Client;
use linkweir_wire::Timestamp;

struct Halves;

impl Roll for Halves {
    fn address(&self, client: Client) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + client))
    }

    fn group(&self, client: Client) -> usize {
        (client % 2) as usize
    }
}

/// Sessions with numbers from `from` in steps of `step`, four a second; each is 20 us late, is answered
/// after 10 ms and closed a second after it started; every tenth is reset.
pub(in crate::load) fn figures(sessions: u64, from: u64, step: usize) -> Figures {
    const MILLI: u64 = 1_000_000;
    let options = Options {
        server: "192.0.2.1:80".parse().expect("an address"),
        groups: vec!["dsl".to_owned(), "mobile".to_owned()],
        has_records: false,
    };
    let mut measure = Measure::new(Halves, options);
    for session in (from..sessions).step_by(step) {
        let at = |nanos: u64| {
            Timestamp::from_nanos(1_700_000_000_000_000_000 + session * 250 * MILLI + nanos)
        };
        let client = Client::try_from(session).unwrap_or(0);
        let (planned, started) = (at(0), at(20_000));
        let failure = (session % 10 == 9).then_some(Failure::Reset);
        let came = failure.is_none();
        measure.on_start(client, planned, started);
        measure.on_connect(client, 200_000, 0);
        measure.on_exchange(
            &Exchange {
                session,
                client,
                is_page: true,
                intended: planned,
                sent: Some(at(220_000)),
                first_byte: came.then(|| at(9 * MILLI)),
                last_byte: came.then(|| at(10 * MILLI)),
                status: if came { 200 } else { 0 },
                request_bytes: 100,
                response_bytes: 1000,
                failure,
            },
            b"/",
            40_000,
        );
        measure.on_session(&SessionEnd {
            session,
            client,
            planned,
            started: Some(started),
            ended: at(20_000 + 1000 * MILLI),
            pages: u32::from(came),
            requests: 1,
            responses: u32::from(came),
            connections: 1,
            request_bytes: 100,
            response_bytes: 1000,
            last_status: if came { 200 } else { 0 },
            statuses: [0, u32::from(came), 0, 0, 0],
            failure,
        });
    }
    measure
        .figures_mut()
        .tcp
        .insert("data_retransmissions".to_owned(), 2);
    measure.into_figures()
}
