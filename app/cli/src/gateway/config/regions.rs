//! Countries and autonomous systems of rules, and the databases that know them.

use std::path::PathBuf;

use linkweir_gateway::policy::Regions;
use linkweir_geo::{Databases, GeoError};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::values::{List, Place, whole};
use crate::exit::Wrong;

/// The codes that are assigned (ISO 3166-1 alpha-2), and XK, which databases have of Kosovo.
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ \
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR \
    GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT \
    JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY \
    MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM \
    PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ \
    TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW";

/// Number of an autonomous system (RFC 6793); 0 is nobody's (RFC 7607).
#[derive(Debug, Clone, Copy)]
pub(super) struct Asn(u32);

impl<'de> Deserialize<'de> for Asn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        whole::<1, 0xffff_ffff, _, _>(from).map(Self)
    }
}

/// What a rule says of one end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys<'a> {
    /// The name of the rule.
    pub(super) rule: &'a str,
    pub(super) countries: (&'static str, &'a List<String>),
    pub(super) asns: (&'static str, &'a List<Asn>),
}

impl Keys<'_> {
    /// The regions, which a database must know.
    pub(super) fn read(
        self,
        databases: Option<&Databases>,
        place: Place<'_>,
    ) -> Result<Regions, Wrong> {
        let ((country_key, countries), (asn_key, asns)) = (self.countries, self.asns);
        let missing = |key: &str, at: &std::ops::Range<usize>, has: bool, what: &str| {
            let why = match databases {
                _ if has => return Ok(()),
                None => format!(
                    "needs a database of {what}: write `geoip = \"FILE.mmdb\"` in [gateway]"
                ),
                Some(_) => format!("needs a database of {what}: no file of `geoip` has them"),
            };
            Err(place.wrong(at, format!("rule `{}`: `{key}` {why}", self.rule)))
        };
        if let Some(first) = countries.0.first() {
            let has = databases.is_some_and(Databases::has_countries);
            missing(country_key, &first.span(), has, "countries")?;
        }
        if let Some(first) = asns.0.first() {
            let has = databases.is_some_and(Databases::has_asns);
            missing(asn_key, &first.span(), has, "AS numbers")?;
        }
        let codes = countries.0.iter().map(|code| country(code, place));
        Ok(Regions {
            countries: codes.collect::<Result<_, _>>()?,
            asns: asns.0.iter().map(|asn| asn.get_ref().0).collect(),
        })
    }
}

/// A code in letters of either case.
fn country(word: &Spanned<String>, place: Place<'_>) -> Result<[u8; 2], Wrong> {
    let code = word.get_ref().to_ascii_uppercase();
    let known = COUNTRIES.split_ascii_whitespace().find(|one| *one == code);
    let bytes = known.and_then(|code| <[u8; 2]>::try_from(code.as_bytes()).ok());
    bytes.ok_or_else(|| {
        let hint = match code.as_str() {
            "UK" => "; did you mean `GB`?",
            "EL" => "; did you mean `GR`?",
            _ => "",
        };
        let what = format!(
            "`{}` is not a valid country: write two letters as in ISO 3166-1, as \"NL\"{hint}",
            word.get_ref()
        );
        place.wrong(&word.span(), what)
    })
}

/// Opens the files of `geoip`; nothing where there are none.
pub(super) fn databases(
    files: &List<PathBuf>,
    place: Place<'_>,
) -> Result<Option<Databases>, Wrong> {
    let paths: Vec<_> = files
        .0
        .iter()
        .map(|file| place.resolve(file.get_ref()))
        .collect();
    let located = |error: GeoError| {
        let is_it = |file: &&Spanned<PathBuf>| place.resolve(file.get_ref()) == error.path();
        let at = files.0.iter().find(is_it).map(Spanned::span);
        place.wrong(&at.unwrap_or_default(), &error)
    };
    let opened = (!paths.is_empty()).then(|| Databases::open(&paths));
    opened.transpose().map_err(located)
}
