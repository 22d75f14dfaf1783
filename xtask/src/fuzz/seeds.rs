//! The inputs that fuzzing starts from: cut from the bundled capture, and messages ([`super::messages`]).

use super::messages::{messages, record_of};
use crate::shell::{read_unpacked, root};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// Packets of the bundled capture that become seeds.
const PACKETS: usize = 60;
const FILE_HEADER: usize = 24;

/// Where the seeds of a target are.
pub(super) fn directory(work: &Path, target: &str) -> PathBuf {
    work.join("seeds").join(target)
}

/// Writes the seeds of all targets below `work`.
///
/// # Errors
/// The bundled capture cannot be read, or a file cannot be written.
pub(super) fn write(work: &Path) -> Result<()> {
    let capture = read_unpacked(&root().join("app/testkit/captures/nginx-demo.pcap.gz"))?;
    let (header, records) = capture
        .split_at_checked(FILE_HEADER)
        .context("a capture without header")?;
    let mut frames = Vec::new();
    let mut rest = records;
    while let Some((record, behind)) = take_record(rest) {
        frames.push(record);
        rest = behind;
        if frames.len() == PACKETS {
            break;
        }
    }
    let put = |target: &str, name: String, bytes: &[u8]| put(work, target, &name, bytes);
    for (index, record) in frames.iter().enumerate() {
        let frame = record.get(RECORD_HEADER..).unwrap_or(&[]);
        // This target takes the link type (0: Ethernet) and what the wire had more in front.
        put(
            "wire",
            format!("frame-{index}"),
            &[&[0, 0, 0], frame].concat(),
        )?;
        if let Some(head) = head(frame) {
            put("http1", format!("head-{index}"), head)?;
            // This target takes records: flags, then control, sequence number and length in front.
            let part = head.get(..head.len().min(255)).unwrap_or(head);
            let len = u8::try_from(part.len()).unwrap_or(u8::MAX);
            let back = u8::from(part.starts_with(b"HTTP"));
            for (target, flags) in [("http", 0), ("shards", 4), ("shards", 8)] {
                put(
                    target,
                    format!("segment-{flags}-{index}"),
                    &[&[flags, back, 0, 0, len], part].concat(),
                )?;
            }
            let record = record_of(back, head);
            put("http_inspector", format!("head-{index}"), &record)?;
        }
    }
    messages(&put)?;
    for count in [0, 1, 20] {
        let chosen: Vec<&[u8]> = frames.iter().take(count).copied().collect();
        let pcap = [&[header], chosen.as_slice()].concat().concat();
        // These targets take the size of the reads in front. The one for pcapng has its section and
        // its interface itself, in the byte order that the size's lowest bit gives.
        let reads = [0x0F, 0xFE];
        put(
            "pcap",
            format!("pcap-{count}"),
            &[reads.as_slice(), &pcap].concat(),
        )?;
        put(
            "pcap",
            format!("pcapng-{count}"),
            &[reads.as_slice(), &SECTION, &packets(&chosen)].concat(),
        )?;
        put(
            "pcapng",
            format!("packets-{count}"),
            &[reads.as_slice(), &packets(&chosen)].concat(),
        )?;
    }
    Ok(())
}

/// A seed of a target.
fn put(work: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let directory = directory(work, target);
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join(name), bytes)?;
    Ok(())
}

const RECORD_HEADER: usize = 16;

/// The next record of a little-endian classic capture, header included, and what is behind it.
fn take_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
    bytes.split_at_checked(RECORD_HEADER + usize::try_from(length).ok()?)
}

/// The start line and what follows it in a frame.
fn head(frame: &[u8]) -> Option<&[u8]> {
    let starts: [&[u8]; 5] = [b"GET /", b"POST /", b"HEAD /", b"OPTIONS /", b"HTTP/1."];
    let at = (0..frame.len()).find(|at| {
        frame
            .get(*at..)
            .is_some_and(|rest| starts.iter().any(|s| rest.starts_with(s)))
    })?;
    frame.get(at..)
}

/// Of a little-endian pcapng file: the section (version 1.0, length not given) and an Ethernet interface.
const SECTION: [u8; 48] = [
    0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0, 255, 255, 255, 255,
    255, 255, 255, 255, 28, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 20, 0, 0, 0,
];

/// The packets as blocks of pcapng.
fn packets(records: &[&[u8]]) -> Vec<u8> {
    let mut blocks = Vec::new();
    for record in records {
        let Some((_, frame)) = record.split_at_checked(RECORD_HEADER) else {
            continue;
        };
        let length = u32::try_from(frame.len()).unwrap_or(0);
        let mut packet = Vec::new();
        packet.extend([0; 12]); // interface 0, time 0
        packet.extend(length.to_le_bytes());
        packet.extend(length.to_le_bytes());
        packet.extend_from_slice(frame);
        block(&mut blocks, 6, &packet);
    }
    blocks
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = u32::try_from(12 + body.len() + padding)
        .unwrap_or(0)
        .to_le_bytes();
    file.extend(kind.to_le_bytes());
    file.extend(length);
    file.extend(body);
    file.extend(std::iter::repeat_n(0, padding));
    file.extend(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_padded_and_carry_their_length_twice() {
        let mut file = Vec::new();
        block(&mut file, 6, &[1, 2, 3, 4, 5]);
        assert_eq!(file.len(), 20);
        assert_eq!(file[4..8], file[16..20]);
        assert_eq!(file[8..16], [1, 2, 3, 4, 5, 0, 0, 0]);
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let mut record = vec![0; 18];
        record[8] = 2;
        assert_eq!(take_record(&record), Some((&record[..], &[][..])));
        record[8] = 3;
        assert_eq!(take_record(&record), None);
    }

    #[test]
    fn the_bundled_capture_gives_seeds_for_every_target() {
        let directory_of_test = std::env::temp_dir().join(format!("seeds-{}", std::process::id()));
        write(&directory_of_test).unwrap();
        for target in [
            "wire",
            "http1",
            "http",
            "shards",
            "pcap",
            "pcapng",
            "tls",
            "quic",
            "flows_udp",
            "estimates",
            "rtp",
            "application",
            "dns",
            "http2",
            "http2_direction",
            "http_inspector",
            "decoder",
            "tls_keys",
            "http2_inspector",
            "qpack",
            "quic_keys",
            "stream",
            "stored",
        ] {
            let count = std::fs::read_dir(directory(&directory_of_test, target))
                .unwrap()
                .count();
            assert!(count >= 3, "{target}: {count}");
        }
        std::fs::remove_dir_all(&directory_of_test).unwrap();
    }
}
