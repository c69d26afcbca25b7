//! Asks the stores of a list of addresses for the size and the fingerprint of each object, which a
//! listing would give.
//!
//! Runs in the fetcher. Each different address is asked once. Answers are kept in a file of their
//! folder, so another run, or one after a kill, asks only what has no answer. All ranks of a machine
//! share the file. One of them asks, and the others wait.
//!
//! | answer | what it becomes |
//! |---|---|
//! | size and fingerprint | an object of a pack |
//! | no such object, no access, too large, no length, no valid address | a dead address |
//! | none: no name, no connection, errors of the server | asked again after all others; then dead |
//!
//! If no address at all has an answer, nothing is recorded: the network of this machine is at fault.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use object_store::{GetOptions, ObjectMeta, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128::Hasher;

use crate::data::index::{DistinctAddresses, Index, without_query};
use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, size};
use crate::remote::fetch::download::fingerprint_of;
use crate::remote::fetch::folder::FetchFolder;
use crate::remote::fetch::listing::MOST_IMAGE;
use crate::remote::fetch::object_pack::PackedObject;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::address_stores::{AddressStores, LocatedObject, NotLocated};
use crate::remote::store::client::StoreFailure;
use crate::remote::store::retry_policy::RetryPolicy;

/// Parallel requests.
const REQUESTS: usize = 64;

/// How long an address may give no answer, in the first and in the second pass.
const PASSES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

/// Addresses of a host that gave no answer, after which the others of the host are tried once in
/// the first pass.
const SILENT: u32 = 3;

/// Interval of progress messages, and longest time until an answer is in the file.
const PROGRESS: Duration = Duration::from_secs(5);
const KEPT: Duration = Duration::from_secs(1);

const ANSWERS: &str = "answers.jsonl";
/// The dead addresses with their reasons, for people.
const DEAD: &str = "dead.jsonl";
const FOLDER_BEGIN: &str = "addresses-";

/// Longest fingerprint, which is kept for each address.
const MOST_STATE: usize = 1024;

/// Dead addresses that an error names.
const NAMED: usize = 3;

/// Progress of the requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AskProgress {
    pub(super) asked: u64,
    pub(super) all: u64,
    pub(super) dead: u64,
}

/// A line of the file of answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum AnswerLine {
    Object {
        number: u32,
        bytes: u64,
        state: String,
    },
    Dead {
        number: u32,
        dead: String,
    },
    /// The object at this address has changed since it was asked.
    Changed {
        changed: String,
    },
}

/// What is known about an address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Object { bytes: u64, state: String },
    Dead(String),
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
    /// There was no answer.
    Silent(String),
}

/// The objects at the addresses of `listed`, in the order of their first samples. Dead ones have
/// their reason.
///
/// # Errors
/// A dead address, unless `stores` leave those out; no answer from any address; a folder that
/// cannot be written.
pub(super) async fn objects(
    listed: &Index,
    stores: &AddressStores,
    (dir, about): (&Path, &str),
    allow_redirects: bool,
    progress: &dyn Fn(AskProgress),
) -> Result<Vec<PackedObject>, HelperError> {
    let local = |e: Error| HelperError::new(about, e.to_string());
    let all = listed.distinct_addresses().map_err(local)?;
    let name = folder_name(listed, &all, allow_redirects);
    let folder = FetchFolder::make(dir, &name).map_err(local)?;
    let _right = loop {
        match folder.try_lead().map_err(local)? {
            Some(right) => break right,
            // Another rank asks.
            None => tokio::time::sleep(KEPT / 10).await,
        }
    };
    let path = folder.file(ANSWERS);
    let failed = |e: io::Error| HelperError::of_path(&path, format!("cannot be used: {e}"));
    let (mut answers, file) = read_answers(&path, listed, &all).map_err(failed)?;
    if !stores.leaves_out {
        // What is dead in another run may be mended now.
        for answer in &mut answers {
            answer.take_if(|answer| matches!(answer, Answer::Dead(_)));
        }
    }
    let mut asking = Asking {
        listed,
        all: &all,
        stores,
        answers,
        file: BufWriter::new(file),
        kept: Instant::now(),
        told: Instant::now(),
        hosts: HashMap::new(),
        dead: 0,
        answered: false,
        refused: None,
    };
    let mut silent = asking.pass(None, progress).await.map_err(failed)?;
    if !silent.is_empty() && asking.refused.is_none() {
        let again = silent.iter().map(|(number, _)| *number).collect();
        silent = asking.pass(Some(again), progress).await.map_err(failed)?;
    }
    if let Some(refused) = asking.refused {
        return Err(refused);
    }
    if let Some((number, why)) = silent.first()
        && !asking.answered
        && !asking.a_known_address_answers().await
    {
        let number = *number;
        let first = without_query(all.address(listed, number as usize));
        let what = format!(
            "none of {} addresses gives an answer: {why}",
            all.firsts.len()
        );
        return Err(HelperError::new(first, what).that_may_pass());
    }
    for (number, why) in silent {
        match stores.leaves_out {
            true => asking.keep(number, Answer::Dead(why)).map_err(failed)?,
            // This run ends. The next one asks again.
            false => asking.answers[number as usize] = Some(Answer::Dead(why)),
        }
    }
    asking.file.flush().map_err(failed)?;
    let answers = asking.answers;
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
            Some(Answer::Object { bytes, state }) => PackedObject {
                object,
                bytes,
                state,
                dead: None,
            },
            Some(Answer::Dead(why)) => PackedObject::dead(object, why),
            // Every pass ends with an answer or a reason for each.
            None => PackedObject::dead(object, "gave no answer".to_owned()),
        });
    }
    Ok(objects)
}

/// The file of the answers. `None` for a list that has too many addresses.
pub(super) fn answers_file(dir: &Path, listed: &Index, allow_redirects: bool) -> Option<PathBuf> {
    let all = listed.distinct_addresses().ok()?;
    let folder = dir.join(folder_name(listed, &all, allow_redirects));
    Some(folder.join(ANSWERS))
}

/// Records that the object at an address has changed, so that the next run asks again.
pub(super) fn forget(answers: &Path, address: &str) {
    let line = AnswerLine::Changed {
        changed: address.to_owned(),
    };
    // Without it, the error stays until the folder is removed.
    if let (Ok(mut file), Ok(line)) = (
        File::options().append(true).open(answers),
        serde_json::to_string(&line),
    ) {
        let _ = file.write_all((line + "\n").as_bytes());
    }
}

/// The folder of the answers. Other rules for redirects give other answers.
fn folder_name(listed: &Index, all: &DistinctAddresses, allow_redirects: bool) -> String {
    let mut hasher = Hasher::new();
    hasher.write(&[u8::from(allow_redirects)]);
    for number in 0..all.firsts.len() {
        hasher.write(all.address(listed, number).as_bytes());
        hasher.write(b"\n");
    }
    format!("{FOLDER_BEGIN}{}", HexHash128(hasher.finish_128()))
}

/// The answers that are kept. A kill may have cut off the last line, which is removed.
fn read_answers(
    path: &Path,
    listed: &Index,
    all: &DistinctAddresses,
) -> io::Result<(Vec<Option<Answer>>, File)> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let mut answers = vec![None; all.firsts.len()];
    let (mut whole, mut line) = (0, Vec::new());
    let mut reader = BufReader::new(&file);
    let mut numbers: Option<HashMap<&str, usize>> = None;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        whole += read as u64;
        let damaged = || io::Error::other("it is damaged: remove it");
        let line: AnswerLine = serde_json::from_slice(&line).map_err(|_| damaged())?;
        let (number, answer) = match line {
            AnswerLine::Object {
                number,
                bytes,
                state,
            } => (number as usize, Some(Answer::Object { bytes, state })),
            AnswerLine::Dead { number, dead } => (number as usize, Some(Answer::Dead(dead))),
            AnswerLine::Changed { changed } => {
                let numbers = numbers.get_or_insert_with(|| {
                    let every = 0..all.firsts.len();
                    every
                        .map(|number| (all.address(listed, number), number))
                        .collect()
                });
                (numbers.get(&*changed).copied().ok_or_else(damaged)?, None)
            }
        };
        *answers.get_mut(number).ok_or_else(damaged)? = answer;
    }
    drop(reader);
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    Ok((answers, file))
}

fn dead_lines<'a>(
    listed: &'a Index,
    all: &'a DistinctAddresses,
    answers: &'a [Option<Answer>],
) -> Vec<DeadLine<'a>> {
    let dead = answers.iter().enumerate().filter_map(|(number, answer)| {
        let Some(Answer::Dead(reason)) = answer else {
            return None;
        };
        Some(DeadLine {
            sample: all.firsts[number],
            address: all.address(listed, number),
            reason,
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
    answers: Vec<Option<Answer>>,
    file: BufWriter<File>,
    kept: Instant,
    told: Instant,
    /// Addresses of each host that gave no answer. 0 after one that did.
    hosts: HashMap<String, u32>,
    dead: u64,
    /// Whether an address on the network gave an answer in this run.
    answered: bool,
    /// Ends the run.
    refused: Option<HelperError>,
}

impl Asking<'_> {
    /// Asks the addresses without an answer, or only those of these numbers. Returns those that
    /// gave none, and why.
    ///
    /// # Errors
    /// The file cannot be written.
    async fn pass(
        &mut self,
        only: Option<Vec<u32>>,
        progress: &dyn Fn(AskProgress),
    ) -> io::Result<Vec<(u32, String)>> {
        let patience = PASSES[usize::from(only.is_some())];
        let is_first = only.is_none();
        let wanted: Vec<u32> = match only {
            Some(numbers) => numbers,
            None => (0u32..)
                .zip(&self.answers)
                .filter_map(|(number, answer)| answer.is_none().then_some(number))
                .collect(),
        };
        let (listed, all, stores) = (self.listed, self.all, self.stores);
        let mut next = wanted.into_iter();
        let mut running = futures_util::stream::FuturesUnordered::new();
        let mut silent = Vec::new();
        loop {
            while running.len() < REQUESTS
                && let Some(number) = next.next()
            {
                let address = all.address(listed, number as usize);
                let known = self.hosts.get(host(address)).copied().unwrap_or(0);
                let patience = match is_first && known >= SILENT {
                    true => Duration::ZERO,
                    false => patience,
                };
                running.push(async move { (number, ask(stores, address, patience).await) });
            }
            let Some((number, found)) = running.next().await else {
                break;
            };
            let host = host(all.address(listed, number as usize));
            let is_silent = matches!(found, Err(NoObject::Silent(_)));
            match self.hosts.get_mut(host) {
                Some(count) if is_silent => *count += 1,
                Some(count) => *count = 0,
                None if is_silent => _ = self.hosts.insert(host.to_owned(), 1),
                None => {}
            }
            // Files of this machine say nothing about the network.
            let was_asked = matches!(found, Ok(_) | Err(NoObject::Dead(_)));
            self.answered |= was_asked && !host.starts_with("file:");
            match found {
                Ok(answer) => self.keep(number, answer)?,
                Err(NoObject::Dead(why)) => self.keep(number, Answer::Dead(why))?,
                Err(NoObject::Invalid(why)) => self.keep(number, Answer::Dead(why))?,
                Err(NoObject::Silent(why)) => silent.push((number, why)),
                Err(NoObject::Refused(error)) => {
                    self.refused = Some(error);
                    break;
                }
            }
            if self.told.elapsed() >= PROGRESS {
                self.told = Instant::now();
                let asked = self.answers.iter().flatten().count() as u64;
                progress(AskProgress {
                    asked,
                    all: self.answers.len() as u64,
                    dead: self.dead,
                });
            }
        }
        self.file.flush()?;
        silent.sort_unstable();
        Ok(silent)
    }

    /// Whether an address that gave an answer in an earlier run gives one now.
    async fn a_known_address_answers(&self) -> bool {
        let known = self.answers.iter().zip(0..).find_map(|(answer, number)| {
            let address = self.all.address(self.listed, number);
            let is_known = matches!(answer, Some(Answer::Object { .. }));
            (is_known && !address.starts_with("file:")).then_some(address)
        });
        match known {
            Some(address) => {
                let found = ask(self.stores, address, PASSES[1]).await;
                !matches!(found, Err(NoObject::Silent(_)))
            }
            None => false,
        }
    }

    fn keep(&mut self, number: u32, answer: Answer) -> io::Result<()> {
        let answer = match answer {
            Answer::Dead(why) => Answer::Dead(without_times(&why)),
            answer => answer,
        };
        let line = match &answer {
            Answer::Object { bytes, state } => AnswerLine::Object {
                number,
                bytes: *bytes,
                state: state.clone(),
            },
            Answer::Dead(why) => {
                self.dead += 1;
                AnswerLine::Dead {
                    number,
                    dead: why.clone(),
                }
            }
        };
        serde_json::to_writer(&mut self.file, &line)?;
        self.file.write_all(b"\n")?;
        if self.kept.elapsed() >= KEPT {
            self.kept = Instant::now();
            self.file.flush()?;
        }
        if let Some(place) = self.answers.get_mut(number as usize) {
            *place = Some(answer);
        }
        Ok(())
    }
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

/// Whether requests for an address carry no credentials, and each object has its own answer.
pub(super) fn is_web(address: &str) -> bool {
    let scheme = address.split("://").next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Scheme and host, or bucket, of an address.
fn host(address: &str) -> &str {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let end = address[begin..]
        .find('/')
        .map_or(address.len(), |at| begin + at);
    &address[..end]
}

/// Size and fingerprint of the object at an address.
async fn ask(
    stores: &AddressStores,
    address: &str,
    patience: Duration,
) -> Result<Answer, NoObject> {
    let object = stores.locate(address).map_err(|why| match why {
        NotLocated::Address(e) => NoObject::Invalid(e.what),
        NotLocated::Store(e) => NoObject::Refused(e),
    })?;
    let meta = header(&object, patience).await?;
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
        false => Ok(Answer::Object {
            bytes: meta.size,
            state,
        }),
    }
}

async fn header(object: &LocatedObject, patience: Duration) -> Result<ObjectMeta, NoObject> {
    let LocatedObject { store, path, name } = object;
    let mut retries = RetryPolicy::new(store.address_of(name), patience);
    let mut by_get = false;
    loop {
        let found = match by_get {
            false => store.objects.head(path).await,
            // The body is not read.
            true => {
                let got = store.objects.get_opts(path, GetOptions::default()).await;
                got.map(|got| got.meta)
            }
        };
        let error = match found {
            Ok(meta) => return Ok(meta),
            Err(error) => error,
        };
        let failure = store.failure(name, &error);
        if let StoreFailure::Permanent(refused) = failure {
            if store.refuses_all_objects(&error) {
                return Err(NoObject::Refused(refused));
            }
            if by_get || !store.may_serve_all_the_same(&error) {
                return Err(NoObject::Dead(refused.what));
            }
            by_get = true;
            continue;
        }
        if let Err(e) = retries.after(failure).await {
            return Err(NoObject::Silent(e.what));
        }
    }
}

#[cfg(test)]
mod tests {
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
            block_on(objects(&index, &stores, (&kept, "list"), false, &|_| {}))
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
        let mut file = File::options()
            .append(true)
            .open(folder.join(ANSWERS))
            .unwrap();
        file.write_all(b"{\"number\":0,\"dea").unwrap();
        assert_eq!(ask(true).unwrap(), found);
        // A mended address is found by a run that refuses dead ones.
        std::fs::write(dir.path().join("gone.jpg"), "1").unwrap();
        let again = ask(false).unwrap();
        assert_eq!(again[1].bytes, 1);
        // One that changed is asked again.
        std::fs::write(dir.path().join("b c.jpg"), "1234").unwrap();
        forget(&answers_file(&kept, &index, false).unwrap(), &all[2]);
        assert_eq!(ask(true).unwrap()[2].bytes, 4);
    }

    #[test]
    fn an_address_is_of_a_host() {
        assert_eq!(host("https://h:1/a/b"), "https://h:1");
        assert_eq!(host("s3://b"), "s3://b");
    }
}
