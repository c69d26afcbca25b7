//! Lists and tables of addresses: caches and batches are those of a list of local files, each
//! object is requested once, dead addresses are named, and kills lose no answer.
//!
//! The stores are a folder (`file://`) and a web server of this test, with every fault of one.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use featherload::{Loader, Recipe, Sampler, Source};
use nix::sys::signal::Signal;

use crate::cache::scene::{Files, assert_same as assert_same_files, files_that};
use crate::common::command::{code, command, object, stderr};
use crate::common::processes::{send, wait_for};
use crate::common::rows::{assert_same, stream};
use crate::common::{FEATHERLOAD, data};
use crate::parquet::scene::{int32, plain, texts, write};

const SAMPLES: usize = 60;

/// A web server of a folder. The first part of a path names the fault.
struct Server {
    folder: PathBuf,
    /// Requests, by method and path.
    asked: Mutex<HashMap<String, u64>>,
    /// Milliseconds that each request waits.
    pause: AtomicU64,
    /// Requests for `slow/` ask for fewer requests until then.
    slow_until: Mutex<Option<Instant>>,
    /// Objects of `gone/` are denied, or vanish when they are downloaded.
    denies: AtomicBool,
    vanishes: AtomicBool,
    /// Connections end without an answer.
    is_down: AtomicBool,
    /// From this number of requests on, they do.
    down_after: AtomicU64,
}

impl Server {
    fn start(folder: &Path) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Arc::new(Self {
            folder: folder.to_owned(),
            asked: Mutex::default(),
            pause: AtomicU64::new(0),
            slow_until: Mutex::default(),
            denies: AtomicBool::new(false),
            vanishes: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            down_after: AtomicU64::new(u64::MAX),
        });
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.serve(&stream));
            }
        });
        (server, address)
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let (mut header, mut range) = (String::new(), None);
            while reader.read_line(&mut header)? > 2 {
                if let Some(given) = header.to_ascii_lowercase().strip_prefix("range: bytes=") {
                    range = Some(given.trim().to_owned());
                }
                header.clear();
            }
            if self.down_after.load(Ordering::Relaxed) == 0 {
                self.is_down.store(true, Ordering::Relaxed);
            }
            if self.is_down.load(Ordering::Relaxed) {
                return stream.shutdown(Shutdown::Both);
            }
            let left = |n: u64| Some(n.saturating_sub(1)).filter(|_| n < u64::MAX);
            let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.down_after.fetch_update(set, get, left);
            let mut words = line.split_whitespace();
            let (method, target) = (words.next().unwrap(), words.next().unwrap());
            let times = {
                let mut asked = self.asked.lock().unwrap();
                let times = asked.entry(format!("{method} {target}")).or_default();
                *times += 1;
                *times
            };
            thread::sleep(Duration::from_millis(self.pause.load(Ordering::Relaxed)));
            self.answer(stream, (method == "HEAD", times), target, range.as_deref())?;
        }
    }

    /// Only some faults know ranges, as of many simple servers.
    fn answer(
        &self,
        mut stream: &TcpStream,
        (is_head, times): (bool, u64),
        target: &str,
        range: Option<&str>,
    ) -> std::io::Result<()> {
        let path = target.split('?').next().unwrap().trim_start_matches('/');
        let (fault, name) = path.split_once('/').unwrap_or(("", path));
        let name = name.replace("%20", " ");
        let mut say = |head: &str, body: &[u8]| {
            stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes())?;
            match is_head {
                true => Ok(()),
                false => stream.write_all(body),
            }
        };
        let Ok(bytes) = fs::read(self.folder.join(&name)) else {
            return say("404 Not Found\r\nContent-Length: 0", b"");
        };
        let whole = |tag: &str| {
            format!(
                "200 OK\r\nETag: \"{tag}\"\r\nContent-Length: {}",
                bytes.len()
            )
        };
        match fault {
            "no-head" if is_head => say("403 Forbidden\r\nContent-Length: 0", b""),
            "no-length" => {
                say("200 OK\r\nConnection: close", &bytes)?;
                stream.shutdown(Shutdown::Both)
            }
            "endless" => {
                say("200 OK\r\nConnection: close", &bytes)?;
                if is_head {
                    return stream.shutdown(Shutdown::Both);
                }
                loop {
                    stream.write_all(&[7; 4096])?;
                }
            }
            // Another fingerprint with each response; the bytes stay.
            "random" => say(&whole(&format!("{is_head}{times}")), &bytes),
            "rewritten" => say(
                &format!(
                    "200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:{:02}:{:02} GMT\r\n\
                     Content-Length: {}",
                    times % 60,
                    if is_head { 1 } else { 2 },
                    bytes.len()
                ),
                &bytes,
            ),
            "modified" => say(
                &format!(
                    "200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                     Content-Length: {}",
                    bytes.len()
                ),
                &bytes,
            ),
            "unstable" => {
                let mut bytes = bytes.clone();
                let last = bytes.len() - 1;
                bytes[last] = times as u8;
                say(&whole(&format!("{is_head}{times}")), &bytes)
            }
            "no-head-501" if is_head => say("501 Not Implemented\r\nContent-Length: 0", b""),
            "no-head-500" if is_head => say("500 Broken\r\nContent-Length: 0", b""),
            "no-head-501" | "no-head-500" if range == Some("0-0") => {
                let length = bytes.len();
                say(
                    &format!(
                        "206 Partial Content\r\nETag: \"x\"\r\nContent-Length: 1\r\n\
                         Content-Range: bytes 0-0/{length}"
                    ),
                    &bytes[..1],
                )
            }
            "no-head-501" | "no-head-500" if range.is_some() => {
                say("500 Broken\r\nContent-Length: 0", b"")
            }
            "slow"
                if self
                    .slow_until
                    .lock()
                    .unwrap()
                    .is_some_and(|end| Instant::now() < end) =>
            {
                match times % 2 {
                    0 => say(
                        "429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0",
                        b"",
                    ),
                    _ => say("503 Slow Down\r\nContent-Length: 0", b""),
                }
            }
            "gone" if self.denies.load(Ordering::Relaxed) => {
                say("403 Forbidden\r\nContent-Length: 0", b"")
            }
            "gone" if !is_head && self.vanishes.load(Ordering::Relaxed) => {
                say("404 Not Found\r\nContent-Length: 0", b"")
            }
            "broken" => say("500 Broken\r\nContent-Length: 0", b""),
            "changes-once" if is_head && times == 1 => say(&whole("former"), &bytes),
            "vanishes" if !is_head => say("404 Not Found\r\nContent-Length: 0", b""),
            "lies" if is_head => {
                let length = bytes.len() + 5;
                say(
                    &format!("200 OK\r\nETag: \"x\"\r\nContent-Length: {length}"),
                    b"",
                )
            }
            "busy" if times == 1 => say("503 Slow Down\r\nContent-Length: 0", b""),
            "breaks" if !is_head && times == 1 => {
                say(&whole("x"), &bytes[..bytes.len() / 2])?;
                stream.shutdown(Shutdown::Both)
            }
            "moved" => say(
                &format!("302 Found\r\nLocation: /ok/{name}\r\nContent-Length: 0"),
                b"",
            ),
            "large" => say("200 OK\r\nContent-Length: 2000000000", b""),
            "denied" => say("401 Unauthorized\r\nContent-Length: 0", b""),
            _ => say(&whole("x"), &bytes),
        }
    }

    /// Requests of a method, by path without the query.
    fn asked(&self, method: &str) -> HashMap<String, u64> {
        let asked = self.asked.lock().unwrap();
        let of = asked.iter().filter_map(|(request, times)| {
            let target = request.strip_prefix(method)?.trim_start();
            Some((target.to_owned(), *times))
        });
        of.collect()
    }
}

struct Scene {
    dir: tempfile::TempDir,
    folder: PathBuf,
    names: Vec<String>,
    server: Arc<Server>,
    web: String,
}

fn scene() -> Scene {
    let (images, dir) = (data(1, SAMPLES as u64), tempfile::tempdir().unwrap());
    let folder = dir.path().join("pictures");
    let class = fs::read_dir(images.path()).unwrap().next().unwrap();
    fs::rename(class.unwrap().path(), &folder).unwrap();
    let entries = fs::read_dir(&folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // The server decodes its name. Keys of a cache come from the address as it is written.
    fs::copy(folder.join(&names[3]), folder.join("a b.jpg")).unwrap();
    fs::rename(folder.join(&names[3]), folder.join("a%20b.jpg")).unwrap();
    names[3] = "a%20b.jpg".to_owned();
    let (server, web) = Server::start(&folder);
    Scene {
        dir,
        folder,
        names,
        server,
        web,
    }
}

impl Scene {
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The address of a picture: by turns in the folder and on the server.
    fn address(&self, number: usize, fault: &str) -> String {
        let name = &self.names[number];
        match number % 3 {
            0 => format!("{}/{fault}/{name}", self.web),
            1 => format!("{}/{fault}/{name}?w=1&sig=a%2Fb", self.web),
            _ => format!("file://{}/{name}", self.folder.display()),
        }
    }

    /// The command for a list, with one process.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        command.args(["--fetch-dir", self.at("fetched").to_str().unwrap()]);
        command.env("NO_PROXY", "127.0.0.1");
        command.env("FEATHERLOAD_TEST_PATIENCE", "2s");
        command
    }

    fn build(&self, list: &Path, dst: &str, more: &[&str]) -> std::process::Output {
        self.building(list, dst, more).output().unwrap()
    }

    fn building(&self, list: &Path, dst: &str, more: &[&str]) -> Command {
        let (dst, list) = (self.at(dst), list.to_str().unwrap());
        let mut command = self.command(&["cache", "build", list, dst.to_str().unwrap()]);
        command.args(BUILD).args(more);
        command
    }

    /// A cache of a list of local files.
    fn want(&self, list: &str) -> Files {
        let (path, dst) = (self.folder.join("list.csv"), self.at("want"));
        fs::write(&path, list).unwrap();
        let words = [
            "cache",
            "build",
            path.to_str().unwrap(),
            dst.to_str().unwrap(),
        ];
        let out = command(&words)
            .args(BUILD)
            .args(["--on-error", "skip", "--force"])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", stderr(&out));
        shards(&dst)
    }
}

const BUILD: [&str; 8] = [
    "--encode",
    "jpeg:90",
    "--resize",
    "shorter:24",
    "--shard-samples",
    "10",
    "--num-workers",
    "1",
];

/// The tars, their indexes and their manifests.
fn shards(folder: &Path) -> Files {
    files_that(folder, |name| name.starts_with("shard-"))
}

#[test]
fn caches_and_batches_are_those_of_local_files() {
    let scene = scene();
    // Duplicates, near and far, with other labels.
    let order: Vec<usize> = (0..SAMPLES).chain([0, 1, SAMPLES - 1, 5, 5]).collect();
    let table = |path: &dyn Fn(usize) -> String| {
        let rows = order.iter().enumerate();
        let rows: Vec<String> = rows
            .map(|(row, number)| format!("{},{}\n", path(*number), row % 7))
            .collect();
        format!("URL,label\n{}", rows.concat())
    };
    let want = scene.want(&table(&|number| scene.names[number].clone()));
    let list = scene.at("list.csv");
    fs::write(&list, table(&|number| scene.address(number, "ok"))).unwrap();
    let out = scene.build(&list, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &want, "of addresses");
    let on_server = SAMPLES - SAMPLES / 3;
    for method in ["HEAD", "GET"] {
        let asked = scene.server.asked(method);
        assert_eq!(asked.len(), on_server, "{asked:?}");
        assert!(asked.values().all(|times| *times == 1), "{asked:?}");
    }
    // A text list, and the stream of a loader: nothing is requested again.
    let text = scene.at("list.txt");
    let rows = order.iter().enumerate();
    let rows: Vec<String> = rows
        .map(|(row, number)| format!("{} {}\n", scene.address(*number, "ok"), row % 7))
        .collect();
    fs::write(&text, rows.concat()).unwrap();
    let local = scene.folder.join("list.csv");
    let run = |source: Source| {
        let loader = Loader::builder(source).helper(FEATHERLOAD).batch_size(8);
        let loader = loader.recipe(Recipe::eval224()).num_workers(2);
        stream(&mut loader.sampler(Sampler::Shuffle).build().unwrap(), 1)
    };
    let of = |path: PathBuf| {
        let mut options = featherload::options::SourceOptions {
            path: Some(path.clone()),
            ..Default::default()
        };
        if path != local {
            options.fetch_dir = Some(scene.at("fetched"));
        }
        options.source(None).unwrap()
    };
    let want = run(of(local.clone()));
    assert_eq!(want.len(), order.len());
    assert_same(&run(of(text)), &want, "text");
    assert_same(&run(of(list.clone())), &want, "table");
    assert!(scene.server.asked("GET").values().all(|times| *times == 1));
    let list = list.to_str().unwrap();
    let out = scene.command(&["index", list, "--json"]).output().unwrap();
    assert_eq!(object(&out)["samples"], order.len());
}

#[test]
fn servers_with_quirks_are_read() {
    let scene = scene();
    let want = scene.want(&format!("path,label\n{}", {
        let rows = scene.names.iter().map(|name| format!("{name},1\n"));
        rows.collect::<String>()
    }));
    let quirks = [
        "no-head",
        "busy",
        "breaks",
        "moved",
        "ok",
        "no-head-501",
        "no-head-500",
        "random",
        "rewritten",
        "modified",
        "changes-once",
    ];
    let rows = (0..SAMPLES).map(|number| {
        let address = scene.address(number, quirks[number % quirks.len()]);
        format!("{{\"image_url\": \"{address}\", \"label\": 1}}\n")
    });
    let list = scene.at("list.jsonl");
    fs::write(&list, rows.collect::<String>()).unwrap();
    let out = scene.build(&list, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &want, "of quirks");
}

#[test]
fn dead_addresses_end_a_build_or_are_left_out_with_their_reasons() {
    let scene = scene();
    fs::write(scene.folder.join("text.jpg"), "no picture").unwrap();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let image = &scene.names[0];
    let dead = [
        (
            format!("{}/ok/none.jpg?sig=secret", scene.web),
            "does not exist",
        ),
        (
            format!("{}/large/{image}", scene.web),
            "an image has at most",
        ),
        (
            format!("{}/no-length/{image}", scene.web),
            "does not report its length",
        ),
        (
            format!("{}/endless/{image}", scene.web),
            "does not report its length",
        ),
        (format!("{}/denied/{image}", scene.web), "needs a login"),
        (format!("{}/broken/{image}", scene.web), "status code: 500"),
        (format!("http://{closed}/a.jpg"), "no data arrived"),
        (
            "http://no-such-host.invalid/a.jpg".to_owned(),
            "no data arrived",
        ),
        ("http://[/a.jpg".to_owned(), "is no valid address"),
        ("s3://bucket".to_owned(), "names no object"),
        (
            format!("file://{}/none.jpg", scene.folder.display()),
            "does not exist",
        ),
    ];
    // Found when they are downloaded.
    let late = [
        (
            format!("{}/vanishes/{image}", scene.web),
            "does not exist any more",
        ),
        (
            format!("{}/unstable/{image}", scene.web),
            "changes while it is read",
        ),
        (format!("{}/lies/{image}", scene.web), "was overwritten"),
        (
            format!("{}/ok/text.jpg", scene.web),
            "no known image format",
        ),
    ];
    let good: Vec<usize> = (0..20).collect();
    let mut rows: Vec<String> = good.iter().map(|n| scene.address(*n, "ok")).collect();
    rows.extend(dead.iter().chain(&late).map(|(address, _)| address.clone()));
    let list = scene.at("list.csv");
    let text = rows.iter().map(|row| format!("{row},3\n"));
    fs::write(&list, format!("url,label\n{}", text.collect::<String>())).unwrap();

    let out = scene.build(&list, "got", &[]);
    let e = stderr(&out);
    assert_eq!(code(&out), 2, "{e}");
    let count = format!("{} of {} addresses have no image", dead.len(), rows.len());
    assert!(e.contains(&count) && e.contains("/ok/none.jpg ("), "{e}");
    // Nothing is downloaded before all addresses have answers.
    let downloaded = scene.server.asked("GET");
    let lies = downloaded.keys().filter(|name| name.starts_with("/lies/"));
    assert!(!e.contains("secret") && lies.count() == 0, "{e}");

    let out = scene.build(&list, "got", &["--on-error", "skip", "--json"]);
    assert!(out.status.success(), "{}", stderr(&out));
    let report: serde_json::Value = serde_json::from_slice(
        out.stdout
            .split(|byte| *byte == b'\n')
            .rfind(|line| !line.is_empty())
            .unwrap(),
    )
    .unwrap();
    let report = &report["report"];
    let lost = (dead.len() + late.len()) as u64;
    assert_eq!(report["skipped"], lost, "{report}");
    assert_eq!(report["samples"], good.len());
    // Each is in the manifest of its shard, by its number and with its reason.
    let dst = scene.at("got");
    let manifests = shards(&dst);
    let manifests = manifests.iter().filter(|(name, _)| name.ends_with(".json"));
    let all: String = manifests
        .map(|(_, text)| String::from_utf8_lossy(text).into_owned())
        .collect();
    for (address, reason) in dead.iter().chain(&late) {
        assert!(all.contains(reason), "{address}: {reason} in {all}");
    }
    let local = good
        .iter()
        .map(|number| format!("{},3\n", scene.names[*number]));
    let local = local.collect::<String>();
    let gone: String = (0..lost)
        .map(|number| format!("gone-{number}.jpg,3\n"))
        .collect();
    let want = scene.want(&format!("path,label\n{local}{gone}"));
    let tars = |all: Files| {
        let tars = all.into_iter().filter(|(name, _)| name.ends_with(".tar"));
        tars.collect::<Files>()
    };
    assert_same_files(&tars(shards(&dst)), &tars(want), "of the others");
    // Nothing that has an answer is asked again. One address tells that the network works.
    let before = scene.server.asked("HEAD");
    let out = scene.build(&list, "again", &["--on-error", "skip"]);
    assert!(out.status.success(), "{}", stderr(&out));
    let mut after = scene.server.asked("HEAD");
    after.retain(|name, times| before.get(name) != Some(times));
    after.retain(|name, _| !name.contains("/broken/"));
    assert!(after.len() <= 1, "{after:?}");
    assert_same_files(&shards(&scene.at("again")), &shards(&dst), "again");
}

#[test]
fn an_object_of_another_length_is_noticed() {
    let scene = scene();
    // One that changed while no run was there, before its download.
    let local = scene.at("local.txt");
    fs::write(&local, format!("{} 1\n", scene.address(2, "ok"))).unwrap();
    let words = ["index", local.to_str().unwrap()];
    assert!(scene.command(&words).output().unwrap().status.success());
    let other = fs::read(scene.folder.join(&scene.names[7])).unwrap();
    fs::write(
        scene.folder.join(&scene.names[2]),
        [other, vec![0; 9]].concat(),
    )
    .unwrap();
    let out = scene.build(&local, "other", &[]);
    assert!(stderr(&out).contains("was overwritten"), "{}", stderr(&out));
    let out = scene.build(&local, "other", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
}

#[test]
fn a_killed_build_asks_for_nothing_twice() {
    let scene = scene();
    // Many addresses of the same pictures, so that a kill comes in the middle.
    let count = 10 * SAMPLES;
    let rows = |path: &dyn Fn(usize) -> String| {
        let rows = (0..count).map(|row| format!("{},{}\n", path(row), row % 5));
        format!("path,label\n{}", rows.collect::<String>())
    };
    let want = scene.want(&rows(&|row| scene.names[row % SAMPLES].clone()));
    let list = scene.at("list.csv");
    let address = |row: usize| {
        let name = &scene.names[row % SAMPLES];
        format!("{}/ok/{name}?n={}", scene.web, row / SAMPLES)
    };
    fs::write(&list, rows(&address)).unwrap();
    let asked = |method: &str| scene.server.asked(method).values().sum::<u64>();
    let kills: [(&str, u64, u64); 2] = [("HEAD", 300, 300), ("GET", 100, 30)];
    for (method, least, pause) in kills {
        scene.server.pause.store(pause, Ordering::Relaxed);
        let before = asked("HEAD");
        let mut child = scene
            .building(&list, "got", &[])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(Duration::from_secs(60), || {
            let is_there = asked(method) >= least;
            (is_there || child.try_wait().unwrap().is_some()).then_some(())
        });
        send(child.id() as i32, Signal::SIGKILL);
        assert!(!child.wait().unwrap().success());
        if method == "HEAD" {
            assert!(asked("HEAD") - before < count as u64, "killed at the end");
        }
    }
    // Of the first kill those are lost that were running, and those of the last moment. The second
    // kill lost none.
    let heads = asked("HEAD");
    assert!(heads < count as u64 + 250, "{heads}");
    scene.server.pause.store(0, Ordering::Relaxed);
    let out = scene.build(&list, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(asked("HEAD"), heads);
    assert_same_files(&shards(&scene.at("got")), &want, "after kills");
    // One pack was begun and killed.
    let got = scene.server.asked("GET");
    assert!(got.values().all(|times| *times <= 2), "{got:?}");
}

impl Scene {
    /// A CSV list of addresses with one label.
    fn list(&self, name: &str, addresses: &[String]) -> PathBuf {
        let rows = addresses.iter().map(|address| format!("{address},1\n"));
        let list = self.at(name);
        fs::write(&list, format!("url,label\n{}", rows.collect::<String>())).unwrap();
        list
    }

    fn on_web(&self, fault: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
        let names = self.names[numbers].iter();
        names
            .map(|name| format!("{}/{fault}/{name}", self.web))
            .collect()
    }

    /// A cache of local files with one label.
    fn want_of(&self, numbers: impl Iterator<Item = usize>) -> Files {
        let rows = numbers.map(|number| format!("{},1\n", self.names[number]));
        self.want(&format!("path,label\n{}", rows.collect::<String>()))
    }
}

#[test]
fn a_host_that_asks_for_fewer_requests_loses_nothing() {
    let scene = scene();
    let addresses = scene.on_web("slow", 0..40);
    let list = scene.list("list.csv", &addresses);
    // Longer than the patience with a host that gives no answer.
    *scene.server.slow_until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(6));
    let out = scene.build(&list, "got", &["--on-error", "skip"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &scene.want_of(0..40), "slow");
    let asked: u64 = scene.server.asked("HEAD").values().sum();
    assert!(asked < 40 + 100, "{asked}");
    // The same while objects are downloaded.
    let again = scene.list("again.csv", &scene.on_web("slow", 40..60));
    scene.server.pause.store(20, Ordering::Relaxed);
    let mut child = scene.building(&again, "second", &["--on-error", "skip"]);
    let mut child = child
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(Duration::from_secs(60), || {
        (scene.server.asked("GET").len() >= 42).then_some(())
    });
    *scene.server.slow_until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(10));
    assert!(child.wait().unwrap().success());
    let want = scene.want_of(40..60);
    assert_same_files(&shards(&scene.at("second")), &want, "slow later");
    // One that says nothing else is given up, with its name and the reason.
    *scene.server.slow_until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(600));
    let never = scene.list(
        "never.csv",
        &[scene.on_web("slow", 0..1)[0].clone() + "?other"],
    );
    let mut command = scene.building(&never, "never", &[]);
    command.env("FEATHERLOAD_TEST_MOST_SLOW", "3s");
    let e = stderr(&command.output().unwrap());
    assert!(
        e.contains("/slow/") && e.contains("asks for fewer requests"),
        "{e}"
    );
}

#[test]
fn many_addresses_of_a_dead_host_are_each_named() {
    let scene = scene();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut addresses = scene.on_web("ok", 0..20);
    addresses.extend((0..3000).map(|n| format!("http://{closed}/{n}.jpg")));
    let list = scene.list("list.csv", &addresses);
    let out = scene.build(&list, "got", &["--on-error", "skip"]);
    assert!(out.status.success(), "{}", stderr(&out));
    let tars = |all: Files| {
        let tars = all.into_iter().filter(|(name, _)| name.ends_with(".tar"));
        let tars = tars.filter(|(_, bytes)| bytes.len() > 1024);
        tars.map(|(_, bytes)| bytes).collect::<Vec<_>>()
    };
    let want = tars(scene.want_of(0..20));
    assert!(tars(shards(&scene.at("got"))) == want, "other tars");
    let folders = fs::read_dir(scene.at("fetched")).unwrap().flatten();
    let mut folders = folders.filter(|entry| {
        let name = entry.file_name();
        name.to_str().unwrap().starts_with("addresses-")
    });
    let report = folders.next().unwrap().path().join("dead.jsonl");
    let report = fs::read_to_string(report).unwrap();
    assert_eq!(report.lines().count(), 3000);
    assert!(
        report
            .lines()
            .all(|line| line.contains("no answer") || line.contains("no data"))
    );
}

#[test]
fn what_one_run_left_out_another_one_asks_for() {
    let scene = scene();
    let mut addresses = scene.on_web("ok", 0..10);
    addresses.push(scene.on_web("gone", 10..11).remove(0));
    let list = scene.list("list.csv", &addresses);
    scene.server.vanishes.store(true, Ordering::Relaxed);
    let out = scene.build(&list, "skipped", &["--on-error", "skip", "--json"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(object(&out)["report"]["skipped"], 1);
    // A run that refuses dead objects finds it still gone, and says so.
    let e = stderr(&scene.build(&list, "got", &[]));
    assert!(
        e.contains("/gone/") && e.contains("does not exist any more"),
        "{e}"
    );
    // Then it is there. Only it is downloaded.
    scene.server.vanishes.store(false, Ordering::Relaxed);
    let before = scene.server.asked("GET");
    let out = scene.build(&list, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &scene.want_of(0..11), "then");
    let mut after = scene.server.asked("GET");
    after.retain(|name, times| before.get(name) != Some(times));
    assert!(
        after.keys().all(|name| name.contains("/gone/")),
        "{after:?}"
    );
    // An address that was denied, and is not any more.
    scene.server.denies.store(true, Ordering::Relaxed);
    let list = scene.list("denied.csv", &scene.on_web("gone", 20..22));
    let e = stderr(&scene.build(&list, "denied", &[]));
    assert!(
        e.contains("2 of 2 addresses") && e.contains("signature has expired"),
        "{e}"
    );
    scene.server.denies.store(false, Ordering::Relaxed);
    let out = scene.build(&list, "denied", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
}

#[test]
fn a_list_that_has_grown_asks_only_for_what_is_new() {
    let scene = scene();
    let first = scene.list("first.csv", &scene.on_web("ok", 10..40));
    let out = scene.build(&first, "first", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    // New ones at both ends, and another order.
    let mut addresses = scene.on_web("ok", 0..50);
    addresses.swap(20, 30);
    let grown = scene.list("grown.csv", &addresses);
    let out = scene.build(&grown, "grown", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    for method in ["HEAD", "GET"] {
        let asked = scene.server.asked(method);
        assert_eq!(asked.len(), 50);
        assert!(asked.values().all(|times| *times == 1), "{asked:?}");
    }
    let mut order: Vec<usize> = (0..50).collect();
    order.swap(20, 30);
    let want = scene.want_of(order.into_iter());
    assert_same_files(&shards(&scene.at("grown")), &want, "grown");
    // A pack of the first list that was changed here is not used.
    let packs = fs::read_dir(scene.at("fetched")).unwrap().flatten();
    for folder in packs.filter(|entry| entry.path().join("list.json").exists()) {
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            if file.file_name().to_str().unwrap().contains(".tar") {
                let mut bytes = fs::read(file.path()).unwrap();
                bytes
                    .iter_mut()
                    .skip(600)
                    .step_by(7)
                    .for_each(|byte| *byte ^= 1);
                fs::write(file.path(), bytes).unwrap();
            }
        }
    }
    let part = scene.list("part.csv", &scene.on_web("ok", 5..15));
    let out = scene.build(&part, "part", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("part")), &scene.want_of(5..15), "part");
}

#[test]
fn a_run_without_network_keeps_what_is_known() {
    let scene = scene();
    let list = scene.list("list.csv", &scene.on_web("ok", 0..20));
    let words = ["index", list.to_str().unwrap()];
    let out = scene.command(&words).output().unwrap();
    assert!(out.status.success(), "{}", stderr(&out));
    scene.server.is_down.store(true, Ordering::Relaxed);
    let mut more = scene.on_web("ok", 0..20);
    more.extend(scene.on_web("ok", 20..25));
    let more = scene.list("more.csv", &more);
    let out = scene.build(&more, "got", &["--on-error", "skip"]);
    let e = stderr(&out);
    assert_eq!(code(&out), 2, "{e}");
    assert!(e.contains("gives an answer"), "{e}");
    // Known answers need no network; their bytes do.
    let out = scene.build(&list, "first", &["--on-error", "skip"]);
    assert_eq!(code(&out), 2, "{}", stderr(&out));
    scene.server.is_down.store(false, Ordering::Relaxed);
    let out = scene.build(&more, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &scene.want_of(0..25), "then");
    let asked = scene.server.asked("HEAD");
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
}

#[test]
fn two_runs_at_a_time_ask_once_and_make_one_cache_each() {
    let scene = scene();
    scene.server.pause.store(50, Ordering::Relaxed);
    let list = scene.list("list.csv", &scene.on_web("ok", 0..SAMPLES));
    let start = |dst: &str| {
        let mut command = scene.building(&list, dst, &[]);
        let command = command.stderr(Stdio::piped()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let both = [start("one"), start("two")];
    for child in both {
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", stderr(&out));
    }
    let want = scene.want_of(0..SAMPLES);
    for dst in ["one", "two"] {
        assert_same_files(&shards(&scene.at(dst)), &want, dst);
    }
    for method in ["HEAD", "GET"] {
        let asked = scene.server.asked(method);
        assert!(
            asked.values().all(|times| *times == 1),
            "{method} {asked:?}"
        );
    }
    // Another folder of downloads makes the same cache, its index included.
    let dst = scene.at("three");
    let words = [
        "cache",
        "build",
        list.to_str().unwrap(),
        dst.to_str().unwrap(),
    ];
    let mut command = command(&words);
    command.args(["--fetch-dir", scene.at("elsewhere").to_str().unwrap()]);
    command.args(BUILD).env("NO_PROXY", "127.0.0.1");
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", stderr(&out));
    let whole = |dst: &str| {
        let keep = |name: &str| name.starts_with("shard-") || name.ends_with(".fli");
        files_that(&scene.at(dst), keep)
    };
    assert_same_files(&whole("three"), &whole("one"), "elsewhere");
}

#[test]
fn lists_with_secrets_or_files_elsewhere_are_refused_and_say_nothing_of_secrets() {
    let scene = scene();
    let refused = |rows: &[u8]| {
        let list = scene.at("bad.txt");
        fs::write(&list, rows).unwrap();
        let out = scene.build(&list, "bad", &[]);
        assert_eq!(code(&out), 2, "{}", stderr(&out));
        let e = stderr(&out);
        assert!(!e.contains("hunter2"), "{e}");
        e
    };
    let e = refused(b"https://me:hunter2@127.0.0.1/a.jpg 1\n");
    assert!(e.contains("user name or a password"), "{e}");
    let e = refused(b"az://box/a.jpg?sig=hunter2 1\n");
    assert!(e.contains("az://box"), "{e}");
    let query = format!("{}/ok/none.jpg?sig=hunter2 1\n", scene.web);
    let e = refused(query.as_bytes());
    assert!(e.contains("/ok/none.jpg (does not exist"), "{e}");
    let e = refused(b"http://127.0.0.1/\xff.jpg 1\n");
    assert!(e.contains("no UTF-8"), "{e}");
    let e = refused(b"file:///etc/hostname 1\n");
    assert!(e.contains("`--allow-outside`"), "{e}");
    let out = scene.build(&scene.at("bad.txt"), "bad", &["--allow-outside"]);
    assert!(!stderr(&out).contains("leads out"), "{}", stderr(&out));
}

#[test]
fn parquet_files_with_addresses_are_lists() {
    let scene = scene();
    let addresses = scene.on_web("ok", 0..30);
    let urls: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let captions: Vec<String> = (0..30).map(|row| format!("the caption {row}")).collect();
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    let table = scene.at("table.parquet");
    let columns = [
        texts("url", &urls),
        texts("caption", &captions),
        int32("label", vec![1; 30]),
    ];
    write(&table, &columns, (30, 11), plain());
    let out = scene.build(&table, "got", &["--path-column", "url"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &scene.want_of(0..30), "parquet");
    // The column is found by its name, and captions come with the samples.
    let out = scene.build(&table, "captions", &["--columns", "caption"]);
    assert!(out.status.success(), "{}", stderr(&out));
    let words = ["index", scene.at("captions").to_str().unwrap(), "--json"].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let out = command(&words).output().unwrap();
    let report = object(&out);
    assert_eq!(report["samples"], 30);
    assert!(report.to_string().contains("caption"), "{report}");
    let both = ["--path-column", "url", "--image-column", "caption"];
    let e = stderr(&scene.build(&table, "both", &both));
    assert!(e.contains("name one column"), "{e}");
    assert!(scene.server.asked("GET").values().all(|times| *times == 1));
}

/// The number of samples that a build reports as left out.
fn left_out(out: &std::process::Output) -> u64 {
    assert!(out.status.success(), "{}", stderr(out));
    object(out)["report"]["skipped"].as_u64().unwrap()
}

impl Scene {
    fn bring_up(&self) {
        self.server.down_after.store(u64::MAX, Ordering::Relaxed);
        self.server.is_down.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_network_that_fails_in_the_middle_leaves_nothing_out() {
    let scene = scene();
    let list = scene.list("list.csv", &scene.on_web("ok", 0..SAMPLES));
    // In the middle of the questions.
    scene.server.pause.store(10, Ordering::Relaxed);
    scene.server.down_after.store(30, Ordering::Relaxed);
    let out = scene.build(&list, "got", &["--on-error", "skip"]);
    let e = stderr(&out);
    assert_eq!(code(&out), 2, "{e}");
    assert!(e.contains("gives an answer any more"), "{e}");
    assert!(
        e.contains("of 60 have one") && e.contains("start the run again"),
        "{e}"
    );
    let asked = scene.server.asked("HEAD").len();
    assert!((1..SAMPLES).contains(&asked), "{asked}");
    // In the middle of the downloads.
    scene.bring_up();
    scene
        .server
        .down_after
        .store((SAMPLES - asked + 20) as u64, Ordering::Relaxed);
    let out = scene.build(&list, "got", &["--on-error", "skip"]);
    let e = stderr(&out);
    assert_eq!(code(&out), 2, "{e}");
    assert!(e.contains("No other address answers either"), "{e}");
    assert!(!scene.server.asked("GET").is_empty());
    scene.bring_up();
    let out = scene.build(&list, "got", &["--on-error", "skip", "--json"]);
    assert_eq!(left_out(&out), 0);
    let want = scene.want_of(0..SAMPLES);
    assert_same_files(&shards(&scene.at("got")), &want, "after two outages");
    let asked = scene.server.asked("HEAD");
    assert!(asked.values().all(|times| *times <= 2), "{asked:?}");
}

#[test]
fn a_host_without_an_answer_is_asked_again_by_the_next_build() {
    let scene = scene();
    let (other, web) = Server::start(&scene.folder);
    let mut addresses = scene.on_web("ok", 0..20);
    let of_other = scene.names[20..40].iter();
    addresses.extend(of_other.map(|name| format!("{web}/ok/{name}")));
    let list = scene.list("list.csv", &addresses);
    other.is_down.store(true, Ordering::Relaxed);
    let out = scene.build(&list, "got", &["--on-error", "skip", "--json"]);
    assert_eq!(left_out(&out), 20);
    assert!(
        stderr(&out).contains("20 of 40 addresses give no answer"),
        "{}",
        stderr(&out)
    );
    // It answers, and then goes down while its objects are downloaded.
    other.is_down.store(false, Ordering::Relaxed);
    other.down_after.store(25, Ordering::Relaxed);
    let out = scene.build(&list, "got", &["--on-error", "skip", "--json"]);
    let left = left_out(&out);
    assert!((1..20).contains(&left), "{left} {}", stderr(&out));
    // Into the same folder: only shards that lack samples are made again.
    other.down_after.store(u64::MAX, Ordering::Relaxed);
    other.is_down.store(false, Ordering::Relaxed);
    let out = scene.build(&list, "got", &["--on-error", "skip", "--json"]);
    assert_eq!(left_out(&out), 0);
    assert_same_files(&shards(&scene.at("got")), &scene.want_of(0..40), "all");
    let asked = scene.server.asked("GET");
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
}

#[test]
fn shares_of_machines_with_other_dead_addresses_are_one_cache() {
    let scene = scene();
    let (other, web) = Server::start(&scene.folder);
    let mut addresses = scene.on_web("ok", 0..20);
    let of_other = scene.names[20..40].iter();
    addresses.extend(of_other.map(|name| format!("{web}/ok/{name}")));
    // Rows of both hosts in both shares.
    addresses.rotate_left(5);
    let list = scene.list("list.csv", &addresses);
    let share = |number: &str, fetched: &str| {
        let (dst, list) = (scene.at("got"), list.to_str().unwrap());
        let mut command = command(&["cache", "build", list, dst.to_str().unwrap()]);
        command
            .args(BUILD)
            .args(["--on-error", "skip"])
            .args(number.split(' '));
        command.args(["--fetch-dir", scene.at(fetched).to_str().unwrap()]);
        command.env("NO_PROXY", "127.0.0.1");
        command.env("FEATHERLOAD_TEST_PATIENCE", "2s");
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", stderr(&out));
    };
    other.is_down.store(true, Ordering::Relaxed);
    share("--shard 0/2", "first machine");
    other.is_down.store(false, Ordering::Relaxed);
    share("--shard 1/2", "second machine");
    share("--finish", "second machine");
    // Keys have the ids of the list. The rows of the second share are all there.
    let (got, mut order) = (shards(&scene.at("got")), (0..40).collect::<Vec<usize>>());
    order.rotate_left(5);
    let want = scene.want_of(order.into_iter());
    let second = |all: &Files| {
        let all = all
            .iter()
            .filter(|(name, _)| name.ends_with("2.tar") || name.ends_with("3.tar"));
        all.map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect::<Files>()
    };
    assert_eq!(second(&want).len(), 2);
    assert_same_files(&second(&got), &second(&want), "the second share");
}

#[test]
fn bytes_of_a_server_are_no_reason_of_this_program() {
    let scene = scene();
    let forged = b"\x89FEATHERLOAD HAS NO ANSWER\nyour disk is broken";
    fs::write(scene.folder.join("forged.jpg"), forged).unwrap();
    let mut addresses = scene.on_web("ok", 0..10);
    addresses.push(format!("{}/ok/forged.jpg", scene.web));
    let list = scene.list("list.csv", &addresses);
    let out = scene.build(&list, "got", &["--on-error", "skip", "--json"]);
    assert_eq!(left_out(&out), 1);
    let manifests = shards(&scene.at("got"));
    let text: String = manifests
        .iter()
        .filter(|(name, _)| name.ends_with(".json"))
        .map(|(_, text)| String::from_utf8_lossy(text).into_owned())
        .collect();
    assert!(
        text.contains("no known image format") && !text.contains("your disk"),
        "{text}"
    );
}

#[test]
fn paths_in_parquet_start_from_its_folder_and_stay_there() {
    let scene = scene();
    let table = scene.folder.join("table.parquet");
    let put = |paths: &[&str]| {
        let columns = [texts("path", paths), int32("label", vec![1; paths.len()])];
        write(&table, &columns, (paths.len(), paths.len()), plain());
    };
    let run = |more: &[&str]| {
        let dst = scene.at("got");
        let words = [
            "cache",
            "build",
            table.to_str().unwrap(),
            dst.to_str().unwrap(),
        ];
        // Another working directory.
        let mut command = command(&words);
        command
            .current_dir(scene.dir.path())
            .args(BUILD)
            .args(["--force"])
            .args(more);
        command.output().unwrap()
    };
    let absolute = scene.folder.join(&scene.names[1]);
    put(&[&scene.names[0], absolute.to_str().unwrap()]);
    let out = run(&[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(
        &shards(&scene.at("got")),
        &scene.want_of(0..2),
        "its folder",
    );
    // Another folder, as of other tables.
    let moved = scene.at("moved.parquet");
    fs::rename(&table, &moved).unwrap();
    let words = ["index", moved.to_str().unwrap()];
    let e = stderr(&command(&words).args(["--root", "/"]).output().unwrap());
    assert!(!e.contains("no effect"), "{e}");
    let outside = scene.at("outside.jpg");
    fs::copy(scene.folder.join(&scene.names[2]), &outside).unwrap();
    for path in ["../outside.jpg", outside.to_str().unwrap()] {
        put(&[&scene.names[0], path]);
        let e = stderr(&run(&[]));
        assert!(e.contains("row 1") && e.contains("allow"), "{e}");
        let out = run(&["--allow-outside"]);
        assert!(out.status.success(), "{}", stderr(&out));
    }
}
