//! Reports of a run that goes on: what SIGUSR1 asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::anyhow;
use linkweir_load::measure::{Figures, Limits};
use linkweir_record::human::span;

use super::args::LoadArgs;
use super::conclude::{self, Beside};
use super::report::{Files, Header, Report};
use super::table::Speaker;

/// The files of a run until it ends.
///
/// They are written on a thread of their own, for the schedule never waits for a disk; one that is there from the
/// begin, for a later one would have the real-time priority of the thread that sends.
pub(super) struct Interim {
    /// None after the end.
    asked: Option<Sender<Asked>>,
    writer: Option<JoinHandle<Files>>,
    is_writing: Arc<AtomicBool>,
}

/// A report that was asked for.
struct Asked {
    figures: Figures,
    beside: Beside,
    speaker: Speaker,
}

impl Interim {
    /// Nothing was asked for yet.
    pub(super) fn start(args: &LoadArgs, header: &Header, files: Files) -> anyhow::Result<Self> {
        let (sender, asked) = channel();
        let is_writing = Arc::new(AtomicBool::new(false));
        let mut writer = Writer {
            header: header.clone(),
            limits: conclude::limits(args),
            quiet: args.output.quiet || args.view.top,
            files,
            is_writing: Arc::clone(&is_writing),
        };
        let thread = std::thread::Builder::new().name("report".to_owned());
        Ok(Self {
            asked: Some(sender),
            writer: Some(thread.spawn(move || {
                writer.run(&asked);
                writer.files
            })?),
            is_writing,
        })
    }

    /// Whether the last report is written: while it is, no other begins.
    pub(super) fn is_free(&self) -> bool {
        !self.is_writing.load(Ordering::Relaxed)
    }

    /// Writes what the end of the run would, as it stands now, and says it to whoever looks.
    pub(super) fn write(&self, figures: Figures, beside: Beside, speaker: Speaker) {
        let report = Asked {
            figures,
            beside,
            speaker,
        };
        self.is_writing.store(true, Ordering::Relaxed);
        if let Some(asked) = &self.asked {
            // Where the thread has panicked, the end of the run says so.
            drop(asked.send(report));
        }
    }

    /// The files, for the end of the run.
    pub(super) fn finish(&mut self) -> anyhow::Result<Files> {
        self.asked = None;
        let Some(writer) = self.writer.take() else {
            return Ok(Files::default());
        };
        let files = writer.join();
        files.map_err(|_| anyhow!("the writer of reports has panicked"))
    }
}

/// The side of the thread.
struct Writer {
    header: Header,
    limits: Limits,
    quiet: bool,
    files: Files,
    is_writing: Arc<AtomicBool>,
}

impl Writer {
    fn run(&mut self, asked: &Receiver<Asked>) {
        for one in asked {
            self.write(&one);
            self.is_writing.store(false, Ordering::Relaxed);
        }
    }

    fn write(&mut self, asked: &Asked) {
        let figures = &asked.figures;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "nanoseconds of a run"
        )]
        let age = span((figures.open.seconds() * 1e9) as u64);
        let mut header = self.header.clone();
        header.push("intermediate", format!("{age} after the first session"));
        let verdict = figures.verdict(&self.limits);
        let report = Report {
            header: &header,
            figures,
            verdict: &verdict,
            rates: None,
            is_intermediate: true,
        };
        if !self.quiet {
            let text = report.to_screen();
            asked.speaker.say(format!(
                "linkweir: {age} after the first session; the run goes on\n{}",
                text.trim_end()
            ));
        }
        self.files.write_now(report, &asked.beside.summary(report));
    }
}
