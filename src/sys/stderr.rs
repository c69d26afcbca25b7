//! Stderr of coordinator and workers, on which neither ever blocks.
//!
//! Created in the coordinator; workers inherit descriptor 2. It is a pipe of the pool, and writers
//! never wait: what does not fit is lost. The coordinator forwards its content to the original
//! stderr as far as that accepts it without blocking. It counts dropped lines.
//!
//! So any code may write: `tracing`, a panic hook, Rust or the C library about a failed allocation
//! or a damaged heap, a decoder, even a compromised one. Control characters and marks of text
//! direction are replaced.
//!
//! These alternatives do not work:
//! - O_NONBLOCK on the original descriptor: the flag belongs to the open file, which the caller and
//!   its shell share;
//! - poll before a blocking write: other processes write into the same pipe and may fill it in
//!   between;
//! - a thread that may block: a process that forks must have one thread.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{MsgFlags, send};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{dup2_stderr, pipe2, read, write};

use super::process::above_standard_streams;
use crate::error::{Error, Result, is_harmless};

/// A pipe accepts up to this number of bytes completely or not at all.
const AT_ONCE: usize = libc::PIPE_BUF;

/// Longest UTF-8 character in bytes.
const LONGEST_CHARACTER: usize = 4;

/// Most bytes that one call forwards, so that output cannot keep the coordinator busy.
const MOST: usize = 64 << 10;

/// Stderr of a pool: the reading end of its pipe, and the original stderr.
#[derive(Debug)]
pub(crate) struct StderrRelay {
    from: OwnedFd,
    to: OriginalStderr,
    /// A line without an end so far.
    partial_line: Vec<u8>,
    lost: u64,
}

/// The stderr that the coordinator was started with.
#[derive(Debug)]
enum OriginalStderr {
    /// A file, which never blocks for a reader. Slow storage may block the writer; then the
    /// consumer notices the missing heartbeat.
    File(OwnedFd),
    /// A pipe or a terminal, reopened so that its flags are not shared.
    Opened(File),
    /// Each call has a flag not to wait.
    Socket(OwnedFd),
    /// A descriptor that cannot be reopened, because another user owns it or /proc is missing.
    /// Kernels before 6.4 cannot write to it without waiting; there all output is dropped.
    Kept(OwnedFd),
    /// It was closed.
    Nobody,
}

impl StderrRelay {
    /// Installs the pool's pipe as descriptor 2.
    pub(crate) fn install() -> Result<Self> {
        let to = OriginalStderr::stderr()?;
        let (from, own) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .map_err(|e| Error::io("make a pipe for stderr", e))?;
        let from = above_standard_streams(from)?;
        dup2_stderr(own).map_err(|e| Error::io("put a pipe in the place of stderr", e))?;
        Ok(Self {
            from,
            to,
            partial_line: Vec::new(),
            lost: 0,
        })
    }

    /// Descriptors that must stay open for it.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let to = match &self.to {
            OriginalStderr::File(fd) | OriginalStderr::Socket(fd) | OriginalStderr::Kept(fd) => {
                Some(fd.as_raw_fd())
            }
            OriginalStderr::Opened(file) => Some(file.as_raw_fd()),
            OriginalStderr::Nobody => None,
        };
        [self.from.as_raw_fd()].into_iter().chain(to)
    }

    /// Number of dropped lines.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Forwards output. Never waits.
    pub(crate) fn pass_on(&mut self) {
        let mut buffer = [0; AT_ONCE];
        let mut passed = 0;
        while passed < MOST {
            match read(&self.from, &mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    passed += n;
                    self.take_bytes(&buffer[..n]);
                }
                Err(Errno::EINTR) => {}
                // The pipe is empty; nothing can be done about other errors.
                Err(_) => break,
            }
        }
    }

    /// Forwards the remaining output, including an unfinished line.
    pub(crate) fn end(&mut self) {
        self.pass_on();
        let rest = std::mem::take(&mut self.partial_line);
        if !rest.is_empty() {
            self.send(&rest);
        }
    }

    fn take_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            // Pieces end between characters. The first byte of a character determines its length.
            let length = match byte {
                0xf0.. => LONGEST_CHARACTER,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            if self.partial_line.len() + length > AT_ONCE {
                self.send_partial();
            }
            let shown = match byte {
                b'\n' | b'\t' | b' '..=b'~' => byte,
                // In UTF-8, the characters 0x80 to 0x9f follow this byte.
                0x80..0xa0 if self.partial_line.last() == Some(&0xc2) => b'?',
                0x80.. => byte,
                _ => b'?',
            };
            self.partial_line.push(shown);
            self.replace_last();
            if byte == b'\n' || self.partial_line.len() == AT_ONCE {
                self.send_partial();
            }
        }
    }

    /// Replaces the last character if it is invisible or a mark of text direction.
    fn replace_last(&mut self) {
        for length in 2..=LONGEST_CHARACTER.min(self.partial_line.len()) {
            let at = self.partial_line.len() - length;
            let last = str::from_utf8(&self.partial_line[at..]).unwrap_or_default();
            let mut characters = last.chars();
            if let (Some(c), None) = (characters.next(), characters.next())
                && !is_harmless(c)
            {
                self.partial_line.truncate(at);
                self.partial_line.push(b'?');
                return;
            }
        }
    }

    fn send_partial(&mut self) {
        let mut line = std::mem::take(&mut self.partial_line);
        self.send(&line);
        line.clear();
        self.partial_line = line;
    }

    fn send(&mut self, line: &[u8]) {
        match self.to.write(line) {
            Ok(n) if n == line.len() => {}
            _ => self.lost += 1,
        }
    }
}

impl AsFd for StderrRelay {
    /// Readable when there is output.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

impl OriginalStderr {
    fn stderr() -> Result<Self> {
        // SAFETY: duplicates a number into the table, or fails where it is not open.
        let fd = unsafe { libc::fcntl(2, libc::F_DUPFD_CLOEXEC, 3) };
        if fd < 0 {
            return match Errno::last() {
                Errno::EBADF => Ok(Self::Nobody),
                e => Err(Error::io("duplicate stderr", e)),
            };
        }
        // SAFETY: the kernel has just installed `fd`; no other value owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let about = fstat(&fd).map_err(|e| Error::io("look at stderr", e))?;
        let kind = SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT;
        Ok(match kind {
            SFlag::S_IFREG => Self::File(fd),
            SFlag::S_IFSOCK => Self::Socket(fd),
            _ => match reopen(&fd) {
                Ok(file) => Self::Opened(file),
                Err(_) => Self::Kept(fd),
            },
        })
    }

    fn write(&self, bytes: &[u8]) -> nix::Result<usize> {
        loop {
            let written = match self {
                Self::File(fd) => write(fd, bytes),
                Self::Opened(file) => write(file, bytes),
                Self::Socket(fd) => {
                    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                    send(fd.as_raw_fd(), bytes, flags)
                }
                Self::Kept(fd) => write_at_once(fd, bytes),
                Self::Nobody => Err(Errno::EBADF),
            };
            if written != Err(Errno::EINTR) {
                return written;
            }
        }
    }
}

fn reopen(fd: &OwnedFd) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    OpenOptions::new()
        .write(true)
        .custom_flags(flags.bits())
        .open(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Writes without waiting, whatever the flags of the open file; fails if it would have to wait.
fn write_at_once(fd: &OwnedFd, bytes: &[u8]) -> nix::Result<usize> {
    let part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: one part, whose bytes live through the call and are only read by it; -1 is the
    // file's own position.
    let written = unsafe { libc::pwritev2(fd.as_raw_fd(), &part, 1, -1, libc::RWF_NOWAIT) };
    Errno::result(written).map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use nix::fcntl::{FcntlArg, fcntl};
    use nix::unistd::pipe;

    use super::*;

    /// A relay with pipes for both stderrs, and the end to read.
    fn relay(given: impl FnOnce(OwnedFd) -> OriginalStderr) -> (StderrRelay, File, File) {
        let (from, own) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let (reader, to) = pipe().unwrap();
        assert_eq!(fcntl(&to, FcntlArg::F_SETPIPE_SZ(4096)), Ok(4096));
        let to = given(to);
        let relay = StderrRelay {
            from,
            to,
            partial_line: Vec::new(),
            lost: 0,
        };
        (relay, File::from(own), File::from(reader))
    }

    fn check(mut relay: StderrRelay, own: File, mut reader: File) {
        let line = [&[b'x'; 99][..], b"\n"].concat();
        for _ in 0..60 {
            assert_eq!(write(&own, &line), Ok(100));
        }
        write(&own, b"no end").unwrap();
        relay.pass_on();
        assert_eq!(relay.lost(), 20, "4096 bytes take 40 lines");
        relay.end();
        assert_eq!(relay.lost(), 20, "the rest of a page takes a few bytes");
        drop(relay);
        let mut bytes = String::new();
        reader.read_to_string(&mut bytes).unwrap();
        assert_eq!(bytes.lines().count(), 41);
        assert!(bytes.ends_with("x\nno end"), "{bytes}");
    }

    #[test]
    fn a_full_pipe_is_not_waited_for_and_lines_stay_whole() {
        let (relay, own, reader) = relay(|to| OriginalStderr::Opened(reopen(&to).unwrap()));
        check(relay, own, reader);
    }

    #[test]
    fn a_pipe_that_cannot_be_opened_once_more_is_not_waited_for() {
        let (relay, own, reader) = relay(OriginalStderr::Kept);
        if relay.to.write(b"one line\n") == Err(Errno::EOPNOTSUPP) {
            // As on a kernel before 6.4: every line is dropped without waiting.
            let mut relay = relay;
            assert_eq!(write(&own, b"1\n2\n3\n"), Ok(6));
            relay.pass_on();
            assert_eq!(relay.lost(), 3);
            return;
        }
        let mut line = [0; 9];
        (&reader).read_exact(&mut line).unwrap();
        assert_eq!(&line, b"one line\n");
        check(relay, own, reader);
    }

    #[test]
    fn a_line_without_an_end_is_passed_on_in_pieces() {
        let (mut relay, own, mut reader) = relay(|to| OriginalStderr::Opened(reopen(&to).unwrap()));
        let mut bytes = Vec::new();
        for _ in 0..3 {
            assert_eq!(write(&own, &[b'y'; 3000]), Ok(3000));
            relay.pass_on();
            if relay.partial_line.len() < 3000 {
                let mut piece = vec![0; AT_ONCE];
                reader.read_exact(&mut piece).unwrap();
                bytes.extend(piece);
            }
        }
        relay.end();
        drop(relay);
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [b'y'; 9000]);
    }

    #[test]
    fn nothing_that_a_terminal_listens_to_is_passed_on() {
        let (mut relay, own, mut reader) = relay(|to| OriginalStderr::Opened(reopen(&to).unwrap()));
        let bytes =
            "a\u{1b}]0;title\u{7}\tb\r\u{9b}2J\u{7f} \u{e4}\u{20ac}\u{a0}\n\u{202e}c\u{feff}\n";
        write(&own, bytes.as_bytes()).unwrap();
        relay.end();
        drop((relay, own));
        let mut passed = Vec::new();
        reader.read_to_end(&mut passed).unwrap();
        let wanted = [
            &b"a?]0;title?\tb?\xc2?2J? "[..],
            "\u{e4}\u{20ac}\u{a0}\n?c?\n".as_bytes(),
        ];
        assert_eq!(passed, wanted.concat());
    }

    #[test]
    fn who_talks_without_end_keeps_nobody() {
        let (mut relay, own, _reader) = relay(|_| OriginalStderr::Nobody);
        fcntl(&own, FcntlArg::F_SETPIPE_SZ(4 * MOST as i32)).unwrap();
        while write(&own, &[b'\n'; AT_ONCE]).is_ok() {}
        relay.pass_on();
        assert_eq!(relay.lost(), MOST as u64);
    }
}
