//! The room, whose walls are coloured by smooth waves. Cameras are inside, so every ray ends at a
//! wall.
//!
//! Pure, and the same bits on every machine: sines come from the crate `libm`.

use serde::{Deserialize, Serialize};

use super::super::random::{hash, unit};

/// Colours vary by this many levels around [`MIDDLE`]. None is black, which marks pixels without a
/// ray.
const SWING: f64 = 120.0;
const MIDDLE: f64 = 127.5;

/// The numbers that determine the colour and the distance of a ray's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TexturedRoom {
    /// Half the length of each side. The middle is the origin, z is up.
    pub(super) half: [f64; 3],
    /// Waves of red, green and blue.
    pub(super) waves: [TextureWave; 3],
    /// Movement of the waves in one unit of time, in radians.
    pub(super) drift: f64,
}

/// A level is `127.5 + 120 sin(turns . point + phase + drift * time)`, rounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextureWave {
    /// Radians for a unit of length along each axis.
    pub(super) turns: [f64; 3],
    pub(super) phase: f64,
}

impl TexturedRoom {
    pub(super) fn new(seed: u64) -> Self {
        // No two of these lie in a plane with an axis. So on every wall, two channels have slopes
        // in different directions.
        let turns = [[1.3, 0.7, -0.9], [-0.8, 1.4, 0.6], [0.5, -0.6, 1.5]];
        let mut channel = 0;
        Self {
            half: [3.1, 2.6, 2.2],
            waves: turns.map(|turns| {
                channel += 1;
                let phase = 6.0 * f64::from(unit(hash(seed, channel)));
                TextureWave { turns, phase }
            }),
            drift: 1.7,
        }
    }

    /// Distance from `origin`, which lies inside, to a wall, in lengths of `direction`.
    pub(super) fn reach(&self, origin: [f64; 3], direction: [f64; 3]) -> f64 {
        let walls = (0..3).filter(|axis| direction[*axis] != 0.0).map(|axis| {
            let wall = self.half[axis].copysign(direction[axis]);
            (wall - origin[axis]) / direction[axis]
        });
        walls.fold(f64::INFINITY, f64::min)
    }

    pub(super) fn color(&self, [x, y, z]: [f64; 3], time: f64) -> [u8; 3] {
        [0, 1, 2].map(|channel| {
            let TextureWave { turns, phase } = &self.waves[channel];
            let [a, b, c] = turns;
            let at = a * x + b * y + c * z + phase + self.drift * time;
            (MIDDLE + SWING * libm::sin(at) + 0.5) as u8
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ray_ends_at_the_first_wall() {
        let room = TexturedRoom::new(0);
        let [x, y, z] = room.half;
        assert_eq!(room.reach([0.0; 3], [1.0, 0.0, 0.0]), x);
        assert_eq!(
            room.reach([0.0, 0.5, 0.0], [0.0, -2.0, 0.0]),
            (y + 0.5) / 2.0
        );
        assert_eq!(room.reach([0.0; 3], [0.1, 0.1, 1.0]), z);
        assert_eq!(room.reach([0.0; 3], [0.1, 0.1, -1.0]), z);
    }

    #[test]
    fn colours_are_never_black_and_change_with_place_time_and_seed() {
        let room = TexturedRoom::new(0);
        let color = room.color([3.1, 0.2, -0.4], 0.0);
        assert!(color.iter().all(|level| *level >= 7));
        assert_ne!(color, room.color([3.1, 0.3, -0.4], 0.0));
        assert_ne!(color, room.color([3.1, 0.2, -0.4], 0.1));
        assert_ne!(color, TexturedRoom::new(1).color([3.1, 0.2, -0.4], 0.0));
    }
}
