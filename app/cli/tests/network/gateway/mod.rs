//! `linkweir gateway` between real hosts.

mod site;

mod applications;
mod bittorrent;
mod content;
mod crowd;
mod files;
mod kernel;
mod scan;
