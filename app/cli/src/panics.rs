//! A panic is a fault of the program, on whichever thread: its message, and then the end.

use std::{panic, process};

/// Makes every panic end the program, but for those that a library of columns is guarded from.
pub fn end_the_program() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_guarded() {
            return;
        }
        tell(info);
        process::abort();
    }));
}

#[cfg(feature = "parquet")]
fn is_guarded() -> bool {
    linkweir_columnar::is_guarded()
}

#[cfg(not(feature = "parquet"))]
const fn is_guarded() -> bool {
    false
}
