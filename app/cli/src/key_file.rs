//! The key of `--anonymize`.

use std::io::Read;
use std::path::Path;

use anyhow::anyhow;
use linkweir_record::Anonymizer;

use crate::exit::Wrong;

/// A key file: 32 bytes as they are, or as 64 hexadecimal digits.
pub(crate) fn read(path: &Path) -> anyhow::Result<Anonymizer> {
    let name = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(1024).read_to_end(&mut bytes))
        .map_err(|error| anyhow!(Wrong(format!("--anonymize {name}: {error}"))))?;
    let from_hex = |text: &[u8]| -> Option<Vec<u8>> {
        let (pairs, []) = text.as_chunks::<2>() else {
            return None;
        };
        pairs
            .iter()
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect()
    };
    let key = <[u8; 32]>::try_from(bytes.as_slice())
        .ok()
        .or_else(|| from_hex(bytes.trim_ascii())?.try_into().ok());
    let wrong = || {
        format!(
            "--anonymize {name}: a key is 32 bytes or 64 hexadecimal digits; make one with: head -c 32 /dev/urandom > {name}"
        )
    };
    key.map(|key| Anonymizer::new(&key))
        .ok_or_else(|| anyhow!(Wrong(wrong())))
}
