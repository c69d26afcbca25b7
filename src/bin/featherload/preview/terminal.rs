//! Shows images on terminals: by kitty's protocol, iTerm2's, or sixels.
//!
//! Queries the terminal, with a short timeout. A terminal that never answers (a log, a test) must
//! not block the command.

use std::env;
use std::fmt::Write as _;
use std::io::{Cursor, IsTerminal, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use featherload::{Error, Result};
use icy_sixel::{DiffusionMethod, MethodForLargest, MethodForRep, PixelFormat, Quality};
use image::imageops::{FilterType, resize};
use image::{ImageFormat, RgbImage};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, read, tcgetpgrp};

use crate::interrupt::HeldSignals;

/// Queries: an image of one pixel; the size of the window in pixels; and the terminal's type, which
/// every terminal answers.
const QUESTION: &[u8] = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[14t\x1b[c";

/// Timeout for the answers. A remote terminal needs a moment.
const PATIENCE: Duration = Duration::from_millis(400);

/// Assumed width in pixels, if the terminal does not report one.
const WIDTH: u32 = 1000;

/// Most base64 bytes in one kitty command.
const CHUNK: usize = 4096;

/// The image protocol of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// A terminal that shows images.
#[derive(Debug, PartialEq, Eq)]
pub struct ScreenImages {
    protocol: Protocol,
    /// Width in pixels.
    width: u32,
}

impl ScreenImages {
    /// The terminal of this process, if there is one and it shows images.
    pub fn here() -> Option<Self> {
        // A background process is stopped when it reads from its terminal.
        let in_front = || tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        if !stdout().is_terminal() || !stdin().is_terminal() || !in_front() {
            return None;
        }
        let named = ["TERM_PROGRAM", "LC_TERMINAL"].map(|name| env::var(name).unwrap_or_default());
        let iterm = named
            .iter()
            .any(|name| name.starts_with("iTerm") || name == "WezTerm" || name == "mintty");
        Self::of(&ask().ok()?, iterm)
    }

    fn of(answer: &[u8], iterm: bool) -> Option<Self> {
        let text = String::from_utf8_lossy(answer);
        let behind = |mark: &str, end: char| {
            let (_, rest) = text.rsplit_once(mark)?;
            rest.split_once(end).map(|(numbers, _)| numbers.to_owned())
        };
        let sixel = behind("\x1b[?", 'c').is_some_and(|all| all.split(';').any(|n| n == "4"));
        let protocol = match () {
            () if text.contains("_Gi=31;OK") => Protocol::Kitty,
            () if iterm => Protocol::Iterm,
            () if sixel => Protocol::Sixel,
            () => return None,
        };
        // Height, then width.
        let size = behind("\x1b[4;", 't');
        let width = size.and_then(|size| size.split_once(';')?.1.parse().ok());
        let width = width.filter(|w| *w > 0).unwrap_or(WIDTH);
        Some(Self {
            protocol,
            // xterm shows no sixels beyond this width.
            width: match protocol {
                Protocol::Sixel => width.min(WIDTH),
                Protocol::Kitty | Protocol::Iterm => width,
            },
        })
    }

    /// Shows the picture at the cursor, no wider than the terminal.
    pub fn show(&self, picture: &RgbImage) -> Result<()> {
        let (width, height) = picture.dimensions();
        let fitting = (width > self.width).then(|| {
            let height = u64::from(height) * u64::from(self.width) / u64::from(width);
            let height = (height as u32).max(1);
            resize(picture, self.width, height, FilterType::Triangle)
        });
        let words = self.words(fitting.as_ref().unwrap_or(picture))?;
        let mut out = stdout().lock();
        out.write_all(words.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|e| Error::io("write to stdout", e))
    }

    fn words(&self, picture: &RgbImage) -> Result<String> {
        Ok(match self.protocol {
            Protocol::Kitty => kitty(&STANDARD.encode(png(picture)?)),
            Protocol::Iterm => {
                let png = png(picture)?;
                let text = STANDARD.encode(&png);
                format!("\x1b]1337;File=inline=1;size={}:{text}\x07\n", png.len())
            }
            Protocol::Sixel => sixel(picture)?,
        })
    }
}

/// A picture as a PNG file.
pub fn png(picture: &RgbImage) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let written = picture.write_to(&mut bytes, ImageFormat::Png);
    written.map_err(|e| Error::io("write a PNG", std::io::Error::other(e)))?;
    Ok(bytes.into_inner())
}

/// Splits an image into as many commands as needed; requests no answer.
fn kitty(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(rest.len().min(CHUNK));
        let first = if rest.len() == text.len() {
            "a=T,f=100,q=2,"
        } else {
            ""
        };
        let more = u8::from(!behind.is_empty());
        let _ = write!(words, "\x1b_G{first}m={more};{part}\x1b\\");
        rest = behind;
    }
    words.push('\n');
    words
}

fn sixel(picture: &RgbImage) -> Result<String> {
    let words = icy_sixel::sixel_string(
        picture.as_raw(),
        picture.width() as i32,
        picture.height() as i32,
        PixelFormat::RGB888,
        DiffusionMethod::Stucki,
        MethodForLargest::Auto,
        MethodForRep::Auto,
        Quality::HIGH,
    );
    words.map_err(|e| Error::io("write sixels", std::io::Error::other(e.to_string())))
}

/// Signals that end or stop this process are blocked until the terminal is restored. SIGTTOU is
/// blocked too, so that a process in the background can restore it.
const WAITING: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGTSTP,
    Signal::SIGTTOU,
];

/// The answers of the terminal that arrive in time. Signals wait at most that long: an unread
/// answer would appear on the shell's next line.
fn ask() -> std::result::Result<Vec<u8>, Errno> {
    let _held = HeldSignals::hold(&WAITING);
    let terminal = stdin();
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    // The answer arrives as keyboard input.
    silent
        .local_flags
        .remove(LocalFlags::ICANON | LocalFlags::ECHO);
    tcsetattr(&terminal, SetArg::TCSADRAIN, &silent)?;
    let answer = answer();
    tcsetattr(&terminal, SetArg::TCSADRAIN, &before)?;
    answer
}

fn answer() -> std::result::Result<Vec<u8>, Errno> {
    let mut out = stdout().lock();
    if out.write_all(QUESTION).and_then(|()| out.flush()).is_err() {
        return Err(Errno::EIO);
    }
    let terminal = stdin();
    let until = Instant::now() + PATIENCE;
    let mut answer = Vec::new();
    while !is_whole(&answer) {
        let left = until.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let mut ready = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, left)? == 0 {
            break;
        }
        let mut bytes = [0; 256];
        match read(&terminal, &mut bytes)? {
            0 => break,
            n => answer.extend_from_slice(&bytes[..n]),
        }
    }
    Ok(answer)
}

/// The terminal's type comes last.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.rsplit_once("\x1b[?")
        .is_some_and(|(_, rest)| rest.contains('c'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_known_by_their_answers() {
        let of = |answer: &str, iterm| ScreenImages::of(answer.as_bytes(), iterm);
        let screen = |protocol, width| Some(ScreenImages { protocol, width });
        let kitty = "\x1b_Gi=31;OK\x1b\\\x1b[4;800;1200t\x1b[?62;c";
        assert_eq!(of(kitty, false), screen(Protocol::Kitty, 1200));
        // An error means no support.
        let refuses = "\x1b_Gi=31;ENOTSUP\x1b\\\x1b[?64;1;4;22c";
        assert_eq!(of(refuses, false), screen(Protocol::Sixel, WIDTH));
        assert_eq!(of("\x1b[?62;22c", true), screen(Protocol::Iterm, WIDTH));
        // 14 and 24 do not match 4, and an empty answer matches nothing.
        assert_eq!(of("\x1b[?62;14;24c", false), None);
        assert_eq!(of("", false), None);
        assert!(is_whole(kitty.as_bytes()) && !is_whole(b"\x1b_Gi=31;OK\x1b\\"));
    }

    #[test]
    fn a_picture_is_sent_whole_in_every_protocol() {
        let picture = RgbImage::from_fn(90, 70, |x, y| {
            image::Rgb([(x * 7 + y) as u8, (x * y) as u8, (x ^ y) as u8])
        });
        let png = super::png(&picture).unwrap();
        let words = |protocol| {
            ScreenImages {
                protocol,
                width: 100,
            }
            .words(&picture)
            .unwrap()
        };
        let kitty = words(Protocol::Kitty);
        let parts: String = kitty
            .split("\x1b_G")
            .skip(1)
            .map(|part| {
                let (head, rest) = part.split_once(';').unwrap();
                let data = rest.split('\x1b').next().unwrap();
                assert!(head.ends_with("m=1") == (data.len() == CHUNK), "{head}");
                data
            })
            .collect();
        assert!(kitty.matches("\x1b_G").count() > 1);
        assert_eq!(STANDARD.decode(parts).unwrap(), png);
        let iterm = words(Protocol::Iterm);
        let data = iterm.split_once(':').unwrap().1.trim_end_matches("\x07\n");
        assert_eq!(STANDARD.decode(data).unwrap(), png);
        let sixel = words(Protocol::Sixel);
        assert!(sixel.starts_with("\x1bP") && sixel.ends_with("\x1b\\"));
    }
}
