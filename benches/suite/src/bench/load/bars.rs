//! What the rows must reach.

use super::rates::Series;
use super::row::{Mode, Tool};
use crate::bench::bars::Bar;

/// New connections per second, in those of wrk.
const LEAST_CLOSE: f64 = 1.6;
/// Requests per second over connections that are kept, in those of wrk.
const LEAST_KEEP_ALIVE: f64 = 1.0;

/// The promises about our rows in a table.
pub(super) fn of_rows(all: &[Series]) -> Vec<Bar> {
    let wrk = all.iter().find(|series| series.tool == Tool::Wrk);
    let ours = all
        .iter()
        .filter(|series| matches!(series.tool, Tool::Linkweir(_)));
    ours.map(|own| bar(own, wrk)).collect()
}

fn bar(own: &Series, wrk: Option<&Series>) -> Bar {
    let addresses = own.tool.addresses();
    let least = match own.mode {
        Mode::Close => LEAST_CLOSE,
        Mode::KeepAlive => LEAST_KEEP_ALIVE,
    };
    let what = match own.mode {
        Mode::Close => format!(
            "{addresses} client addresses: connections/s at least {least} x wrk's, or the server's core full"
        ),
        Mode::KeepAlive => {
            format!("{addresses} client addresses: keep-alive requests/s at least wrk's")
        }
    };
    let ratio = wrk.map_or(f64::NAN, |wrk| own.over(wrk));
    let is_excused = own.mode == Mode::Close && own.is_server_full() && ratio >= 1.0;
    let core = 100.0 * own.median(|run| run.busy.server);
    Bar {
        what,
        figure: format!("{ratio:.2} x, the server's core {core:.0} %"),
        passed: ratio >= least || is_excused,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::series;
    use super::super::row::Clients;
    use super::*;

    fn passed(mode: Mode, rate: f64, server: f64) -> bool {
        let wrk = series(Tool::Wrk, mode, &[10.0], 0.5);
        let own = series(Tool::Linkweir(Clients::One), mode, &[rate], server);
        let bars = of_rows(&[wrk, own]);
        assert_eq!(bars.len(), 1);
        bars[0].passed
    }

    #[test]
    fn faster_or_a_full_server() {
        assert!(passed(Mode::Close, 16.0, 0.2) && !passed(Mode::Close, 15.9, 0.2));
        assert!(passed(Mode::Close, 12.0, 0.97));
        // A full core excuses nobody who is slower than wrk.
        assert!(!passed(Mode::Close, 9.0, 0.97));
        assert!(passed(Mode::KeepAlive, 10.0, 0.2) && !passed(Mode::KeepAlive, 9.9, 0.99));
    }

    #[test]
    fn without_wrk_nothing_is_reached() {
        let own = series(Tool::Linkweir(Clients::One), Mode::Close, &[1e6], 1.0);
        assert!(!of_rows(&[own])[0].passed);
    }
}
