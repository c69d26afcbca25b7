//! Outlines and run lengths as bytes.
//!
//! Coordinates are kept exactly, since a mask depends on their last bit. Most annotations have two
//! decimals. Then 4 bytes hold a coordinate.

/// What an object covers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum ObjectShape {
    /// Its box only.
    #[default]
    None,
    /// Rings of points: x, y.
    Polygons(Vec<Vec<[f64; 2]>>),
    /// Lengths of runs, column by column, of a mask of this height and width.
    Runs { size: (u32, u32), counts: Vec<u32> },
    /// The same as COCO's compressed text.
    RunText { size: (u32, u32), text: Vec<u8> },
}

/// Coordinates with two decimals are whole numbers of hundredths.
const HUNDREDTHS: f64 = 100.0;

const POLYGONS: u32 = 1;
const FINE_POLYGONS: u32 = 2;
const RUNS: u32 = 3;
const RUN_TEXT: u32 = 4;

impl ObjectShape {
    /// Appends the bytes. An empty shape has none.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let mut word = |n: u32| to.extend_from_slice(&n.to_le_bytes());
        match self {
            Self::None => {}
            Self::Polygons(rings) => {
                let all = || rings.iter().flatten().flatten();
                let coarse = all().all(|v| hundredths(*v).is_some());
                word(if coarse { POLYGONS } else { FINE_POLYGONS });
                word(rings.len() as u32);
                for ring in rings {
                    word(ring.len() as u32);
                }
                for v in all() {
                    match hundredths(*v).filter(|_| coarse) {
                        Some(n) => to.extend_from_slice(&n.to_le_bytes()),
                        None => to.extend_from_slice(&v.to_le_bytes()),
                    }
                }
            }
            Self::Runs { size, counts } => {
                [RUNS, size.0, size.1].into_iter().for_each(&mut word);
                counts.iter().for_each(|n| word(*n));
            }
            Self::RunText { size, text } => {
                [RUN_TEXT, size.0, size.1].into_iter().for_each(word);
                to.extend_from_slice(text);
            }
        }
    }

    /// The shape of these bytes. None if they are damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::None);
        }
        let mut rest = bytes;
        match next_word(&mut rest)? {
            form @ (POLYGONS | FINE_POLYGONS) => read_polygons(form, rest),
            form @ (RUNS | RUN_TEXT) => {
                let size = (next_word(&mut rest)?, next_word(&mut rest)?);
                if form == RUN_TEXT {
                    return Some(Self::RunText {
                        size,
                        text: rest.to_vec(),
                    });
                }
                let (words, left) = rest.as_chunks::<4>();
                let counts = words.iter().map(|n| u32::from_le_bytes(*n)).collect();
                left.is_empty().then_some(Self::Runs { size, counts })
            }
            _ => None,
        }
    }
}

fn read_polygons(form: u32, mut rest: &[u8]) -> Option<ObjectShape> {
    let rings = next_word(&mut rest)? as usize;
    let (heads, points) = rest.split_at_checked(rings.checked_mul(4)?)?;
    let mut values: Box<dyn Iterator<Item = f64>> = match form {
        POLYGONS => {
            let (words, left) = points.as_chunks::<4>();
            let value = |n: &[u8; 4]| f64::from(i32::from_le_bytes(*n)) / HUNDREDTHS;
            left.is_empty().then(|| Box::new(words.iter().map(value)))?
        }
        _ => {
            let (words, left) = points.as_chunks::<8>();
            let values = words.iter().map(|n| f64::from_le_bytes(*n));
            left.is_empty().then(|| Box::new(values))?
        }
    };
    let mut shape = Vec::new();
    for head in heads.as_chunks::<4>().0 {
        let mut ring = Vec::new();
        for _ in 0..u32::from_le_bytes(*head) {
            ring.push([values.next()?, values.next()?]);
        }
        shape.push(ring);
    }
    values
        .next()
        .is_none()
        .then_some(ObjectShape::Polygons(shape))
}

/// The number of hundredths, if the coordinate is exactly that many.
fn hundredths(v: f64) -> Option<i32> {
    let n = (v * HUNDREDTHS).round();
    let fits = n.abs() < f64::from(i32::MAX) && n / HUNDREDTHS == v;
    // -0 would come back as 0.
    (fits && !(v == 0.0 && v.is_sign_negative())).then_some(n as i32)
}

fn next_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(shape: &ObjectShape) -> Vec<u8> {
        let mut bytes = Vec::new();
        shape.write(&mut bytes);
        bytes
    }

    #[test]
    fn shapes_come_back_exactly() {
        let coarse = ObjectShape::Polygons(vec![
            vec![[0.29, 512.58], [1e6, -3.07], [0.0, 640.0]],
            vec![],
            vec![[7.0, 8.0]],
        ]);
        let fine = ObjectShape::Polygons(vec![vec![[0.1 + 0.2, 1.0 / 3.0], [1e300, -0.0]]]);
        let size = (480, 640);
        let runs = ObjectShape::Runs {
            size,
            counts: vec![5, 0, u32::MAX],
        };
        let text = ObjectShape::RunText {
            size,
            text: b"`Xh0".to_vec(),
        };
        for shape in [&ObjectShape::None, &coarse, &fine, &runs, &text] {
            let back = ObjectShape::read(&bytes_of(shape)).unwrap();
            assert_eq!(format!("{back:?}"), format!("{shape:?}"));
        }
        assert_eq!(bytes_of(&coarse).len(), 4 + 4 + 3 * 4 + 4 * 2 * 4);
        assert_eq!(bytes_of(&ObjectShape::None).len(), 0);
    }

    /// Every coordinate of two decimals takes 4 bytes and comes back as the parser read it.
    #[test]
    fn every_hundredth_is_exact() {
        for n in 0..1_000_000u32 {
            let text = format!("{}.{:02}", n / 100, n % 100);
            let v: f64 = text.parse().unwrap();
            let coarse = hundredths(v).map(|n| f64::from(n) / HUNDREDTHS);
            assert_eq!(coarse.map(f64::to_bits), Some(v.to_bits()), "{text}");
        }
    }

    #[test]
    fn damaged_bytes_are_no_shape() {
        let shape = ObjectShape::Polygons(vec![vec![[1.0, 2.0]; 3]; 2]);
        let bytes = bytes_of(&shape);
        for end in 1..bytes.len() {
            assert_eq!(ObjectShape::read(&bytes[..end]), None, "{end}");
        }
        let mut huge = bytes.clone();
        huge[4..8].fill(0xff);
        assert_eq!(ObjectShape::read(&huge), None);
        let mut long = bytes.clone();
        long[8..12].fill(0xff);
        assert_eq!(ObjectShape::read(&long), None);
        assert_eq!(ObjectShape::read(&[9, 0, 0, 0]), None);
        assert_eq!(ObjectShape::read(&[RUNS as u8, 0, 0, 0, 1]), None);
    }
}
