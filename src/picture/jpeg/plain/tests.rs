//! Which files are for engines, that their plain form is the same picture, and that no
//! bytes make the reader panic.

use proptest::prelude::*;

use super::super::decoder::{JpegDecoder, Scratch};
use super::super::fixtures::{self, Sampling};
use super::super::header::read_header;
use super::super::region::{Region, Scale};
use super::*;
use crate::picture::Limits;

const MOST: (u32, u32) = (1024, 1024);

fn plain(bytes: &[u8]) -> Plain<Vec<u8>> {
    let mut to = vec![0; bytes.len()];
    let len = write(bytes, MOST, &mut to)?;
    to.truncate(len);
    Ok(to)
}

fn pixels(bytes: &[u8]) -> Vec<u8> {
    let header = read_header(bytes).unwrap();
    let mut scratch = Scratch::default();
    let whole = Region::whole((header.width, header.height));
    let decoder = JpegDecoder::new(&Limits::default());
    let decoded = decoder
        .decode_region(bytes, &header, Scale::Full, whole, &mut scratch)
        .unwrap();
    scratch.rgb.truncate(decoded.stride * decoded.h as usize);
    scratch.rgb
}

/// Where a segment of this marker begins.
fn at(bytes: &[u8], marker: u8) -> usize {
    bytes.windows(2).position(|w| w == [0xFF, marker]).unwrap()
}

fn with(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    bytes
}

#[test]
fn the_plain_form_is_the_same_picture_without_the_rest() {
    for sampling in [
        Sampling::S444,
        Sampling::S422,
        Sampling::S420,
        Sampling::S440,
    ] {
        for restart in [0, 3] {
            let bytes = fixtures::encode(131, 77, sampling, 80, false, restart);
            let written = plain(&bytes).unwrap();
            assert_eq!(check(&written, MOST), Ok((131, 77)), "{sampling:?}");
            assert_eq!(pixels(&written), pixels(&bytes), "{sampling:?}");
            // JFIF's segment is gone, and so are EXIF and what follows the picture.
            assert_eq!(written.len(), bytes.len() - 18, "{sampling:?}");
            let more = with(&fixtures::turned(bytes, 6), |b| {
                b.extend([1, 0xFF, 0xD9, 2])
            });
            assert_eq!(plain(&more).unwrap(), written);
            // It is its own plain form.
            assert_eq!(plain(&written).unwrap(), written);
        }
    }
}

/// The file with its components called so.
fn named(bytes: &[u8], names: [u8; 3]) -> Vec<u8> {
    with(bytes, |b| {
        let (frame, scan) = (at(b, 0xC0), at(b, 0xDA));
        for (i, name) in names.into_iter().enumerate() {
            b[frame + 10 + 3 * i] = name;
            b[scan + 5 + 2 * i] = name;
        }
    })
}

#[test]
fn components_may_be_called_otherwise_but_red_green_and_blue() {
    let bytes = fixtures::jpeg(100, 100, Sampling::S420);
    let usual = plain(&bytes).unwrap();
    for names in [[0, 1, 2], [3, 2, 1], [82, 71, 67]] {
        let other = named(&bytes, names);
        assert_eq!(pixels(&other), pixels(&bytes), "{names:?}");
        assert_eq!(plain(&other).unwrap(), usual, "{names:?}");
        // Where it is read again, they are called 1, 2 and 3.
        assert_eq!(check(&named(&usual, names), MOST), Err(NotPlain::Colours));
    }
    for names in [*b"RGB", [1, 1, 2], [1, 2, 1], [2, 1, 1]] {
        assert_eq!(
            plain(&named(&bytes, names)),
            Err(NotPlain::Colours),
            "{names:?}"
        );
    }
    // A scan in another order is no plain one.
    let turned = with(&bytes, |b| {
        let scan = at(b, 0xDA);
        b.swap(scan + 5, scan + 7);
    });
    assert_eq!(plain(&turned), Err(NotPlain::Scan));
}

#[test]
fn what_engines_do_not_take_is_told_apart() {
    let usual = fixtures::jpeg(100, 100, Sampling::S420);
    let of = |sampling| fixtures::jpeg(100, 100, sampling);
    for (why, bytes) in [
        (NotPlain::Colours, of(Sampling::Grey)),
        (NotPlain::Colours, of(Sampling::Cmyk)),
        (NotPlain::Colours, of(Sampling::Ycck420)),
        (NotPlain::Colours, of(Sampling::AdobeRgb)),
        (NotPlain::Sampling, of(Sampling::S411)),
        (NotPlain::Sampling, of(Sampling::S441)),
        (
            NotPlain::Process,
            fixtures::encode(100, 100, Sampling::S420, 90, true, 0),
        ),
        (
            NotPlain::Process,
            fixtures::encode_arithmetic(100, 100, Sampling::S420, false),
        ),
        (
            NotPlain::Process,
            with(&usual, |b| b[at(&usual, 0xC0) + 1] = 0xC1),
        ),
        (
            NotPlain::Process,
            with(&usual, |b| b[at(&usual, 0xC0) + 4] = 12),
        ),
        (NotPlain::Size, fixtures::jpeg(63, 100, Sampling::S420)),
        (NotPlain::Size, fixtures::jpeg(100, 63, Sampling::S420)),
        (NotPlain::Size, fixtures::jpeg(1025, 64, Sampling::S420)),
        (NotPlain::Size, fixtures::jpeg(64, 1025, Sampling::S420)),
    ] {
        assert_eq!(plain(&bytes), Err(why), "{:?}", &bytes[..30]);
    }
    assert!(plain(&fixtures::jpeg(64, 1024, Sampling::S420)).is_ok());
}

#[test]
fn damage_that_can_be_seen_is_found() {
    let bytes = fixtures::encode(100, 100, Sampling::S420, 90, false, 2);
    let scan = read_header(&bytes).unwrap().scan_start;
    let first = scan + at(&bytes[scan..], 0xD0);
    let second = scan + at(&bytes[scan..], 0xD1);
    let end = bytes.len() - 2;
    let tables = at(&bytes, 0xC4);
    type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
    let cases: [(NotPlain, Change<'_>); 14] = [
        (NotPlain::NoEnd, &|b| b.truncate(end)),
        (NotPlain::NoEnd, &|b| b.truncate(scan + 100)),
        (NotPlain::NoEnd, &|b| b.truncate(end + 1)),
        // A part is gone, with its markers or between two of them.
        (NotPlain::Restarts, &|b| drop(b.drain(first..second))),
        (NotPlain::Restarts, &|b| b[first + 1] = 0xD1),
        (NotPlain::Restarts, &|b| b.truncate(second + 2)),
        (NotPlain::Markers, &|b| b[first + 1] = 0xC4),
        (NotPlain::Markers, &|b| b[first + 1] = 0xFF),
        (NotPlain::Tables, &|b| b[tables + 1] = 0xFE),
        // More codes than there is room for, or a symbol that baseline has not.
        (NotPlain::Tables, &|b| b[tables + 5] = 3),
        (NotPlain::Tables, &|b| b[tables + 21] = 12),
        (NotPlain::Tables, &|b| {
            let quantization = at(b, 0xDB);
            b[quantization + 9] = 0;
        }),
        (NotPlain::Header, &|b| b.truncate(scan - 1)),
        (NotPlain::Header, &|b| b[1] = 0xD9),
    ];
    for (i, (why, change)) in cases.into_iter().enumerate() {
        let mut damaged = with(&bytes, change);
        if why == NotPlain::Restarts {
            // As a file that ends early and has an end.
            damaged.extend([0xFF, 0xD9]);
        }
        assert_eq!(plain(&damaged), Err(why), "case {i}");
    }
    let usual = fixtures::jpeg(100, 100, Sampling::S420);
    let scan = read_header(&usual).unwrap().scan_start;
    let short = with(&usual, |b| drop(b.drain(scan + 40..usual.len() - 2)));
    assert_eq!(plain(&short), Err(NotPlain::Short));
    let marked = with(&usual, |b| {
        drop(b.splice(scan + 90..scan + 90, [0xFF, 0xD0]))
    });
    assert_eq!(plain(&marked), Err(NotPlain::Restarts));
    let half = with(&usual, |b| b[scan - 3] = 1);
    assert_eq!(plain(&half), Err(NotPlain::Scan));
}

#[test]
fn room_and_length_are_kept_to() {
    let bytes = fixtures::jpeg(100, 100, Sampling::S420);
    let written = plain(&bytes).unwrap();
    let mut to = vec![7; written.len() + 1];
    assert_eq!(write(&bytes, MOST, &mut to), Ok(written.len()));
    assert_eq!(to.pop(), Some(7));
    assert_eq!(to, written);
    to.pop();
    assert_eq!(write(&bytes, MOST, &mut to), Err(NotPlain::NoRoom));

    // What is read again is that form, and nothing behind it.
    let longer = with(&written, |b| b.push(0));
    assert_eq!(check(&longer, MOST), Err(NotPlain::NoEnd));
    assert_eq!(check(&bytes, MOST), Err(NotPlain::Header));
    assert_eq!(check(&written, (99, 100)), Err(NotPlain::Size));
    assert_eq!(
        check(&written[..written.len() - 1], MOST),
        Err(NotPlain::NoEnd)
    );
    // A front of tables alone, again and again.
    let table = written[at(&written, 0xDB)..][..69].to_vec();
    let many = with(&bytes, |b| drop(b.splice(2..2, table.repeat(60))));
    assert_eq!(plain(&many), Err(NotPlain::Header));
}

/// Of ImageNet's files 4% are grey, CMYK or progressive.
#[test]
fn photos_are_taken_and_are_the_same_pictures() {
    let photos = fixtures::photos();
    let mut taken = 0;
    for (path, bytes) in &photos {
        let mut to = vec![0; bytes.len()];
        match write(bytes, (4096, 4096), &mut to) {
            Ok(len) => {
                taken += 1;
                let path = path.display();
                assert!(check(&to[..len], (4096, 4096)).is_ok(), "{path}");
                if taken % 16 == 0 {
                    assert_eq!(pixels(&to[..len]), pixels(bytes), "{path}");
                }
            }
            Err(why) => eprintln!("{}: {why:?}", path.display()),
        }
    }
    assert!(
        taken * 10 >= photos.len() * 9,
        "{taken} of {}",
        photos.len()
    );
}

fn sources() -> impl Strategy<Value = Vec<u8>> {
    let sampling = prop::sample::select(&Sampling::ALL[..]);
    (sampling, 60u32..90, 60u32..90, 0i32..4)
        .prop_map(|(s, w, h, restart)| fixtures::encode(w, h, s, 75, false, restart))
}

proptest! {
    /// Whatever is written is read again as the same picture, and what is read was written.
    #[test]
    fn changed_bytes_are_taken_whole_or_not_at_all(
        bytes in sources(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = bytes;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = check(&bytes, MOST);
        let Ok(written) = plain(&bytes) else {
            return Ok(());
        };
        let header = read_header(&bytes).unwrap();
        prop_assert_eq!(check(&written, MOST), Ok((header.width, header.height)));
        prop_assert_eq!(plain(&written).unwrap(), written);
    }
}
