//! A job whose decoder was taken over: one row does not decode, but tries something that a
//! worker has no business with.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use featherload::error::{Error, FaultKind, Result, SampleFault};
use featherload::internals::{BatchKey, Job, JobKind, JobParts, ReadableFiles, StageMeter, Ticket};
use serde::{Deserialize, Serialize};

/// All that this executable can do.
pub const KINDS: &[JobKind] = &[KIND];

pub const KIND: JobKind = JobKind {
    name: "hostile",
    build,
};

fn build(parts: JobParts) -> Result<Box<dyn Job>> {
    let spec: Spec = parts.spec()?;
    // As an attacker would know it: the ring lies where the coordinator has mapped it.
    let maps = "/proc/self/maps";
    let maps = fs::read_to_string(maps).map_err(|e| Error::io_at("read", maps, e))?;
    let ring = maps.lines().find(|line| line.contains("featherload-ring"));
    let ring = ring.and_then(|line| usize::from_str_radix(line.split('-').next()?, 16).ok());
    Ok(Box::new(Hostile {
        ring: ring.unwrap_or(0),
        spec,
    }))
}

/// What the row tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// A row like any other.
    Nothing,
    /// A file of its own data set: allowed.
    ReadInside,
    ReadOutside,
    /// Through a link that was put into the data set after the start.
    ReadThroughLink,
    ReadMemoryOfConsumer,
    WriteInside,
    MakeFile,
    Unlink,
    Connect,
    Execve,
    Fork,
    Thread,
    Ptrace,
    WriteMemoryOfConsumer,
    KillConsumer,
    AbortConsumer,
    /// By a store: no call at all.
    WriteTicket,
    WriteRecordOfAnotherLane,
    UnprotectTickets,
    /// A map that is made longer keeps its rights.
    LengthenRing,
    MapExecutable,
    MapSharedToWrite,
    /// Takes pages from the consumer and everybody else.
    RemoveRing,
    FillMemory,
    FillSharedMemory,
    /// A page of shared memory that is only read is a page all the same.
    FillReadOnlyMemory,
    RaiseOwnLimits,
    ForgetHandler,
    /// By a store: gives its row back, and then never asks for one again.
    NeverAgain,
    /// Gives its row back, claims a row of a ticket that does not exist, and ends.
    ClaimWhatNobodyAsksFor,
    /// Gives its row back and ends, again and again, not so fast that no worker starts.
    GiveBackForEver,
}

/// What a worker must know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spec {
    pub act: Act,
    /// The row that does it: batch and row.
    pub at: (u64, u32),
    pub rows: u32,
    pub consumer: i32,
    /// The folder of the data set: `sample`, and `link` that leads out.
    pub data: PathBuf,
    /// A file elsewhere.
    pub outside: PathBuf,
    /// Byte in the ring of the first ticket, and of the first record.
    pub ticket: usize,
    pub record: usize,
    /// Of the first slot's row words, and of the row's own behind each of the `slots`.
    pub row_word: usize,
    pub slot_bytes: usize,
    pub slots: usize,
}

impl ReadableFiles for Spec {
    fn readable_paths(&self) -> Vec<PathBuf> {
        vec![self.data.clone()]
    }
}

impl Spec {
    /// Bytes of a row.
    pub const BYTES: usize = 100;
    /// What a worker may take.
    pub const MEMORY: u64 = 32 << 20;

    /// What stands in a row of which nobody was hostile.
    pub fn row(ticket: (u64, u32)) -> [u8; Self::BYTES] {
        std::array::from_fn(|i| (ticket.0 * 31 + u64::from(ticket.1) * 7 + i as u64) as u8)
    }
}

struct Hostile {
    spec: Spec,
    /// Where the ring is mapped.
    ring: usize,
}

impl Job for Hostile {
    fn row_range(&mut self, _: &Ticket, row: u32) -> Range<usize> {
        let begin = row as usize * Spec::BYTES;
        begin..begin + Spec::BYTES
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        _meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let BatchKey([batch, _]) = ticket.key;
        if (batch, row) == self.spec.at {
            self.act(ticket.sequence)
                .map_err(|why| SampleFault::new(FaultKind::Unreadable, why))?;
        }
        out.copy_from_slice(&Spec::row((batch, row)));
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        Spec::MEMORY
    }

    fn describe(&self, ticket: &Ticket, row: u32, _: u32) -> String {
        let BatchKey([batch, _]) = ticket.key;
        format!("row {row} of batch {batch}")
    }
}

/// What a call answered, as an error where it was refused.
fn check_call(what: &str, answer: i64) -> Result<(), String> {
    match answer {
        -1 => Err(format!("{what}: {}", std::io::Error::last_os_error())),
        _ => Ok(()),
    }
}

const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn open(path: &Path, flags: i32) -> Result<(), String> {
    // SAFETY: the path is a C string that lives until the call returns.
    let fd = unsafe { libc::open(text(path).as_ptr(), flags, 0o600) };
    check_call("open", fd.into())
}

fn map(bytes: usize, protection: i32, flags: i32, fd: i32) -> Result<*mut u8, String> {
    // SAFETY: a new map at an address of the kernel's choice touches no memory of ours.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
    match at == libc::MAP_FAILED {
        true => Err(format!("mmap: {}", std::io::Error::last_os_error())),
        false => Ok(at.cast()),
    }
}

/// Maps and touches memory until none is given, or far more than a worker may have.
fn fill_memory(flags: i32, rights: i32) -> Result<(), String> {
    const PIECE: usize = 4 << 20;
    for taken in 0..64 {
        let at = map(PIECE, rights, flags | libc::MAP_ANONYMOUS, -1)
            .map_err(|e| format!("after {} MiB: {e}", taken * 4))?;
        for page in (0..PIECE).step_by(4096) {
            // SAFETY: within the map that was just made.
            match rights & libc::PROT_WRITE {
                0 => drop(unsafe { at.add(page).read_volatile() }),
                _ => unsafe { at.add(page).write_volatile(1) },
            }
        }
    }
    Ok(())
}

impl Hostile {
    /// Makes the row that this worker holds an open one.
    fn give_back(&self, sequence: u32) {
        const OPEN: u64 = 1 << 56;
        for slot in 0..self.spec.slots {
            let at = self.spec.row_word + slot * self.spec.slot_bytes + self.spec.at.1 as usize * 8;
            // SAFETY: inside of the ring's map, where the consumer has the words of rows.
            let word = unsafe { &*(self.ring as *const u8).add(at).cast::<AtomicU64>() };
            if word.load(Ordering::Acquire) as u32 == sequence {
                word.store(OPEN | u64::from(sequence), Ordering::Release);
            }
        }
    }

    /// Ok = it was let through, though a call may have failed for want of a partner.
    fn act(&self, sequence: u32) -> Result<(), String> {
        let Spec {
            consumer,
            data,
            outside,
            ..
        } = &self.spec;
        let ring = self.ring as *mut u8;
        let memory = PathBuf::from(format!("/proc/{consumer}/mem"));
        let beside = |name: &str| data.join(OsStr::new(name));
        match self.spec.act {
            Act::Nothing => Ok(()),
            Act::ReadInside => open(&beside("sample"), libc::O_RDONLY),
            Act::ReadOutside => open(outside, libc::O_RDONLY),
            Act::ReadThroughLink => open(&beside("link"), libc::O_RDONLY),
            Act::ReadMemoryOfConsumer => open(&memory, libc::O_RDONLY),
            Act::WriteInside => open(&beside("sample"), libc::O_WRONLY),
            Act::MakeFile => open(&beside("made"), libc::O_RDONLY | libc::O_CREAT),
            Act::Unlink => {
                // SAFETY: the path is a C string that lives until the call returns.
                let done = unsafe { libc::unlink(text(&beside("sample")).as_ptr()) };
                check_call("unlink", done.into())
            }
            Act::Connect => {
                // SAFETY: takes three numbers.
                let done = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
                check_call("socket", done.into())
            }
            Act::Execve => {
                const PROGRAM: &CStr = c"/bin/true";
                let arguments: [*const c_char; 2] = [PROGRAM.as_ptr(), std::ptr::null()];
                let none: [*const c_char; 1] = [std::ptr::null()];
                // SAFETY: both lists end with a null pointer and live until the call returns.
                let done =
                    unsafe { libc::execve(PROGRAM.as_ptr(), arguments.as_ptr(), none.as_ptr()) };
                check_call("execve", done.into())
            }
            Act::Fork => {
                // SAFETY: this process has one thread; the child ends at once.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: takes a number, and does not return.
                    unsafe { libc::_exit(0) };
                }
                check_call("fork", child.into())
            }
            Act::Thread => {
                let thread = std::thread::Builder::new().spawn(|| ());
                thread.map(drop).map_err(|e| format!("thread: {e}"))
            }
            Act::Ptrace => {
                let none = std::ptr::null_mut::<u8>();
                // SAFETY: attaching takes the number of a process and two unused pointers.
                let done = unsafe { libc::ptrace(libc::PTRACE_SEIZE, *consumer, none, none) };
                check_call("ptrace", done)
            }
            Act::WriteMemoryOfConsumer => {
                let mut bytes = [0u8; 8];
                let piece = libc::iovec {
                    iov_base: bytes.as_mut_ptr().cast(),
                    iov_len: bytes.len(),
                };
                // SAFETY: one piece of ours that lives until the call returns; where it would
                // be written to is nothing of this process.
                let done = unsafe { libc::process_vm_writev(*consumer, &piece, 1, &piece, 1, 0) };
                check_call("process_vm_writev", done as i64)
            }
            // SAFETY: takes two numbers; the signal 0 is none.
            Act::KillConsumer => check_call("kill", unsafe { libc::kill(*consumer, 0) }.into()),
            Act::AbortConsumer => {
                let (of, signal) = (i64::from(*consumer), libc::SIGABRT);
                // SAFETY: takes three numbers.
                check_call("tgkill", unsafe {
                    libc::syscall(libc::SYS_tgkill, of, of, signal)
                })
            }
            Act::WriteTicket => {
                // SAFETY: inside of the ring's map, where the consumer has the ticket's words;
                // that it cannot be written is what is tried.
                unsafe { ring.add(self.spec.ticket + 8).write_volatile(0x55) };
                Ok(())
            }
            Act::WriteRecordOfAnotherLane => {
                for lane in 0..2 {
                    let behind_the_words = self.spec.record + lane * 4096 + 4088;
                    // SAFETY: as above. One of the two is this worker's own.
                    unsafe { ring.add(behind_the_words).write_volatile(0x55) };
                }
                Ok(())
            }
            Act::UnprotectTickets => {
                let rights = libc::PROT_READ | libc::PROT_WRITE;
                // SAFETY: the first page of the ring's map; its bytes do not change.
                let done = unsafe { libc::mprotect(ring.cast(), 4096, rights) };
                check_call("mprotect", done.into())
            }
            Act::LengthenRing => {
                let record = ring.wrapping_add(self.spec.record);
                // SAFETY: a page of the ring's map, which nothing else of this job refers to.
                let at = unsafe { libc::mremap(record.cast(), 4096, 8192, libc::MREMAP_MAYMOVE) };
                match at == libc::MAP_FAILED {
                    true => Err(format!("mremap: {}", std::io::Error::last_os_error())),
                    false => Ok(()),
                }
            }
            Act::MapExecutable => map(
                4096,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
            )
            .map(drop),
            Act::MapSharedToWrite => map(
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
            )
            .map(drop),
            Act::RemoveRing => {
                // SAFETY: whole pages of the ring's map. What is lost is what is tried.
                let done = unsafe { libc::madvise(ring.cast(), 4096, libc::MADV_REMOVE) };
                check_call("madvise", done.into())
            }
            Act::FillMemory => fill_memory(libc::MAP_PRIVATE, BOTH),
            Act::FillSharedMemory => fill_memory(libc::MAP_SHARED, BOTH),
            Act::FillReadOnlyMemory => fill_memory(libc::MAP_SHARED, libc::PROT_READ),
            Act::RaiseOwnLimits => {
                let none = libc::rlimit {
                    rlim_cur: libc::RLIM_INFINITY,
                    rlim_max: libc::RLIM_INFINITY,
                };
                // SAFETY: the limits live until the call returns.
                let done = unsafe { libc::setrlimit(libc::RLIMIT_DATA, &none) };
                check_call("setrlimit", done.into())
            }
            Act::NeverAgain => {
                self.give_back(sequence);
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
            Act::ClaimWhatNobodyAsksFor => {
                self.give_back(sequence);
                const CLAIMED: u64 = 2 << 56;
                let record = self.spec.record;
                let own = (0..2).map(|lane| record + lane * 4096).find(|&at| {
                    // SAFETY: inside of the ring's map, where the workers' records are.
                    let pid = unsafe { ring.add(at + 8).cast::<u64>().read_volatile() };
                    pid == u64::from(std::process::id())
                });
                // SAFETY: as above.
                let serial = unsafe {
                    ring.add(own.unwrap_or(record))
                        .cast::<u64>()
                        .read_volatile()
                };
                let word = CLAIMED | serial << 32 | u64::from(sequence + 77);
                let at = self.spec.row_word + 8 * self.spec.at.1 as usize + 8;
                for slot in 0..self.spec.slots {
                    // SAFETY: inside of the ring's map, where the consumer has the words of rows.
                    let row = unsafe {
                        &*ring
                            .add(at + slot * self.spec.slot_bytes)
                            .cast::<AtomicU64>()
                    };
                    if row.load(Ordering::Acquire) as u32 != sequence {
                        row.store(word, Ordering::Release);
                    }
                }
                std::process::exit(1)
            }
            Act::GiveBackForEver => {
                self.give_back(sequence);
                std::thread::sleep(Duration::from_millis(1100));
                Ok(())
            }
            Act::ForgetHandler => {
                // SAFETY: SIGSYS gets its default action; no handler is named.
                let before = unsafe { libc::signal(libc::SIGSYS, libc::SIG_IGN) };
                check_call("sigaction", before as i64)
            }
        }
    }
}
