//! The live statistics in a terminal.
//!
//! ```text
//! Live ──► Screen (what is shown) ──► draw(frame) ──► terminal
//!             ▲ keys                └► one line per interval where there is no terminal
//! ```
//! A thread of its own reads the same [`LiveOf`] as the web page; the run never waits for it. It puts
//! the terminal back as it was when it ends: when the view is dropped, when `q` is pressed, when the
//! terminal goes away (a closed window, a lost connection), when the run is asked to stop (so that a second signal, which ends the process at once, finds the terminal
//! in order), and before a panic prints its message.

mod beside;
mod draw;
mod gateway;
mod load;
mod look;
mod number;
mod probes;
mod screen;
mod shown;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::{Terminal, backend::CrosstermBackend};
use thiserror::Error;

use self::number::{clock, count, percent};
use self::screen::{After, Screen};
pub use self::shown::{Bar, Curve, Heading, Pair, Panel, Shown, Tone};
use linkweir_live::LiveOf;
use linkweir_live::api::{AlertState, Tick};

/// How long a key or the end of the run may wait to be seen.
const POLL: Duration = Duration::from_millis(100);

/// Where the lines go that stand in for the view where standard output is no terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinesTo {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error: for runs whose records go to standard output.
    Stderr,
}

/// How the view looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopOptions {
    /// Colours; without them (`NO_COLOR`) weight and reversal say the same.
    pub is_coloured: bool,
    /// For lines: where they go.
    pub lines_to: LinesTo,
    /// Whether the view stays after the end of the run until somebody presses `q`.
    pub stays: bool,
    /// Whether the run is for this view alone, and so is asked to end when its terminal goes away.
    pub is_all: bool,
}

impl Default for TopOptions {
    fn default() -> Self {
        Self {
            is_coloured: true,
            lines_to: LinesTo::Stdout,
            stays: false,
            is_all: false,
        }
    }
}

/// Why the view could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TopError {
    /// The terminal could not be set up.
    #[error("terminal: {0}")]
    Terminal(io::Error),
    /// The thread could not be started.
    #[error("start the thread of the terminal view: {0}")]
    Thread(io::Error),
}

/// The running view. Dropping it puts the terminal back.
#[derive(Debug)]
pub struct Top {
    leave: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    is_fullscreen: bool,
}

/// Whether the view has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

impl Top {
    /// Starts the view of `live`: on the whole screen where standard output is a terminal, else as
    /// one line per interval.
    ///
    /// `stop` is the flag by which the run is asked to end: `q` sets it, and the view ends when it
    /// is set. Other output must not go to the terminal while [`Top::is_fullscreen`].
    ///
    /// # Errors
    /// The terminal could not be set up, or no thread could be started.
    pub fn start<K: Shown>(
        live: LiveOf<K>,
        options: TopOptions,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, TopError> {
        let leave = Arc::new(AtomicBool::new(false));
        let is_fullscreen = io::stdout().is_terminal() && has_keys();
        let seen = Arc::clone(&leave);
        let builder = thread::Builder::new().name("top".to_owned());
        let thread = if is_fullscreen {
            let taken = Taken::take().map_err(TopError::Terminal)?;
            builder.spawn(move || {
                // Only the terminal can fail here, and it is gone: the error cannot be shown.
                let is_gone = screen_loop(&live, options, &stop, &seen).is_err() || is_hung_up();
                if is_gone && options.is_all {
                    stop.store(true, Ordering::Relaxed);
                }
                drop(taken);
            })
        } else {
            builder.spawn(move || {
                let done = match options.lines_to {
                    LinesTo::Stdout => line_loop(&live, &mut io::stdout(), &stop, &seen),
                    LinesTo::Stderr => line_loop(&live, &mut io::stderr(), &stop, &seen),
                };
                // A reader that went away wants no more lines.
                done.ok();
            })
        };
        Ok(Self {
            leave,
            thread: Some(thread.map_err(TopError::Thread)?),
            is_fullscreen,
        })
    }

    /// Whether the view has the whole screen (else it writes lines).
    #[must_use]
    pub const fn is_fullscreen(&self) -> bool {
        self.is_fullscreen
    }

    /// After [`LiveOf::finish`]: shows the end of the run, stays until `q` if the options say so, and
    /// puts the terminal back.
    pub fn finish(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic there has printed its message.
            thread.join().ok();
        }
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        self.leave.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Whether keys can be read: where the capture comes on standard input, from the terminal itself.
fn has_keys() -> bool {
    io::stdin().is_terminal() || File::open("/dev/tty").is_ok()
}

/// Whether the terminal of the view, which was one, has gone away: it answers no question any more.
fn is_hung_up() -> bool {
    !io::stdout().is_terminal()
}

/// The terminal in raw mode on its other screen, until dropped.
struct Taken;

impl Taken {
    fn take() -> io::Result<Self> {
        // Not per view: hooks cannot be taken away again without losing those set in between.
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let taken = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Puts the terminal back, once.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // As much of it as can be done.
        execute!(io::stdout(), LeaveAlternateScreen, cursor::Show).ok();
        disable_raw_mode().ok();
    }
}

fn screen_loop<K: Shown>(
    live: &LiveOf<K>,
    options: TopOptions,
    stop: &AtomicBool,
    leave: &AtomicBool,
) -> io::Result<()> {
    // When dropped it shows the cursor, which `Taken` does, and where that fails it prints, which panics
    // where the terminal has gone.
    let mut terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
    let Some(mut screen) = Screen::new(options.is_coloured) else {
        return Ok(());
    };
    screen.refresh(live);
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut screen))?;
        // Until something is to be drawn.
        loop {
            if stop.load(Ordering::Relaxed) || leave.load(Ordering::Relaxed) || is_hung_up() {
                return Ok(());
            }
            if event::poll(POLL)? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => match screen.key(key) {
                        After::Nothing => continue,
                        After::Draw => break,
                        After::Ask => {
                            screen.ask(live);
                            break;
                        }
                        After::Repaint => {
                            terminal.clear()?;
                            break;
                        }
                        After::Quit => {
                            stop.store(true, Ordering::Relaxed);
                            return Ok(());
                        }
                    },
                    Event::Resize(..) => break,
                    _ => continue,
                }
            }
            if screen.is_behind(live) {
                screen.refresh(live);
                break;
            }
            if live.is_finished() && !options.stays {
                return Ok(());
            }
        }
    }
}

fn line_loop<K: Shown>(
    live: &LiveOf<K>,
    out: &mut impl Write,
    stop: &AtomicBool,
    leave: &AtomicBool,
) -> io::Result<()> {
    let mut last = 0;
    loop {
        // Asked before the intervals are: the last ones are closed before the run is finished.
        let is_finished = live.is_finished();
        for tick in live.wait_tick(last, POLL) {
            writeln!(out, "{}", line::<K>(&tick))?;
            last = tick.id;
        }
        out.flush()?;
        if is_finished || leave.load(Ordering::Relaxed) {
            return Ok(());
        }
        // The run still finishes its last intervals.
        if stop.load(Ordering::Relaxed) && live.last_id() == last {
            return Ok(());
        }
    }
}

/// `12:30:01Z dropped 0 table 3.78% req/s 7.57k p50 7.96ms ...`: losses first, names before values.
fn line<K: Shown>(tick: &Tick<K::Figures>) -> String {
    let mut out = clock(tick.t_ms);
    // Writing to a String cannot fail.
    let mut put = |name: &str, value: &str| write!(out, " {name} {value}").ok();
    put("dropped", &count(tick.dropped_total.total()));
    if tick.dropped.total() > 0 {
        put("now", &format!("+{}", count(tick.dropped.total())));
    }
    // Of a table whose capacity is not known there is no share.
    let (entries, capacity) = (tick.table.entries, tick.table.capacity);
    let table = if capacity == 0 {
        count(entries)
    } else {
        percent(entries, capacity)
    };
    put("table", &table);
    for (name, value) in K::in_line(tick) {
        put(&name, &value);
    }
    for alert in &tick.alerts {
        if alert.state == AlertState::Firing {
            put("ALERT", &alert.rule);
        }
    }
    out
}
