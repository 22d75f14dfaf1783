//! The records behind a row, as destinations have them.

use std::ops::ControlFlow;

use linkweir_engine::Outputs;
use linkweir_record::{RecordBatch as _, RecordKind, Stored, StoredBatch};

use super::ReportArgs;
use super::choice::Choice;
use super::set::Set;
use crate::exit::{Exit, warn};
use crate::outputs::{self, destinations};

/// Writes those that are meant.
pub(super) fn write<K: RecordKind>(
    args: &ReportArgs,
    sets: Vec<Set>,
    mut choice: Choice<K>,
) -> anyhow::Result<Exit> {
    let store = args.store();
    store.choice.prepare();
    let destinations = destinations(&args.write, false);
    let mut outputs: Outputs<Stored<K>> =
        outputs::open(&destinations, args.format, &store.options(false))?;
    let mut chosen = StoredBatch::<K>::default();
    let mut is_complete = true;
    let mut ended = Ok(());
    for mut set in sets {
        let mut each = |batch: &StoredBatch<K>, _: &str, _: &dyn Fn(usize) -> u64| {
            chosen.clear();
            for view in batch.views() {
                if choice.takes(&view) {
                    chosen.push_view(&view);
                }
                if choice.flow().is_break() {
                    break;
                }
            }
            ended = match chosen.is_empty() {
                true => Ok(()),
                false => outputs.write(&chosen),
            };
            Ok(match ended {
                Ok(()) => choice.flow(),
                Err(_) => ControlFlow::Break(()),
            })
        };
        set.read::<K>(&|_| true, &mut each)?;
        is_complete &= set.complain();
    }
    let finished = outputs.finish();
    let losses = outputs.losses();
    for cause in losses.iter().filter_map(|loss| loss.cause.as_ref()) {
        warn(cause);
    }
    let exit = outputs::exit(ended.and(finished), &losses);
    Ok(match is_complete {
        true => exit,
        false => exit.max(Exit::DataLost),
    })
}
