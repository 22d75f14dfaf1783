//! Files compared with streams of the same records, which the library for Arrow streams writes.

use std::fs::File;
use std::io::{Cursor, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use linkweir_record::{HttpBatch, HttpKind, HttpRow, HttpState, RecordBatch as _, Text};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Encoding, PageType};
use parquet::file::statistics::Statistics;

use crate::{ArrowStream, ParquetFile};

/// Records of a message of a stream.
const BATCH: usize = 4096;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Records that differ in some columns and repeat in others, in runs and without; texts that are long,
/// empty, of no UTF-8; moments that go back and forth and some that no column can hold.
fn records(count: usize, chance: &mut Chance) -> HttpBatch {
    let mut batch = HttpBatch::default();
    let mut host = 0;
    for n in 0..count {
        if chance.below(40) == 0 {
            host = chance.below(500);
        }
        let time = match chance.below(200) {
            0 => u64::MAX - chance.below(3),
            1 => chance.below(1000),
            _ => 1_700_000_000_000_000_000 + (n as u64) * 1000 + chance.below(1 << 20),
        };
        let small = |chance: &mut Chance, bound| u16::try_from(chance.below(bound)).unwrap();
        let row = HttpRow {
            client_ip: Ipv4Addr::from_bits(u32::try_from(chance.below(9000)).unwrap()).into(),
            server_ip: Ipv6Addr::from_bits(u128::from(host) << chance.below(2)).into(),
            client_port: small(chance, 65_536),
            server_port: 80,
            request_ts_ns: (chance.below(9) > 0).then_some(time),
            response_ts_ns: (chance.below(7) > 0)
                .then(|| time.saturating_add(chance.below(1 << 31))),
            status_code: (chance.below(3) > 0).then(|| 200 + small(chance, 5)),
            // Long stretches with and without a value.
            vlan: (n / 3000 % 2 == 1).then_some(7),
            response_bytes: (chance.below(5) > 0)
                .then(|| chance.below(1 << 31) << chance.below(33)),
            flow_hash: u32::try_from(chance.below(1 << 31)).unwrap(),
            state: [HttpState::Complete, HttpState::Orphan][usize::try_from(host % 2).unwrap()],
            ..HttpRow::default()
        };
        let host = format!("www.{host}.example");
        let mut uri = format!("/{}", chance.below(200));
        if chance.below(2) == 0 {
            uri.push_str(&format!("?{:x}", chance.below(1 << 31)).repeat(12));
        }
        let agents: [&[u8]; 5] = [b"", b"a\xff", b"a\\xff", b"curl/8.5.0", "zażółć".as_bytes()];
        let text = Text {
            method: b"GET",
            uri: uri.as_bytes(),
            host: host.as_bytes(),
            user_agent: agents[usize::try_from(chance.below(5)).unwrap()],
            ..Text::default()
        };
        batch.push(row, &text);
    }
    batch
}

fn write(batch: &HttpBatch, chance: &mut Chance) -> File {
    let views: Vec<_> = batch.views().collect();
    let mut file = ParquetFile::<HttpKind>::new().unwrap();
    let mut kept = tempfile::tempfile().unwrap();
    let mut rest = &views[..];
    while !rest.is_empty() {
        let most = if chance.below(3) == 0 { 3 } else { 5000 };
        let (now, later) =
            rest.split_at(rest.len().min(usize::try_from(chance.below(most)).unwrap()));
        file.extend(now).unwrap();
        if chance.below(200) == 0 {
            file.close_group().unwrap();
        }
        if file.has_groups() {
            kept.write_all(&file.take_groups().unwrap()).unwrap();
        }
        rest = later;
    }
    file.close_group().unwrap();
    assert_eq!(file.waiting_rows(), 0);
    kept.write_all(&file.take_groups().unwrap()).unwrap();
    kept.write_all(&file.footer().unwrap()).unwrap();
    kept
}

fn by_stream(batch: &HttpBatch) -> Vec<RecordBatch> {
    let views: Vec<_> = batch.views().collect();
    let mut stream = ArrowStream::<HttpKind>::new().unwrap();
    stream.extend(&views).unwrap();
    stream.end().unwrap();
    let reader = StreamReader::try_new(Cursor::new(stream.take()), None).unwrap();
    reader.map(Result::unwrap).collect()
}

#[test]
fn files_say_what_streams_say() {
    for (seed, count) in [
        (1, 150_000),
        (2, 70_000),
        (3, 1),
        (4, 64),
        (5, 20_481),
        (6, 0),
    ] {
        let mut chance = Chance(seed);
        let batch = records(count, &mut chance);
        let file = write(&batch, &mut chance);
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let groups = builder.metadata().row_groups().to_vec();
        assert_eq!(
            groups.iter().map(|group| group.num_rows()).sum::<i64>(),
            i64::try_from(count).unwrap()
        );
        let reader = builder.with_batch_size(BATCH).build().unwrap();
        let files: Vec<_> = reader.map(Result::unwrap).collect();
        let streams = by_stream(&batch);
        assert_eq!(files.len(), streams.len());
        for (file, stream) in files.iter().zip(&streams) {
            for (name, column) in file.schema().fields().iter().zip(file.columns()) {
                let wanted = stream.column_by_name(name.name()).unwrap();
                assert!(column == wanted, "seed {seed}: {}", name.name());
            }
            assert_eq!(file.num_columns(), stream.num_columns());
        }
    }
}

#[test]
fn a_full_dictionary_is_followed_by_values_without_keys() {
    let mut chance = Chance(7);
    let batch = records(100_000, &mut chance);
    let views: Vec<_> = batch.views().collect();
    let mut file = ParquetFile::<HttpKind>::new().unwrap();
    file.extend(&views).unwrap();
    file.close_group().unwrap();
    let mut kept = tempfile::tempfile().unwrap();
    kept.write_all(&file.take_groups().unwrap()).unwrap();
    kept.write_all(&file.footer().unwrap()).unwrap();
    let options = ArrowReaderOptions::new().with_encoding_stats_as_mask(false);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(kept, options).unwrap();
    let [group] = builder.metadata().row_groups() else {
        panic!("one row group");
    };
    let column = |name: &str| {
        let mut columns = group.columns().iter();
        columns
            .find(|column| column.column_descr().name() == name)
            .unwrap()
    };
    let pages = |name: &str| {
        let kinds = column(name).page_encoding_stats().unwrap();
        let data = kinds
            .iter()
            .filter(|kind| kind.page_type == PageType::DATA_PAGE);
        data.map(|kind| (kind.encoding, kind.count))
            .collect::<Vec<_>>()
    };
    assert_eq!(pages("method"), [(Encoding::RLE_DICTIONARY, 5)]);
    assert_eq!(pages("flow_hash"), [(Encoding::PLAIN, 5)]);
    assert_eq!(
        pages("response_time_ns"),
        [(Encoding::DELTA_BINARY_PACKED, 5)]
    );
    let uris = pages("uri");
    assert_eq!(uris.len(), 2, "{uris:?}");
    assert_eq!(
        (uris[0].0, uris[1].0),
        (Encoding::RLE_DICTIONARY, Encoding::PLAIN)
    );

    // The extent of the moments that can be held, and how many rows have none.
    let moments = || {
        views
            .iter()
            .map(|view| view.row.request_ts_ns.and_then(|t| i64::try_from(t).ok()))
    };
    let Some(Statistics::Int64(extent)) = column("request_ts_ns").statistics() else {
        panic!("no statistics");
    };
    assert_eq!(extent.min_opt(), moments().flatten().min().as_ref());
    assert_eq!(extent.max_opt(), moments().flatten().max().as_ref());
    let nulls = moments().filter(Option::is_none).count() as u64;
    assert_eq!(extent.null_count_opt(), Some(nulls));
}
