//! Why a queue cannot be served, and what to do then.

use std::io;

use thiserror::Error;

/// A queue that cannot be opened or served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The kernel checks the capability for every message, of the opener of the socket and of the
    /// sender.
    #[error(
        "packet queue {queue}: not allowed; it needs CAP_NET_ADMIN: run as root, or give the \
         program that capability"
    )]
    NotPermitted {
        /// Its number.
        queue: u16,
    },
    /// A queue has one reader.
    #[error(
        "packet queue {queue}: another program serves it{}; stop that one, or take another number \
         here and in the rule",
        holder.map(|port| format!(" (netlink port {port}, as a rule its process id)")).unwrap_or_default()
    )]
    Busy {
        /// Its number.
        queue: u16,
        /// The netlink port of who has it, where the kernel's table could be read.
        holder: Option<u32>,
    },
    /// The kernel has no packet queues.
    #[error(
        "the kernel has no packet queues: load the module nfnetlink_queue, or take a kernel with \
         CONFIG_NETFILTER_NETLINK_QUEUE"
    )]
    Missing,
    /// The kernel has queues but not all that was asked for.
    #[error(
        "packet queue {queue}: the kernel does not offer what was asked for (segmentation offload, \
         fail-open): turn it off, or take Linux 3.10 or later"
    )]
    Unsupported {
        /// Its number.
        queue: u16,
    },
    /// Something else failed.
    #[error("packet queue {queue}: cannot {action}: {source}")]
    Io {
        /// Its number.
        queue: u16,
        /// What was to be done.
        action: &'static str,
        /// Why it was not.
        source: io::Error,
    },
}

impl QueueError {
    pub(super) const fn io(queue: u16, action: &'static str, source: io::Error) -> Self {
        Self::Io {
            queue,
            action,
            source,
        }
    }
}
