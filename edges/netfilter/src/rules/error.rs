//! Why rules could not be made, changed or removed.

use thiserror::Error;

use super::host::CommandError;
use super::plan::PlanError;

/// What has our name, was not made by us or was changed since, and stays.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} (to remove: {undo})")]
pub struct Foreign {
    /// What it is and where.
    pub what: String,
    /// The commands that remove it, for a shell.
    pub undo: String,
}

/// Why rules could not be made, changed or removed.
#[derive(Debug, Error)]
pub enum RulesError {
    /// The plan cannot be carried out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A command did not do what it should.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Somebody else made what has our name.
    #[error("not made by linkweir, or changed since: {}", list(.0))]
    Foreign(Vec<Foreign>),
    /// Classes are made on an interface that is not there.
    #[error("interface {0} is not there; it must be there when classes (`shape`) are made")]
    NoInterface(String),
    /// Somebody else's queueing discipline is where ours would be.
    #[error(
        "interface {interface} has a queueing discipline that somebody set ({kind} {handle}); remove it \
         (tc qdisc del dev {interface} root) or do not shape there"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// Its kind.
        kind: String,
        /// Its number.
        handle: String,
    },
    /// Rules are there, for another policy, or only a part of them.
    #[error(
        "rules of another policy, or a part of them, are there already ({0} differ); \
         `linkweir gateway reload` changes them where a gateway runs, `linkweir gateway down` removes them"
    )]
    Other(String),
    /// Nothing is there that could be changed.
    #[error("no rules are there to be changed; `linkweir gateway up` makes them")]
    NotUp,
    /// Connections carry marks that another mask would read wrongly.
    #[error(
        "the rules that are there use the mark bits {there:#010x} and not {wanted:#010x}; \
         that takes `linkweir gateway down` and `up`"
    )]
    OtherMarks {
        /// The mask that is in use.
        there: u32,
        /// The mask of the plan.
        wanted: u32,
    },
    /// A step failed, and what had been made before it was removed again, unless `left` says otherwise.
    #[error("{error}{}", left.as_ref().map(|it| format!("; what was made is still there: {it}")).unwrap_or_default())]
    RolledBack {
        /// Why the step failed.
        error: CommandError,
        /// Why what had been made could not be removed.
        left: Option<Box<Self>>,
    },
}

fn list(all: &[Foreign]) -> String {
    let each: Vec<String> = all.iter().map(ToString::to_string).collect();
    each.join(", ")
}
