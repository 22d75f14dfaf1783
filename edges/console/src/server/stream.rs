//! What an answer carries: bytes at once, or events as they come. Server-sent events (HTML standard, "Server-sent events"): an interval each, and the end.
//!
//! Every stream has its own task and a channel of one piece: a browser that does not read holds one
//! piece and misses intervals that are no longer kept, nothing else.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
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

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// All of it; `None` once sent.
    Whole(Option<Bytes>),
    /// Pieces until the sender is gone.
    Stream(mpsc::Receiver<Bytes>),
    /// One of [`super::Pages`], which is still to be made: never sent.
    Wanted,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()),
            Self::Wanted => None,
            Self::Stream(pieces) => match pieces.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(piece) => piece,
            },
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Stream(_) => false,
            Self::Wanted => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) | Self::Wanted => SizeHint::default(),
        }
    }
}
