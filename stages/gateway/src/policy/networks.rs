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
}
