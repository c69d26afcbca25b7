//! Finds what limits the speed of a run, and what would make it faster.
//!
//! Pure: turns figures into text.

use featherload::LoaderReport;
use featherload::measure::{ProcessUsage, TreeUsage};
use serde::Serialize;

/// A device that is busy for more than this share of the time is the limit.
const DEVICE_BUSY: f64 = 0.8;

/// Share of worker time. Workers that are idle for longer are not the limit.
const RESTING: f64 = 0.3;
/// Share of the time on samples. Above it, waiting for data is the limit.
const BLOCKED: f64 = 0.3;
/// Share of the time on samples. Above it, other programs may be the limit: workers wait for a CPU.
const QUEUED: f64 = 0.2;

/// Share of the run. Above it, waiting for shards of an object store is the limit.
const FETCHED: f64 = 0.3;

/// Share of the usable CPUs. If all processes of the run use less, other programs use the rest.
const RECEIVED: f64 = 0.8;

/// Idle CPUs that one more worker can use.
const IDLE: f64 = 0.5;

/// Bytes per pixel of a square on the shorter side. A JPEG of quality 90 takes less, even at 16:9.
/// So a larger file holds an image that can be made smaller.
const SMALL_FILE: f64 = 1.0;

/// Name of a stage, and its share of worker time.
pub type WorkerStage = (&'static str, f64);

/// Time shares of a run, in percent. Field names are part of the `--json` format.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StageShares {
    /// Share of the workers' time on samples, the largest first.
    #[serde(rename = "stages_percent")]
    pub stages: Vec<WorkerStage>,
    /// Share of worker time: waiting for the consumer.
    #[serde(rename = "idle_percent")]
    pub idle: f64,
    /// Share of the time on samples: runnable, but without a CPU. None if it is not known.
    #[serde(rename = "queued_percent")]
    pub queued: Option<f64>,
    /// Share of the time on samples: waiting for data.
    #[serde(rename = "blocked_percent")]
    pub blocked: Option<f64>,
    /// Share of the run: the consumer waited for a batch.
    #[serde(rename = "consumer_waited_percent")]
    pub consumer_waited: f64,
    /// Share of the run: the consumer mixed batches.
    #[serde(rename = "mixing_percent")]
    pub mixing: f64,
    /// Share of the run: the consumer read columns, and unpacked what they lie in.
    #[serde(rename = "columns_percent")]
    pub columns: f64,
    /// Share of the run: the device copied, or made rows from crops.
    #[serde(rename = "device_percent")]
    pub device: f64,
    /// Share of the run: the device decoded JPEGs.
    #[serde(rename = "gpu_decoder_percent")]
    pub gpu_decoder: f64,
    /// Share of the run: the consumer waited for shards of an object store.
    #[serde(rename = "fetch_waited_percent")]
    pub fetch: f64,
}

/// CPUs used by all processes of the run, and CPUs that it may use.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct CpuCount {
    pub used: f64,
    pub usable: usize,
    /// Idle CPUs among them. None if the system does not report them.
    pub idle: Option<f64>,
    /// CPUs used by the processes that decode.
    pub workers_used: f64,
}

/// What limits a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateLimit {
    Device,
    GpuDecoder,
    Fetch,
    SlowRows,
    Mixing,
    Columns,
    Consumer,
    OtherWork,
    Storage,
    Stage(&'static str),
}

/// Whether a GPU decodes the JPEGs of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GpuDecoding {
    /// The GPU cannot decode them.
    Impossible,
    /// The GPU could decode them, but `--decode-on cpu` prevents it.
    Unused,
    Used,
}

/// The facts from which `bench` derives what would be faster.
pub struct RunFacts {
    pub workers: usize,
    pub depth: u32,
    /// Mean bytes of a sample's file.
    pub file_bytes: f64,
    /// The shorter side of a row. None if rows differ in size.
    pub side: Option<u32>,
    pub is_shards: bool,
    /// Nothing is decoded.
    pub is_raw: bool,
    pub has_digest: bool,
    pub is_f32: bool,
    /// Whether `--reorder fast` would move an operation.
    pub has_moves_left: bool,
    pub gpu_decoding: GpuDecoding,
    /// Rate with scaled decoding, relative to this run. None if it is not higher.
    pub scaled_gain: Option<f64>,
}

impl StageShares {
    /// `columns_s`: seconds for the columns of batches.
    pub fn of(r: &LoaderReport, workers: &WorkerTimes, seconds: f64, columns_s: f64) -> Self {
        let t = &r.times;
        let busy = t.busy_s().max(1e-9);
        let percent = |s: f64, of: f64| 100.0 * (s / of.max(1e-9)).clamp(0.0, 1.0);
        let mut stages = [
            ("read", t.open_s),
            ("unpack", t.unpack_s),
            ("decode", t.decode_s),
            ("resize", t.resample_s),
            ("augment", t.augment_s),
            ("write", t.emit_s),
        ];
        stages.sort_by(|a, b| b.1.total_cmp(&a.1));
        let queued = workers.queued_s.map(|s| percent(s, busy));
        Self {
            stages: stages.iter().map(|s| (s.0, percent(s.1, busy))).collect(),
            idle: percent(t.idle_s, busy + t.idle_s),
            queued,
            blocked: workers
                .queued_s
                .map(|queued| percent(busy - workers.cpu_s - queued, busy)),
            consumer_waited: percent(r.consumer_wait_s, seconds),
            mixing: percent(r.mix_s, seconds),
            columns: percent(columns_s, seconds),
            device: r.device.map_or(0.0, |d| percent(d.busy_s(), seconds)),
            gpu_decoder: r.device.map_or(0.0, |d| percent(d.jpegs.busy_s, seconds)),
            fetch: r.fetch.map_or(0.0, |fetch| percent(fetch.wait_s, seconds)),
        }
    }
}

/// System resources used by the processes that decode.
pub struct WorkerTimes {
    pub cpu_s: f64,
    pub queued_s: Option<f64>,
}

impl WorkerTimes {
    /// Usage of the workers, or of this process since `before` if it decodes itself.
    pub fn of(r: &LoaderReport, tree: &TreeUsage, before: Option<&ProcessUsage>) -> Self {
        let mut all = Self {
            cpu_s: 0.0,
            // The waiting times of dead workers are lost.
            queued_s: (r.worker_deaths == 0).then_some(0.0),
        };
        let decodes = |pid: i32| match r.coordinator {
            // This includes the time of dead workers.
            Some(coordinator) => pid == coordinator || r.workers.contains(&pid),
            None => true,
        };
        for p in tree.processes.iter().filter(|p| decodes(p.pid)) {
            let before = before.filter(|b| b.pid == p.pid);
            all.cpu_s += p.cpu_s - before.map_or(0.0, |b| b.cpu_s);
            let queued = |p: &ProcessUsage| p.queued_s;
            let earlier = before.map_or(Some(0.0), queued);
            all.queued_s = match (all.queued_s, p.queued_s, earlier) {
                (Some(sum), Some(now), Some(then)) => Some(sum + now - then),
                _ => None,
            };
        }
        all
    }
}

impl RateLimit {
    pub fn of(shares: &StageShares, processors: &CpuCount, workers: usize) -> Self {
        let rests = workers > 0 && shares.idle > 100.0 * RESTING;
        let could_use = (workers.max(1)).min(processors.usable) as f64;
        let queued = shares.queued.unwrap_or(0.0);
        let largest = shares.stages.first().map_or("decode", |stage| stage.0);
        // Shares of the consumer's own time. Without workers it also decodes.
        let own = 100.0 - shares.consumer_waited;
        let mixes = shares.mixing > 0.5 * own;
        let reads_columns = shares.columns > 0.5 * own;
        if shares.fetch > 100.0 * FETCHED {
            Self::Fetch
        } else if shares.device > 100.0 * DEVICE_BUSY {
            Self::Device
        } else if rests && shares.gpu_decoder > 100.0 * DEVICE_BUSY {
            // A device may always be busy and still wait for workers.
            Self::GpuDecoder
        } else if rests && shares.consumer_waited > 50.0 {
            // Both wait: batches come in order, and the slots are full of finished rows.
            Self::SlowRows
        } else if mixes && (rests || workers == 0) {
            Self::Mixing
        } else if reads_columns && (rests || workers == 0) {
            Self::Columns
        } else if rests {
            Self::Consumer
        } else if queued > 100.0 * QUEUED && processors.used < RECEIVED * could_use {
            Self::OtherWork
        } else if largest == "read" || shares.blocked.unwrap_or(0.0) > 100.0 * BLOCKED {
            Self::Storage
        } else {
            Self::Stage(largest)
        }
    }

    /// The value of `bound_by`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "the device",
            Self::GpuDecoder => "the GPU decoder",
            Self::Fetch => "the object store",
            Self::SlowRows => "rows that wait for slower ones (raise depth)",
            Self::Mixing => "mixing",
            Self::Columns => "columns",
            Self::Consumer => "the consumer",
            Self::OtherWork => "other work on this machine",
            Self::Storage => "storage",
            Self::Stage(stage) => stage,
        }
    }

    /// Text of a table column: `decode 82%`.
    pub fn short(self, shares: &StageShares) -> String {
        match self {
            Self::SlowRows => "slow images".into(),
            Self::OtherWork => "other work".into(),
            Self::Mixing => format!("mixing {:.0}%", shares.mixing),
            Self::Columns => format!("columns {:.0}%", shares.columns),
            Self::Stage(_) => match shares.stages.first() {
                Some((stage, share)) => format!("{stage} {share:.0}%"),
                None => String::new(),
            },
            _ => self.name().into(),
        }
    }

    /// Text with figures, for the printed report.
    pub fn text(self, shares: &StageShares, processors: &CpuCount, workers: usize) -> String {
        match self {
            Self::Device => format!("the device: busy {:.0}% of the time", shares.device),
            Self::GpuDecoder => format!(
                "the GPU decoder: busy {:.0}% of the time, and workers waited {:.0}% of theirs",
                shares.gpu_decoder, shares.idle
            ),
            Self::Fetch => format!(
                "the object store: the run waited for shards {:.0}% of the time",
                shares.fetch
            ),
            Self::SlowRows => format!(
                "slow images: finished rows wait for them, and workers are idle {:.0}% of their time",
                shares.idle
            ),
            Self::Mixing | Self::Columns => {
                let rest = match workers {
                    0 => String::new(),
                    _ => format!("; workers waited for it {:.0}% of theirs", shares.idle),
                };
                let share = match self {
                    Self::Columns => shares.columns,
                    _ => shares.mixing,
                };
                format!(
                    "{}: {:.0}% of the consumer's time{rest}",
                    self.name(),
                    100.0 * share / (100.0 - shares.consumer_waited).max(1.0)
                )
            }
            Self::Consumer => format!(
                "the consumer: workers waited for it {:.0}% of their time",
                shares.idle
            ),
            Self::OtherWork => {
                let (cores, unit) = match workers.max(1).min(processors.usable) {
                    1 => (1, "core"),
                    n => (n, "cores"),
                };
                let received = processors.workers_used;
                format!("other work on this machine: {received:.1} of {cores} {unit} received")
            }
            Self::Storage => match shares.blocked {
                Some(blocked) if blocked > 100.0 * BLOCKED => {
                    format!("storage: workers waited for data {blocked:.0}% of their time")
                }
                _ => format!("storage: {}", stages(shares, workers)),
            },
            Self::Stage(_) => stages(shares, workers),
        }
    }

    /// Advice, if a known change would help.
    pub fn faster(
        self,
        facts: &RunFacts,
        shares: &StageShares,
        processors: &CpuCount,
    ) -> Option<String> {
        // Less work takes less time, even if other programs use the CPUs.
        let stage = shares.stages.first().map(|stage| Self::Stage(stage.0));
        let is_disturbed = self == Self::OtherWork;
        let this = stage.filter(|_| is_disturbed).unwrap_or(self);
        let build = "cache build SRC DST";
        // Room for a crop, as 256 has for 224.
        let side = facts.side.map(|side| (side * 8).div_ceil(7));
        let shorter = side.map_or(String::new(), |side| format!(" --resize shorter:{side}"));
        let small = side.map_or(f64::INFINITY, |side| SMALL_FILE * f64::from(side).powi(2));
        if !is_disturbed
            && matches!(this, Self::Stage(_))
            && let Some(more) = processors.room(facts.workers)
        {
            return Some(format!("--num-workers {}", facts.workers + more));
        }
        if this == Self::Stage("decode") && facts.gpu_decoding == GpuDecoding::Unused {
            return Some("--decode-on auto: the GPU decodes JPEGs, to the same pixels".into());
        }
        // This also leaves fewer pixels to resize.
        if let (Self::Stage("decode" | "resize"), Some(gain)) = (this, facts.scaled_gain) {
            return Some(format!(
                "--decode scaled: about {gain:.1} times the images/s; levels differ from those of \
                 a full decode"
            ));
        }
        match this {
            // Smaller files, if the recipe shrinks the image anyway.
            Self::GpuDecoder | Self::Stage("decode" | "resize")
                if facts.file_bytes > small && !facts.is_raw =>
            {
                Some(format!("{build} --encode jpeg:90{shorter}"))
            }
            // Raw images are copied to a GPU whole; JPEGs are copied as coded data.
            Self::Stage("decode") if !facts.is_raw && facts.gpu_decoding != GpuDecoding::Used => {
                Some(format!("{build} --encode raw{shorter}"))
            }
            Self::Stage("unpack") => Some(format!(
                "{build}: its images are not compressed a second time"
            )),
            Self::Stage("augment") if facts.has_moves_left => Some(
                "--reorder fast: fewer pixels to change (`featherload plan` shows the moves)"
                    .into(),
            ),
            Self::Stage("write") if facts.is_f32 => {
                Some("--dtype f16: half the bytes to write".into())
            }
            Self::Storage if !facts.is_shards => Some(format!(
                "{build}: few large files in place of many small ones"
            )),
            Self::Storage => Some("--sampler shard-shuffle: shards are read in order".into()),
            Self::Consumer if facts.has_digest => Some("without --digest".into()),
            Self::SlowRows => Some(format!("--depth {}", facts.depth + 2)),
            _ => None,
        }
    }
}

/// `decode: 82% of worker time (resize 9, write 7, read 2)`.
fn stages(shares: &StageShares, workers: usize) -> String {
    let Some((largest, share)) = shares.stages.first() else {
        return String::new();
    };
    let rest: Vec<String> = shares.stages[1..]
        .iter()
        .filter(|stage| stage.1 >= 0.5)
        .map(|(name, share)| format!("{name} {share:.0}"))
        .collect();
    let whose = if workers == 0 { "the" } else { "worker" };
    match rest.is_empty() {
        true => format!("{largest}: {share:.0}% of {whose} time"),
        false => format!(
            "{largest}: {share:.0}% of {whose} time ({})",
            rest.join(", ")
        ),
    }
}

impl CpuCount {
    /// Whether one more worker would have a CPU. None if it is not known.
    pub fn has_idle(&self) -> Option<bool> {
        self.idle.map(|idle| idle >= IDLE)
    }

    /// Number of further workers that would each have a CPU.
    pub fn room(&self, workers: usize) -> Option<usize> {
        let idle = self.idle.filter(|idle| *idle >= IDLE)?.round() as usize;
        let left = self.usable.checked_sub(workers).filter(|_| workers > 0)?;
        (left > 0).then(|| idle.clamp(1, left))
    }

    /// `1.9 of 2 cores used`.
    pub fn used_text(&self) -> String {
        format!("{:.1} of {} cores used", self.used, self.usable)
    }

    /// `1.9 of 2 cores used: more workers will not help`.
    pub fn text(&self, limit: RateLimit, shares: &StageShares, workers: usize) -> String {
        let used = self.used_text();
        let is_full = self.used > 0.85 * self.usable as f64;
        match limit {
            _ if workers == 0 => format!("{used}: --num-workers 0 decodes in this process"),
            RateLimit::OtherWork => match shares.stages.first() {
                Some((stage, share)) => format!("{used}, {share:.0}% of worker time in {stage}"),
                None => used,
            },
            _ if is_full => format!("{used}: more workers will not help"),
            RateLimit::Stage(_) if workers < self.usable => match self.idle {
                Some(idle) if idle >= IDLE => {
                    format!("{used}, {idle:.1} idle: more workers will help")
                }
                Some(_) => format!("{used}, none idle: more workers will not help"),
                None => used,
            },
            _ => used,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(stages: &[WorkerStage]) -> StageShares {
        StageShares {
            stages: stages.to_vec(),
            queued: Some(0.0),
            blocked: Some(0.0),
            ..StageShares::default()
        }
    }

    fn cores(used: f64, usable: usize) -> CpuCount {
        CpuCount {
            used,
            usable,
            idle: Some((usable as f64 - used).max(0.0)),
            workers_used: used,
        }
    }

    const DECODES: &[WorkerStage] = &[
        ("decode", 82.0),
        ("resize", 9.0),
        ("write", 7.0),
        ("read", 2.0),
    ];

    #[test]
    fn the_largest_stage_limits_by_its_own_share() {
        let (s, p) = (shares(DECODES), cores(1.9, 2));
        let limit = RateLimit::of(&s, &p, 2);
        assert_eq!(
            limit.text(&s, &p, 2),
            "decode: 82% of worker time (resize 9, write 7, read 2)"
        );
        assert_eq!(
            p.text(limit, &s, 2),
            "1.9 of 2 cores used: more workers will not help"
        );
        let raw = shares(&[("resize", 60.0), ("write", 40.0), ("decode", 0.0)]);
        assert_eq!(RateLimit::of(&raw, &p, 2).name(), "resize");
        let packed = shares(&[("unpack", 55.0), ("decode", 40.0), ("read", 5.0)]);
        let limit = RateLimit::of(&packed, &p, 2);
        assert_eq!(limit.name(), "unpack");
        let faster = limit.faster(&FACTS, &packed, &p).unwrap();
        assert!(faster.starts_with("cache build SRC DST: "), "{faster}");
        let read = shares(&[("read", 55.0), ("decode", 40.0), ("unpack", 5.0)]);
        assert_eq!(RateLimit::of(&read, &p, 2), RateLimit::Storage);
        let colour = shares(&[("augment", 50.0), ("decode", 40.0), ("resize", 10.0)]);
        assert_eq!(RateLimit::of(&colour, &p, 2).name(), "augment");
    }

    #[test]
    fn who_takes_the_processors_is_told_apart_from_storage() {
        let busy = StageShares {
            queued: Some(55.0),
            ..shares(DECODES)
        };
        let limit = RateLimit::of(&busy, &cores(0.8, 2), 2);
        assert_eq!(
            limit.text(&busy, &cores(0.8, 2), 2),
            "other work on this machine: 0.8 of 2 cores received"
        );
        // Four workers on two cores compete with each other, not with other programs.
        assert_eq!(RateLimit::of(&busy, &cores(1.9, 2), 4).name(), "decode");
        let blocked = StageShares {
            blocked: Some(62.0),
            ..shares(DECODES)
        };
        let limit = RateLimit::of(&blocked, &cores(0.7, 2), 2);
        assert_eq!(
            limit.text(&blocked, &cores(0.7, 2), 2),
            "storage: workers waited for data 62% of their time"
        );
        // No cause is reported if the kernel does not count.
        let unknown = StageShares {
            queued: None,
            blocked: None,
            ..shares(DECODES)
        };
        assert_eq!(RateLimit::of(&unknown, &cores(0.7, 2), 2).name(), "decode");
    }

    #[test]
    fn who_waits_says_whether_the_consumer_or_slow_rows_limit() {
        let rests = |consumer_waited| StageShares {
            idle: 45.0,
            consumer_waited,
            ..shares(DECODES)
        };
        assert_eq!(
            RateLimit::of(&rests(10.0), &cores(1.0, 2), 2),
            RateLimit::Consumer
        );
        assert_eq!(
            RateLimit::of(&rests(60.0), &cores(1.0, 2), 2),
            RateLimit::SlowRows
        );
        let device = StageShares {
            device: 92.0,
            ..rests(10.0)
        };
        assert_eq!(RateLimit::of(&device, &cores(1.0, 2), 2), RateLimit::Device);
    }

    #[test]
    fn more_workers_are_advised_for_idle_cores_alone() {
        let (decode, s) = (RateLimit::Stage("decode"), shares(DECODES));
        let with = |idle| CpuCount {
            idle,
            ..cores(2.1, 8)
        };
        for (idle, more, expected) in [
            (
                Some(5.8),
                Some("--num-workers 8"),
                "5.8 idle: more workers will help",
            ),
            (
                Some(2.2),
                Some("--num-workers 4"),
                "2.2 idle: more workers will help",
            ),
            (
                Some(0.6),
                Some("--num-workers 3"),
                "0.6 idle: more workers will help",
            ),
            (Some(0.4), None, "none idle: more workers will not help"),
        ] {
            let faster = decode.faster(&FACTS, &s, &with(idle));
            let faster = faster.filter(|faster| faster.starts_with("--num-workers"));
            assert_eq!(faster.as_deref(), more, "{idle:?}");
            let text = with(idle).text(decode, &s, 2);
            assert_eq!(text, format!("2.1 of 8 cores used, {expected}"));
        }
        // Not known.
        assert_eq!(with(None).text(decode, &s, 2), "2.1 of 8 cores used");
        let faster = decode.faster(&FACTS, &s, &with(None)).unwrap();
        assert!(faster.starts_with("cache build"), "{faster}");
    }

    #[test]
    fn mixing_is_named_where_it_is_most_of_what_the_consumer_does() {
        let p = cores(1.0, 2);
        let mixes = |mixing, idle| StageShares {
            mixing,
            idle,
            consumer_waited: 10.0,
            ..shares(DECODES)
        };
        let (most, some) = (mixes(72.0, 45.0), mixes(20.0, 45.0));
        let limit = RateLimit::of(&most, &p, 2);
        assert_eq!((limit, limit.name()), (RateLimit::Mixing, "mixing"));
        assert_eq!(
            limit.text(&most, &p, 2),
            "mixing: 80% of the consumer's time; workers waited for it 45% of theirs"
        );
        assert_eq!(limit.short(&most), "mixing 72%");
        assert_eq!(RateLimit::of(&some, &p, 2), RateLimit::Consumer);
        // Nothing waits for it.
        assert_eq!(RateLimit::of(&mixes(72.0, 5.0), &p, 2).name(), "decode");
        // The process that decodes also mixes.
        let alone = StageShares {
            consumer_waited: 0.0,
            ..mixes(60.0, 0.0)
        };
        let text = RateLimit::of(&alone, &p, 0).text(&alone, &p, 0);
        assert_eq!(text, "mixing: 60% of the consumer's time");
    }

    #[test]
    fn columns_are_named_and_not_the_storage_that_they_lie_in() {
        let p = cores(1.0, 2);
        let read = |columns, idle| StageShares {
            columns,
            idle,
            consumer_waited: 10.0,
            ..shares(&[("read", 50.0), ("decode", 50.0)])
        };
        let most = read(81.0, 60.0);
        let limit = RateLimit::of(&most, &p, 2);
        assert_eq!((limit, limit.name()), (RateLimit::Columns, "columns"));
        assert_eq!(
            limit.text(&most, &p, 2),
            "columns: 90% of the consumer's time; workers waited for it 60% of theirs"
        );
        // Without workers the consumer reads images too.
        assert_eq!(RateLimit::of(&read(81.0, 0.0), &p, 0), RateLimit::Columns);
        assert_eq!(RateLimit::of(&read(20.0, 0.0), &p, 0), RateLimit::Storage);
        assert_eq!(RateLimit::of(&read(20.0, 60.0), &p, 2), RateLimit::Consumer);
    }

    const FACTS: RunFacts = RunFacts {
        workers: 2,
        depth: 3,
        file_bytes: 90_000.0,
        side: Some(224),
        is_shards: false,
        is_raw: false,
        has_digest: false,
        is_f32: false,
        has_moves_left: false,
        gpu_decoding: GpuDecoding::Impossible,
        scaled_gain: None,
    };

    #[test]
    fn scaled_decoding_is_offered_with_its_gain() {
        let facts = RunFacts {
            scaled_gain: Some(1.43),
            ..FACTS
        };
        let (decode, s) = (RateLimit::Stage("decode"), shares(DECODES));
        let faster = |p: &CpuCount| decode.faster(&facts, &s, p).unwrap();
        assert_eq!(
            faster(&cores(1.9, 2)),
            "--decode scaled: about 1.4 times the images/s; levels differ from those of a full \
             decode"
        );
        // More workers change no pixel.
        assert_eq!(faster(&cores(1.9, 8)), "--num-workers 8");
        let resize = RateLimit::Stage("resize").faster(&facts, &s, &cores(1.9, 2));
        assert_eq!(resize.as_deref(), Some(&*faster(&cores(1.9, 2))));
        let write = RateLimit::Stage("write").faster(&facts, &s, &cores(1.9, 2));
        assert_eq!(
            write,
            RateLimit::Stage("write").faster(&FACTS, &s, &cores(1.9, 2))
        );
    }

    #[test]
    fn a_gpu_that_could_decode_is_named_and_one_that_limits_too() {
        let s = shares(&[("decode", 82.0)]);
        let two = cores(1.9, 2);
        let with = |gpu_decoding| RunFacts {
            gpu_decoding,
            ..FACTS
        };
        let decode = RateLimit::Stage("decode");
        let unused = with(GpuDecoding::Unused);
        let faster = decode.faster(&unused, &s, &two).unwrap();
        assert!(faster.starts_with("--decode-on auto: "), "{faster}");
        // The remaining decoding would be faster with smaller files, but not with raw images.
        let used = with(GpuDecoding::Used);
        let faster = decode.faster(&used, &s, &two).unwrap();
        assert!(faster.contains("--encode jpeg:90"), "{faster}");
        let small = RunFacts {
            file_bytes: 20_000.0,
            ..used
        };
        assert_eq!(decode.faster(&small, &s, &two), None);

        let busy = StageShares {
            gpu_decoder: 92.0,
            ..s
        };
        assert_eq!(RateLimit::of(&busy, &two, 2), decode);
        let busy = StageShares { idle: 46.0, ..busy };
        let limit = RateLimit::of(&busy, &two, 2);
        assert_eq!(limit, RateLimit::GpuDecoder);
        let text = limit.text(&busy, &two, 2);
        assert_eq!(
            text,
            "the GPU decoder: busy 92% of the time, and workers waited 46% of theirs"
        );
        assert_eq!(limit.faster(&small, &busy, &two), None);
    }

    #[test]
    fn what_would_be_faster_follows_from_what_limits() {
        let facts = FACTS;
        let (decode, s) = (RateLimit::Stage("decode"), shares(DECODES));
        let two = cores(1.9, 2);
        assert_eq!(
            decode.faster(&facts, &s, &two).unwrap(),
            "cache build SRC DST --encode jpeg:90 --resize shorter:256"
        );
        assert_eq!(
            decode.faster(&facts, &s, &cores(1.9, 8)).unwrap(),
            "--num-workers 8"
        );
        // Already made smaller, and wide.
        let wide = RunFacts {
            file_bytes: 45_000.0,
            ..facts
        };
        assert_eq!(
            decode.faster(&wide, &s, &two).unwrap(),
            "cache build SRC DST --encode raw --resize shorter:256"
        );
        // More workers do not help if other programs use the CPUs.
        let disturbed = RateLimit::OtherWork.faster(&facts, &s, &cores(0.4, 8));
        assert!(disturbed.unwrap().contains("--encode jpeg:90"));
        let small = RunFacts {
            file_bytes: 20_000.0,
            side: None,
            ..wide
        };
        assert_eq!(
            decode.faster(&small, &s, &two).unwrap(),
            "cache build SRC DST --encode raw"
        );
        let raw = RunFacts {
            is_raw: true,
            ..small
        };
        assert_eq!(RateLimit::Stage("resize").faster(&raw, &s, &two), None);
        assert_eq!(
            RateLimit::SlowRows.faster(&raw, &s, &two).unwrap(),
            "--depth 5"
        );
    }
}
