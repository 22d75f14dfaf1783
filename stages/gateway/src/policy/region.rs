//! Countries and autonomous systems that a rule names of one end.

use linkweir_record::Place;

/// Where an end of a connection has to be. Both lists hold where both are given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regions {
    /// Countries, two capital letters each (ISO 3166-1 alpha-2); empty: all, and addresses of none.
    pub countries: Vec<[u8; 2]>,
    /// Numbers of autonomous systems (RFC 6793), never 0; empty: all, and addresses of none.
    pub asns: Vec<u32>,
}

impl Regions {
    /// Whether every address is in it.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.countries.is_empty() && self.asns.is_empty()
    }

    /// Whether an end is in it. What the database does not know is in no country and no autonomous system.
    #[must_use]
    pub fn holds(&self, place: Place) -> bool {
        let is_country = || {
            let code = place.country_code();
            code.is_some_and(|code| self.countries.contains(&code))
        };
        let is_asn = || {
            place
                .as_number()
                .is_some_and(|asn| self.asns.contains(&asn))
        };
        (self.countries.is_empty() || is_country()) && (self.asns.is_empty() || is_asn())
    }

    /// Whether whatever is in another one is in this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        fn within<T: PartialEq>(outer: &[T], inner: &[T]) -> bool {
            outer.is_empty() || !inner.is_empty() && inner.iter().all(|one| outer.contains(one))
        }
        within(&self.countries, &other.countries) && within(&self.asns, &other.asns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_where_the_database_says_and_otherwise_nowhere() {
        let regions = |countries: &[&[u8; 2]], asns: &[u32]| Regions {
            countries: countries.iter().map(|code| **code).collect(),
            asns: asns.to_vec(),
        };
        for (region, place, holds) in [
            (regions(&[], &[]), Place::default(), true),
            (regions(&[], &[]), Place::new("NL", 1), true),
            (regions(&[b"NL"], &[]), Place::new("NL", 0), true),
            (regions(&[b"DE", b"NL"], &[]), Place::new("NL", 7), true),
            (regions(&[b"DE"], &[]), Place::new("NL", 0), false),
            (regions(&[b"DE"], &[]), Place::default(), false),
            (regions(&[], &[64_500]), Place::new("", 64_500), true),
            (regions(&[], &[64_500]), Place::new("DE", 64_501), false),
            (regions(&[], &[64_500]), Place::default(), false),
            (regions(&[b"DE"], &[64_500]), Place::new("DE", 64_500), true),
            (
                regions(&[b"DE"], &[64_500]),
                Place::new("NL", 64_500),
                false,
            ),
            (regions(&[b"DE"], &[64_500]), Place::new("DE", 0), false),
        ] {
            assert_eq!(region.holds(place), holds, "{region:?} {place:?}");
        }
        for (outer, inner, covers) in [
            (regions(&[], &[]), regions(&[b"NL"], &[1]), true),
            (regions(&[b"NL"], &[]), regions(&[], &[]), false),
            (regions(&[b"NL", b"DE"], &[]), regions(&[b"DE"], &[1]), true),
            (regions(&[b"NL"], &[]), regions(&[b"NL", b"DE"], &[]), false),
            (regions(&[b"NL"], &[1]), regions(&[b"NL"], &[]), false),
        ] {
            assert_eq!(outer.covers(&inner), covers, "{outer:?} {inner:?}");
        }
    }
}
