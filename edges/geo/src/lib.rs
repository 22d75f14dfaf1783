//! Countries and AS numbers of addresses, from files in the format of `MaxMind` (`.mmdb`) that the user has.
//!
//! Nothing of them is part of the program: their terms do not permit that. A file is read whole and checked when it is
//! opened; a look-up takes well below a microsecond.
//!
//! Source: "`MaxMind` DB File Format Specification", version 2.0.
#![forbid(unsafe_code)]

use std::fs::Metadata;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linkweir_record::{Place, Places};
use maxminddb::{PathElement, Reader};

/// The longest file that is read, bytes: three times the largest database that is sold.
const LONGEST: u64 = 2 << 30;

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum GeoError {
    /// It could not be read, or is damaged.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        cause: maxminddb::MaxMindDbError,
    },
    /// It is a directory, a device or a FIFO, or longer than any database is.
    #[error(
        "{}: not a database: a regular file of at most {} MiB is expected",
        path.display(),
        LONGEST >> 20
    )]
    NotDatabase {
        /// The file.
        path: PathBuf,
    },
    /// It is of something else.
    #[error(
        "{}: a database of the type `{kind}` has neither countries nor AS numbers; those of the types City, Country, ASN, ISP and Enterprise do",
        path.display()
    )]
    Kind {
        /// The file.
        path: PathBuf,
        /// Its type, as it says.
        kind: String,
    },
}

impl GeoError {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Kind { path, .. } | Self::NotDatabase { path } => path,
        }
    }
}

/// One file.
struct Database {
    reader: Reader<Vec<u8>>,
    country: Option<[PathElement<'static>; 2]>,
    /// Where the number stands.
    asn: Option<Vec<PathElement<'static>>>,
}

impl Database {
    fn open(path: &Path) -> Result<Self, GeoError> {
        let fault = |cause| GeoError::File {
            path: path.to_owned(),
            cause,
        };
        // It is read whole.
        let is_long = |file: Metadata| !file.is_file() || file.len() > LONGEST;
        if std::fs::metadata(path).is_ok_and(is_long) {
            let path = path.to_owned();
            return Err(GeoError::NotDatabase { path });
        }
        let reader = Reader::open_readfile(path).map_err(fault)?;
        reader.verify().map_err(fault)?;
        let kind = &reader.metadata().database_type;
        let is = |names: &[&str]| names.iter().any(|name| kind.contains(name));
        let number = PathElement::Key("autonomous_system_number");
        let country = is(&["City", "Country", "Enterprise"])
            .then_some([PathElement::Key("country"), PathElement::Key("iso_code")]);
        let asn = if is(&["Enterprise"]) {
            Some(vec![PathElement::Key("traits"), number])
        } else {
            is(&["ASN", "ISP"]).then(|| vec![number])
        };
        if country.is_none() && asn.is_none() {
            return Err(GeoError::Kind {
                path: path.to_owned(),
                kind: kind.clone(),
            });
        }
        Ok(Self {
            reader,
            country,
            asn,
        })
    }
}

/// The files of a run, of which the first that knows answers.
pub struct Databases(Vec<Database>);

impl std::fmt::Debug for Databases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.0.iter();
        let kinds = kinds.map(|one| &one.reader.metadata().database_type);
        f.debug_list().entries(kinds).finish()
    }
}

impl Databases {
    /// Reads and checks files.
    ///
    /// # Errors
    /// Where a file cannot be read, is damaged, or has neither countries nor AS numbers: [`GeoError`] names it.
    pub fn open(paths: &[PathBuf]) -> Result<Self, GeoError> {
        let databases = paths.iter().map(|path| Database::open(path));
        Ok(Self(databases.collect::<Result<_, _>>()?))
    }

    /// Whether one of them is of countries.
    #[must_use]
    pub fn has_countries(&self) -> bool {
        self.0.iter().any(|one| one.country.is_some())
    }

    /// Whether one of them is of AS numbers.
    #[must_use]
    pub fn has_asns(&self) -> bool {
        self.0.iter().any(|one| one.asn.is_some())
    }
}

impl Places for Databases {
    /// What does not decode is not there: the files were checked.
    fn place(&self, address: IpAddr) -> Place {
        let (mut country, mut asn) = ("", 0);
        for database in &self.0 {
            let Ok(found) = database.reader.lookup(address) else {
                continue;
            };
            if let Some(path) = database.country.as_ref().filter(|_| country.is_empty()) {
                country = found.decode_path(path).ok().flatten().unwrap_or("");
            }
            if let Some(path) = database.asn.as_ref().filter(|_| asn == 0) {
                asn = found.decode_path(path).ok().flatten().unwrap_or(0);
            }
        }
        Place::new(country, asn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_testkit::mmdb::{self, Value};
    use std::fs::File;

    fn place(databases: &Databases, address: &str) -> Place {
        databases.place(address.parse().unwrap())
    }

    #[test]
    fn countries_and_numbers_of_several_files() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: Vec<u8>| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let city = write(
            "city.mmdb",
            mmdb::database(
                "GeoLite2-City",
                &[
                    ("192.0.2.0/24", mmdb::country("NL")),
                    ("198.51.100.128/25", mmdb::country("ES")),
                    ("2001:db8::/32", mmdb::country("DE")),
                ],
            ),
        );
        let asn = write(
            "asn.mmdb",
            mmdb::database(
                "DBIP-ASN-Lite (compat=GeoLite2-ASN)",
                &[("192.0.0.0/16", mmdb::asn(64_500))],
            ),
        );
        let both = Value::Map(vec![
            ("country", Value::Map(vec![("iso_code", Value::Text("JP"))])),
            (
                "traits",
                Value::Map(vec![(
                    "autonomous_system_number",
                    Value::U32(4_200_000_000),
                )]),
            ),
        ]);
        let enterprise = write(
            "enterprise.mmdb",
            mmdb::database("GeoIP2-Enterprise", &[("203.0.113.0/24", both)]),
        );
        let databases = Databases::open(&[city, asn, enterprise]).unwrap();
        for (address, country, asn) in [
            ("192.0.2.200", "NL", 64_500),
            ("192.0.3.1", "", 64_500),
            ("198.51.100.129", "ES", 0),
            ("198.51.100.127", "", 0),
            ("2001:db8:ffff::1", "DE", 0),
            ("2001:db9::1", "", 0),
            ("203.0.113.9", "JP", 4_200_000_000),
            ("10.0.0.1", "", 0),
        ] {
            assert_eq!(
                place(&databases, address),
                Place::new(country, asn),
                "{address}"
            );
        }
    }

    #[test]
    fn what_is_no_database_is_an_error_that_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.mmdb");
        let refused = || {
            Databases::open(std::slice::from_ref(&path))
                .unwrap_err()
                .to_string()
        };
        assert!(refused().contains("x.mmdb: "), "{}", refused());
        let whole = mmdb::database("GeoLite2-Country", &[("192.0.2.0/24", mmdb::country("NL"))]);
        std::fs::write(&path, b"no database").unwrap();
        assert!(refused().contains("x.mmdb: "), "{}", refused());
        // Damaged anywhere, it is refused, or what is left of it is read; it never panics.
        for at in 0..whole.len() {
            for value in [0, 0xff, whole[at] ^ 1] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                std::fs::write(&path, bytes).unwrap();
                if let Ok(databases) = Databases::open(std::slice::from_ref(&path)) {
                    let _any = place(&databases, "192.0.2.1");
                }
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            let _cut = refused();
        }
        // Neither what never ends nor what fills the memory is read.
        let long = File::create(&path).unwrap();
        long.set_len(LONGEST + 1).unwrap();
        assert!(
            refused().contains("regular file of at most 2048 MiB"),
            "{}",
            refused()
        );
        let device = Databases::open(&["/dev/zero".into()]).unwrap_err();
        assert!(
            device.to_string().contains("/dev/zero: not a database"),
            "{device}"
        );
        let other = mmdb::database("GeoIP2-Domain", &[]);
        std::fs::write(&path, other).unwrap();
        assert!(
            refused().contains("`GeoIP2-Domain` has neither"),
            "{}",
            refused()
        );
    }
}
