//! Server-sent events (HTML standard, "Server-sent events"): an interval each, and the end.
//!
//! Every stream has its own task and a channel of one piece: a browser that does not read holds one
//! piece and misses intervals that are no longer kept, nothing else.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use crate::served::Served;

/// Intervals in one piece.
const MAX_TICKS_AT_ONCE: usize = 60;
/// How soon a browser is to come back after a break, milliseconds.
const RETRY_MS: u32 = 1000;

/// Sends the intervals after `after` until the run has ended or the client has gone.
pub(super) async fn send(
    live: Arc<dyn Served>,
    mut after: u64,
    mut news: watch::Receiver<(u64, bool)>,
    heartbeat: Duration,
    pieces: mpsc::Sender<Bytes>,
    place: OwnedSemaphorePermit,
) {
    let mut piece = format!("retry: {RETRY_MS}\n\n");
    loop {
        // In this order: what comes between is not missed.
        let is_finished = live.is_finished();
        let (ticks, is_all) = live.ticks_after(after, MAX_TICKS_AT_ONCE);
        for (id, data) in ticks {
            after = id;
            // JSON has no line feed; writing to a String cannot fail.
            write!(piece, "id: {after}\nevent: tick\ndata: {data}\n\n").ok();
        }
        let is_end = is_finished && is_all;
        if is_end {
            piece.push_str("event: end\ndata: {}\n\n");
        }
        if !piece.is_empty()
            && pieces
                .send(Bytes::from(std::mem::take(&mut piece)))
                .await
                .is_err()
        {
            break;
        }
        if is_end {
            break;
        }
        if is_all {
            match tokio::time::timeout(heartbeat, news.changed()).await {
                Ok(Ok(())) => {}
                // The server has gone.
                Ok(Err(_)) => break,
                // A comment: proxies and browsers see that the stream lives.
                Err(_) => piece.push_str(": still here\n\n"),
            }
        }
    }
    drop(place);
}
