//! What the flags of `--pcap-out` start.

use std::sync::{Arc, Mutex};

use anyhow::anyhow;
use linkweir_capture::chosen::{Keeper, Ring};
use linkweir_engine::{Outputs, Sink, SinkError};
use linkweir_record::{Filter, RecordBatch as _};

use super::args::{Around, PacketArgs};
use super::choice::{self, OfPackets};
use super::out::Out;
use super::{Packets, Shared, State, secrets};
use crate::exit::Wrong;
use crate::passive::args::InputArgs;
use crate::passive::command::Flags;

/// Starts what the flags ask for.
pub(crate) fn start<K: OfPackets>(
    args: &PacketArgs,
    flags: &Flags<'_>,
    outputs: &mut Outputs<K>,
) -> anyhow::Result<Packets> {
    let Some(destination) = &args.pcap_out else {
        return Ok(Packets::default());
    };
    let wrong = |message: String| anyhow!(Wrong(message));
    if flags.page.is_some_and(|page| page.anonymize.is_some()) {
        let message = "--pcap-out writes packets with their addresses: not with --anonymize";
        return Err(wrong(message.to_owned()));
    }
    if !flags.halves.is_empty() {
        let message = "--pcap-out: half-transactions (--from-halves) have no packets";
        return Err(wrong(message.to_owned()));
    }
    let alerts = flags.view.map_or(&[][..], |view| view.alert.as_slice());
    let around = Around::read(args, alerts)?;
    let filter = args.pcap_filter.as_deref().map(Filter::<K>::read);
    let filter = filter.transpose();
    let filter = filter.map_err(|error| wrong(format!("--pcap-filter: {error}")))?;
    if filter.is_none() && around.is_empty() {
        let message = "--pcap-out: say which packets: --pcap-filter EXPR, --alert RULE, or (http) --packets-of RECORD";
        return Err(wrong(message.to_owned()));
    }
    let is_live = flags.is_live();
    let reads_twice = !is_live && can_be_read_again(flags.input);
    let max_bytes = usize::try_from(args.pcap_ring).unwrap_or(usize::MAX);
    let max_ns = linkweir_wire::nanos(args.pcap_ring_time);
    let ring = (!reads_twice).then(|| Ring::new(max_bytes, max_ns));
    let existing = flags.output.store.files.existing(is_live);
    let shared = Arc::new(Shared {
        destination: destination.clone(),
        around,
        reads_twice,
        count: flags.input.count,
        state: Mutex::new(Some(State {
            keeper: Keeper::new(
                ring,
                secrets::of(args, flags.input),
                Out::open(destination, existing, !is_live)?,
            ),
            event: 0,
            firing: Vec::new(),
        })),
    });
    if let Some(filter) = filter {
        let shared = Arc::clone(&shared);
        outputs.add_observer(Box::new(Chooser { filter, shared }));
    }
    Ok(Packets(Some(shared)))
}

/// Whether all inputs are files and directories, which stay as they are.
fn can_be_read_again(input: &InputArgs) -> bool {
    let can = |path: &std::path::PathBuf| {
        let meta = path.metadata();
        path.as_os_str() != "-" && meta.is_ok_and(|meta| meta.is_file() || meta.is_dir())
    };
    input.read.iter().all(can)
}

/// Chooses the packets of records as they come.
struct Chooser<K> {
    filter: Filter<K>,
    shared: Arc<Shared>,
}

impl<K: OfPackets> Sink<K> for Chooser<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        let mut guard = self.shared.state();
        let Some(state) = guard.as_mut() else {
            return Ok(());
        };
        let matching = batch.views().filter(|view| self.filter.matches(view));
        for choice in matching.filter_map(|view| choice::of_view::<K>(&view)) {
            state.keeper.choose(choice);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
