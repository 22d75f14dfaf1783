//! Half-transactions instead of packets: the rows of `linkweir halves`, as engines sort and distribute them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use linkweir_columnar::{HalfError, Halves};
use linkweir_engine::{Fault, FaultKind, Source, SourceError, SourceEvent};
use linkweir_http::HalfFrames;
use linkweir_record::human::counted;
use linkweir_record::{HalfBatch, RecordBatch};

/// Bytes of frames that are given at once, about.
const BATCH_BYTES: usize = 512 << 10;

/// Gives the rows of streams and files, one after the other, as the packets that they were.
#[derive(Debug)]
pub(super) struct HalvesSource {
    inputs: VecDeque<PathBuf>,
    current: Option<(String, Halves)>,
    /// The input before, to whose end the next one is joined.
    before: Option<Halves>,
    rows: HalfBatch,
    /// Rows of `rows` that were given.
    given: usize,
    frames: HalfFrames,
}

impl HalvesSource {
    pub(super) fn new(inputs: &[PathBuf]) -> Self {
        Self {
            inputs: inputs.iter().cloned().collect(),
            current: None,
            before: None,
            rows: HalfBatch::default(),
            given: 0,
            frames: HalfFrames::default(),
        }
    }

    /// Makes frames of the rows that are there; whether there were any.
    fn fill(&mut self) -> bool {
        self.frames.clear();
        while self.frames.bytes() < BATCH_BYTES
            && let Some(half) = self.rows.get(self.given)
        {
            self.frames.push(&half);
            self.given += 1;
        }
        !self.frames.is_empty()
    }

    /// Reads the next rows; what is wrong with the input, where something is.
    fn read(&mut self) -> Result<Option<Fault>, HalfError> {
        let Some((name, halves)) = &mut self.current else {
            return Ok(None);
        };
        self.rows.clear();
        self.given = 0;
        if halves.read(&mut self.rows)? {
            return Ok(None);
        }
        let fault = halves.disordered().map(|(count, first)| Fault {
            input: name.clone(),
            offset: None,
            kind: FaultKind::Damaged,
            message: format!(
                "{} out of order, the first is row {first}: sort them by order_ns, file, packet",
                counted(count, "row")
            ),
        });
        self.before = self.current.take().map(|(_, halves)| halves);
        Ok(fault)
    }
}

fn open(path: &Path) -> Result<Halves, HalfError> {
    if path.as_os_str() == "-" {
        Halves::of_stream(std::io::stdin())
    } else {
        Halves::of_file(path)
    }
}

impl Source for HalvesSource {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        loop {
            if self.fill() {
                return Ok(SourceEvent::Batch(self.frames.batch()));
            }
            if let Some((name, halves)) = &self.current {
                let (name, before) = (name.clone(), halves.rows());
                match self.read() {
                    Ok(None) => {}
                    Ok(Some(fault)) => return Ok(SourceEvent::Fault(fault)),
                    Err(error) => {
                        self.current = None;
                        // Rows before a wrong one have come; the fault follows them.
                        let kind = if before == 0 && self.rows.is_empty() {
                            FaultKind::Unusable
                        } else {
                            FaultKind::Damaged
                        };
                        return Ok(SourceEvent::Fault(Fault {
                            input: name,
                            offset: None,
                            kind,
                            message: format!("after {}: {error}", counted(before, "row")),
                        }));
                    }
                }
                continue;
            }
            let Some(path) = self.inputs.pop_front() else {
                return Ok(SourceEvent::End);
            };
            let name = path.display().to_string();
            match open(&path) {
                Ok(mut halves) => {
                    if let Some(before) = self.before.take() {
                        halves.follow(&before);
                    }
                    self.current = Some((name, halves));
                }
                Err(error) => {
                    return Ok(SourceEvent::Fault(Fault {
                        input: name,
                        offset: None,
                        kind: FaultKind::Unusable,
                        message: error.to_string(),
                    }));
                }
            }
        }
    }
}
