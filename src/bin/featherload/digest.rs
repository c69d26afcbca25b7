//! The digest of a stream: two runs with equal digests delivered the same bytes.
//!
//! One xxh3-128 for each epoch, over rows in delivery order. Each row adds: id (u64), label (i64;
//! -1 for none; the bits of each number for a vector), status (u8), pixel bytes of each crop, bytes
//! of the mask and of other rasters. If images have objects, these
//! follow the status: label, id, crowd, box and area of each, keypoints, rotated boxes, sizes, instance masks.
//! Numbers are little-endian. Masked rows are zero, and their masks have `fill`. A substituted row
//! (status 4) has id, label and pixels of the substitute. A failed row (status 3) carries label -1 or zeros, but is hashed with the label
//! that the index has for its sample.

use featherload::index::Label;
use featherload::{Batch, BatchLabels, Index, Result, RowStatus};
use twox_hash::XxHash3_128;

/// Digests of the epochs up to now.
#[derive(Default)]
pub struct StreamDigest {
    current: Option<(u64, XxHash3_128)>,
    done: Vec<u128>,
}

impl StreamDigest {
    /// Adds the first rows of a batch of samples of `index`.
    pub fn add(&mut self, batch: &Batch, rows: usize, index: &Index) -> Result<()> {
        if let Some((epoch, _)) = &self.current
            && *epoch != batch.epoch()
        {
            self.end_epoch();
        }
        let (_, hash) = self
            .current
            .get_or_insert_with(|| (batch.epoch(), XxHash3_128::new()));
        add_rows(hash, batch, rows, index)
    }

    fn end_epoch(&mut self) {
        if let Some((_, hash)) = self.current.take() {
            self.done.push(hash.finish_128());
        }
    }

    /// The digest of each epoch, and one over all of them.
    pub fn finish(mut self) -> (Vec<String>, String) {
        self.end_epoch();
        let mut all = XxHash3_128::new();
        for d in &self.done {
            all.write(&d.to_le_bytes());
        }
        let text = |d: u128| format!("{d:032x}");
        (
            self.done.iter().copied().map(text).collect(),
            text(all.finish_128()),
        )
    }
}

fn add_rows(hash: &mut XxHash3_128, batch: &Batch, rows: usize, index: &Index) -> Result<()> {
    for row in 0..rows {
        hash.write(&batch.ids()[row].to_le_bytes());
        match batch.labels() {
            BatchLabels::Classes(classes) => {
                let class = match (batch.status()[row], index.label(batch.ids()[row])) {
                    (RowStatus::Failed, Label::Class(class)) => class,
                    _ => classes[row],
                };
                hash.write(&class.to_le_bytes());
            }
            BatchLabels::Vectors { width, values } => {
                let mut add = |v: f32| hash.write(&v.to_bits().to_le_bytes());
                match (batch.status()[row], index.label(batch.ids()[row])) {
                    (RowStatus::Failed, Label::Vector(vector)) => vector.iter().for_each(&mut add),
                    _ => values[row * width..(row + 1) * width]
                        .iter()
                        .copied()
                        .for_each(&mut add),
                }
            }
            _ => hash.write(&(-1i64).to_le_bytes()),
        }
        hash.write(&[batch.status()[row] as u8]);
        let objects = batch.objects().map(|objects| objects.row_bytes(row));
        hash.write(&objects.unwrap_or_default());
        if batch.instance_mask_layout(row).is_some() {
            hash.write(batch.instance_masks(row)?.bytes());
        }
        let of_row = batch.row(row)?;
        for part in of_row.parts()?.into_iter().chain(of_row.mask()?) {
            hash.write(part);
        }
        for name in batch.raster_names() {
            hash.write(batch.raster(name)?.row(row).unwrap_or_default());
        }
    }
    Ok(())
}
