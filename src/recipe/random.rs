//! The random numbers of a sample: a stream for each operation.
//!
//! A stream follows from the operation's name and from how many of its kind stand
//! in front of it. So moving, adding or changing an operation never shifts the
//! numbers of another kind. Pure: where the numbers come from is `plan`'s.

use super::geometry::Uniform;

/// The random numbers of one position.
pub(crate) trait Streams {
    type Stream: Uniform;

    /// Those of a stream.
    fn stream(&self, n: u32) -> Self::Stream;
}

/// The numbers of one operation.
pub(crate) struct Numbers<'a, S: Streams> {
    streams: &'a S,
    id: u32,
    own: S::Stream,
}

impl<'a, S: Streams> Numbers<'a, S> {
    pub(crate) fn new(streams: &'a S, id: u32) -> Self {
        Self {
            streams,
            id,
            own: streams.stream(id),
        }
    }

    /// The numbers of an operation that stands inside of this one: by its name, and by
    /// how many of its kind stand in front of it in there.
    pub(crate) fn inner(&self, name: &str, earlier: u32) -> Self {
        let path = format!("{}/{name}", self.id);
        Self::new(self.streams, stream(&path, earlier))
    }
}

impl<S: Streams> Uniform for Numbers<'_, S> {
    fn next_f64(&mut self) -> f64 {
        self.own.next_f64()
    }
}

/// The stream of the operation of that name that has so many of its kind in front
/// of it: whatever else a recipe does, it stays. Never above 2^30.
pub(crate) fn stream(name: &str, earlier: u32) -> u32 {
    let of_name = twox_hash::XxHash3_128::oneshot(name.as_bytes()) as u32 & 0x3f_ffff;
    of_name << 8 | earlier & 0xff
}

/// Every probability comes true, every draw is the lowest.
pub(crate) struct Lowest;

impl Uniform for Lowest {
    fn next_f64(&mut self) -> f64 {
        0.0
    }
}

impl Streams for Lowest {
    type Stream = Self;

    fn stream(&self, _: u32) -> Self {
        Self
    }
}

/// Numbers from one stream, whatever the operation: for tests.
#[cfg(test)]
pub(crate) struct OneStream<F>(pub(crate) F);

#[cfg(test)]
impl<U: Uniform, F: Fn() -> U> Streams for OneStream<F> {
    type Stream = U;

    fn stream(&self, _: u32) -> U {
        (self.0)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PositionRandom;

    #[test]
    fn operations_inside_of_another_have_streams_of_their_own() {
        let position = PositionRandom::new(5, 1, 9);
        let outer = Numbers::new(&position, stream("random_apply", 0));
        let first = |name, earlier| outer.inner(name, earlier).next_f64();
        let jitter = first("color_jitter", 0);
        assert_eq!(jitter, first("color_jitter", 0));
        assert_ne!(jitter, first("color_jitter", 1));
        assert_ne!(jitter, first("grayscale", 0));
        let other = Numbers::new(&position, stream("random_apply", 1));
        assert_ne!(jitter, other.inner("color_jitter", 0).next_f64());
        assert_ne!(
            jitter,
            Numbers::new(&position, stream("color_jitter", 0)).next_f64()
        );
    }
}
