//! The file of what the stores have answered about the addresses of a list.
//!
//! Runs in the fetcher. Lines are of addresses, not of rows, so another list that has an address
//! takes its answer. Several processes write: one asks, and others record objects that have changed.
//! Each appends whole lines under a lock on the file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128::Hasher;

use crate::data::index::{DistinctAddresses, Index};
use crate::data::shard::manifest::HexHash128;
use crate::remote::fetch::folder::FetchFolder;

const ANSWERS: &str = "answers.jsonl";

/// Longest time until an answer is in the file.
const KEPT: Duration = Duration::from_millis(200);

/// Folders of other lists whose answers are read, the newest first.
const MOST_OTHERS: usize = 32;

/// Longest line: a fingerprint or a reason, with its escapes.
const MOST_LINE: u64 = 64 << 10;

/// Lines between two heartbeats.
const BEAT: u64 = 4096;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum AnswerLine {
    Object {
        of: HexHash128,
        bytes: u64,
        state: String,
    },
    Dead {
        of: HexHash128,
        dead: String,
        /// Its host gave no answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    },
    /// The object at this address has changed since it was asked.
    Changed { of: HexHash128, changed: bool },
}

impl AnswerLine {
    fn of(&self) -> HexHash128 {
        match self {
            Self::Object { of, .. } | Self::Dead { of, .. } | Self::Changed { of, .. } => *of,
        }
    }

    fn into_answer(self) -> Option<AddressAnswer> {
        match self {
            Self::Object { bytes, state, .. } => Some(AddressAnswer::Object { bytes, state }),
            Self::Dead { dead, silent, .. } => Some(AddressAnswer::Dead { why: dead, silent }),
            Self::Changed { .. } => None,
        }
    }
}

/// What is known about an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AddressAnswer {
    Object { bytes: u64, state: String },
    Dead { why: String, silent: bool },
}

/// What names an address in the file.
fn key(address: &str) -> HexHash128 {
    HexHash128::of(address.as_bytes())
}

/// The numbers of addresses by their keys.
struct AddressNumbers(Vec<(u128, u32)>);

impl AddressNumbers {
    fn new(listed: &Index, all: &DistinctAddresses) -> Self {
        let numbers = 0..all.firsts.len();
        let mut keys: Vec<(u128, u32)> = numbers
            .map(|number| (key(all.address(listed, number)).0, number as u32))
            .collect();
        keys.sort_unstable();
        Self(keys)
    }

    fn get(&self, of: HexHash128) -> Option<u32> {
        let found = self.0.binary_search_by_key(&of.0, |(key, _)| *key);
        found.ok().map(|at| self.0[at].1)
    }
}

/// The folder of the answers of a list.
pub(super) fn folder_name(
    listed: &Index,
    all: &DistinctAddresses,
    allow_redirects: bool,
) -> String {
    let mut hasher = Hasher::new();
    for number in 0..all.firsts.len() {
        hasher.write(all.address(listed, number).as_bytes());
        hasher.write(b"\n");
    }
    let hash = HexHash128(hasher.finish_128());
    format!("{}{hash}", folder_begin(allow_redirects))
}

/// Other rules for redirects give other answers.
fn folder_begin(allow_redirects: bool) -> &'static str {
    match allow_redirects {
        false => "addresses-",
        true => "redirected-addresses-",
    }
}

/// The file of the answers. `None` for a list that has too many addresses.
pub(super) fn answers_file(dir: &Path, listed: &Index, allow_redirects: bool) -> Option<PathBuf> {
    let all = listed.distinct_addresses().ok()?;
    let folder = dir.join(folder_name(listed, &all, allow_redirects));
    Some(folder.join(ANSWERS))
}

/// The answers of a list, and their file.
pub(super) struct KeptAnswers {
    pub(super) answers: Vec<Option<AddressAnswer>>,
    pub(super) path: PathBuf,
    /// Lines that are not in the file yet.
    waiting: Vec<u8>,
    kept: Instant,
}

impl KeptAnswers {
    /// Reads the answers of a folder. A new one takes those of other lists. Calls `beat` regularly:
    /// a long file takes a while.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub(super) fn open(
        folder: &FetchFolder,
        listed: &Index,
        all: &DistinctAddresses,
        allow_redirects: bool,
        beat: &mut dyn FnMut(),
    ) -> Result<Self, (PathBuf, io::Error)> {
        let path = folder.file(ANSWERS);
        let failed = |e| (path.clone(), e);
        let numbers = AddressNumbers::new(listed, all);
        beat();
        if !path.exists() {
            let lines = answers_of_others(folder.path(), &numbers, allow_redirects, beat);
            folder
                .put(ANSWERS, &lines)
                .map_err(|e| failed(io::Error::other(e.to_string())))?;
        }
        let mut answers = vec![None; all.firsts.len()];
        let file = open_whole(&path).map_err(failed)?;
        let read = read_lines(&file, beat, |line| {
            // A line of another list, or of an earlier version, is no answer.
            let place = line.and_then(|line| Some((numbers.get(line.of())?, line)));
            if let Some((number, line)) = place
                && let Some(place) = answers.get_mut(number as usize)
            {
                *place = line.into_answer();
            }
        });
        read.map_err(failed)?;
        Ok(Self {
            answers,
            path: path.clone(),
            waiting: Vec::new(),
            kept: Instant::now(),
        })
    }

    /// Records an answer. It is in the file soon.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn keep(
        &mut self,
        number: u32,
        address: &str,
        answer: AddressAnswer,
    ) -> io::Result<()> {
        let of = key(address);
        let line = match &answer {
            AddressAnswer::Object { bytes, state } => AnswerLine::Object {
                of,
                bytes: *bytes,
                state: state.clone(),
            },
            AddressAnswer::Dead { why, silent } => AnswerLine::Dead {
                of,
                dead: why.clone(),
                silent: *silent,
            },
        };
        serde_json::to_writer(&mut self.waiting, &line)?;
        self.waiting.push(b'\n');
        if let Some(place) = self.answers.get_mut(number as usize) {
            *place = Some(answer);
        }
        match self.kept.elapsed() >= KEPT {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes what is not in the file yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.kept = Instant::now();
        if !self.waiting.is_empty() {
            append(&self.path, &self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

/// Records that the object at an address has changed, so that the next run asks again; or what it
/// is now.
pub(super) fn record_change(answers: &Path, address: &str, now: Option<(u64, &str)>) {
    let of = key(address);
    let line = match now {
        Some((bytes, state)) => AnswerLine::Object {
            of,
            bytes,
            state: state.to_owned(),
        },
        None => AnswerLine::Changed { of, changed: true },
    };
    // Without it, the error stays until the folder is removed.
    if let Ok(line) = serde_json::to_string(&line) {
        let _ = append(answers, (line + "\n").as_bytes());
    }
}

/// Appends whole lines.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    open_whole(path)?.write_all(lines)
}

/// Opens and locks the file. A kill may have cut off its last line, which is removed.
fn open_whole(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let mut file = options.read(true).append(true).create(true).open(path)?;
    file.lock()?;
    let length = file.metadata()?.len();
    let begin = length.saturating_sub(MOST_LINE);
    file.seek(SeekFrom::Start(begin))?;
    let mut end = Vec::new();
    (&mut file).take(MOST_LINE).read_to_end(&mut end)?;
    if end.last().is_some_and(|last| *last != b'\n') {
        let line = end.iter().rposition(|byte| *byte == b'\n');
        let whole = line.map_or(0, |at| at as u64 + 1);
        if whole == 0 && begin > 0 {
            return Err(io::Error::other("it is damaged: remove it"));
        }
        file.set_len(begin + whole)?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Calls `take` for each whole line, with `None` for one that is no answer.
fn read_lines(
    file: &File,
    beat: &mut dyn FnMut(),
    mut take: impl FnMut(Option<AnswerLine>),
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    for number in 0u64.. {
        if number.is_multiple_of(BEAT) {
            beat();
        }
        line.clear();
        (&mut reader).take(MOST_LINE).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return match line.len() as u64 == MOST_LINE {
                true => Err(io::Error::other("it is damaged: remove it")),
                false => Ok(()),
            };
        }
        take(serde_json::from_slice(&line).ok());
    }
    Ok(())
}

/// What other lists know about these addresses, as one line for each of them. An address whose host
/// was silent is asked again.
fn answers_of_others(
    own: &Path,
    numbers: &AddressNumbers,
    allow_redirects: bool,
    beat: &mut dyn FnMut(),
) -> Vec<u8> {
    let mut newest = BTreeMap::new();
    let entries = own.parent().and_then(|dir| fs::read_dir(dir).ok());
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let begin = folder_begin(allow_redirects);
            name.to_str().is_some_and(|name| name.starts_with(begin)) && entry.path() != own
        })
        .filter_map(|entry| {
            let path = entry.path().join(ANSWERS);
            Some((path.metadata().ok()?.modified().ok()?, path))
        })
        .collect();
    // The newest answer is read last.
    files.sort();
    let first = files.len().saturating_sub(MOST_OTHERS);
    for (_, path) in &files[first..] {
        let Ok(file) = File::open(path) else {
            continue;
        };
        // What can be read of it is enough.
        let _ = read_lines(&file, beat, |line| {
            let number = line.as_ref().and_then(|line| numbers.get(line.of()));
            let (Some(line), Some(number)) = (line, number) else {
                return;
            };
            let line = match line {
                AnswerLine::Dead {
                    of, silent: true, ..
                } => AnswerLine::Changed { of, changed: true },
                line => line,
            };
            // These files have copied lines themselves, so each address comes many times.
            newest.insert(number, line);
        });
    }
    let mut lines = Vec::new();
    for line in newest.values() {
        if serde_json::to_writer(&mut lines, line).is_ok() {
            lines.push(b'\n');
        }
    }
    lines
}
