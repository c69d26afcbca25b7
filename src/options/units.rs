//! Sizes and times as users write them: bytes with a unit, and seconds.
//!
//! In the consumer. One reader for the command line and for Python.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A size of memory: bytes, or a number with K, M, G or T (of 1,024), as in 2G or 1.5GiB.
///
/// # Errors
/// Text that is not a size; a number below 1 MiB without a unit.
pub fn bytes(text: &str) -> std::result::Result<u64, String> {
    parse_size(text, |number, [large, small]| {
        let unit = if number == "1" { "byte" } else { "bytes" };
        format!("{number} {unit} cannot hold a run: write {number}{large} or {number}{small}")
    })
}

/// The size of a shard. May be a few bytes, with the unit B.
///
/// # Errors
/// As [`bytes`].
pub fn shard_bytes(text: &str) -> std::result::Result<u64, String> {
    parse_size(text, |number, [large, small]| {
        format!("write {number}{large} or {number}{small}, or {number}B where bytes are meant")
    })
}

/// A smaller number without a unit is an error: the unit was probably forgotten.
const LEAST_WITHOUT_UNIT: u64 = 1 << 20;

/// `forgotten`: makes the error text for a number without a unit, from the number and two possible
/// units.
fn parse_size(
    text: &str,
    forgotten: impl Fn(&str, [char; 2]) -> String,
) -> std::result::Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, written) = text.split_at(end.unwrap_or(text.len()));
    let shift = match written.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        unit => {
            let short = unit.get(..1).filter(|short| "kmgt".contains(short));
            return Err(match short {
                // This could mean 10^9 or 2^30.
                Some(short) if unit == format!("{short}b") => format!(
                    "write {digits}{} (K, M, G and T are of 1,024)",
                    short.to_ascii_uppercase()
                ),
                _ => format!("'{written}' is not a unit: use K, M, G or T, such as 2G"),
            });
        }
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "use a size, such as 2G".to_owned())?;
    let bytes = number * (1u64 << shift) as f64;
    if !(1.0..=(1u64 << 60) as f64).contains(&bytes) {
        return Err("use 1 byte to 1048576T".to_owned());
    }
    let bytes = bytes as u64;
    if written.trim().is_empty() && bytes < LEAST_WITHOUT_UNIT {
        let units = if bytes < 1024 { ['G', 'M'] } else { ['M', 'K'] };
        return Err(forgotten(digits, units));
    }
    Ok(bytes)
}

/// A time: a number of seconds, as in 60 or 0.5.
///
/// # Errors
/// Text that is not a number; a number that is not a time.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text
        .parse()
        .map_err(|_| "use a number of seconds, such as 60 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| no_limit(seconds))
}

/// The largest number of seconds that a [`Duration`] holds.
const MOST_SECONDS: f64 = 1.8e19;

/// A time in JSON, parsed by [`seconds`].
pub(crate) fn read_seconds<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Duration>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(from)? else {
        return Ok(None);
    };
    let limit = Duration::try_from_secs_f64(seconds);
    limit
        .map(Some)
        .map_err(|_| serde::de::Error::custom(no_limit(seconds)))
}

/// Large numbers with an exponent instead of 300 digits.
fn no_limit(seconds: f64) -> String {
    let shown = format!("{seconds:?}");
    let shown = shown.strip_suffix(".0").unwrap_or(&shown);
    format!("{shown} seconds are no limit: give 0 to {MOST_SECONDS:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_what_is_none_is_answered() {
        assert_eq!(bytes("2G"), Ok(2 << 30));
        assert_eq!(bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(bytes("1048576"), Ok(1 << 20));
        assert_eq!(bytes("4096 B"), Ok(4096));
        assert_eq!(bytes("0.5K"), Ok(512));
        for (text, said) in [
            ("2GB", "write 2G (K, M, G and T are of 1,024)"),
            ("500mb", "write 500M (K, M, G and T are of 1,024)"),
            ("2X", "'X' is not a unit: use K, M, G or T, such as 2G"),
            ("much", "'much' is not a unit: use K, M, G or T, such as 2G"),
            ("G", "use a size, such as 2G"),
            ("0", "use 1 byte to 1048576T"),
        ] {
            assert_eq!(bytes(text), Err(said.to_owned()), "{text}");
            assert_eq!(shard_bytes(text), Err(said.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_small_number_without_a_unit_lacks_one() {
        for (text, said) in [
            ("2", "2 bytes cannot hold a run: write 2G or 2M"),
            ("1", "1 byte cannot hold a run: write 1G or 1M"),
            ("1.5", "1.5 bytes cannot hold a run: write 1.5G or 1.5M"),
            (
                "1048575",
                "1048575 bytes cannot hold a run: write 1048575M or 1048575K",
            ),
        ] {
            assert_eq!(bytes(text), Err(said.to_owned()), "{text}");
        }
        let said = "write 256G or 256M, or 256B where bytes are meant";
        assert_eq!(shard_bytes("256"), Err(said.to_owned()));
        assert_eq!(shard_bytes("256b"), Ok(256));
    }

    #[test]
    fn seconds_are_numbers() {
        assert_eq!(seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "60s", "-1", "nan", "1e20"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
