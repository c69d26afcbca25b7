//! Pax records: `length key=value` lines that describe a member beyond its header.
//!
//! Runs in the consumer, on bytes in memory.

use crate::data::shard::header::HeaderFault;

/// The values of the records that matter here. A later record overrides an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PaxRecords {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    /// GNU's sparse format: the data are not one range of the file.
    pub(crate) sparse: bool,
}

impl PaxRecords {
    /// Adds the values of `records`. An empty value removes an earlier value.
    pub(crate) fn read(&mut self, mut records: &[u8]) -> Result<(), HeaderFault> {
        while !records.is_empty() {
            let (key, value, rest) = first(records).ok_or(HeaderFault::Pax)?;
            records = rest;
            match key {
                b"path" if value.contains(&0) => return Err(HeaderFault::Name),
                b"path" => self.path = (!value.is_empty()).then(|| value.to_vec()),
                b"size" if value.is_empty() => self.size = None,
                b"size" => self.size = Some(decimal(value).ok_or(HeaderFault::Size)?),
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Key and value of the first record, and the bytes after it.
fn first(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blank = records.iter().take(20).position(|&b| b == b' ')?;
    let bytes = usize::try_from(decimal(&records[..blank])?).ok()?;
    let (record, rest) = records.split_at_checked(bytes)?;
    let text = record.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = text.iter().position(|&b| b == b'=')?;
    Some((&text[..equals], &text[equals + 1..], rest))
}

/// Parses decimal digits. Rejects numbers above `i64::MAX`, which no file size reaches.
fn decimal(digits: &[u8]) -> Option<u64> {
    let number = digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })?;
    (!digits.is_empty() && i64::try_from(number).is_ok()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(records: &[u8]) -> Result<PaxRecords, HeaderFault> {
        let mut pax = PaxRecords::default();
        pax.read(records).map(|()| pax)
    }

    #[test]
    fn records_are_read() {
        let pax = read(b"16 path=a=b\n.jp\n12 size=123\n30 mtime=1700000000.123456789\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"a=b\n.jp"[..]));
        assert_eq!((pax.size, pax.sparse), (Some(123), false));
        assert!(read(b"22 GNU.sparse.major=1\n").unwrap().sparse);
        let taken_back = read(b"12 path=abc\n8 path=\n12 size=123\n8 size=\n");
        // A record of 8 bytes: "8 path=\n" has 8.
        assert_eq!(taken_back, Ok(PaxRecords::default()));
        assert_eq!(read(b""), Ok(PaxRecords::default()));
    }

    #[test]
    fn records_that_break_the_rules_are_refused() {
        for bad in [
            &b"x"[..],
            b"12 path=abc",
            b"13 path=abc\n",
            b"11 path=abc\n",
            b"0 path=abc\n",
            b"2 path=abc\n",
            b"-12 path=abc\n",
            b" path=abc\n",
            b"9 pathabc\n",
            b"99999999999999999999 path=abc\n",
            b"18446744073709551615 path=abc\n",
            b"12 path=abc\n\0",
        ] {
            assert_eq!(
                read(bad),
                Err(HeaderFault::Pax),
                "{:?}",
                String::from_utf8_lossy(bad)
            );
        }
        assert_eq!(read(b"12 path=a\0c\n"), Err(HeaderFault::Name));
        assert_eq!(read(b"11 size=-1\n"), Err(HeaderFault::Size));
        assert_eq!(
            read(b"28 size=9223372036854775808\n"),
            Err(HeaderFault::Size)
        );
    }
}
