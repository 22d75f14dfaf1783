//! Keeps a connection alive while the run goes on, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel,
};
use std::time::{Duration, Instant};

use linkweir_load::measure::{Figures, Progress};

use super::wire::Lines;
use super::wire::Message;
use crate::clock::now;

/// How often a sign of life is sent.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// After so long without one the other side counts as gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// News that wait to be taken.
const NEWS: usize = 16;

/// What comes from the other side.
pub(super) enum News {
    /// Its figures.
    Result(Box<Figures>),
    /// What it has counted so far.
    Progress(Box<Progress>),
    /// Its figures so far, as they were asked for.
    Interim(Box<Figures>),
    /// It has ours.
    Taken,
    /// It is gone or does not keep to the protocol: why.
    Gone(String),
}

/// A connection while the run goes on. Its thread ends with it.
#[derive(Debug)]
pub(super) struct Pump {
    orders: Sender<Message>,
    news: Receiver<News>,
    flags: Arc<Flags>,
}

/// What the loop of a run looks at.
#[derive(Debug, Default)]
struct Flags {
    stop: AtomicBool,
    report: AtomicBool,
    gone: AtomicBool,
}

impl Pump {
    /// Takes a connection over.
    pub(super) fn start(lines: Lines) -> std::io::Result<Self> {
        let (orders, to_send) = channel();
        // What nobody takes must not pile up: the other side waits.
        let (told, news) = sync_channel(NEWS);
        let flags = Arc::new(Flags::default());
        let worker = Worker {
            lines,
            to_send,
            told,
            flags: Arc::clone(&flags),
        };
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            orders,
            news,
            flags,
        })
    }

    /// Sends a line. Where the other side is gone, the news say so.
    pub(super) fn send(&self, message: Message) {
        let _told_by_the_news = self.orders.send(message);
    }

    /// Whether the other side wants this run to end.
    pub(super) fn must_stop(&self) -> bool {
        self.flags.stop.load(Ordering::Relaxed)
    }

    /// Whether the other side has asked for the figures so far since the last look.
    pub(super) fn take_report(&self) -> bool {
        self.flags.report.load(Ordering::Relaxed)
            && self.flags.report.swap(false, Ordering::Relaxed)
    }

    /// Whether the other side is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.flags.gone.load(Ordering::Relaxed)
    }

    /// What comes within `span`; `None` where nothing does.
    pub(super) fn wait(&self, span: Duration) -> Option<News> {
        match self.news.recv_timeout(span) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(News::Gone("the connection has ended".to_owned()))
            }
        }
    }
}

struct Worker {
    lines: Lines,
    to_send: Receiver<Message>,
    told: SyncSender<News>,
    flags: Arc<Flags>,
}

impl Worker {
    fn run(mut self) {
        if let Err(error) = self.serve() {
            self.flags.gone.store(true, Ordering::Relaxed);
            let _nobody_listens = self.told.send(News::Gone(format!("{error:#}")));
        }
    }

    /// Ends well when the run drops the pump.
    fn serve(&mut self) -> anyhow::Result<()> {
        let (mut sent, mut heard): (Instant, Instant) = (now(), now());
        loop {
            match self.to_send.try_recv() {
                Ok(message) => {
                    self.lines.send(&message)?;
                    sent = now();
                    continue;
                }
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => {}
            }
            if now().duration_since(sent) >= BEAT {
                self.lines.send(&Message::Alive)?;
                sent = now();
            }
            let Some(message) = self.lines.glance()? else {
                if now().duration_since(heard) >= PATIENCE {
                    anyhow::bail!("{}: it is silent", self.lines.peer());
                }
                continue;
            };
            heard = now();
            let news = match message {
                Message::Alive => continue,
                Message::Stop => {
                    self.flags.stop.store(true, Ordering::Relaxed);
                    continue;
                }
                Message::Report => {
                    self.flags.report.store(true, Ordering::Relaxed);
                    continue;
                }
                Message::Progress(progress) => News::Progress(progress),
                Message::Interim(figures) => News::Interim(figures),
                Message::Result(figures) => News::Result(figures),
                Message::Taken => News::Taken,
                _ => anyhow::bail!("{}: it is out of step", self.lines.peer()),
            };
            if self.told.send(news).is_err() {
                return Ok(());
            }
        }
    }
}
