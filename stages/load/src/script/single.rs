//! The script where none is given.

use super::plan::{PagePlan, Plan, RequestPlan, SessionPlan};

/// One `GET` of a target, in a session like the given one.
#[must_use]
pub fn single(target: &str, like: &SessionPlan) -> Plan {
    let page = PagePlan {
        base: RequestPlan::get(target),
        ..PagePlan::default()
    };
    Plan {
        sessions: vec![SessionPlan {
            pages: vec![page],
            ..like.clone()
        }],
        is_weighted: false,
    }
}
