//! The output schema: one table per record kind.
//!
//! A kind lists its columns once ([`RecordKind::fields`]): name, type, unit, IPFIX information
//! element, Zeek column, one line of documentation and how to read the value. Every text header,
//! JSON key, CSV column and documentation table is derived from that list.
#![forbid(unsafe_code)]

pub mod anonymize;
pub mod community_id;
pub mod ddl;
pub mod dns;
pub mod escape;
pub mod filter;
pub mod flow;
pub mod gateway;
pub mod half;
pub mod header;
pub mod http;
pub mod human;
pub mod line;
mod load;
pub mod place;
pub mod prefix;
mod remembered;
mod rows;
pub mod scan;
pub mod schema;
pub mod short;
pub mod stored;
pub mod tls;
mod topic;
pub mod uid;
mod web;

pub use anonymize::Anonymizer;
pub use community_id::CommunityId;
pub use dns::{DnsBatch, DnsKind, DnsQuery};
pub use filter::{Filter, FilterError, find_column, parse_moment, path_of};
pub use flow::{FlowBatch, FlowKind, FlowRow};
pub use gateway::{
    GatewayBatch, GatewayEvent, GatewayEventKind, GatewayKind, GatewayRow, GatewayText,
};
pub use half::{HalfBatch, HalfKind, HalfRow, HttpHalf};
pub use header::{HeaderError, HeaderNames, header_of_column};
pub use http::{HttpBatch, HttpKind, HttpRow, HttpState, HttpTransaction, Text};
pub use line::{Cell, LineCell};
pub use load::{LoadBatch, LoadKind, LoadRow, LoadSession};
pub use place::{Place, PlaceCache, Places};
pub use prefix::{IpNet, Prefix, PrefixError};
pub use schema::{Endpoint, Field, FieldType, RecordBatch, RecordKind, Value, ZeekColumn};
pub use short::Short;
pub use stored::{Stored, StoredBatch, StoredRecord};
pub use tls::{TlsBatch, TlsHandshake, TlsKind};
pub use topic::{Topic, TopicError};
pub use web::{Confidence, Events, Grpc, Source, Web};
