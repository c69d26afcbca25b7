//! Asks the stores of a list of addresses for the size and the fingerprint of each object, which a
//! listing would give.
//!
//! Runs in the fetcher. Each different address is asked once. Answers are kept in a file of their
//! folder (`answers_file`), so another run, or one after a kill, asks only what has no answer. All
//! ranks of a machine share the file. One of them asks, and the others wait.
//!
//! | answer | what it becomes |
//! |---|---|
//! | size and fingerprint | an object of a pack |
//! | no such object, no access, too large, no length, no valid address | a dead address |
//! | the host asks for fewer requests | asked again at its pace |
//! | none: no name, no connection, errors of the server | asked again after all others; then silent |
//!
//! A silent address has no object in this run, and the next run asks for it again. If no address gives
//! an answer any more, nothing is recorded: the network of this machine is at fault, and the run ends.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStoreExt};
use serde::Serialize;

use crate::data::index::{DistinctAddresses, Index, without_query};
use crate::error::{Error, size};
use crate::remote::fetch::answers_file::{self, AddressAnswer, KeptAnswers};
use crate::remote::fetch::ask_schedule::{AskEnd, AskSchedule, AskStep, LostAddress};
use crate::remote::fetch::download::fingerprint_of;
use crate::remote::fetch::folder::FetchFolder;
use crate::remote::fetch::heartbeat::{self, LeaderLock, LeaderWatch, dead_leader_error};
use crate::remote::fetch::lease::{self, Lease};
use crate::remote::fetch::listing::MOST_IMAGE;
use crate::remote::fetch::object_pack::PackedObject;
use crate::remote::fetch::options::FetchOptions;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::address_stores::{
    self, AddressStores, LocatedObject, NotLocated, host, is_file,
};
use crate::remote::store::client::{Store, StoreFailure};
use crate::remote::store::ranges;

/// How long an address or a host may give no answer, in the first and in the second pass.
const PASSES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

/// Interval of progress messages, of the heartbeat, and of looks at another rank that asks.
const PROGRESS: Duration = Duration::from_secs(5);
const BEAT: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(100);

/// Open files that are enough for all connections.
const MOST_FILES: u64 = 16 << 10;

/// The dead addresses with their reasons, for people.
const DEAD: &str = "dead.jsonl";

/// Longest fingerprint, which is kept for each address.
const MOST_STATE: usize = 1024;

/// Dead addresses that an error names.
const NAMED: usize = 3;

/// Hosts that are asked to tell whether the network works.
const PROBES: usize = 4;

/// Requests without an answer, one after the other, after which they are asked.
const SILENT: u32 = 3;

/// Progress of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskProgress {
    Asked {
        asked: u64,
        all: u64,
        dead: u64,
        /// Hosts that ask for fewer requests, and their addresses that wait.
        slow: (usize, usize),
    },
    /// These are left out, and asked again by the next run.
    Silent { silent: u64, all: u64 },
    /// Another process asks.
    Waits { seconds: u64 },
}

/// A dead address, in the file for people.
#[derive(Debug, Serialize)]
struct DeadLine<'a> {
    /// The first sample that has it.
    sample: u64,
    address: &'a str,
    reason: &'a str,
}

/// Why an address has no object.
enum NoObject {
    /// Its server says so.
    Dead(String),
    /// It is no address. Nobody was asked.
    Invalid(String),
    /// The store refuses all of its objects alike: credentials, a setting, the bucket, the region.
    Refused(HelperError),
    /// There was no answer, or one that may pass.
    Passing(AskEnd),
}

/// The objects at the addresses of a list.
#[derive(Debug)]
pub(super) struct AskedObjects {
    /// In the order of their first samples. Dead ones have their reason.
    pub(super) objects: Vec<PackedObject>,
    /// While a process has it, others of the list ask for no silent address again: all ranks have
    /// the same objects.
    pub(super) in_use: Lease,
}

/// The objects at the addresses of `listed`.
///
/// # Errors
/// A dead address, unless `stores` leave those out; no answer from any address, or not any more; a
/// folder that cannot be written; another process that asks and does not respond.
pub(super) async fn objects(
    listed: &Index,
    stores: &AddressStores,
    (dir, about): (&Path, &str),
    options: &FetchOptions,
    progress: &dyn Fn(AskProgress),
) -> Result<AskedObjects, HelperError> {
    let local = |e: Error| HelperError::new(about, e.to_string());
    let all = listed.distinct_addresses().map_err(local)?;
    let redirects = options.allow_redirects;
    let name = answers_file::folder_name(listed, &all, redirects);
    let folder = FetchFolder::make(dir, &name).map_err(local)?;
    allow_many_connections();
    let mut right = lead(&folder, options, about, progress).await?;
    let is_alone = lease::is_unused(folder.path());
    let in_use = lease::use_folder(folder.path()).map_err(local)?;
    // Without a heartbeat, others take this process for dead.
    let mut beat = || _ = right.write_beat();
    let kept = KeptAnswers::open(&folder, listed, &all, redirects, &mut beat);
    let mut kept = kept.map_err(|(path, e)| cannot_use(&path, &e))?;
    for answer in &mut kept.answers {
        // What is dead in another run may be mended now.
        answer.take_if(|answer| match answer {
            AddressAnswer::Dead { silent, .. } => !stores.leaves_out || *silent && is_alone,
            AddressAnswer::Object { .. } => false,
        });
    }
    let path = kept.path.clone();
    let failed = |e: io::Error| cannot_use(&path, &e);
    let dead = |answer: &&AddressAnswer| matches!(answer, AddressAnswer::Dead { .. });
    let mut asking = Asking {
        listed,
        all: &all,
        stores,
        dead: kept.answers.iter().flatten().filter(dead).count() as u64,
        kept,
        told: Instant::now(),
        right,
        answered: None,
        silent: 0,
        answering: Vec::new(),
        probed: Instant::now(),
        held: Vec::new(),
        outage: None,
        refused: None,
    };
    let asked = asking.ask_all(patience(), progress).await;
    // What has an answer stays, whatever comes now.
    asking.kept.flush().map_err(failed)?;
    asked.map_err(failed)?;
    if let Some(refused) = asking.refused {
        return Err(refused);
    }
    if asking.outage.is_none()
        && let Some(lost) = asking.held.first().cloned()
        && !asking.network_answers().await
    {
        asking.outage = Some(lost);
    }
    if let Some(lost) = asking.outage.take() {
        return Err(asking.outage_error(&lost));
    }
    for lost in std::mem::take(&mut asking.held) {
        asking.lose(lost).map_err(failed)?;
    }
    asking.kept.flush().map_err(failed)?;
    let answers = asking.kept.answers;
    let is_silent =
        |answer: &&AddressAnswer| matches!(answer, AddressAnswer::Dead { silent, .. } if *silent);
    let silent = answers.iter().flatten().filter(is_silent).count() as u64;
    if silent > 0 && stores.leaves_out {
        let all = answers.len() as u64;
        progress(AskProgress::Silent { silent, all });
    }
    let dead = dead_lines(listed, &all, &answers);
    let report = folder.file(DEAD);
    if dead.is_empty() {
        // Of an earlier run.
        let _ = fs::remove_file(&report);
    } else {
        let lines = dead
            .iter()
            .filter_map(|line| serde_json::to_string(line).ok());
        let text = lines.fold(String::new(), |text, line| text + &line + "\n");
        folder.put(DEAD, text.as_bytes()).map_err(local)?;
        if !stores.leaves_out {
            return Err(refusal(about, &dead, all.firsts.len(), &report));
        }
    }
    let mut objects = Vec::with_capacity(answers.len());
    for (number, answer) in answers.into_iter().enumerate() {
        let object = all.address(listed, number).to_owned();
        objects.push(match answer {
            Some(AddressAnswer::Object { bytes, state }) => PackedObject {
                object,
                bytes,
                state,
                dead: None,
                silent: false,
            },
            Some(AddressAnswer::Dead { why, silent }) => PackedObject::dead(object, why, silent),
            // Each has an answer or a reason by now.
            None => PackedObject::dead(object, "gave no answer".to_owned(), true),
        });
    }
    Ok(AskedObjects { objects, in_use })
}

#[cfg(not(feature = "internals"))]
pub(super) fn patience() -> [Duration; 2] {
    PASSES
}

/// Tests set the longer one by a variable.
#[cfg(feature = "internals")]
pub(super) fn patience() -> [Duration; 2] {
    let given = std::env::var("FEATHERLOAD_TEST_PATIENCE").ok();
    match given.and_then(|text| humantime::parse_duration(&text).ok()) {
        Some(longer) => [longer / 5, longer],
        None => PASSES,
    }
}

/// Raises the limit of open files of this process: connections to many hosts stay open for a moment,
/// and a host must not seem dead for want of a descriptor.
fn allow_many_connections() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < MOST_FILES.min(hard)
    {
        // Without it, fewer hosts are asked in time.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, MOST_FILES.min(hard), hard);
    }
}

fn cannot_use(path: &Path, e: &io::Error) -> HelperError {
    HelperError::of_path(path, format!("cannot be used: {e}"))
}

/// Waits until this process is the one that asks.
///
/// # Errors
/// The one that asks does not respond.
async fn lead(
    folder: &FetchFolder,
    options: &FetchOptions,
    about: &str,
    progress: &dyn Fn(AskProgress),
) -> Result<LeaderLock, HelperError> {
    let limit = options.leader_limit.unwrap_or(heartbeat::LIMIT);
    let mut watch = LeaderWatch::new(folder.leader(), limit);
    let (began, mut told) = (Instant::now(), Instant::now());
    loop {
        let right = folder.try_lead();
        if let Some(right) = right.map_err(|e| HelperError::new(about, e.to_string()))? {
            return Ok(right);
        }
        if let Some(leader) = watch.check_leader(LOOK, || true) {
            return Err(dead_leader_error(folder.path(), leader, limit));
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let seconds = began.elapsed().as_secs();
            progress(AskProgress::Waits { seconds });
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn dead_lines<'a>(
    listed: &'a Index,
    all: &'a DistinctAddresses,
    answers: &'a [Option<AddressAnswer>],
) -> Vec<DeadLine<'a>> {
    let dead = answers.iter().enumerate().filter_map(|(number, answer)| {
        let Some(AddressAnswer::Dead { why, .. }) = answer else {
            return None;
        };
        Some(DeadLine {
            sample: all.firsts[number],
            address: all.address(listed, number),
            reason: why,
        })
    });
    dead.collect()
}

fn refusal(about: &str, dead: &[DeadLine<'_>], all: usize, report: &Path) -> HelperError {
    let named = dead.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|line| format!("{} ({})", without_query(line.address), line.reason))
        .collect();
    let what = format!(
        "{} of {all} addresses have no image: {}{}. {} lists them. Mend them, or use `on_error` skip \
         to leave them out",
        dead.len(),
        named.join("; "),
        if dead.len() > NAMED { "; and more" } else { "" },
        report.display()
    );
    HelperError::new(about, what)
}

/// Requests for the addresses of a list.
struct Asking<'a> {
    listed: &'a Index,
    all: &'a DistinctAddresses,
    stores: &'a AddressStores,
    kept: KeptAnswers,
    told: Instant,
    right: LeaderLock,
    dead: u64,
    /// When an address on the network gave an answer last.
    answered: Option<Instant>,
    /// Requests without an answer since then.
    silent: u32,
    /// Addresses of different hosts that gave an answer, the last one first.
    answering: Vec<u32>,
    /// When they were last asked whether the network works.
    probed: Instant,
    /// Addresses without an answer, until one on the network gives one after them.
    held: Vec<LostAddress>,
    /// One without an answer, when none gives an answer any more. Ends the run.
    outage: Option<LostAddress>,
    /// Ends the run.
    refused: Option<HelperError>,
}

impl Asking<'_> {
    /// Asks the addresses without an answer.
    ///
    /// # Errors
    /// The file cannot be written.
    async fn ask_all(
        &mut self,
        patience: [Duration; 2],
        progress: &dyn Fn(AskProgress),
    ) -> io::Result<()> {
        let (listed, all, stores) = (self.listed, self.all, self.stores);
        let open = (0u32..).zip(&self.kept.answers);
        let open = open.filter(|(_, answer)| answer.is_none());
        let named = open.map(|(number, _)| {
            let address = all.address(listed, number as usize);
            (number, host(address), address_stores::folder(address))
        });
        let mut schedule = AskSchedule::new(named, patience);
        let mut running = futures_util::stream::FuturesUnordered::new();
        loop {
            let until = match schedule.next(Instant::now()) {
                AskStep::Ask { number, host } => {
                    let address = all.address(listed, number as usize);
                    let sent = Instant::now();
                    running.push(async move { (number, host, sent, ask(stores, address).await) });
                    continue;
                }
                AskStep::Wait(until) => until,
                AskStep::Done => return Ok(()),
            };
            self.right
                .write_beat()
                .map_err(|e| io::Error::other(e.to_string()))?;
            self.tell(&schedule, progress);
            let pause = until.map_or(BEAT, |until| until - Instant::now()).min(BEAT);
            let ended = match running.is_empty() {
                true => {
                    tokio::time::sleep(pause).await;
                    None
                }
                false => tokio::time::timeout(pause, running.next())
                    .await
                    .ok()
                    .flatten(),
            };
            if self.may_be_an_outage(patience[1]) && !self.network_answers().await {
                self.outage = self
                    .held
                    .first()
                    .cloned()
                    .or_else(|| schedule.a_silent_one());
                if self.outage.is_some() {
                    return Ok(());
                }
            }
            // Answers do not wait for the next ones.
            let Some((number, host, sent, found)) = ended else {
                self.kept.flush()?;
                continue;
            };
            let address = all.address(listed, number as usize);
            // Files of this machine say nothing about the network.
            let was_asked = matches!(found, Ok(_) | Err(NoObject::Dead(_))) && !is_file(address);
            if was_asked {
                self.record_answer(number);
            }
            let mut end = AskEnd::Answered;
            match found {
                Ok(answer) => self.keep(number, answer)?,
                Err(NoObject::Dead(why) | NoObject::Invalid(why)) => {
                    self.keep(number, AddressAnswer::Dead { why, silent: false })?;
                }
                Err(NoObject::Passing(passing)) => end = passing,
                Err(NoObject::Refused(error)) => {
                    self.refused = Some(error);
                    return Ok(());
                }
            }
            match end {
                AskEnd::Silent(_) => self.silent += 1,
                _ => self.silent = 0,
            }
            schedule.end(number, host, end, (sent, Instant::now()));
            if was_asked {
                self.release_held()?;
            }
            self.held.extend(schedule.take_lost());
        }
    }

    /// Records that the network gave an answer at this address.
    fn record_answer(&mut self, number: u32) {
        self.answered = Some(Instant::now());
        let at = |number: u32| host(self.all.address(self.listed, number as usize));
        let own = at(number);
        if self.answering.first().is_none_or(|first| at(*first) != own) {
            self.answering.retain(|other| at(*other) != own);
            self.answering.insert(0, number);
            self.answering.truncate(PROBES);
        }
    }

    /// Records the addresses that got no answer while the network works.
    fn release_held(&mut self) -> io::Result<()> {
        for lost in std::mem::take(&mut self.held) {
            self.lose(lost)?;
        }
        Ok(())
    }

    /// Whether the network has given answers, and gives none for a while.
    fn may_be_an_outage(&mut self, patience: Duration) -> bool {
        let is_quiet = |at: &Instant| at.elapsed() >= 2 * patience;
        let may_be = self.silent >= SILENT
            && self.answered.as_ref().is_some_and(is_quiet)
            && is_quiet(&self.probed);
        if may_be {
            self.probed = Instant::now();
        }
        may_be
    }

    fn tell(&mut self, schedule: &AskSchedule, progress: &dyn Fn(AskProgress)) {
        if self.told.elapsed() < PROGRESS {
            return;
        }
        self.told = Instant::now();
        progress(AskProgress::Asked {
            asked: self.kept.answers.iter().flatten().count() as u64,
            all: self.kept.answers.len() as u64,
            dead: self.dead,
            slow: schedule.slow(),
        });
    }

    /// Whether an address that gave an answer before, or in an earlier run, gives one now. Asks
    /// several hosts at a time.
    async fn network_answers(&mut self) -> bool {
        let at = |number: u32| self.all.address(self.listed, number as usize);
        let known = (0u32..).zip(&self.kept.answers);
        let known =
            known.filter(|(_, answer)| matches!(answer, Some(AddressAnswer::Object { .. })));
        let known = known.map(|(number, _)| number);
        let mut asked: Vec<&str> = Vec::new();
        for number in self.answering.iter().copied().chain(known) {
            let address = at(number);
            let is_new = asked.iter().all(|other| host(other) != host(address));
            if is_new && !is_file(address) {
                asked.push(address);
            }
            if asked.len() >= PROBES {
                break;
            }
        }
        let probes = asked
            .into_iter()
            .map(|address| answers_now(self.stores, address));
        let mut probes: futures_util::stream::FuturesUnordered<_> = probes.collect();
        loop {
            match tokio::time::timeout(BEAT, probes.next()).await {
                Ok(Some(true)) => {
                    self.answered = Some(Instant::now());
                    self.silent = 0;
                    return true;
                }
                Ok(Some(false)) => {}
                Ok(None) => return false,
                // Without it, others take this process for dead.
                Err(_) => _ = self.right.write_beat(),
            }
        }
    }

    /// The error for a network that gives no answer. What has an answer keeps it.
    fn outage_error(&self, lost: &LostAddress) -> HelperError {
        let all = self.kept.answers.len();
        let known = self.kept.answers.iter().flatten().count();
        let LostAddress { number, why } = lost;
        let what = match known {
            0 => format!("none of {all} addresses gives an answer: {why}"),
            _ => format!(
                "no address gives an answer any more. {known} of {all} have one, which is kept. Check \
                 the network and start the run again, which asks for the other {}: {why}",
                all - known
            ),
        };
        let about = without_query(self.all.address(self.listed, *number as usize));
        HelperError::new(about, what).that_may_pass()
    }

    fn keep(&mut self, number: u32, answer: AddressAnswer) -> io::Result<()> {
        let answer = match answer {
            AddressAnswer::Dead { why, silent } => {
                self.dead += 1;
                let why = without_times(&why);
                AddressAnswer::Dead { why, silent }
            }
            answer => answer,
        };
        let address = self.all.address(self.listed, number as usize);
        self.kept.keep(number, address, answer)
    }

    /// Records an address without an answer.
    fn lose(&mut self, lost: LostAddress) -> io::Result<()> {
        let LostAddress { number, why } = lost;
        let dead = AddressAnswer::Dead { why, silent: true };
        match self.stores.leaves_out {
            true => self.keep(number, dead),
            // This run ends. The next one asks again.
            false => {
                self.dead += 1;
                self.kept.answers[number as usize] = Some(dead);
                Ok(())
            }
        }
    }
}

/// Whether the host of an address gives any answer.
pub(super) async fn answers_now(stores: &AddressStores, address: &str) -> bool {
    !matches!(
        ask(stores, address).await,
        Err(NoObject::Passing(AskEnd::Silent(_)))
    )
}

/// The reason of an error without how long its requests took, so that all runs have one text.
pub(super) fn without_times(why: &str) -> String {
    let mut parts = why.split("Error performing ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        // The time is the last thing before the dash.
        let times = part.find(" - ").and_then(|end| {
            let begin = part[..end].rfind(" in ")?;
            Some((begin, end))
        });
        let part = match times {
            Some((begin, end)) => format!("{}{}", &part[..begin], &part[end..]),
            None => part.to_owned(),
        };
        format!("{text}Error performing {part}")
    })
}

/// Size and fingerprint of the object at an address. One try.
async fn ask(stores: &AddressStores, address: &str) -> Result<AddressAnswer, NoObject> {
    let object = stores.locate(address).map_err(|why| match why {
        NotLocated::Address(e) => NoObject::Invalid(e.what),
        NotLocated::Store(e) => NoObject::Refused(e),
    })?;
    let meta = header(&object).await?;
    if meta.size > MOST_IMAGE {
        return Err(NoObject::Dead(format!(
            "has {}, and an image has at most {}",
            size(meta.size),
            size(MOST_IMAGE)
        )));
    }
    let state = fingerprint_of(&meta);
    match state.len() > MOST_STATE {
        true => Err(NoObject::Dead(format!(
            "has an ETag of {} bytes, and at most {MOST_STATE} are kept",
            state.len()
        ))),
        false => Ok(AddressAnswer::Object {
            bytes: meta.size,
            state,
        }),
    }
}

/// By `HEAD`; else by `GET` of the first byte; else by `GET`, whose body is not read.
async fn header(object: &LocatedObject) -> Result<ObjectMeta, NoObject> {
    let LocatedObject { store, path, name } = object;
    let mut error = match store.objects.head(path).await {
        Ok(meta) => return Ok(meta),
        Err(error) => error,
    };
    let first_byte = GetOptions {
        range: Some(GetRange::Bounded(0..1)),
        ..GetOptions::default()
    };
    for options in [first_byte, GetOptions::default()] {
        if matches!(store.failure(name, &error), StoreFailure::Slowed(_))
            || !store.may_serve_all_the_same(&error) && !ranges::is_no_range(&error)
        {
            break;
        }
        match store.objects.get_opts(path, options).await {
            Ok(got) if ranges::has_length_of_object(&got.extensions) => return Ok(got.meta),
            // The whole object has a length, or the error stays.
            Ok(_) => {}
            Err(e) => error = e,
        }
    }
    Err(match store.failure(name, &error) {
        StoreFailure::Permanent(refused) if store.refuses_all_objects(&error) => {
            NoObject::Refused(refused)
        }
        StoreFailure::Permanent(refused) => NoObject::Dead(refused.what),
        StoreFailure::Slowed(slow) if slow.is_over() => {
            NoObject::Passing(AskEnd::TooSlow(slow.to_string()))
        }
        StoreFailure::Slowed(slow) => NoObject::Passing(AskEnd::Slowed(slow.wait)),
        StoreFailure::Transient(why) if Store::is_answer(&error) => {
            NoObject::Passing(AskEnd::Failed(without_times(&why)))
        }
        StoreFailure::Transient(why) => NoObject::Passing(AskEnd::Silent(without_times(&why))),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::data::index::{ItemLabel, ItemList};

    #[test]
    fn reasons_have_no_times() {
        for (why, want) in [
            ("does not exist", "does not exist"),
            (
                "denied (Error performing GET https://h/in a in 3.1ms, after 3 retries, \
                 max_retries: 3, retry_timeout: 2s  - 403 in all): check it",
                "denied (Error performing GET https://h/in a - 403 in all): check it",
            ),
            (
                "Error performing HEAD the address in 12.5µs - timed out in 3 s",
                "Error performing HEAD the address - timed out in 3 s",
            ),
        ] {
            assert_eq!(without_times(why), want);
        }
    }

    fn listed(addresses: &[String]) -> Index {
        let mut items = ItemList::new();
        for address in addresses {
            items.push(address, ItemLabel::None).unwrap();
        }
        Index::items(items).unwrap()
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn answers_are_kept_and_dead_addresses_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("file://{}", dir.path().join(name).display());
        std::fs::write(dir.path().join("a.jpg"), "12345").unwrap();
        std::fs::write(dir.path().join("b c.jpg"), "123").unwrap();
        let all = [at("a.jpg"), at("gone.jpg"), at("b%20c.jpg"), at("a.jpg")];
        let index = listed(&all);
        let kept = dir.path().join("kept");
        let ask = |leaves_out: bool| {
            let stores = AddressStores::new(false, leaves_out, None);
            let options = FetchOptions::default();
            let found = block_on(objects(&index, &stores, (&kept, "list"), &options, &|_| {}));
            found.map(|found| found.objects)
        };
        let e = ask(false).unwrap_err();
        assert!(
            e.what.contains("1 of 3 addresses have no image"),
            "{}",
            e.what
        );
        assert!(e.what.contains("gone.jpg"), "{}", e.what);
        let found = ask(true).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].bytes, found[2].bytes), (5, 3));
        assert!(found[1].dead.is_some() && found[0].dead.is_none());
        // The file, not the store, answers now. A line that a kill cut off has no effect.
        let folder = std::fs::read_dir(&kept)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let report = std::fs::read_to_string(folder.join(DEAD)).unwrap();
        assert!(
            report.contains("\"sample\":1") && report.contains("gone.jpg"),
            "{report}"
        );
        std::fs::remove_file(dir.path().join("a.jpg")).unwrap();
        let answers = answers_file::answers_file(&kept, &index, false).unwrap();
        let mut file = fs::File::options().append(true).open(&answers).unwrap();
        file.write_all(b"{\"of\":0,\"dea").unwrap();
        assert_eq!(ask(true).unwrap(), found);
        // A mended address is found by a run that refuses dead ones.
        std::fs::write(dir.path().join("gone.jpg"), "1").unwrap();
        let again = ask(false).unwrap();
        assert_eq!(again[1].bytes, 1);
        // One that changed is asked again.
        std::fs::write(dir.path().join("b c.jpg"), "1234").unwrap();
        answers_file::record_change(&answers, &all[2], None);
        assert_eq!(ask(true).unwrap()[2].bytes, 4);
        answers_file::record_change(&answers, &all[2], Some((7, "state")));
        assert_eq!(ask(true).unwrap()[2].bytes, 7);
    }

    #[test]
    fn another_list_asks_only_for_its_own_addresses() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("file://{}", dir.path().join(name).display());
        let kept = dir.path().join("kept");
        let ask = |addresses: &[String]| {
            let stores = AddressStores::new(false, true, None);
            let index = listed(addresses);
            let options = FetchOptions::default();
            let found = block_on(objects(&index, &stores, (&kept, "list"), &options, &|_| {}));
            found.map(|found| found.objects)
        };
        fs::write(dir.path().join("a.jpg"), "1").unwrap();
        fs::write(dir.path().join("b.jpg"), "22").unwrap();
        let first = ask(&[at("a.jpg"), at("b.jpg"), at("gone.jpg")]).unwrap();
        assert!(first[2].dead.is_some());
        // The answers of the first list hold, though the objects are not there any more.
        fs::remove_file(dir.path().join("a.jpg")).unwrap();
        fs::remove_file(dir.path().join("b.jpg")).unwrap();
        fs::write(dir.path().join("gone.jpg"), "here").unwrap();
        fs::write(dir.path().join("c.jpg"), "333").unwrap();
        let grown = [at("c.jpg"), at("gone.jpg"), at("b.jpg"), at("a.jpg")];
        let found = ask(&grown).unwrap();
        let bytes = [found[0].bytes, found[2].bytes, found[3].bytes];
        assert_eq!(bytes, [3, 2, 1]);
        assert_eq!(found[1].dead, first[2].dead);
        // Each list takes over one answer for each address, however many lists there were.
        for count in 0..6 {
            let name = format!("more{count}.jpg");
            fs::write(dir.path().join(&name), "4444").unwrap();
            let longer: Vec<String> = (0..=count).map(|n| at(&format!("more{n}.jpg"))).collect();
            let list = [&grown[..], &longer].concat();
            ask(&list).unwrap();
            let file = answers_file::answers_file(&kept, &listed(&list), false).unwrap();
            let lines = fs::read_to_string(file).unwrap().lines().count();
            assert!(
                lines <= list.len() + 1,
                "{lines} lines of {} addresses",
                list.len()
            );
        }
    }

    #[test]
    fn one_that_waits_says_so_and_ends_with_one_that_does_not_respond() {
        let dir = tempfile::tempdir().unwrap();
        let folder = FetchFolder::make(dir.path(), "addresses-1").unwrap();
        let _right = folder.try_lead().unwrap().unwrap();
        let options = FetchOptions {
            leader_limit: Some(Duration::from_secs(1)),
            ..FetchOptions::default()
        };
        let waited = block_on(lead(&folder, &options, "list", &|_| {}));
        let e = waited.err().unwrap();
        assert!(e.what.contains("has not responded for 1 s"), "{}", e.what);
    }
}
