//! Sets of networks.

use std::net::IpAddr;

use linkweir_record::Prefix;

/// A set of networks; empty means every address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Prefix>);

impl Networks {
    /// Whether an address is in one of them.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.is_empty() || self.0.iter().any(|network| network.contains(&address))
    }

    /// Whether each address of another set is in this one, as far as single networks show.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_within = |inner: &Prefix| self.0.iter().any(|outer| outer.contains(&inner.0));
        self.0.is_empty() || !other.0.is_empty() && other.0.iter().all(is_within)
    }
}
