//! What a stream consists of, row by row.

use featherload::{Batch, BatchLabels, Loader, RowStatus, State};
use twox_hash::XxHash3_128;

/// One row as it was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub epoch: u64,
    pub batch: u64,
    pub row: usize,
    pub id: u64,
    pub label: i64,
    pub status: RowStatus,
    pub repeated: bool,
    pub pixels: u128,
}

/// Rows of a batch.
pub fn rows(batch: &Batch) -> Vec<Row> {
    (0..batch.len())
        .map(|row| Row {
            epoch: batch.epoch(),
            batch: batch.number(),
            row,
            id: batch.ids()[row],
            label: match batch.labels() {
                BatchLabels::Classes(classes) => classes[row],
                _ => i64::MIN,
            },
            status: batch.status()[row],
            repeated: batch.repeated()[row],
            pixels: {
                let mut hash = XxHash3_128::new();
                let objects = batch.objects();
                hash.write(&objects.map_or(Vec::new(), |objects| objects.row_bytes(row)));
                let masks = batch
                    .instance_mask_layout(row)
                    .map(|_| batch.instance_masks(row));
                hash.write(masks.map_or(&[], |masks| masks.unwrap().bytes()));
                for name in batch.raster_names() {
                    hash.write(batch.raster(name).unwrap().row(row).unwrap());
                }
                let row = batch.row(row).unwrap();
                for part in row.parts().unwrap().into_iter().chain(row.mask().unwrap()) {
                    hash.write(part);
                }
                hash.finish_128()
            },
        })
        .collect()
}

/// Everything from where `loader` stands to the end of epoch `epochs - 1`.
pub fn stream(loader: &mut Loader, epochs: u64) -> Vec<Row> {
    let mut all = Vec::new();
    while loader.state().epoch < epochs {
        for batch in loader.epoch() {
            all.extend(rows(&batch.unwrap()));
        }
    }
    all
}

/// The next `batches` batches and the state behind them, in the midst of an epoch.
pub fn take(loader: &mut Loader, batches: u64) -> (Vec<Row>, State) {
    let mut all = Vec::new();
    let mut taken = 0;
    loop {
        let mut epoch = loader.epoch();
        loop {
            if taken == batches {
                let state = epoch.state();
                return (all, state);
            }
            let Some(batch) = epoch.next() else { break };
            all.extend(rows(&batch.unwrap()));
            taken += 1;
        }
    }
}

/// Compares streams and names the first row that differs.
#[track_caller]
pub fn assert_same(got: &[Row], want: &[Row], what: &str) {
    if let Some((g, w)) = got.iter().zip(want).find(|(g, w)| g != w) {
        panic!("{what}: {g:?}\nis not {w:?}");
    }
    assert_eq!(got.len(), want.len(), "{what}: rows");
}
