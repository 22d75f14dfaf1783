//! A library that gives up over damaged bytes gives up alone.
//!
//! Decoders of Parquet check what they are told while they go, and not all of it: some damaged pages end
//! in a panic (an index behind the end, a dictionary that never came). Which those are changes with the
//! version, so none is looked for: a panic of the library is an error like another.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::ColumnarError;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread becomes an error, for the program's panic hook: it has nothing to say
/// then and must not end the program.
#[must_use]
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// What `work` gives. What it works with must not be used again after an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, ColumnarError> {
    let before = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    result.map_err(|payload| ColumnarError::Damaged(said(payload.as_ref())))
}

/// The message of a panic.
fn said(payload: &(dyn Any + Send)) -> String {
    let literal = payload.downcast_ref::<&str>().copied();
    literal
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no more is known")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_guard_ends_with_it() {
        let nothing: Vec<u8> = Vec::new();
        let error = guarded(|| {
            assert!(is_guarded());
            nothing[3]
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("damaged") && error.contains("index is 3"),
            "{error}"
        );
        assert!(!is_guarded());
        assert_eq!(guarded(|| 7).unwrap(), 7);
    }
}
