//! A capture over and over, as a longer one: each time later, and from other clients.

use super::harness::{FEEDER_CORE, pin};
use crate::Outcome;
use crate::shell::Options;
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::Path;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const BUFFER: usize = 1 << 20;

/// `repeated [--core N] FILE TIMES`: to standard output.
pub(crate) fn repeated(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let core = options.value("--core")?.unwrap_or(FEEDER_CORE);
    let rest = options.rest()?;
    let [file, times] = rest.as_slice() else {
        bail!("repeated FILE TIMES")
    };
    let times: u32 = times.parse().context("TIMES")?;
    pin(core)?;
    let (first, last) = seconds(Path::new(file))?;
    let between = last.saturating_sub(first) + 2;
    let mut output = std::io::stdout().lock();
    for repetition in 0..times {
        let mut records = Records::open(Path::new(file))?;
        if repetition == 0 {
            output.write_all(&records.header)?;
        }
        while let Some(chunk) = records.next_chunk()? {
            let mut rest = &mut *chunk;
            while let Some((record, behind)) = split_record(rest) {
                shift(record, repetition, between);
                rest = behind;
            }
            match output.write_all(chunk) {
                // The reader has seen enough.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(true),
                written => written?,
            }
        }
    }
    output.flush()?;
    Ok(true)
}

/// Copies the first `packets` packets of a capture.
///
/// # Errors
/// The capture cannot be read or the copy not written.
pub(super) fn head(from: &Path, to: &Path, packets: u64) -> Result<()> {
    let mut records = Records::open(from)?;
    let mut output = BufWriter::new(File::create(to)?);
    output.write_all(&records.header)?;
    let mut left = packets;
    'file: while let Some(chunk) = records.next_chunk()? {
        let mut rest = &mut *chunk;
        while let Some((record, behind)) = split_record(rest) {
            if left == 0 {
                break 'file;
            }
            output.write_all(record)?;
            left -= 1;
            rest = behind;
        }
    }
    output.flush()?;
    Ok(())
}

/// The whole seconds of the first and the last record.
pub(super) fn seconds(path: &Path) -> Result<(u32, u32)> {
    let mut records = Records::open(path)?;
    let mut found: Option<(u32, u32)> = None;
    while let Some(chunk) = records.next_chunk()? {
        let mut rest = &mut *chunk;
        while let Some((record, behind)) = split_record(rest) {
            let second = word(record, 0);
            found = Some((found.map_or(second, |(first, _)| first), second));
            rest = behind;
        }
    }
    found.context("a capture without packets")
}

/// A classic little-endian capture, read in chunks of whole records.
struct Records {
    file: File,
    header: [u8; FILE_HEADER],
    buffer: Vec<u8>,
    /// What the buffer holds, and how much of it has been handed out.
    filled: usize,
    used: usize,
}

impl Records {
    fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).with_context(|| format!("open {}", path.display()))?;
        let mut header = [0; FILE_HEADER];
        file.read_exact(&mut header)?;
        if !matches!(word(&header, 0), 0xA1B2_C3D4 | 0xA1B2_3C4D) {
            bail!("{}: no classic little-endian capture", path.display());
        }
        Ok(Self {
            file,
            header,
            buffer: vec![0; BUFFER],
            filled: 0,
            used: 0,
        })
    }

    fn next_chunk(&mut self) -> Result<Option<&mut [u8]>> {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        loop {
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let got = self.file.read(room)?;
            self.filled += got;
            if got == 0 {
                break;
            }
        }
        let held = self.buffer.get(..self.filled).unwrap_or_default();
        let mut rest = held;
        while let Some(length) = record_length(rest).filter(|length| *length <= rest.len()) {
            rest = rest.get(length..).unwrap_or_default();
        }
        self.used = held.len() - rest.len();
        // What is left is a record that is cut, or longer than any.
        Ok(if self.used == 0 {
            None
        } else {
            self.buffer.get_mut(..self.used)
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |four| u32::from_le_bytes(*four))
}

/// The length of the record that starts here, header included.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<RECORD_HEADER>()?;
    Some(RECORD_HEADER + usize::try_from(word(header, 8)).ok()?)
}

fn split_record(bytes: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    let length = record_length(bytes)?;
    bytes.split_at_mut_checked(length)
}

/// Makes a record that of the given repetition: later, and the client another. Without that
/// the packets would be retransmissions of what was seen before. The checksums are left as they are.
fn shift(record: &mut [u8], repetition: u32, between: u32) {
    let second = word(record, 0).wrapping_add(repetition * between);
    if let Some(field) = record.first_chunk_mut::<4>() {
        *field = second.to_le_bytes();
    }
    let Some(frame) = record.get_mut(RECORD_HEADER..) else {
        return;
    };
    let Some((ethernet, ip)) = frame.split_at_mut_checked(14) else {
        return;
    };
    let Some(header_length) = ip.first().map(|first| usize::from(first & 15) * 4) else {
        return;
    };
    if !ethernet.ends_with(&[0x08, 0x00]) || ip.get(9) != Some(&6) {
        return;
    }
    let port = |at: usize| {
        let bytes = ip.get(header_length + at..).and_then(<[u8]>::first_chunk);
        bytes.map(|two| u16::from_be_bytes(*two))
    };
    let (Some(source), Some(destination)) = (port(0), port(2)) else {
        return;
    };
    // The server has the lower port; the third byte of the client's address changes.
    let client = if source > destination { 12 } else { 16 };
    if let (Some(byte), Ok(step)) = (ip.get_mut(client + 2), u8::try_from(repetition)) {
        *byte = byte.wrapping_add(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(source: u16, destination: u16) -> Vec<u8> {
        let mut record = vec![0; RECORD_HEADER + 14 + 40];
        record[0] = 100;
        record[8] = 54;
        record[RECORD_HEADER + 12] = 8;
        let ip = &mut record[RECORD_HEADER + 14..];
        ip[0] = 0x45;
        ip[9] = 6;
        ip[12..20].copy_from_slice(&[10, 80, 0, 1, 10, 80, 0, 11]);
        ip[20..22].copy_from_slice(&source.to_be_bytes());
        ip[22..24].copy_from_slice(&destination.to_be_bytes());
        record
    }

    #[test]
    fn the_client_changes_whichever_side_it_is() {
        let mut response = record(80, 40_000);
        shift(&mut response, 3, 20);
        assert_eq!(word(&response, 0), 160);
        assert_eq!(
            response[RECORD_HEADER + 26..][..8],
            [10, 80, 0, 1, 10, 80, 3, 11]
        );
        let mut request = record(40_000, 80);
        shift(&mut request, 3, 20);
        assert_eq!(
            request[RECORD_HEADER + 26..][..8],
            [10, 80, 3, 1, 10, 80, 0, 11]
        );
    }

    #[test]
    fn the_first_repetition_is_the_capture_itself() {
        let mut first = record(80, 40_000);
        shift(&mut first, 0, 20);
        assert_eq!(first, record(80, 40_000));
    }

    #[test]
    fn a_head_has_so_many_packets() {
        let directory = std::env::temp_dir().join(format!("repeat-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (whole, cut) = (directory.join("whole"), directory.join("cut"));
        let mut file = 0xA1B2_C3D4_u32.to_le_bytes().to_vec();
        file.resize(FILE_HEADER, 0);
        for _ in 0..5 {
            file.extend(record(80, 40_000));
        }
        std::fs::write(&whole, &file).unwrap();
        head(&whole, &cut, 2).unwrap();
        let expected = FILE_HEADER + 2 * record(80, 40_000).len();
        assert_eq!(std::fs::read(&cut).unwrap(), file[..expected]);
        assert_eq!(seconds(&whole).unwrap(), (100, 100));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
