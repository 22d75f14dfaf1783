//! Damaged columns end in a message, also where the library that decodes them gives up.
#![cfg(feature = "parquet")]

use std::path::Path;

use crate::common::{demo_frames, plain, run};
use linkweir_columnar::{ColumnarError, HalfError, Halves, SelectError};
use linkweir_record::{HalfBatch, RecordBatch};

/// Damaged files that are tried at most: of those tried first about one in 2,000 makes it give up.
const TRIED: u64 = 200_000;

/// Whether the library gives up over these halves, instead of saying what is wrong with them.
fn gives_up(path: &Path) -> bool {
    let mut rows = HalfBatch::default();
    let outcome = Halves::of_file(path).and_then(|mut halves| {
        while halves.read(&mut rows)? {
            rows.clear();
        }
        Ok(())
    });
    matches!(
        outcome,
        Err(HalfError::Select(SelectError::Columnar(
            ColumnarError::Damaged(_)
        )))
    )
}

#[test]
fn a_library_that_gives_up_does_not_end_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (capture, halves, damaged) = (path("x.pcap"), path("x.parquet"), path("damaged.parquet"));
    std::fs::write(&capture, plain(&demo_frames()[..60])).unwrap();
    let _done = run(&["halves", "-q", "-r", &capture, "-w", &halves]).exits(0);
    let whole = std::fs::read(&halves).unwrap();
    // Panics that are expected are not worth a word of the test.
    std::panic::set_hook(Box::new(|_| {}));
    let mut state = 1_u64;
    let found = (0..TRIED).any(|_| {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 56) as u8;
        }
        std::fs::write(&damaged, bytes).unwrap();
        gives_up(Path::new(&damaged))
    });
    let _default = std::panic::take_hook();
    assert!(
        found,
        "the library gives up over nothing: is its guard still needed?"
    );
    let ran = run(&[
        "http",
        "-q",
        "--from-halves",
        &damaged,
        "-w",
        &path("out.jsonl"),
    ]);
    // 1 where rows came before the damage, 3 where none did; a signal has no code.
    assert!(matches!(ran.code, Some(1 | 3)), "{:?}", ran.code);
    let _told = ran.says("damaged: ");
}
