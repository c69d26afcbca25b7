//! The random numbers of a sample: one stream for each operation.
//!
//! A stream depends on the operation's name and on how many operations of that name come before it.
//! So moving, adding or changing an operation never shifts the numbers of other operations. Pure:
//! the room `order` provides the numbers.

use super::geometry::UniformSource;

/// The random numbers of one position in an epoch.
pub(crate) trait RandomStreams {
    /// Number `place` (from 0) of a stream, in [0, 1).
    fn number(&self, stream: u32, place: u32) -> f64;
}

/// Random numbers for each of several crops of one image.
pub(crate) trait CropStreams: RandomStreams + Sized {
    /// The numbers of a crop, from 0. They are independent of those of other crops. The first crop
    /// has the numbers of a recipe with one crop.
    fn of_crop(&self, crop: u32) -> Self;
}

/// The random numbers of one operation.
pub(crate) struct OperationNumbers<'a> {
    streams: &'a dyn RandomStreams,
    id: u32,
    next_place: u32,
}

impl<'a> OperationNumbers<'a> {
    pub(crate) fn new(streams: &'a dyn RandomStreams, id: u32) -> Self {
        Self {
            streams,
            id,
            next_place: 0,
        }
    }

    /// The numbers of a nested operation. They depend on this operation, on the name of the nested
    /// one, and on how many operations of that name come before it in the nested list.
    pub(crate) fn nested(&self, name: &str, earlier: u32) -> Self {
        let path = format!("{}/{name}", self.id);
        Self::new(self.streams, stream_id(&path, earlier))
    }
}

impl UniformSource for OperationNumbers<'_> {
    fn next_f64(&mut self) -> f64 {
        let place = self.next_place;
        self.next_place += 1;
        self.streams.number(self.id, place)
    }
}

/// The stream of an operation: its name, and the number of operations of that name before it. It
/// does not depend on the rest of the recipe. Below 2^30.
pub(crate) fn stream_id(name: &str, earlier: u32) -> u32 {
    let of_name = twox_hash::XxHash3_128::oneshot(name.as_bytes()) as u32 & 0x3f_ffff;
    of_name << 8 | earlier & 0xff
}

/// Always returns 0: every random event occurs, every draw is the lowest.
pub(crate) struct LowestDraws;

impl RandomStreams for LowestDraws {
    fn number(&self, _: u32, _: u32) -> f64 {
        0.0
    }
}

/// One stream for all operations, for tests.
#[cfg(test)]
pub(crate) struct OneStream<U>(std::cell::RefCell<U>);

#[cfg(test)]
impl<U> OneStream<U> {
    pub(crate) fn new(numbers: U) -> Self {
        Self(numbers.into())
    }
}

#[cfg(test)]
impl<U: UniformSource> RandomStreams for OneStream<U> {
    fn number(&self, _: u32, _: u32) -> f64 {
        self.0.borrow_mut().next_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PositionRandom;

    #[test]
    fn operations_inside_of_another_have_streams_of_their_own() {
        let position = PositionRandom::new(5, 1, 9);
        let outer = OperationNumbers::new(&position, stream_id("random_apply", 0));
        let first = |name, earlier| outer.nested(name, earlier).next_f64();
        let jitter = first("color_jitter", 0);
        assert_eq!(jitter, first("color_jitter", 0));
        assert_ne!(jitter, first("color_jitter", 1));
        assert_ne!(jitter, first("grayscale", 0));
        let other = OperationNumbers::new(&position, stream_id("random_apply", 1));
        assert_ne!(jitter, other.nested("color_jitter", 0).next_f64());
        assert_ne!(
            jitter,
            OperationNumbers::new(&position, stream_id("color_jitter", 0)).next_f64()
        );
    }
}
