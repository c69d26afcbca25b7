//! The buffer of samples, which grows to what pictures need.

use super::frame::FrameHeader;
use super::geometry::WindowGeometry;
use super::request::{DecodeRefusal, DecodeRequest};
use super::rows::OutputRows;

/// Computes the geometry of a window, and enlarges `planes` for it. `room` is the number of output
/// bytes.
pub(super) fn plan(
    frame: &FrameHeader,
    job: &DecodeRequest<'_>,
    room: usize,
    planes: &mut Vec<u8>,
) -> Result<WindowGeometry, DecodeRefusal> {
    let window = job.window;
    let scaled = |side: usize| (side * job.block).div_ceil(8);
    let (width, height) = (scaled(frame.width), scaled(frame.height));
    let fits = |at: usize, len: usize, size: usize| len > 0 && at < size && len <= size - at;
    if !matches!(job.block, 1 | 2 | 4 | 8)
        || !fits(window.x, window.w, width)
        || !fits(window.y, window.h, height)
        || room / frame.colour.bytes() / window.w < window.h
    {
        return Err(DecodeRefusal::Unsupported);
    }
    let plan = WindowGeometry::new(frame, job.block, window)?;
    let all = plan.bytes + OutputRows::spare(window);
    if planes.len() < all {
        let room = planes.try_reserve_exact(all - planes.len());
        room.map_err(|_| DecodeRefusal::NoMemory)?;
        planes.resize(all, 0);
    }
    Ok(plan)
}
