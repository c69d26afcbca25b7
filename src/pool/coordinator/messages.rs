//! What consumer and coordinator say to each other.
//!
//! All of it goes over one pair of packet sockets that has no name: nothing is in the file
//! system, so nothing is left there, whoever is killed. The hello is plain bytes of fixed form,
//! so that two versions that would misread each other's messages still understand that they
//! differ. After it, commands are single bytes. What a start is made of may be long and comes
//! as sealed memory; replies fit into a packet.

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

/// The argument with which a program that calls `init` becomes a coordinator.
pub(crate) const COORDINATOR_COMMAND: &str = "__coordinator";

/// The argument with which it becomes a fetcher.
pub(crate) const FETCHER_COMMAND: &str = "__fetcher";

/// The argument with which it becomes a sender.
pub(crate) const SENDER_COMMAND: &str = "__sender";

/// Whether a loader starts its helpers with this argument.
pub(crate) fn is_helper_command(argument: &OsStr) -> bool {
    [COORDINATOR_COMMAND, FETCHER_COMMAND, SENDER_COMMAND]
        .iter()
        .any(|command| argument == *command)
}

/// Changes with every change of commands, requests or replies.
const PROTOCOL: u32 = 9;

const HELLO_MAGIC: [u8; 8] = *b"fthrload";
const VERSION_BYTES: usize = 32;

/// How long each side may take to greet.
pub(crate) const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// Bytes of a hello on the socket.
pub(crate) const HELLO_BYTES: usize = 8 + 4 + 8 + VERSION_BYTES;

/// Most bytes of a helper's first message.
pub(crate) const LONGEST_HELLO: usize = 2048;

/// How a helper begins that cannot become a coordinator, in the place of a hello.
const REFUSAL: &[u8] = b"refused: ";

/// The first message of a helper that cannot become a coordinator.
pub(crate) fn refusal(why: &str) -> Vec<u8> {
    let mut message = [REFUSAL, why.as_bytes()].concat();
    message.truncate(LONGEST_HELLO);
    message
}

/// Why the helper cannot become a coordinator, if its first message says that.
pub(crate) fn refused(message: &[u8]) -> Option<String> {
    let why = message.strip_prefix(REFUSAL)?;
    Some(String::from_utf8_lossy(why).into_owned())
}

/// Who speaks: the same form in both directions.
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

    /// Reads a hello; `from` names the other side's executable.
    pub(crate) fn read(bytes: &[u8], from: &str) -> Result<Self> {
        let b: &[u8; HELLO_BYTES] = bytes.try_into().map_err(|_| {
            Error::protocol(format!(
                "{from} greeted with {} bytes, a featherload greets with {HELLO_BYTES}",
                bytes.len()
            ))
        })?;
        if b[..8] != HELLO_MAGIC {
            return Err(Error::protocol(format!("{from} is no featherload")));
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
    /// When the two do not speak alike: names both executables and versions.
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
    /// Fork the workers. Descriptors come along: a [`StartRequest`], the ring, what workers
    /// may read, the job's.
    Start = 1,
    /// Reply with a report.
    Report = 2,
    /// End the workers, then yourself.
    Stop = 3,
}

impl CoordinatorCommand {
    pub(crate) fn from_byte(b: u8) -> Option<Self> {
        [Self::Start, Self::Report, Self::Stop]
            .into_iter()
            .find(|c| *c as u8 == b)
    }
}

/// What a pool is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartRequest {
    pub(crate) shape: RingShape,
    pub(crate) job: JobSpec,
    /// Most time that one row may take, milliseconds.
    pub(crate) row_limit_ms: u64,
    /// Kill a worker that often, milliseconds: a test of the recovery.
    pub(crate) kill_every_ms: Option<u64>,
    /// Serial of the first worker; 1 but in tests of the limit.
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

/// Most bytes of a reply. Far below what a socket holds, so that an answer that nobody waits
/// for any more leaves room for the next.
pub(crate) const LONGEST_REPLY: usize = 64 << 10;

/// Most bytes of a text within a reply.
const LONGEST_TEXT: usize = 4 << 10;

/// Most bytes of the events of a report.
pub(crate) const EVENT_BYTES: usize = 32 << 10;

/// The text, cut where a reply has no room for more.
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

/// What happened since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CoordinatorReport {
    /// All but what the consumer knows by itself.
    pub(crate) processes: ProcessReport,
    /// Why the pool was given up, if it was.
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
