//! Messages between consumer and coordinator.
//!
//! They use one unnamed pair of packet sockets. Nothing is in the file system, so nothing remains
//! after a kill. The hello has a fixed binary form, so that even incompatible versions can detect
//! each other. After it, a command is one byte. A start request may be long, so it comes in sealed
//! memory. A reply fits into a packet.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pool::job::JobSpec;
use crate::pool::pool_report::ProcessReport;
use crate::pool::ring::RingShape;
use crate::pool::ring::layout::LAYOUT_VERSION;
use crate::pool::sandbox::Sandbox;
use crate::sys::sealed_bytes::SealedBytes;

/// The argument that turns a program that calls `init` into a coordinator.
pub(crate) const COORDINATOR_COMMAND: &str = "__coordinator";

/// The argument that turns it into a fetcher.
pub(crate) const FETCHER_COMMAND: &str = "__fetcher";

/// The argument that turns it into an uploader.
pub(crate) const SENDER_COMMAND: &str = "__sender";

/// Whether the argument is one of these.
pub(crate) fn is_helper_command(argument: &OsStr) -> bool {
    [COORDINATOR_COMMAND, FETCHER_COMMAND, SENDER_COMMAND]
        .iter()
        .any(|command| argument == *command)
}

/// Must change with every change of commands, requests or replies.
const PROTOCOL: u32 = 9;

const HELLO_MAGIC: [u8; 8] = *b"fthrload";
const VERSION_BYTES: usize = 32;

/// Time limit for a hello, on each side.
pub(crate) const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// Size of a hello in bytes.
pub(crate) const HELLO_BYTES: usize = 8 + 4 + 8 + VERSION_BYTES;

/// Longest first message of a helper, in bytes.
pub(crate) const LONGEST_HELLO: usize = 2048;

/// Prefix of a helper's first message that reports a failure instead of a hello.
const REFUSAL: &[u8] = b"refused: ";

/// First message of a helper that cannot become a coordinator.
pub(crate) fn refusal(why: &str) -> Vec<u8> {
    let mut message = [REFUSAL, why.as_bytes()].concat();
    message.truncate(LONGEST_HELLO);
    message
}

/// The reason in a helper's first message, if that reports a failure.
pub(crate) fn refused(message: &[u8]) -> Option<String> {
    let why = message.strip_prefix(REFUSAL)?;
    Some(String::from_utf8_lossy(why).into_owned())
}

/// Version and protocol of one side. Both directions have the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HelloMessage {
    protocol: u32,
    layout: u64,
    version: String,
}

impl HelloMessage {
    pub(crate) fn ours() -> Self {
        Self {
            protocol: PROTOCOL,
            layout: LAYOUT_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    pub(crate) fn to_bytes(&self) -> [u8; HELLO_BYTES] {
        let mut b = [0; HELLO_BYTES];
        b[..8].copy_from_slice(&HELLO_MAGIC);
        b[8..12].copy_from_slice(&self.protocol.to_le_bytes());
        b[12..20].copy_from_slice(&self.layout.to_le_bytes());
        let v = self.version.as_bytes();
        let n = v.len().min(VERSION_BYTES);
        b[20..20 + n].copy_from_slice(&v[..n]);
        b
    }

    /// Parses a hello. `from` names the other executable.
    pub(crate) fn read(bytes: &[u8], from: &str) -> Result<Self> {
        let b: &[u8; HELLO_BYTES] = bytes.try_into().map_err(|_| {
            Error::protocol(format!(
                "{from} sent a first message of {} bytes instead of {HELLO_BYTES}: it is not a \
                 featherload program",
                bytes.len()
            ))
        })?;
        if b[..8] != HELLO_MAGIC {
            return Err(Error::protocol(format!(
                "{from} is not a featherload helper"
            )));
        }
        let mut protocol = [0; 4];
        protocol.copy_from_slice(&b[8..12]);
        let mut layout = [0; 8];
        layout.copy_from_slice(&b[12..20]);
        let version = b[20..].split(|c| *c == 0).next().unwrap_or_default();
        Ok(Self {
            protocol: u32::from_le_bytes(protocol),
            layout: u64::from_le_bytes(layout),
            version: String::from_utf8_lossy(version).into_owned(),
        })
    }

    /// # Errors
    /// The two versions or protocols differ. The text names both executables and versions.
    pub(crate) fn check(&self, own_path: &str, other: &Self, other_path: &str) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let text = |h: &Self, path: &str| {
            format!(
                "{path} is version {} (protocol {}, ring {})",
                h.version, h.protocol, h.layout
            )
        };
        Err(Error::protocol(format!(
            "{}, {}: install the same version of both, or name another helper \
             (FEATHERLOAD_HELPER)",
            text(self, own_path),
            text(other, other_path)
        )))
    }
}

/// A command on the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CoordinatorCommand {
    /// Fork the workers. The message carries descriptors: a [`StartRequest`], the ring, the list of
    /// readable files, those of the job.
    Start = 1,
    /// Reply with a report.
    Report = 2,
    /// End the workers, then the coordinator.
    Stop = 3,
}

impl CoordinatorCommand {
    pub(crate) fn from_byte(b: u8) -> Option<Self> {
        [Self::Start, Self::Report, Self::Stop]
            .into_iter()
            .find(|c| *c as u8 == b)
    }
}

/// The parameters of a pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartRequest {
    pub(crate) shape: RingShape,
    pub(crate) job: JobSpec,
    /// Time limit for one row, milliseconds.
    pub(crate) row_limit_ms: u64,
    /// Kills a worker at this interval, in milliseconds, to test the recovery.
    pub(crate) kill_every_ms: Option<u64>,
    /// Serial of the first worker: 1, except in tests of the limit.
    pub(crate) first_serial: u32,
    pub(crate) sandbox: Sandbox,
}

impl StartRequest {
    pub(crate) fn seal(&self) -> Result<SealedBytes> {
        let bytes = postcard::to_stdvec(self)
            .map_err(|e| Error::protocol(format!("write the start request: {e}")))?;
        SealedBytes::new("featherload-start", &[&bytes])
    }

    pub(crate) fn unseal(fd: OwnedFd) -> Result<Self> {
        postcard::from_bytes(SealedBytes::from_fd(fd)?.bytes())
            .map_err(|e| Error::protocol(format!("read the start request: {e}")))
    }
}

/// Longest reply in bytes. Far below the capacity of a socket, so that an unread reply leaves room
/// for the next.
pub(crate) const LONGEST_REPLY: usize = 64 << 10;

/// Longest text in a reply, in bytes.
const LONGEST_TEXT: usize = 4 << 10;

/// Most bytes of events in a report.
pub(crate) const EVENT_BYTES: usize = 32 << 10;

/// Shortens a text so that it fits into a reply.
pub(crate) fn shorten_text(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT).rfind(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
        text.push_str(" ...");
    }
    text
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CoordinatorReply {
    Started,
    Refused {
        what: String,
    },
    /// Numbered from 1, in the order of the commands.
    Report {
        number: u64,
        report: CoordinatorReport,
    },
}

impl CoordinatorReply {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes = postcard::to_stdvec(self)
            .map_err(|e| Error::protocol(format!("write a reply: {e}")))?;
        match bytes.len() {
            ..=LONGEST_REPLY => Ok(bytes),
            n => Err(Error::protocol(format!("a reply of {n} bytes is too long"))),
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|e| Error::protocol(format!("read a reply: {e}")))
    }
}

/// Report since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CoordinatorReport {
    /// Everything except what the consumer itself knows.
    pub(crate) processes: ProcessReport,
    /// Why the pool failed, if it did.
    pub(crate) fatal: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::ring::layout::MAX_LANES;

    #[test]
    fn a_hello_round_trips_and_differences_name_both_sides() {
        let a = HelloMessage::ours();
        let b = HelloMessage::read(&a.to_bytes(), "x").unwrap();
        assert_eq!(a, b);
        a.check("me", &b, "you").unwrap();
        let old = HelloMessage {
            version: "0.0.9".into(),
            ..a.clone()
        };
        let e = a
            .check("/bin/me", &old, "/bin/you")
            .unwrap_err()
            .to_string();
        for part in ["/bin/me", "/bin/you", "0.0.9", env!("CARGO_PKG_VERSION")] {
            assert!(e.contains(part), "{e} lacks {part}");
        }
    }

    #[test]
    fn other_bytes_are_no_hello() {
        assert!(HelloMessage::read(b"GET / HTTP/1.1", "x").is_err());
        assert!(HelloMessage::read(&[7; HELLO_BYTES], "x").is_err());
    }

    #[test]
    fn the_longest_report_is_a_reply() {
        let text = shorten_text("\u{e9}".repeat(LONGEST_TEXT));
        assert!(text.ends_with(" ...") && text.len() <= LONGEST_TEXT + 4);
        let report = CoordinatorReport {
            processes: ProcessReport {
                workers: vec![i32::MAX; MAX_LANES as usize],
                events: vec!["x".repeat(EVENT_BYTES / 256); 256],
                ..ProcessReport::default()
            },
            fatal: Some(text),
        };
        let bytes = CoordinatorReply::Report { number: 1, report }
            .to_bytes()
            .unwrap();
        assert!(matches!(
            CoordinatorReply::read(&bytes),
            Ok(CoordinatorReply::Report { .. })
        ));
        let what = "x".repeat(LONGEST_REPLY);
        assert!(CoordinatorReply::Refused { what }.to_bytes().is_err());
    }

    #[test]
    fn commands_round_trip() {
        for c in [
            CoordinatorCommand::Start,
            CoordinatorCommand::Report,
            CoordinatorCommand::Stop,
        ] {
            assert_eq!(CoordinatorCommand::from_byte(c as u8), Some(c));
        }
        assert_eq!(CoordinatorCommand::from_byte(0), None);
    }
}
