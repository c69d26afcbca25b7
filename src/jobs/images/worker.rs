//! Images: one row = one sample, from its position in the epoch to finished elements.
//!
//! Runs in workers, and in the consumer with zero workers or for images that a device flags.
//! Chooses the sample and reads its file. `sample` does the rest.

use std::ops::Range;
use std::sync::Arc;

use crate::data::index::Index;
use crate::data::objects::ObjectTable;
use crate::data::sample_sizes::SampleSizes;
use crate::device::jpeg_part::PartLimits;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::handed_items::HandedItems;
use crate::jobs::images::object_section::ObjectSection;
use crate::jobs::images::packing::{PackedBatch, SlotPacking};
use crate::jobs::images::spec::{ImageSpec, NAME, needs_sizes};
use crate::jobs::object_mover::{MovedPicture, ObjectMover, SampleBoxes};
use crate::jobs::object_rule::ObjectRule;
use crate::jobs::open_shards::{AccessPattern, HomeShard};
use crate::jobs::picture_window::PictureWindow;
use crate::jobs::raster_rule::{MASKS, NamedRaster, RasterRule};
use crate::jobs::sample;
use crate::jobs::sample::assembly::picture_source::{FileUse, PictureSource, SampleFiles};
use crate::jobs::sample::assembly::{JoinedRow, SampleAssembler};
use crate::jobs::sample::instance_masks::InstanceMaskMaker;
use crate::jobs::sample::mask::MaskReader;
use crate::jobs::sample::objects::ObjectMaker;
use crate::jobs::sample::raster_maker::RasterMaker;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::jobs::sample_input::{InputMode, SampleInput};
use crate::jobs::stage_needs::StageNeeds;
use crate::order::{EpochMark, EpochPlan, PlacedSample, RowPlan, RowStatus, SamplerTable};
use crate::picture::PixelBox;
use crate::pool::job::{Job, JobKind, JobParts, RowParts};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::BoxSource;
use crate::recipe::joints::PartnerDraw;
use crate::recipe::random::RandomStreams;
use crate::sys::cpu::CpuLevel;

/// The state that a worker keeps from sample to sample.
#[derive(Debug)]
pub(crate) struct ImageJob {
    index: Index,
    plan: EpochPlan,
    input: SampleInput,
    handed: Option<HandedItems>,
    /// Keeps the pictures of joined samples.
    window: Option<PictureWindow>,
    /// The bytes of the last sample that was handed over.
    handed_bytes: Vec<u8>,
    decoder: SampleDecoder,
    /// If rows are made of the pictures of several samples.
    assembler: Option<SampleAssembler>,
    rasters: Vec<RasterInput>,
    /// The raster that a flip from left to right exchanges with the image.
    swapped: Option<usize>,
    objects: Option<ObjectMaker>,
    /// Moves the boxes that operations of the recipe read.
    box_mover: Option<Arc<ObjectMover>>,
    packing: SlotPacking,
    packed: PackedBatch,
    max_scratch: u64,
    jpegs: Option<PartLimits>,
    home: HomeShard,
    /// False if rows are empty.
    has_pixels: bool,
}

/// The files of a raster, and what makes rasters of them.
#[derive(Debug)]
struct RasterInput {
    /// As texts name it: `mask`, or `raster` and its name.
    what: String,
    index: Index,
    input: SampleInput,
    maker: InputMaker,
}

/// What makes rasters of files.
#[derive(Debug)]
enum InputMaker {
    OfRow(RasterMaker),
    /// The assembler makes masks, if a row is made of several samples.
    OfStages(MaskReader),
}

impl RasterInput {
    fn new(spec: &ImageSpec, raster: &NamedRaster, index: Index, mode: InputMode) -> Result<Self> {
        let pattern = AccessPattern::of(&spec.plan.sampler);
        let input = SampleInput::new(mode, spec.limits.max_scratch, pattern);
        let (program, limits) = (&spec.program, &spec.limits);
        let maker = match &raster.rule {
            RasterRule::Mask(rule) if program.is_joined() && raster.name == MASKS => {
                InputMaker::OfStages(MaskReader::new(rule, limits))
            }
            rule => InputMaker::OfRow(RasterMaker::new(program, rule, limits)?),
        };
        Ok(Self {
            what: match &*raster.name {
                MASKS => "mask".to_owned(),
                name => format!("raster {name}"),
            },
            index,
            maker,
            input: match spec.evicts_shards {
                true => input.without_open_shards(),
                false => input,
            },
        })
    }

    /// Fills the raster of sample `id`.
    fn fill(
        &mut self,
        id: u64,
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let Self {
            what,
            index,
            input,
            maker: InputMaker::OfRow(maker),
        } = self
        else {
            return Err(FaultKind::Corrupt.fault("its ticket names a row of one sample"));
        };
        let mut make =
            |bytes: &[u8], _, meter: &mut StageMeter| maker.make(bytes, image, request, out, meter);
        open_raster((what, index, input), (id, None), meter, &mut make)
    }
}

/// Opens the file of a raster of sample `id`, which may have a box. Faults name both: `what`.
fn open_raster(
    (what, index, input): (&str, &Index, &mut SampleInput),
    (id, part): (u64, Option<PixelBox>),
    meter: &mut StageMeter,
    make: &mut FileUse<'_>,
) -> std::result::Result<(), SampleFault> {
    let named = |fault: SampleFault| {
        let path = index.path(id);
        let reason = format!("{what} {}: {}", path.display(), fault.reason);
        SampleFault::new(fault.kind, reason)
    };
    let bytes = input.open_metered(index, id, Some(&mut *meter));
    let bytes = bytes.map_err(named)?;
    meter.bytes += bytes.len() as u64;
    make(&bytes, part, meter).map_err(named)
}

/// The files of the data set in an epoch.
struct OpenedFiles<'a> {
    index: &'a Index,
    plan: &'a EpochPlan,
    epoch: u64,
    /// That of the row.
    position: u64,
    input: &'a mut SampleInput,
    /// Those of masks.
    masks: Option<(&'a str, &'a Index, &'a mut SampleInput)>,
}

impl SampleFiles for OpenedFiles<'_> {
    fn with_file(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> std::result::Result<(), SampleFault> {
        let bytes = (self.input).open_metered(self.index, id, Some(&mut *meter))?;
        meter.bytes += bytes.len() as u64;
        make(&bytes, self.index.pixel_box(id), meter)
    }

    fn with_mask(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> std::result::Result<(), SampleFault> {
        let part = self.index.pixel_box(id);
        let Some((what, index, input)) = &mut self.masks else {
            return Err(FaultKind::Corrupt.fault("its data set has no masks"));
        };
        open_raster((*what, *index, &mut **input), (id, part), meter, make)
    }

    fn pixel_box(&self, id: u64) -> Option<PixelBox> {
        self.index.pixel_box(id)
    }

    fn name(&self, id: u64) -> String {
        self.index.path(id).display().to_string()
    }

    fn partner(&self, draw: PartnerDraw) -> PlacedSample {
        self.plan.partner_at(self.epoch, self.position, draw)
    }
}

fn object_maker(
    spec: &ImageSpec,
    rule: &ObjectRule,
    table: Arc<ObjectTable>,
) -> Result<ObjectMaker> {
    let mover = ObjectMover::new(table, rule);
    let mover = mover.map_err(|fault| Error::option("objects", fault.to_string()))?;
    let of_row = rule.mask_scale().filter(|_| !spec.program.is_joined());
    let masks = of_row.map(|scale| {
        let program = spec.program.for_labels();
        let program = program.map_err(|fault| Error::protocol(fault.message))?;
        InstanceMaskMaker::new(&program, &spec.limits, scale, rule)
    });
    let maker = ObjectMaker::new(Arc::new(mover), masks.transpose()?);
    Ok(match spec.program.is_joined() {
        true => maker.joining(),
        false => maker,
    })
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    // An invalid `FEATHERLOAD_CPU` ends the run before an image is decoded.
    CpuLevel::detect()?;
    let spec: ImageSpec = parts.spec()?;
    let mut fds = std::mem::take(&mut parts.descriptors).into_iter();
    let index = Index::from_descriptors(&mut fds)?;
    let of_rasters = (spec.rasters.iter()).map(|_| Index::from_descriptors(&mut fds));
    let of_rasters = of_rasters.collect::<Result<Vec<_>>>()?;
    let objects = match &spec.objects {
        None => None,
        Some(_) => {
            let fd = fds.next();
            let fd = fd.ok_or_else(|| Error::protocol("an image job came without its objects"))?;
            Some(ObjectTable::from_fd(fd, index.len())?)
        }
    };
    let sizes = match needs_sizes(&spec.program, &spec.plan.sampler) {
        false => None,
        true => {
            let fd = fds.next();
            let fd = fd.ok_or_else(|| Error::protocol("an image job came without its sizes"))?;
            Some(SampleSizes::from_fd(fd, index.len())?)
        }
    };
    let sampler = &spec.plan.sampler;
    let table = sampler.needs_table().then(|| fds.next()).flatten();
    let table = table
        .map(|fd| SamplerTable::from_fd(fd, sampler, index.len()))
        .transpose()?;
    let handed = match spec.handed {
        None => None,
        Some(shape) => {
            let fd = fds.next();
            let fd = fd.ok_or_else(|| Error::protocol("an image job came without its samples"))?;
            Some(HandedItems::from_fd(fd, shape)?)
        }
    };
    let window = match spec.window {
        None => None,
        Some(shape) => {
            let fd = fds.next();
            let fd = fd.ok_or_else(|| Error::protocol("an image job came without its pictures"))?;
            Some(PictureWindow::from_fd(fd, shape)?)
        }
    };
    if fds.next().is_some() {
        return Err(Error::protocol(
            "an image job came with more descriptors than its recipe and sampler need",
        ));
    }
    let mode = InputMode::of(parts.runs_in);
    let rasters = (spec.rasters.iter().zip(of_rasters))
        .map(|(raster, index)| RasterInput::new(&spec, raster, index, mode));
    Ok(Box::new(ImageJob {
        handed,
        window,
        rasters: rasters.collect::<Result<_>>()?,
        ..ImageJob::new(&spec, index, objects, sizes, table, mode)?
    }))
}

impl ImageJob {
    /// `objects`: if images have objects. `sizes`: if [`needs_sizes`]. `table`: if the
    /// sampler needs one.
    pub(crate) fn new(
        spec: &ImageSpec,
        index: Index,
        objects: Option<ObjectTable>,
        sizes: Option<SampleSizes>,
        table: Option<SamplerTable>,
        mode: InputMode,
    ) -> Result<Self> {
        let plan = EpochPlan::with_table(index.len(), spec.plan.clone(), table)?;
        let limits = spec.limits;
        let packing = SlotPacking::new(&spec.program, plan.clone(), spec.tries, limits, sizes)?;
        let objects = spec.objects.as_ref().zip(objects.map(Arc::new));
        let section = objects
            .as_ref()
            .map(|(rule, table)| ObjectSection::new(table.clone(), rule).joining(&spec.program));
        let packing = (packing.with_rasters(&spec.rasters, &spec.program)).with_objects(section);
        let has_masks = spec.rasters.iter().any(|raster| raster.name == MASKS);
        let needs = StageNeeds::of(&spec.program, has_masks, spec.objects.as_ref());
        let objects = objects.map(|(rule, table)| object_maker(spec, rule, table));
        let objects = objects.transpose()?;
        let reads_boxes = spec.program.box_reader().is_some();
        let box_mover = objects.as_ref().filter(|_| reads_boxes);
        let pattern = AccessPattern::of(&spec.plan.sampler);
        let input = SampleInput::new(mode, spec.limits.max_scratch, pattern);
        Ok(Self {
            home: HomeShard::new(&index, pattern),
            index,
            plan,
            input: match spec.evicts_shards {
                true => input.without_open_shards(),
                false => input,
            },
            rasters: Vec::new(),
            swapped: spec
                .rasters
                .iter()
                .position(|raster| matches!(&raster.rule, RasterRule::Image(pair) if pair.swap)),
            box_mover: box_mover.map(|maker| maker.mover().clone()),
            objects,
            handed: None,
            window: None,
            handed_bytes: Vec::new(),
            decoder: SampleDecoder::new(&spec.program, &spec.limits)?,
            assembler: SampleAssembler::of(&spec.program, &spec.limits, needs)?,
            packing,
            packed: PackedBatch::default(),
            max_scratch: spec.limits.max_scratch,
            jpegs: spec.jpegs,
            has_pixels: spec.program.has_pixels,
        })
    }
}

impl ImageJob {
    /// Most bytes that the objects of a row take while they move.
    fn object_memory(&self) -> u64 {
        let assembler = self.assembler.as_ref();
        let pictures = assembler.map_or(1, SampleAssembler::most_pictures);
        self.objects.as_ref().map_or(0, |objects| {
            let most = pictures.saturating_mul(objects.mover().table().most_objects() as u64);
            let masks = assembler.map_or(0, |assembler| assembler.mask_bytes(most));
            objects.memory(pictures).saturating_add(masks)
        })
    }

    /// Fills a row of the pictures of several samples.
    fn assemble(
        &mut self,
        at: EpochMark,
        row: RowPlan,
        out: &mut RowParts<'_>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let parts = self.rasters.len() + usize::from(self.objects.is_some());
        let (Some(assembler), true) = (&mut self.assembler, out.further.len() == parts) else {
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row with another number of parts",
            ));
        };
        let request = RowRequest {
            random: &self.plan.random(at.epoch, row.position),
            size: row.size,
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        let (masks, reader) = match &mut self.rasters[..] {
            [
                RasterInput {
                    what,
                    index,
                    input,
                    maker: InputMaker::OfStages(reader),
                },
            ] => (Some((&**what, &*index, input)), Some(&*reader)),
            _ => (None, None),
        };
        let mut files = OpenedFiles {
            index: &self.index,
            plan: &self.plan,
            epoch: at.epoch,
            position: row.position,
            input: &mut self.input,
            masks,
        };
        let mut source = PictureSource {
            files: &mut files,
            objects: self.objects.as_ref(),
            masks: reader,
            window: self.window.as_ref(),
        };
        let own = PlacedSample {
            id: row.id,
            place: self.plan.place_at(row.position),
        };
        let mut further = out.further.iter_mut().map(|part| &mut **part);
        let places = JoinedRow {
            pixels: &mut *out.first,
            mask: reader.and_then(|_| further.next()),
            record: further.next(),
        };
        assembler.make_row(
            (own, &mut self.decoder),
            &request,
            &mut source,
            places,
            meter,
        )
    }
}

impl Job for ImageJob {
    fn row_range(&mut self, ticket: &Ticket, row: u32) -> Range<usize> {
        (self.packing).place(&mut self.packed, ticket.key.into(), row)
    }

    fn further_ranges(&mut self, ticket: &Ticket, row: u32) -> Vec<Range<usize>> {
        (self.packing).further_places(&mut self.packed, ticket.key.into(), row)
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        self.fill_parts(ticket, row, attempt, &mut RowParts::whole(out), meter)
    }

    fn fill_parts(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut RowParts<'_>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let at = EpochMark::from(ticket.key);
        let in_batch = row;
        let row = self.plan.attempt_at(at, row, attempt);
        if row.status == RowStatus::Padding {
            // Padding has no ticket, so the shared memory is corrupted.
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row that holds no sample",
            ));
        }
        if row.status == RowStatus::Failed {
            return Err(SampleFault::new(
                FaultKind::Unreadable,
                "no further sample takes its place",
            ));
        }
        if !self.has_pixels {
            return Ok(());
        }
        self.home.set_current(&self.index, row.id);
        if self.assembler.is_some() {
            return self.assemble(at, row, out, meter);
        }
        let opened;
        let bytes: &[u8] = match &self.handed {
            Some(handed) => {
                if self.handed_bytes.capacity() > sample::KEEP {
                    self.handed_bytes = Vec::new();
                }
                // There are no substitutes, so the row has its own sample.
                handed.read(at, in_batch, self.max_scratch, &mut self.handed_bytes)?;
                &self.handed_bytes
            }
            None => {
                opened = self
                    .input
                    .open_metered(&self.index, row.id, Some(&mut *meter))?;
                &opened
            }
        };
        meter.bytes += bytes.len() as u64;
        let part = self.index.pixel_box(row.id);
        let mover = self.box_mover.clone();
        let boxes = mover.as_deref().map(|mover| SampleBoxes {
            mover,
            id: row.id,
            part,
        });
        let request = RowRequest {
            random: &self.plan.random(at.epoch, row.position),
            size: row.size,
            part,
            boxes: boxes.as_ref().map(|boxes| boxes as &dyn BoxSource),
            check_size: &|size| self.packing.check_size(row.id, size),
        };
        if self.packing.crop_sections().is_some() {
            return self.decoder.make_crops(bytes, &request, out, meter);
        }
        let (decoder, first) = (&mut self.decoder, &mut *out.first);
        match &self.jpegs {
            Some(limits) => decoder.fill_or_copy_coded(bytes, &request, limits, first, meter)?,
            None => decoder.make_row(bytes, &request, first, meter)?,
        }
        // Of an image that a device flagged, only its pixels are made again.
        if out.further.is_empty() {
            return Ok(());
        }
        let parts = self.rasters.len() + usize::from(self.objects.is_some());
        if out.further.len() != parts {
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row with another number of parts",
            ));
        }
        let image = self.decoder.last_image();
        for (raster, out) in self.rasters.iter_mut().zip(&mut out.further) {
            raster.fill(row.id, image, &request, out, meter)?;
        }
        if let Some(pair) = self.swapped.and_then(|n| out.further.get_mut(n))
            && self.decoder.last_motion().mirrors() % 2 == 1
            && pair.len() == out.first.len()
        {
            out.first.swap_with_slice(pair);
        }
        if let (Some(objects), [.., out]) = (&mut self.objects, &mut out.further[..]) {
            let picture = MovedPicture {
                size: image,
                part: request.part,
                motion: &self.decoder.last_motion(),
                centre_crops: &self.decoder.last_centre_crops(),
            };
            objects.write(row.id, picture, &request, out, meter)?;
        }
        Ok(())
    }

    fn enter_worker(&mut self, lane: u32) -> Result<()> {
        if let Some(window) = &mut self.window {
            window.enter_worker(lane);
        }
        Ok(())
    }

    fn has_preferences(&self) -> bool {
        self.home.has_preference()
    }

    fn prefers(&self, ticket: &Ticket, row: u32) -> bool {
        self.home.prefers(&self.index, || {
            // Shared memory: the key may be any numbers.
            let at = ticket.key.into();
            let is_there = self.plan.has_batch_at(at) && row < ticket.rows;
            is_there.then(|| self.plan.attempt_at(at, row, 0).id)
        })
    }

    fn memory_limit(&self) -> u64 {
        // Buffers of earlier samples may exist in addition to the whole of this one's.
        let draws = self.objects.as_ref().is_some_and(ObjectMaker::draws_masks);
        let of_stages = (self.assembler.as_ref()).map_or(0, SampleAssembler::decoders);
        // The assembler's stages have the decoders of masks.
        let of_rasters = match &self.assembler {
            Some(_) => 0,
            None => self.rasters.len() as u64,
        };
        let decoders = 1 + of_rasters + u64::from(draws) + of_stages as u64;
        let pages = self
            .rasters
            .iter()
            .map(|raster| raster.index.largest_page());
        let canvases = (self.assembler.as_ref()).map_or(0, SampleAssembler::canvas_bytes);
        (self.max_scratch.saturating_add(sample::KEEP as u64))
            .saturating_mul(decoders)
            .saturating_add(sample::BESIDE_SCRATCH)
            .saturating_add(canvases)
            .saturating_add(self.index.largest_page())
            .saturating_add(self.object_memory())
            .saturating_add(pages.fold(0, u64::saturating_add))
    }

    fn describe(&self, ticket: &Ticket, row: u32, attempt: u32) -> String {
        let row = self.plan.attempt_at(ticket.key.into(), row, attempt);
        let id = row.id;
        format!("sample {id} ({})", self.index.path(id).display())
    }
}
