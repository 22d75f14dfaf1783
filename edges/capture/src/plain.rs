//! Any stream as plain bytes: for what is not a capture but comes compressed as captures do.

use std::io::{self, Cursor, Read};

use crate::decompress::Compression;

/// The bytes of a stream; decompressed where its first bytes say that it is gzip, zstd, xz or lz4.
///
/// Memory is bounded whatever the stream asks for. A damaged stream gives what is before the damage,
/// then an error that names the compression.
///
/// # Errors
/// The first bytes cannot be read, or the decoder cannot be allocated.
pub fn plain(mut stream: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut seen = Vec::with_capacity(Compression::MAGIC_BYTES);
    stream
        .by_ref()
        .take(Compression::MAGIC_BYTES as u64)
        .read_to_end(&mut seen)?;
    Ok(match Compression::detect(&seen) {
        Some(compression) => compression.reader(seen, stream)?,
        None => Box::new(Cursor::new(seen).chain(stream)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> (Vec<u8>, io::Result<usize>) {
        let mut out = Vec::new();
        let mut stream = plain(Box::new(Cursor::new(bytes))).unwrap();
        let end = stream.read_to_end(&mut out);
        (out, end)
    }

    #[test]
    fn compressed_or_not_it_is_the_same() {
        for text in ["", "a", "line one\nline two\n"] {
            let bytes = text.as_bytes();
            assert_eq!(read(bytes.to_vec()).0, bytes);
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            let gzip = gzip.finish().unwrap();
            assert_eq!(read(gzip.clone()).0, bytes);
            let (_, end) = read(gzip[..gzip.len() - 3].to_vec());
            assert!(end.unwrap_err().to_string().contains("gzip"));
        }
    }
}
