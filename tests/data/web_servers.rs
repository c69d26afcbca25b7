//! Web servers that serve no ranges, or ranges without the object's length; connections that
//! break; fetchers that are killed while they open a data set. The client is the real one.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::common::command::command;
use crate::common::processes::{children, send, wait_for};
use crate::stores::make_cache;

const LIMIT: Duration = Duration::from_secs(20);

/// How the server answers.
#[derive(Clone, Copy, PartialEq)]
enum Ranges {
    Served,
    /// All of the object, whatever range was asked for.
    No,
    /// `Content-Range: bytes a-b/*`.
    OfUnknownLength,
    /// Neither ranges nor lengths.
    NoLength,
}

/// Requests for one file, which are not answered yet.
#[derive(Default)]
struct Hold {
    asked: AtomicU32,
    is_over: AtomicBool,
}

/// A server of a folder for as long as the test runs.
struct Server {
    folder: PathBuf,
    ranges: Ranges,
    /// Whether the first answer with a tar breaks off in its middle, for each tar.
    breaks: bool,
    holds: Option<(&'static str, Arc<Hold>)>,
    /// Bytes of tars that were sent, by their names.
    sent: Arc<Mutex<HashMap<String, u64>>>,
}

impl Server {
    fn new(folder: &Path, ranges: Ranges) -> Self {
        Self {
            folder: folder.to_owned(),
            ranges,
            breaks: true,
            holds: None,
            sent: Arc::default(),
        }
    }

    /// Its address.
    fn start(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Arc::new(self);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.serve(&stream));
            }
        });
        address
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let (mut from, mut header) = (None, String::new());
            loop {
                header.clear();
                reader.read_line(&mut header)?;
                let text = header.trim().to_ascii_lowercase();
                if let Some(range) = text.strip_prefix("range: bytes=") {
                    from = range
                        .split('-')
                        .next()
                        .and_then(|n| n.parse::<usize>().ok());
                }
                if text.is_empty() {
                    break;
                }
            }
            let mut words = line.split_whitespace();
            let (method, target) = (words.next(), words.next().unwrap_or("/"));
            let name = target.rsplit('/').next().unwrap_or_default();
            if let Some((held, hold)) = &self.holds
                && *held == name
            {
                hold.asked.fetch_add(1, Ordering::Relaxed);
                while !hold.is_over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            self.answer(stream, method == Some("HEAD"), name, from)?;
        }
    }

    fn answer(
        &self,
        mut stream: &TcpStream,
        is_head: bool,
        name: &str,
        from: Option<usize>,
    ) -> std::io::Result<()> {
        let Ok(bytes) = fs::read(self.folder.join(name)) else {
            return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let from = from.filter(|_| !matches!(self.ranges, Ranges::No | Ranges::NoLength));
        let body = &bytes[from.unwrap_or(0).min(bytes.len())..];
        let range = from.map(|from| {
            let length = match self.ranges {
                Ranges::OfUnknownLength => "*".to_owned(),
                _ => bytes.len().to_string(),
            };
            format!(
                "Content-Range: bytes {from}-{}/{length}\r\n",
                bytes.len() - 1
            )
        });
        let (status, range) = match range {
            Some(range) => ("206 Partial Content", range),
            None => ("200 OK", String::new()),
        };
        let length = match self.ranges {
            Ranges::NoLength => "Connection: close\r\n".to_owned(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        // With a tag the client asks for the rest by itself.
        let tag = match name.as_bytes().last_chunk::<5>() {
            Some([b'0' | b'2' | b'4' | b'6' | b'8', ..]) => format!("ETag: \"{name}\"\r\n"),
            _ => String::new(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nLast-Modified: Wed, 26 Nov 2025 16:40:00 GMT\r\n{tag}{range}{length}\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let is_tar = name.ends_with(".tar");
        let is_first = is_tar && !is_head && {
            let mut sent = self.sent.lock().unwrap();
            let is_new = !sent.contains_key(name);
            sent.entry(name.to_owned()).or_default();
            is_new
        };
        let body = match is_first && self.breaks {
            true => &body[..body.len() / 2],
            false => body,
        };
        if !is_head {
            stream.write_all(body)?;
        }
        if is_tar && !is_head {
            *self
                .sent
                .lock()
                .unwrap()
                .entry(name.to_owned())
                .or_default() += body.len() as u64;
        }
        if (is_first && self.breaks) || self.ranges == Ranges::NoLength {
            stream.shutdown(Shutdown::Both)?;
        }
        Ok(())
    }
}

/// A run over the cache at `address`, with its shards in `fetched`.
fn started(address: &str, fetched: &Path) -> Child {
    let fetched = fetched.to_str().unwrap();
    let address = format!("{address}/cache");
    let args = [
        "bench",
        &address,
        "--fetch-dir",
        fetched,
        "--batch-size",
        "8",
    ];
    command(&args)
        .args(["--epochs", "1", "--num-workers", "1", "--recipe", "eval224"])
        .env("NO_PROXY", "127.0.0.1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn run(address: &str, fetched: &Path) -> Output {
    started(address, fetched).wait_with_output().unwrap()
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// The files of a folder that end so, by name.
fn tars(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut all: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.ends_with(".tar"))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
}

/// The one folder in it.
fn inside(fetched: &Path) -> PathBuf {
    let mut entries = fs::read_dir(fetched).unwrap();
    entries.next().unwrap().unwrap().path()
}

#[test]
fn a_connection_that_breaks_costs_a_shard_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    make_cache(&cache, 90);
    let want = tars(&cache);
    for (name, ranges) in [
        ("served", Ranges::Served),
        ("no", Ranges::No),
        ("unknown", Ranges::OfUnknownLength),
    ] {
        let server = Server::new(&cache, ranges);
        let sent = server.sent.clone();
        let fetched = dir.path().join(name);
        let out = run(&server.start(), &fetched);
        assert!(out.status.success(), "{name}: {}", stderr(&out));
        assert!(tars(&inside(&fetched)) == want, "{name}");
        for (tar, bytes) in &want {
            let (all, half) = (bytes.len() as u64, bytes.len() as u64 / 2);
            let sent = sent.lock().unwrap()[tar];
            match ranges {
                // The last answer has all. Those that came where a range was due are dropped
                // unread: a small one was sent by then, for each try of the client.
                Ranges::No => assert!((half + all..=half + 4 * all).contains(&sent), "{sent}"),
                // No byte comes twice.
                _ => assert_eq!(sent, all, "{name} {tar}"),
            }
        }
    }
}

#[test]
fn a_part_that_an_earlier_run_left_is_no_hindrance_without_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    make_cache(&cache, 90);
    let mut server = Server::new(&cache, Ranges::No);
    server.breaks = false;
    let address = server.start();
    let fetched = dir.path().join("fetched");
    assert!(run(&address, &fetched).status.success());
    let shard = inside(&fetched).join("shard-000004.tar");
    let bytes = fs::read(&shard).unwrap();
    fs::remove_file(&shard).unwrap();
    fs::write(shard.with_extension("tar.part"), &bytes[..1000]).unwrap();
    let out = run(&address, &fetched);
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(fs::read(&shard).unwrap() == bytes);
}

#[test]
fn a_server_that_says_no_length_is_refused_with_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    make_cache(&cache, 90);
    let address = Server::new(&cache, Ranges::NoLength).start();
    let out = run(&address, &dir.path().join("fetched"));
    let message = stderr(&out);
    assert!(!out.status.success(), "{message}");
    assert!(
        message.contains("/cache/manifest.json: the server does not report its length")
            && message.contains("Content-Length"),
        "{message}"
    );
}

#[test]
fn a_fetcher_that_is_killed_while_it_opens_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    make_cache(&cache, 90);
    for held in ["manifest.json", "index.fli"] {
        let hold = Arc::new(Hold::default());
        let mut server = Server::new(&cache, Ranges::Served);
        server.holds = Some((held, hold.clone()));
        let run = started(&server.start(), &dir.path().join(held));
        for kill in 1..=3 {
            let is_asked = || (hold.asked.load(Ordering::Relaxed) == kill).then_some(());
            wait_for(LIMIT, is_asked).expect("not asked for");
            let all = children(run.id() as i32);
            let fetcher = all.iter().find(|p| p.name == "featherload-fe");
            assert!(send(fetcher.expect("no fetcher").pid, Signal::SIGKILL));
        }
        hold.is_over.store(true, Ordering::Relaxed);
        let out = run.wait_with_output().unwrap();
        let message = stderr(&out);
        assert!(out.status.success(), "{held}: {message}");
        // No text of Rust's.
        assert!(message.contains("was ended by SIGKILL"), "{message}");
        assert!(
            !message.contains("Signaled") && !message.contains("Pid("),
            "{message}"
        );
    }
}
