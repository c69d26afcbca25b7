//! Depths as OpenEXR: the channel Z, V, Y or R of the first layer, or its only channel.

use std::io::Cursor;

use exr::prelude::{ReadChannels, ReadLayers, read as reader};

use super::depth_header::in_colour;
use crate::error::{FaultKind, SampleFault};

/// Names of the depth channel, by priority.
const NAMES: [&str; 4] = ["Z", "V", "Y", "R"];

pub(super) fn read(
    bytes: &[u8],
    size: (u32, u32),
    levels: &mut Vec<f32>,
) -> Result<(), SampleFault> {
    let image = reader()
        .no_deep_data()
        .largest_resolution_level()
        .all_channels()
        .first_valid_layer()
        .all_attributes()
        .non_parallel()
        .from_buffered(Cursor::new(bytes))
        .map_err(|e| {
            let what = format!("the depth is not a readable OpenEXR: {e}");
            FaultKind::Corrupt.fault(what)
        })?;
    let layer = image.layer_data;
    let found = (layer.size.width(), layer.size.height());
    if found != (size.0 as usize, size.1 as usize) {
        let what = "the depth's data window is not its display window: write all pixels";
        return Err(FaultKind::Unsupported.fault(what));
    }
    let channels = &layer.channel_data.list;
    let named = |wanted: &str| {
        channels.iter().find(|channel| {
            let name = channel.name.to_string();
            name.rsplit('.')
                .next()
                .is_some_and(|last| last.eq_ignore_ascii_case(wanted))
        })
    };
    let only = channels.first().filter(|_| channels.len() == 1);
    let chosen = NAMES
        .into_iter()
        .find_map(named)
        .or(only)
        .ok_or_else(in_colour)?;
    let is_red = chosen.name.to_string().ends_with(['R', 'r']);
    let others = ["G", "B"].into_iter().filter_map(named).filter(|_| is_red);
    let differs = others.into_iter().any(|other| {
        let pairs = chosen
            .sample_data
            .values_as_f32()
            .zip(other.sample_data.values_as_f32());
        pairs.into_iter().any(|(a, b)| a.to_bits() != b.to_bits())
    });
    if differs {
        return Err(in_colour());
    }
    levels.extend(chosen.sample_data.values_as_f32());
    Ok(())
}
