//! `linkweir halves`: of a capture, the segments on which an HTTP measurement could depend.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use clap::{Args, ValueHint};
use linkweir_engine::{FlowSplitter, Outputs};
use linkweir_http::{HalfCounts, HalfStage, HalvesConfig, PortSet};
use linkweir_record::HalfKind;
use linkweir_record::human::{counted, thousands};
use linkweir_sink::{Format, OutputOptions};
use linkweir_wire::{DecodeFaults, FragmentStats};
use serde_json::{Value, json};

use crate::common_args::formats;
use crate::outputs;
use crate::passive::args::{InputArgs, OutputArgs, after_help};
use crate::passive::command::{Flags, Passive, Share};
use crate::passive::totals::{Counters, Row, Totals};
use crate::units;

const AFTER_HELP: &str = after_help!(
    "  linkweir halves -r part-017.pcap.zst --file-number 17 -w halves/part-017.parquet
  linkweir halves -r trace.pcap --format arrow -w - | linkweir http --from-halves - -w http.jsonl"
);

/// Extract HTTP segments (half-transactions) from a capture, one row each.
///
/// For traces too large for one machine: each file is reduced where it is stored, an engine such as Spark
/// sorts the rows and distributes them to shards, and `linkweir http --from-halves` measures each shard.
/// Together the records are those of one `linkweir http` over all files in order. See docs/scale-out.md for
/// how to distribute rows, and for the limits.
///
/// Message heads are kept whole, message bodies are omitted. At the start of a file, everything that might
/// continue an earlier message is kept. All `-r` of one run count as one file. Bodies are not followed, so
/// times to last byte (`linkweir http --ttlb`) are not available.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HalvesArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Number of the file in the whole trace (field `file`), which orders rows of equal time.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Extraction"
    )]
    pub(crate) file_number: u32,

    /// Read only segments from or to these TCP ports, for example `80,8000-8100` [default: any].
    #[arg(long, value_name = "LIST", value_parser = units::ports, help_heading = "Extraction")]
    pub(crate) ports: Option<PortSet>,

    /// The `--timeout` of the later measurement: for twice as long at the start of the file, everything
    /// that might continue an earlier message is kept.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration, help_heading = "Extraction")]
    pub(crate) timeout: Duration,

    /// Format of the rows [default: by the extension; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = formats(), help_heading = "Output")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Write packets, bytes and faults as JSON, which `linkweir merge` adds to those of other runs; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) sketch: Option<String>,
}

impl Passive for HalvesArgs {
    type Record = HalfKind;
    type Stage = HalfStage;
    type Config = HalvesConfig;
    type Counters = HalfCounts;
    type Splitter = FlowSplitter;
    const IS_MOSTLY_READING: bool = false;

    fn flags(&self) -> Flags<'_> {
        Flags {
            input: &self.input,
            feeder: None,
            halves: &[],
            output: &self.output,
            page: None,
            sketch: self.sketch.as_deref(),
            view: None,
            metrics_hosts: 0,
            workers: 1,
            is_sorted: false,
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    fn config(&self) -> anyhow::Result<HalvesConfig> {
        Ok(HalvesConfig {
            file: self.file_number,
            ports: self.ports.clone(),
            timeout: self.timeout,
            // A secret of this process: nobody can aim at a bucket of the tables.
            hash_seed: RandomState::new().hash_one(0_u8),
            ..HalvesConfig::default()
        })
    }

    fn open_outputs(
        &self,
        destinations: &[&str],
        options: OutputOptions,
    ) -> anyhow::Result<Outputs<HalfKind>> {
        outputs::open(destinations, self.format, &options)
    }

    fn splitter(_: &HalvesConfig, _: usize) -> FlowSplitter {
        FlowSplitter
    }

    fn stage(&self, config: &HalvesConfig, _share: Share) -> HalfStage {
        HalfStage::new(config)
    }

    fn count(
        stage: &HalfStage,
        counters: &mut HalfCounts,
        faults: &mut DecodeFaults,
        fragments: &mut FragmentStats,
    ) {
        *counters = stage.counts();
        faults.merge(stage.faults());
        *fragments += stage.fragments();
    }
}

impl Counters for HalfCounts {
    const KEY: &'static str = "halves";
    const TITLE: &'static str = "HTTP segments";

    fn to_json(totals: &Totals<'_, Self>) -> Value {
        let counts = totals.counters;
        json!({
            "requests": counts.requests,
            "responses": counts.responses,
            "plain": counts.plain,
            "others": counts.others,
            "possible": counts.possible,
        })
    }

    fn add_rows(totals: &Totals<'_, Self>, rows: &mut Vec<Row>) {
        let counts = totals.counters;
        let text = format!(
            "{}: {}, {} ({} plain), {} other, {} possible",
            counted(totals.report.records, "row"),
            counted(counts.requests, "request"),
            counted(counts.responses, "response"),
            thousands(counts.plain),
            thousands(counts.others),
            thousands(counts.possible)
        );
        rows.push(("kept", text));
    }
}
