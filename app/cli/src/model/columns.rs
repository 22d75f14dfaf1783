//! Requests from `http` records in columns: Parquet files, Arrow streams.

use std::fs::File;
use std::net::IpAddr;

use anyhow::{Context, anyhow};
pub(super) use linkweir_columnar::Form as Stored;
use linkweir_columnar::{Table, moments, texts};
use linkweir_model::log::{Cause, Client, Faults, Request};

use crate::opened::Opened;

/// From whom a request came.
const CLIENT: &str = "client_ip";
/// When it came.
const TIME: &str = "request_ts_ns";

/// How columns that begin so are stored; nothing where they are none.
pub(super) fn stored(beginning: &[u8]) -> Option<Stored> {
    Stored::of(beginning)
}

/// An open table.
pub(super) struct Columns {
    table: Table,
    /// Records so far.
    number: u64,
    faults: Faults,
}

impl Columns {
    pub(super) fn open(log: Opened, stored: Stored) -> anyhow::Result<Self> {
        let name = log.name.clone();
        let names = [CLIENT, TIME];
        let table = match stored {
            Stored::Stream => Table::of_stream(log, &names).map_err(anyhow::Error::from),
            Stored::File => Err(anyhow!(
                "a file of Arrow's IPC format; it has to be a stream (pyarrow.ipc.new_stream)"
            )),
            Stored::Parquet => match &log.path {
                Some(path) => File::open(path)
                    .map_err(anyhow::Error::from)
                    .and_then(|file| Ok(Table::of_parquet(file, &names)?)),
                None => Err(anyhow!(
                    "Parquet is read from its end, so it has to be a file and no pipe"
                )),
            },
        };
        Ok(Self {
            table: table.context(name)?,
            number: 0,
            faults: Faults::default(),
        })
    }

    /// Appends the requests of the next rows; whether there may be more.
    pub(super) fn read(&mut self, out: &mut Vec<Request>) -> anyhow::Result<bool> {
        let Some(batch) = self.table.next() else {
            return Ok(false);
        };
        let batch = batch?;
        let (clients, times) = (texts(&batch, CLIENT)?, moments(&batch, TIME)?);
        for (client, time) in clients.into_iter().zip(times) {
            self.number += 1;
            let address = client.and_then(|text| text.parse::<IpAddr>().ok());
            match (address, time) {
                (Some(address), Some(time_ns)) => out.push(Request {
                    time_ns,
                    client: Client::Address(address.to_canonical()),
                    line: self.number,
                }),
                (None, _) => self.faults.add(Cause::Client, self.number),
                // A response without its request.
                (Some(_), None) => self.faults.add(Cause::NoRequest, self.number),
            }
        }
        Ok(true)
    }

    /// What could not be used so far.
    pub(super) const fn faults(&self) -> &Faults {
        &self.faults
    }
}
