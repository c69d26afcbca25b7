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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use featherload::{Loader, Recipe, Sampler, Source};
use nix::sys::signal::Signal;

use crate::cache::scene::{Files, assert_same as assert_same_files, files};
use crate::common::command::{code, command, object, stderr};
use crate::common::processes::{send, wait_for};
use crate::common::rows::{assert_same, stream};
use crate::common::{FEATHERLOAD, data};

const SAMPLES: usize = 60;

/// A web server of a folder. The first part of a path names the fault.
struct Server {
    folder: PathBuf,
    /// Requests, by method and path.
    asked: Mutex<HashMap<String, u64>>,
    /// Milliseconds that each request waits.
    pause: AtomicU64,
}

impl Server {
    fn start(folder: &Path) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Arc::new(Self {
            folder: folder.to_owned(),
            asked: Mutex::default(),
            pause: AtomicU64::new(0),
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
            let mut header = String::new();
            while reader.read_line(&mut header)? > 2 {
                header.clear();
            }
            let mut words = line.split_whitespace();
            let (method, target) = (words.next().unwrap(), words.next().unwrap());
            let times = {
                let mut asked = self.asked.lock().unwrap();
                let times = asked.entry(format!("{method} {target}")).or_default();
                *times += 1;
                *times
            };
            thread::sleep(Duration::from_millis(self.pause.load(Ordering::Relaxed)));
            self.answer(stream, (method == "HEAD", times), target)?;
        }
    }

    /// Never a range, as of many simple servers.
    fn answer(
        &self,
        mut stream: &TcpStream,
        (is_head, times): (bool, u64),
        target: &str,
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
            "changes" => say(&whole(if is_head { "one" } else { "two" }), &bytes),
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
            .args(["--on-error", "skip"])
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
    let mut all = files(folder);
    all.retain(|name, _| name.starts_with("shard-"));
    all
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
    let quirks = ["no-head", "busy", "breaks", "moved", "ok"];
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
        (format!("{}/denied/{image}", scene.web), "denies access"),
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
        (format!("{}/changes/{image}", scene.web), "was overwritten"),
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
    // Nothing that has an answer is asked again.
    let before = scene.server.asked("HEAD");
    let out = scene.build(&list, "again", &["--on-error", "skip"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(scene.server.asked("HEAD"), before);
    assert_same_files(&shards(&scene.at("again")), &shards(&dst), "again");
}

#[test]
fn an_object_that_changed_between_two_requests_is_noticed() {
    let scene = scene();
    let list = scene.at("list.txt");
    let changing = format!("{}/changes-once/{}", scene.web, scene.names[0]);
    let rows = [changing, scene.address(1, "ok")];
    fs::write(&list, rows.map(|row| format!("{row} 1\n")).concat()).unwrap();
    let out = scene.build(&list, "got", &[]);
    let e = stderr(&out);
    assert_eq!(code(&out), 2, "{e}");
    assert!(
        e.contains("/changes-once/") && e.contains("start the run again"),
        "{e}"
    );
    // The next run asks again.
    let out = scene.build(&list, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(
        scene
            .server
            .asked("HEAD /changes-once")
            .values()
            .sum::<u64>(),
        2
    );
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
    let rows = |path: &dyn Fn(usize) -> String| {
        let rows = (0..SAMPLES).map(|number| format!("{},{}\n", path(number), number % 5));
        format!("path,label\n{}", rows.collect::<String>())
    };
    let want = scene.want(&rows(&|number| scene.names[number].clone()));
    let list = scene.at("list.csv");
    fs::write(
        &list,
        rows(&|number| format!("{}/ok/{}?n=0", scene.web, scene.names[number])),
    )
    .unwrap();
    scene.server.pause.store(100, Ordering::Relaxed);
    let count = |method: &str| scene.server.asked(method).values().sum::<u64>();
    let kills: [(&str, u64); 2] = [("HEAD", 30), ("GET", 20)];
    for (method, least) in kills {
        let mut child = scene
            .building(&list, "got", &[])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(Duration::from_secs(60), || {
            let is_there = count(method) >= least;
            (is_there || child.try_wait().unwrap().is_some()).then_some(())
        });
        send(child.id() as i32, Signal::SIGKILL);
        child.wait().unwrap();
    }
    scene.server.pause.store(0, Ordering::Relaxed);
    let out = scene.build(&list, "got", &[]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_same_files(&shards(&scene.at("got")), &want, "after kills");
    // 64 requests run at a time, so the first kill may have lost all of its answers. The second one
    // lost none.
    let asked = scene.server.asked("HEAD");
    assert!(asked.values().all(|times| *times <= 2), "{asked:?}");
    // One pack was begun and killed.
    let got = scene.server.asked("GET");
    assert!(got.values().all(|times| *times <= 2), "{got:?}");
}
