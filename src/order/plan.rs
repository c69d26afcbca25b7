//! Batches of an epoch: which sample is in which row.
//!
//! An epoch is one sequence of positions over all ranks. A batch is identified by the number of
//! samples before it. After p samples, row n of rank r of w has position p + n x w + r. So an epoch
//! can continue anywhere with other ranks or another batch size. The number of a batch is only for
//! people, and for the start of a run.

use std::sync::Arc;

use super::given_orders::NO_SAMPLE;
use super::key::{DrawKind, OrderKey};
use super::length::EpochLength;
use super::options::OrderOptions;
use super::position::EpochMark;
use super::random::PositionRandom;
use super::row_status::RowStatus;
use super::sampler::{
    BatchScale, BucketBatch, BucketBatches, BucketSampler, DrawPosition, MultiScale, SampleOrder,
    ScaleCycle,
};
use super::table::SamplerTable;
use super::tail::EpochTail;
use crate::error::{Error, Result};
use crate::recipe::joints::PartnerDraw;

/// Number of substitutes that are tried, one after the other, for a failed sample.
const SUBSTITUTES: u32 = 8;

/// Order, batches and rows of every epoch over `samples` samples.
#[derive(Debug, Clone)]
pub struct EpochPlan {
    samples: u64,
    options: OrderOptions,
    order: SampleOrder,
    table: Option<Arc<SamplerTable>>,
    scales: Option<ScaleCycle>,
}

/// A batch of this rank.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u64,
    /// Rows of a full batch.
    rows: u32,
    /// Height and width of its rows; `None` = the recipe's.
    size: Option<(u32, u32)>,
    /// Number of the draw in the epoch, over all ranks.
    draw: u64,
}

/// A row of a batch, before it is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlan {
    /// Number of the sample in the index; meaningless for padding.
    pub id: u64,
    /// Position in the epoch over all ranks. It is the key of the row's random parameters.
    pub position: u64,
    pub status: RowStatus,
    /// Height and width of the row; `None` = the recipe's.
    pub size: Option<(u32, u32)>,
}

/// A sample, and its place in the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedSample {
    /// Number of the sample in the index.
    pub(crate) id: u64,
    /// Number of the sample in the epoch. Samples of one window have places of their own.
    pub(crate) place: u64,
}

impl EpochPlan {
    /// A plan for a sampler that needs only the number of samples.
    ///
    /// # Errors
    /// A number is out of range; the ranks would get no batch; the sampler needs more data.
    pub fn new(samples: u64, options: OrderOptions) -> Result<Self> {
        if options.sampler.needs_table() {
            return Err(Error::config(format!(
                "the order of the sampler {} depends on labels, weights or sizes: let a loader \
                 make the plan",
                options.sampler
            )));
        }
        Self::with_table(samples, options, None)
    }

    /// Like [`EpochPlan::new`], with the sampler's table.
    pub(crate) fn with_table(
        samples: u64,
        options: OrderOptions,
        table: Option<SamplerTable>,
    ) -> Result<Self> {
        options.check(samples)?;
        let table = table.map(Arc::new);
        let order = SampleOrder::new(&options, samples, table.clone())?;
        let mut plan = Self {
            samples,
            options,
            order,
            table,
            scales: None,
        };
        plan.scales = match &plan.options.multi_scale {
            Some(of) => Some(ScaleCycle::new(
                of,
                plan.options.batch,
                plan.rows_per_rank(),
            )?),
            None => None,
        };
        if plan.batches() == 0 {
            let o = &plan.options;
            return Err(Error::config(format!(
                "{} samples over {} ranks fill no batch of {}{}: lower `batch_size`, or keep the \
                 last batch",
                plan.partner_positions(),
                o.world,
                o.batch,
                match plan.order {
                    SampleOrder::Buckets(_) => " in any bucket",
                    _ => "",
                }
            )));
        }
        Ok(plan)
    }

    pub fn options(&self) -> &OrderOptions {
        &self.options
    }

    /// Number of samples in the index.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The sampler's table, if it has one.
    pub(crate) fn table(&self) -> Option<&SamplerTable> {
        self.table.as_deref()
    }

    /// Whether the order of an epoch is known. False for an epoch whose order the caller has yet
    /// to give.
    pub(crate) fn has_order(&self, epoch: u64) -> bool {
        let given = self.table().and_then(SamplerTable::given_orders);
        given.is_none_or(|orders| orders.has(epoch))
    }

    /// Positions of an epoch over all ranks: the number of samples, unless the sampler has its own.
    /// Buckets also have positions for rows of short batches that no sample fills.
    pub fn positions(&self) -> u64 {
        if let Some(buckets) = self.buckets() {
            return buckets.positions();
        }
        let positions = (self.options.sampler).positions(self.samples, self.options.world);
        match self.options.length {
            EpochLength::MultipleOf(n) => positions - positions % n,
            _ => positions,
        }
    }

    /// Positions of an epoch with a sample, over all ranks.
    pub fn filled_positions(&self) -> u64 {
        (self.buckets()).map_or_else(|| self.positions(), BucketBatches::samples)
    }

    /// Whether batches are those of buckets.
    pub fn has_buckets(&self) -> bool {
        self.buckets().is_some()
    }

    /// Samples of the batch at a mark, over all ranks.
    pub fn samples_at(&self, at: EpochMark) -> u64 {
        match self.bucket_batch(at) {
            Some((_, batch)) => batch.samples,
            None => {
                let rows = u64::from(self.step(at).rows) * u64::from(self.options.world);
                rows.min(self.positions().saturating_sub(at.samples))
            }
        }
    }

    /// Rows of an epoch on this rank that have a sample, and are not left out. Only with buckets
    /// they differ from [`EpochPlan::rows_per_rank`] by more than the last batch.
    pub fn filled_rows_per_rank(&self) -> u64 {
        match self.buckets() {
            Some(buckets) => buckets.rows_of_rank(self.options.world),
            None => self.rows_per_rank(),
        }
    }

    /// Rows per epoch on every rank. Includes repeated samples, and rows of a last batch that
    /// [`EpochTail::Drop`] drops.
    pub fn rows_per_rank(&self) -> u64 {
        let world = u64::from(self.options.world);
        let batch = u64::from(self.options.batch);
        match self.options.length {
            EpochLength::Samples => {}
            // Below 2^62, as was checked before.
            EpochLength::Batches(n) => return n.saturating_mul(batch),
            EpochLength::MultipleOf(_) => return self.positions() / world,
            EpochLength::IdentityGroups => {
                let SampleOrder::Identity(identities) = &self.order else {
                    return 0;
                };
                let rows = identities.rows_in_whole_groups();
                return (rows / batch).saturating_sub(1) * batch;
            }
        }
        match self.options.tail {
            EpochTail::Drop => self.positions() / world,
            EpochTail::Short | EpochTail::Pad => self.positions().div_ceil(world),
        }
    }

    /// Batches per epoch: the same on every rank and in every epoch.
    pub fn batches(&self) -> u64 {
        let batch = u64::from(self.options.batch);
        match (&self.scales, self.options.tail) {
            (Some(scales), tail) => scales.batches(self.options.seed, tail),
            (None, EpochTail::Drop) => self.rows_per_rank() / batch,
            (None, EpochTail::Short | EpochTail::Pad) => self.rows_per_rank().div_ceil(batch),
        }
    }

    /// The batch at a mark.
    fn step(&self, at: EpochMark) -> Step {
        let (batch, world) = (self.options.batch, u64::from(self.options.world));
        match &self.scales {
            Some(scales) => {
                let (number, BatchScale { size, rows }) =
                    scales.at(self.key(at.epoch), at.samples / world);
                Step {
                    number,
                    rows,
                    size: Some(size),
                    // Each batch number and each rank has its own draw.
                    draw: self.draw_of(number.wrapping_mul(world)),
                }
            }
            None => Step {
                number: at.samples / (u64::from(batch) * world),
                rows: batch,
                size: self.bucket_batch(at).and_then(|(_, batch)| batch.size),
                draw: self.draw_of(at.samples / u64::from(batch)),
            },
        }
    }

    /// The batch of a bucket at a mark. None without buckets, and after the last batch.
    fn bucket_batch(&self, at: EpochMark) -> Option<(&BucketSampler, BucketBatch)> {
        let SampleOrder::Buckets(buckets) = &self.order else {
            return None;
        };
        let number = at.samples / buckets.batches().rows();
        let batch = buckets.batches().batch(self.key(at.epoch), number)?;
        Some((buckets, batch))
    }

    /// A row of a bucket's batch, or its substitute. None if the batch does not exist, or if the
    /// bucket has no further sample.
    fn bucket_row(&self, at: EpochMark, row: u32, attempt: u32) -> Option<RowPlan> {
        let (buckets, batch) = self.bucket_batch(at)?;
        let (rank, world) = (u64::from(self.options.rank), u64::from(self.options.world));
        let n = u64::from(row) * world + rank;
        Some(RowPlan {
            id: buckets.id_at(self.key(at.epoch), &batch, n, attempt)?,
            position: at.samples.wrapping_add(n),
            status: match (attempt, n < batch.samples) {
                (0, true) => RowStatus::Ok,
                // A rank without its own sample repeats one of the bucket.
                (0, false) => RowStatus::Repeated,
                _ => RowStatus::Substituted,
            },
            size: batch.size,
        })
    }

    /// This rank's draw, given that of rank 0.
    fn draw_of(&self, first: u64) -> u64 {
        first.wrapping_add(u64::from(self.options.rank))
    }

    /// Start of batch `batch`, if the whole epoch has this plan's ranks and batch size.
    pub fn mark(&self, epoch: u64, batch: u64) -> EpochMark {
        let rows = match &self.scales {
            Some(scales) => scales.before(self.key(epoch), batch),
            None => batch.saturating_mul(u64::from(self.options.batch)),
        };
        let world = u64::from(self.options.world);
        EpochMark::new(epoch, rows.saturating_mul(world))
    }

    /// Number of the batch at a mark. It increases by at least one per batch. It is exact if the
    /// whole epoch has this plan's ranks and batch size.
    pub(crate) fn number_at(&self, at: EpochMark) -> u64 {
        self.step(at).number
    }

    /// Samples of an epoch over all ranks, as [`State`](super::State) counts them.
    pub(crate) fn samples_of_an_epoch(&self) -> u64 {
        match self.options.length {
            EpochLength::Batches(_) | EpochLength::IdentityGroups => {
                (self.rows_per_rank()).saturating_mul(u64::from(self.options.world))
            }
            EpochLength::Samples | EpochLength::MultipleOf(_) => self.positions(),
        }
    }

    /// Whether a run may continue after this number of samples of an epoch.
    pub(crate) fn is_within(&self, samples: u64) -> bool {
        samples == 0 || samples < self.samples_of_an_epoch()
    }

    /// Rows of this rank that remain in the epoch.
    fn rows_left(&self, samples: u64) -> u64 {
        let world = u64::from(self.options.world);
        let left = self.positions().saturating_sub(samples);
        match (self.options.length, self.options.tail) {
            (EpochLength::Batches(_) | EpochLength::IdentityGroups, _) => {
                self.rows_per_rank().saturating_sub(samples / world)
            }
            (EpochLength::MultipleOf(_), _) | (_, EpochTail::Drop) => left / world,
            (_, EpochTail::Short | EpochTail::Pad) => left.div_ceil(world),
        }
    }

    /// Whether enough samples remain for a batch.
    pub(crate) fn has_batch_at(&self, at: EpochMark) -> bool {
        let least = match self.options.tail {
            EpochTail::Drop => u64::from(self.step(at).rows),
            EpochTail::Short | EpochTail::Pad => 1,
        };
        self.rows_left(at.samples) >= least
    }

    /// Batches from the mark to the end of the epoch. An upper bound if sizes alternate and the
    /// epoch began with other ranks or another batch size.
    pub(crate) fn batches_left(&self, at: EpochMark) -> u64 {
        if !self.has_batch_at(at) {
            return 0;
        }
        let left = self.rows_left(at.samples);
        let batch = u64::from(self.options.batch);
        match (&self.scales, self.options.tail) {
            (Some(_), _) => self.batches().saturating_sub(self.number_at(at)).max(1),
            (None, EpochTail::Drop) => left / batch,
            (None, EpochTail::Short | EpochTail::Pad) => left.div_ceil(batch),
        }
    }

    /// Mark after the batch at `at`; at the end of an epoch, the start of the next.
    pub(crate) fn next_mark(&self, at: EpochMark) -> EpochMark {
        let world = u64::from(self.options.world);
        let of_all = u64::from(self.step(at).rows) * world;
        self.skip_epoch_end(EpochMark::new(at.epoch, at.samples.saturating_add(of_all)))
    }

    /// The same mark, or the start of the next epoch if no batch is left.
    pub(crate) fn skip_epoch_end(&self, at: EpochMark) -> EpochMark {
        match at.samples == 0 || self.has_batch_at(at) {
            true => at,
            false => EpochMark::new(at.epoch.saturating_add(1), 0),
        }
    }

    /// Height and width of rows in the batch at a mark, if sizes alternate; `None` = the recipe's.
    pub fn size_at(&self, at: EpochMark) -> Option<(u32, u32)> {
        self.step(at).size
    }

    /// Height, width and most rows of every size, if sizes alternate.
    pub(crate) fn scales(&self) -> impl Iterator<Item = ((u32, u32), u32)> {
        let all = self
            .scales
            .as_ref()
            .map(ScaleCycle::all)
            .unwrap_or_default();
        let of_buckets = self.buckets().map(BucketBatches::sizes);
        let of_buckets = of_buckets.into_iter().flatten();
        let all = all.iter().map(|scale| (scale.size, scale.rows));
        all.chain(of_buckets.map(|size| (size, self.options.batch)))
    }

    /// The sizes of all buckets, as sizes of batches that have the same number of rows. None without
    /// buckets that have sizes.
    pub(crate) fn bucket_scales(&self) -> Option<MultiScale> {
        let buckets = self.buckets().filter(|buckets| buckets.have_sizes())?;
        Some(MultiScale::by_epoch((0..).zip(buckets.sizes())))
    }

    /// The batches of all buckets. None without buckets.
    pub(crate) fn buckets(&self) -> Option<&BucketBatches> {
        match &self.order {
            SampleOrder::Buckets(buckets) => Some(buckets.batches()),
            _ => None,
        }
    }

    /// Most patches of a batch. None without a budget of patches.
    pub(crate) fn most_patches(&self) -> Option<u64> {
        self.buckets()?.most_patches(self.options.world)
    }

    /// Most rows of a batch.
    pub fn most_rows(&self) -> u32 {
        if let Some(buckets) = self.buckets() {
            let rows = buckets.most_rows() / u64::from(self.options.world.max(1));
            return rows.min(self.options.batch.into()) as u32;
        }
        let of_scales = self.scales().map(|(_, rows)| rows).max();
        of_scales.unwrap_or(self.options.batch)
    }

    /// Rows of the batch at a mark that hold samples, without padding.
    pub fn filled_rows_at(&self, at: EpochMark) -> u32 {
        let rows = self.step(at).rows;
        if let SampleOrder::Identity(_) = self.order {
            // Identities do not run out, so the last batch is full.
            return if self.has_batch_at(at) { rows } else { 0 };
        }
        if let Some((_, batch)) = self.bucket_batch(at) {
            let world = u64::from(self.options.world);
            return batch.samples.div_ceil(world).min(u64::from(rows)) as u32;
        }
        let rows = self.rows_left(at.samples).min(u64::from(rows)) as u32;
        match self.table().and_then(SamplerTable::given_orders) {
            Some(orders) => {
                let first = at.samples / u64::from(self.options.world);
                orders.filled_rows(at.epoch, first, rows)
            }
            None => rows,
        }
    }

    /// Checks that only rows at the end of a batch have no sample ([`NO_SAMPLE`]).
    ///
    /// # Errors
    /// An order of this rank with another row without a sample, or with a batch without samples.
    pub(crate) fn check_given_order(&self, ids: &[u64]) -> Result<()> {
        if !ids.contains(&NO_SAMPLE) {
            return Ok(());
        }
        if self.scales.is_some() {
            return Err(Error::option(
                "multi_scale",
                "multi_scale sets the number of rows, and so does the given order: use one",
            ));
        }
        let batches = ids.chunks(self.options.batch as usize).enumerate();
        for (number, batch) in batches {
            let samples = batch.iter().take_while(|id| **id != NO_SAMPLE).count();
            let is_right = samples > 0 && batch[samples..].iter().all(|id| *id == NO_SAMPLE);
            if !is_right {
                return Err(Error::option(
                    "sampler",
                    format!(
                        "batch {number} of the order begins without a sample, or has one after a \
                         row without: leave rows empty at the end of a batch only"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Rows of the batch at a mark, including padding.
    pub fn rows_at(&self, at: EpochMark) -> u32 {
        match self.options.tail {
            // Buckets of patches have fewer rows in a full batch.
            EpochTail::Drop if self.has_buckets() => self.filled_rows_at(at),
            EpochTail::Pad | EpochTail::Drop => self.step(at).rows,
            EpochTail::Short => self.filled_rows_at(at),
        }
    }

    fn key(&self, epoch: u64) -> OrderKey {
        OrderKey {
            seed: self.options.seed,
            epoch,
        }
    }

    /// The sample in row `n` of this rank's epoch, counted over all batches.
    pub fn sample_at(&self, epoch: u64, n: u64) -> u64 {
        let (batch, world) = (u64::from(self.options.batch), u64::from(self.options.world));
        // Only identity and buckets draw whole batches. With other samplers any row may start a batch.
        let first = match self.order {
            SampleOrder::Identity(_) | SampleOrder::Buckets(_) => n - n % batch,
            _ => n,
        };
        let at = EpochMark::new(epoch, first.saturating_mul(world));
        self.row_at(at, (n - first) as u32).id
    }

    /// The partner of the sample at a position of an epoch: with uniform shares each position of all
    /// ranks is equally likely, or each of the window. With identities and buckets: of the index. With an order
    /// that the caller gives: of this rank's epoch, where a row without a sample stands for another
    /// of its batch.
    ///
    /// Windows divide the positions of an epoch. The last one ends with the epoch, and overlaps the
    /// window before it. They depend on no batch size, and on ranks only if the caller gives the order
    /// of each.
    pub(crate) fn partner_at(&self, epoch: u64, position: u64, draw: PartnerDraw) -> PlacedSample {
        let positions = self.partner_positions();
        let each = self.positions_of_sample();
        let of_window = |samples: u32| u64::from(samples).saturating_mul(each);
        let count = draw.window.map_or(positions, of_window);
        let count = count.min(positions).max(1);
        let own = position % positions.max(1);
        let first = (own - own % count).min(positions.saturating_sub(count));
        let position = first + ((count as f64 * draw.share) as u64).min(count - 1);
        let place = self.place_at(position);
        let id = match self.order.id_at(self.key(epoch), position) {
            // Its batch has fewer rows, and its first row has a sample.
            NO_SAMPLE => {
                let world = u64::from(self.options.world);
                let rows = u64::from(self.options.batch) * world;
                let first = position - position % rows;
                let filled = self.filled_rows_at(EpochMark::new(epoch, first));
                let row = position % rows % (u64::from(filled.max(1)) * world);
                self.order.id_at(self.key(epoch), first + row)
            }
            id => id,
        };
        PlacedSample { id, place }
    }

    /// Positions of which partners are drawn.
    fn partner_positions(&self) -> u64 {
        match self.order {
            SampleOrder::Identity(_) | SampleOrder::Buckets(_) => self.samples,
            _ => self.positions(),
        }
    }

    /// Positions with one sample: repeats, or the rows of other ranks.
    fn positions_of_sample(&self) -> u64 {
        match self.order {
            SampleOrder::Given { world, .. } => world,
            _ => self.order.repeat_count().max(1),
        }
    }

    /// The place of the sample at a position: the number of the sample in the epoch.
    pub(crate) fn place_at(&self, position: u64) -> u64 {
        position % self.partner_positions().max(1) / self.positions_of_sample()
    }

    /// The number of places of an epoch.
    pub(crate) fn places(&self) -> u64 {
        self.partner_positions()
            .div_ceil(self.positions_of_sample())
    }

    /// The content of a row in the batch at a mark.
    pub fn row_at(&self, at: EpochMark, row: u32) -> RowPlan {
        let o = &self.options;
        let (rank, world) = (u64::from(o.rank), u64::from(o.world));
        let Step { size, draw, .. } = self.step(at);
        // A batch that does not exist holds padding only.
        let position = match &self.order {
            // Identity draws whole batches, not rows.
            SampleOrder::Identity(_) => draw
                .wrapping_mul(u64::from(o.batch))
                .wrapping_add(u64::from(row)),
            _ => (at.samples)
                .wrapping_add(u64::from(row).wrapping_mul(world))
                .wrapping_add(rank),
        };
        if row >= self.filled_rows_at(at) {
            return RowPlan {
                id: 0,
                position,
                status: RowStatus::Padding,
                size,
            };
        }
        if let SampleOrder::Identity(identities) = &self.order {
            let id = identities.id_at(self.key(at.epoch), DrawPosition { draw, row }, 0);
            return RowPlan {
                id: id.unwrap_or(u64::MAX),
                position,
                status: RowStatus::Ok,
                size,
            };
        }
        if let Some(of_bucket) = self.bucket_row(at, row, 0) {
            return of_bucket;
        }
        // After the last position the order starts again. A rank without its own sample repeats
        // one.
        let positions = self.positions();
        RowPlan {
            id: self.order.id_at(self.key(at.epoch), position % positions),
            position,
            status: if position < positions {
                RowStatus::Ok
            } else {
                RowStatus::Repeated
            },
            size,
        }
    }

    /// Random numbers of the operations on the sample at a position.
    pub(crate) fn random(&self, epoch: u64, position: u64) -> PositionRandom {
        PositionRandom::new(self.options.seed, epoch, position)
    }

    /// Random numbers of a whole batch. They differ for each batch of all ranks, and from those of
    /// samples and order.
    pub(crate) fn batch_random(&self, at: EpochMark) -> PositionRandom {
        self.key(at.epoch)
            .random(DrawKind::Mixing, self.step(at).draw)
    }

    /// Random numbers of the caption at a position. They differ from those of the sample's operations.
    pub(crate) fn caption_random(&self, epoch: u64, position: u64) -> PositionRandom {
        self.key(epoch).random(DrawKind::Captions, position)
    }

    /// Number of substitutes for a failed sample: 8, or all other samples if there are fewer.
    pub fn substitutes(&self) -> u32 {
        let others = match self.order {
            SampleOrder::Identity(_) | SampleOrder::Buckets(_) => self.samples - 1,
            _ => self.positions().div_ceil(self.order.repeat_count()) - 1,
        };
        u64::from(SUBSTITUTES).min(others) as u32
    }

    /// Content of a row at an attempt. Attempt 0 is [`EpochPlan::row_at`]. Attempt n has the sample
    /// and the random parameters of the n-th position after it; after the last position comes the
    /// first. The row keeps the size of its batch.
    ///
    /// Three samplers differ:
    /// - Repeated augmentation puts a sample at several positions in a row. There an attempt goes
    ///   to the next sample, not to the next position.
    /// - Identity takes the next sample of the same identity, with the parameters of the row's own
    ///   position. It prefers samples that are not in the batch. When the identity has no more
    ///   samples, the attempt is `Failed`, with the row's own id.
    /// - Buckets take the next sample of the same bucket, also with the parameters of the row's own
    ///   position. When the bucket has no more samples, the attempt is `Failed`.
    ///
    /// Weighted draws may return the same sample again.
    pub fn attempt_at(&self, at: EpochMark, row: u32, attempt: u32) -> RowPlan {
        let own = self.row_at(at, row);
        if attempt == 0 || own.status == RowStatus::Padding {
            return own;
        }
        if let SampleOrder::Identity(identities) = &self.order {
            let draw = self.step(at).draw;
            return match identities.id_at(self.key(at.epoch), DrawPosition { draw, row }, attempt) {
                Some(id) => RowPlan {
                    id,
                    status: RowStatus::Substituted,
                    ..own
                },
                None => RowPlan {
                    status: RowStatus::Failed,
                    ..own
                },
            };
        }
        if let SampleOrder::Buckets(_) = self.order {
            return self.bucket_row(at, row, attempt).unwrap_or(RowPlan {
                status: RowStatus::Failed,
                ..own
            });
        }
        let (positions, run) = (self.positions(), self.order.repeat_count());
        let stands = own.position % positions;
        let runs = positions.div_ceil(run);
        let next = (stands / run + u64::from(attempt)) % runs;
        // The last run may be short.
        let position = (next * run + stands % run).min(positions - 1);
        match self.order.id_at(self.key(at.epoch), position) {
            // A row of a given order without a sample.
            NO_SAMPLE => RowPlan {
                status: RowStatus::Failed,
                ..own
            },
            id => RowPlan {
                id,
                position,
                status: RowStatus::Substituted,
                size: own.size,
            },
        }
    }

    /// Most rows of a batch that one sample may fill, if each row may use any of its first `tries`
    /// substitutes.
    pub(crate) fn most_rows_per_sample(&self, tries: u32) -> u64 {
        let batch = u64::from(self.most_rows());
        let rows = match &self.order {
            SampleOrder::Identity(identities) => identities.rows_of_one_sample(),
            // Such an order may repeat a sample in any row.
            SampleOrder::Weighted(_) | SampleOrder::Given { .. } => batch,
            order => {
                // Its own rows, and as many for each attempt as a substitute. Ranks share a run.
                // One more may come from the start of the epoch, if it fills up this rank.
                let world = u64::from(self.options.world);
                let of_a_run = match order.repeat_count() {
                    1 => 1,
                    run => run.div_ceil(world) + u64::from(world > 1),
                };
                of_a_run * (u64::from(tries) + 1)
            }
        };
        rows.min(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Sampler;
    use proptest::prelude::*;

    fn tail() -> impl Strategy<Value = EpochTail> {
        prop_oneof![
            Just(EpochTail::Short),
            Just(EpochTail::Pad),
            Just(EpochTail::Drop)
        ]
    }

    /// Orders without a table, in which every sample has one position.
    fn plain() -> impl Strategy<Value = Sampler> {
        prop_oneof![
            Just(Sampler::Sequential),
            Just(Sampler::Shuffle),
            (1u64..50, 1u64..50).prop_map(|(shard, window)| Sampler::ShardShuffle {
                shard: Some(shard),
                window,
            }),
        ]
    }

    /// Counts the partners of each position, by shares that stand for all.
    fn partners(plan: &EpochPlan, position: u64, window: Option<u32>) -> Vec<u64> {
        let draw = |n: u32| PartnerDraw {
            share: (f64::from(n) + 0.5) / 840.0,
            window,
        };
        let drawn = (0..840).map(|n| plan.partner_at(3, position, draw(n)).id);
        let mut count = vec![0; plan.samples as usize];
        drawn.for_each(|id| count[id as usize] += 1);
        count
    }

    /// 840 is a multiple of all window sizes.
    #[test]
    fn partners_are_equally_likely_in_each_window() {
        for (samples, window) in [(20, 4), (21, 4), (23, 7), (5, 7), (2, 2), (1, 2), (9, 8)] {
            let options = |rank, world| OrderOptions {
                batch: 1,
                sampler: Sampler::Shuffle,
                rank,
                world,
                ..OrderOptions::default()
            };
            let plan = EpochPlan::new(samples, options(0, 1)).unwrap();
            let count = samples.min(u64::from(window));
            for position in 0..samples {
                let first = (position / count * count).min(samples - count);
                let mut want = vec![0; samples as usize];
                for beside in first..first + count {
                    want[plan.sample_at(3, beside) as usize] += 840 / count;
                }
                assert!(want[plan.sample_at(3, position) as usize] > 0);
                let got = partners(&plan, position, Some(window));
                assert_eq!(got, want, "{position} of {samples}, {window}");
                // The order starts again after its end.
                assert_eq!(partners(&plan, position + samples, Some(window)), want);
            }
            if samples >= 2 {
                let other = EpochPlan::new(samples, options(1, 2)).unwrap();
                let same = partners(&plan, 1, Some(window));
                assert_eq!(partners(&other, 1, Some(window)), same);
            }
            let all = partners(&plan, 0, None);
            assert!(
                all.iter().all(|n| n.abs_diff(840 / samples) <= 1),
                "{all:?}"
            );
        }
    }

    /// A window has as many samples as it says, also if each comes several times.
    #[test]
    fn windows_count_samples_that_are_repeated_once() {
        let options = OrderOptions {
            batch: 1,
            sampler: Sampler::RepeatedAugmentation { repeats: 3 },
            ..OrderOptions::default()
        };
        let plan = EpochPlan::new(12, options).unwrap();
        for position in 0..plan.positions() {
            let drawn = partners(&plan, position, Some(4));
            let others = drawn.iter().filter(|count| **count > 0).count();
            assert!((4..=5).contains(&others), "{position}: {drawn:?}");
        }
    }

    proptest! {
        #[test]
        fn ranks_share_an_epoch(
            samples in 1u64..400, batch in 1u32..40, world in 1u32..9, seed: u64, epoch: u64,
            sampler in plain(), tail in tail(),
        ) {
            let plans: Vec<EpochPlan> = (0..world)
                .map_while(|rank| {
                    EpochPlan::new(samples, OrderOptions { batch, seed, sampler, tail, rank, world, ..OrderOptions::default() }).ok()
                })
                .collect();
            prop_assume!(plans.len() == world as usize);
            let mut seen = vec![0u32; samples as usize];
            let mut positions = std::collections::HashSet::new();
            for p in &plans {
                prop_assert_eq!(p.batches(), plans[0].batches());
                for b in 0..p.batches() {
                    let at = p.mark(epoch, b);
                    let rows = p.rows_at(at);
                    prop_assert_eq!(at, plans[0].mark(epoch, b));
                    prop_assert_eq!(rows, plans[0].rows_at(at));
                    prop_assert!(rows >= 1 && rows <= batch);
                    prop_assert!(tail == EpochTail::Short || rows == batch);
                    for r in 0..rows {
                        let row = p.row_at(at, r);
                        let n = b * u64::from(batch) + u64::from(r);
                        prop_assert_eq!(row.status != RowStatus::Padding, n < p.rows_per_rank());
                        if row.status != RowStatus::Padding {
                            prop_assert_eq!(p.sample_at(epoch, n), row.id);
                            prop_assert!(positions.insert(row.position));
                        }
                        match row.status {
                            RowStatus::Ok => seen[row.id as usize] += 1,
                            RowStatus::Repeated => prop_assert!(tail != EpochTail::Drop),
                            RowStatus::Padding => prop_assert!(tail == EpochTail::Pad),
                            _ => prop_assert!(false),
                        }
                    }
                }
            }
            let most = if tail == EpochTail::Drop { 0 } else { 1 };
            prop_assert!(seen.iter().all(|&n| n >= most && n <= 1), "each id once");
            if tail == EpochTail::Drop {
                let used: u32 = seen.iter().sum();
                let lost = samples - u64::from(used);
                prop_assert!(lost < u64::from(batch) * u64::from(world));
            }
        }
    }

    proptest! {
        /// Each attempt has the content of the next position, and no sample is tried twice.
        #[test]
        fn attempts_are_the_rows_behind(
            samples in 1u64..60, batch in 1u32..9, world in 1u32..5, rank in 0u32..5, seed: u64,
            epoch: u64, sampler in plain(), tail in tail(), number in 0u64..80, row in 0u32..9,
        ) {
            let options = OrderOptions {
                batch, seed, sampler, tail, rank: rank % world, world, ..OrderOptions::default()
            };
            let Ok(plan) = EpochPlan::new(samples, options) else { return Ok(()) };
            // With one process and one row per batch, batch n is position n.
            let alone = OrderOptions { batch: 1, seed, sampler, ..OrderOptions::default() };
            let alone = EpochPlan::new(samples, alone).unwrap();
            let (number, row) = (number % plan.batches(), row % batch);
            let at = plan.mark(epoch, number);
            let own = plan.row_at(at, row);
            prop_assert_eq!(plan.attempt_at(at, row, 0), own);
            prop_assert_eq!(u64::from(plan.substitutes()), (samples - 1).min(8));
            let mut ids = vec![own.id];
            for attempt in 1..=plan.substitutes() {
                let a = plan.attempt_at(at, row, attempt);
                if own.status == RowStatus::Padding {
                    prop_assert_eq!(a, own);
                    continue;
                }
                let position = (own.position + u64::from(attempt)) % samples;
                let expected = alone.row_at(alone.mark(epoch, position), 0);
                prop_assert_eq!(a.status, RowStatus::Substituted);
                prop_assert_eq!((a.id, a.position), (expected.id, expected.position));
                prop_assert!(!ids.contains(&a.id));
                ids.push(a.id);
            }
        }

        /// Numbers from shared memory that a faulty decoder has overwritten.
        #[test]
        fn any_numbers_give_some_row(
            samples in 1u64..1 << 62, world in 1u32..9, epoch: u64, number: u64, row: u32,
            attempt: u32, tail in tail(),
        ) {
            let options = OrderOptions { tail, world, ..OrderOptions::default() };
            let Ok(plan) = EpochPlan::new(samples, options) else { return Ok(()) };
            for at in [plan.mark(epoch, number), EpochMark::new(epoch, number)] {
                prop_assert!(plan.attempt_at(at, row, attempt).id < samples);
            }
        }
    }

    #[test]
    fn bad_numbers_are_named() {
        let o = |batch, rank, world, tail| OrderOptions {
            batch,
            rank,
            world,
            tail,
            ..OrderOptions::default()
        };
        for (samples, options, text) in [
            (0, o(1, 0, 1, EpochTail::Short), "0 samples"),
            (5, o(0, 0, 1, EpochTail::Short), "`batch_size` is 0"),
            (5, o(1, 2, 2, EpochTail::Short), "`rank` is 2 of 2"),
            (5, o(1, 0, 0, EpochTail::Short), "`rank` is 0 of 0"),
            (5, o(6, 0, 1, EpochTail::Drop), "fill no batch"),
            (1, o(1, 0, 2, EpochTail::Drop), "fill no batch"),
        ] {
            let e = EpochPlan::new(samples, options).unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        }
    }

    #[test]
    fn ten_million_samples_cost_nothing() {
        let p = EpochPlan::new(10_000_000, OrderOptions::default()).unwrap();
        assert_eq!(p.batches(), 156_250);
        assert!(p.row_at(p.mark(9, 156_249), 63).id < 10_000_000);
    }
}
