//! A child process of this executable, which reads input and answers in lines.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use featherload::{Error, Result};

use crate::interrupt;

/// Interval at which signals are checked while a line is awaited.
const LOOK: Duration = Duration::from_millis(20);

/// Dropping it ends the process at once.
pub struct LineProcess {
    /// Its name in error texts.
    name: &'static str,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl LineProcess {
    pub fn start<A>(name: &'static str, args: impl IntoIterator<Item = A>) -> Result<Self>
    where
        A: AsRef<OsStr>,
    {
        let me = std::env::current_exe().map_err(|e| Error::io("find this executable", e))?;
        let mut child = Command::new(me)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| Error::not_started(format!("start {name}"), e))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::worker(format!("{name} has no pipes")));
        };
        let (sender, lines) = mpsc::channel();
        let this = Self {
            name,
            child,
            input,
            lines,
        };
        // Ends with the process, or when the receiver is dropped.
        std::thread::Builder::new()
            .name("answers".into())
            .spawn(move || {
                let mut lines = BufReader::new(output).lines().map_while(|line| line.ok());
                lines.all(|line| sender.send(line).is_ok())
            })
            .map_err(|e| Error::not_started("start a thread", e))?;
        Ok(this)
    }

    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn write(&mut self, text: &str) -> Result<()> {
        let written = self.input.write_all(text.as_bytes());
        written.map_err(|e| Error::io(format!("write to {}", self.name), e))
    }

    /// Its next line. None if `until` comes first.
    ///
    /// # Errors
    /// The process has ended, or a signal arrived.
    pub fn line(&self, until: Option<Instant>) -> Result<Option<String>> {
        loop {
            interrupt::check()?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match self.lines.recv_timeout(left.unwrap_or(LOOK).min(LOOK)) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Timeout) if left == Some(Duration::ZERO) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::worker(format!("{} ended early", self.name)));
                }
            }
        }
    }

    pub fn end(&mut self) {
        // A process that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        self.end();
    }
}
