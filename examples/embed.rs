//! The HTTP stage, driven from a program of your own: prints the slowest transactions of a capture.
//!
//! `cargo run --example embed -- capture.pcap`
//!
//! A stage is a state machine without clock, threads or I/O. Frames come from any `Source` (here: files; an
//! interface is `linkweir_capture::live`), records go to any `Sink` (here: a list).

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Directive, Limit, Outputs, Run, Sink, SinkError};
use linkweir_http::{HttpConfig, HttpStage};
use linkweir_record::{HttpBatch, HttpKind, RecordBatch as _};

/// Response time in nanoseconds, status code, host and target of what was answered.
type Answered = (u64, u16, String);

struct Slowest(Rc<RefCell<Vec<Answered>>>);

impl Sink<HttpKind> for Slowest {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        let answered = batch.views().filter_map(|one| {
            // The text is the network's: print it escaped.
            let target = [one.text.host, one.text.uri]
                .concat()
                .escape_ascii()
                .to_string();
            Some((one.row.response_time_ns()?, one.row.status_code?, target))
        });
        self.0.borrow_mut().extend(answered);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.0.borrow_mut().sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "what the example is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inputs: Vec<Input> = std::env::args_os()
        .skip(1)
        .map(|path| PathBuf::from(path).into())
        .collect();
    let source = CaptureFiles::open(&inputs, ReadOptions::default())?;
    let mut stage = HttpStage::new(&HttpConfig::default());
    let answered = Rc::default();
    let mut outputs = Outputs::default();
    outputs.add("slowest", Box::new(Slowest(Rc::clone(&answered))));

    let run = Run::new(&mut stage, &mut outputs, Limit::default());
    let (report, ended) = run.drive(source, |_, _| Directive::Continue);
    ended?;

    let stats = stage.stats();
    println!(
        "{} packets, {} transactions",
        report.packets, stats.transactions
    );
    for (ns, status, target) in answered.borrow().iter().take(10) {
        println!("{:>10.3} ms  {status}  {target}", *ns as f64 / 1e6);
    }
    Ok(())
}
