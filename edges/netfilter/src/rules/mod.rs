//! The kernel's part of the gateway: which packets are queued, what becomes of decided connections, what
//! they count, how fast they go.
//!
//! ```text
//!            count          mangle FORWARD                        filter FORWARD   mangle POSTROUTING   shape
//! packet ─► inet linkweir ─► LINKWEIR-FORWARD ─► -DECIDE ─► queue ─► LINKWEIR-REJECT ─► LINKWEIR-SAVE ─► inet linkweir ─► HTB
//! ```
//! Everything is made by the programs that administrators use: `iptables-restore` and `ip6tables-restore`
//! (a kernel without `CONFIG_NFT_QUEUE` has the queue only there), `nft`, `tc`. [`dry_run`] gives what
//! [`up`] would run.
//!
//! The kernel keeps a mark with a connection that it tracks, and it tracks one from its first packet that
//! passes on. Who is dropped or rejected with the first packet is asked about again with the next. So a
//! connection that is dropped from its first packet on is not in the kernel's counts of rules; one that is
//! rejected is.
//!
//! Where a rule has a rate for each client, chain `rate` of the table drops what exceeds it, before it is counted
//! and queued.
//!
//! Where a rule redirects, connections that its clients open to where such a one was rejected go to a local
//! proxy: chain `proxy` of the table marks them (TPROXY), and a rule of routing takes what is so marked for the
//! machine's own.
//!
//! What was made is known again without a file, by names and comments, so that [`down`] finds
//! it after a crash too. Each of the steps but those of `tc` is made at once or not at all. What somebody
//! else made is not touched.

mod elements;
mod found;
mod host;
mod plan;
mod rate;
mod route;
mod saved;
mod shape;
mod sign;
mod standing;
mod table;
mod work;
mod xtables;

pub use elements::StandingError;
pub use host::Step;
pub use host::{CommandError, Host};
pub use host::{Foreign, RulesError};
pub use plan::{ClientRate, Plan, PlanError, Redirect, ShapeClass};
pub use plan::{TooManyRules, assign_numbers};
pub use standing::{RuleCount, Standing, standing, warnings};
pub use work::{Removed, Up, change, down, dry_run, up};
