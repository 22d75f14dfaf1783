//! Lists the files of the page, `web/dist`, so that the server carries them. Building them is another
//! matter (`web/README.md`): the built files are kept with the sources, and this needs no tool for it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn files(directory: &Path, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, out)?;
        } else {
            out.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = root.join("web").join("dist");
    println!("cargo::rerun-if-changed=build.rs");
    // A directory that is not there yet would make every build run this again.
    let watched = if dist.is_dir() {
        &dist
    } else {
        &root.join("Cargo.toml")
    };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut found = Vec::new();
    if dist.is_dir() {
        files(&dist, &mut found)?;
    }
    found.sort();
    let mut table = String::from("[\n");
    for path in found {
        let name = path.strip_prefix(&dist).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        // Writing to a String cannot fail.
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),").ok();
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("assets.rs"), table)
}
