//! Every `sh` block of the pages runs.
//!
//! A page runs in a folder of its own, from its first block to its last, so it must make
//! what it names, but for the data that [`DATA`] makes. A block of YAML that begins with
//! `# NAME.yaml` is that file. A block that cannot run here has `no-test (WHY)` behind `sh`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::page::{Page, pages};
use crate::common::FEATHERLOAD;

/// What pages take as there: class folders, a list of them, boxes, tars, a scene.
const DATA: &str = "
featherload demo photos/train --images 64
(cd photos && find train -name '*.jpg' | sort |
    sed 's:^train/class_0*\\([0-9][0-9]*\\)/.*:& \\1:') > photos/train.txt
(cd photos/train && for image in */*.jpg; do
    mkdir -p ../labels/${image%/*}
    echo 0 0.5 0.5 0.2 0.2 >../labels/${image%.jpg}.txt
done)
featherload cache build photos/train made --shard-size 3M
mkdir shards data
for i in 0 1; do mv made/shard-00000$i.tar shards/train-00000$i.tar; done
featherload demo scenes --scene
mv scenes/opencv data/fox
rm -r made scenes
";

/// Blocks that do not run, in all pages. A new one needs a reason.
const LEFT_OUT: usize = 22;

/// Runs lines of shell in `folder`. What it printed, if it failed.
fn shell(lines: &str, folder: &Path, bin: &Path) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let out = Command::new("bash")
        .args(["-euo", "pipefail", "-c", lines])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("XDG_CACHE_HOME", folder.join(".cache"))
        // What a config would take from a launcher.
        .env_remove("PADDLE_TRAINER_ID")
        .env_remove("PADDLE_TRAINERS_NUM")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    match out.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}\n{}",
            out.status,
            String::from_utf8_lossy(&out.stderr)
        )),
    }
}

/// The blocks of a page that are left out, each with its reason. Runs the others.
fn run(page: &Page, folder: &Path, bin: &Path, wrong: &mut String) -> (usize, Vec<String>) {
    for block in page.blocks.iter().filter(|b| b.info == "yaml") {
        let first = block.code.lines().next().unwrap_or_default();
        if let Some(name) = first
            .strip_prefix("# ")
            .filter(|name| name.ends_with(".yaml"))
        {
            fs::write(folder.join(name), &block.code).unwrap();
        }
    }
    let (mut ran, mut left_out) = (0, Vec::new());
    for block in page.blocks.iter().filter(|b| b.info.starts_with("sh")) {
        let at = format!("{}:{}", page.path.display(), block.line);
        let why = block
            .info
            .strip_prefix("sh no-test (")
            .and_then(|r| r.strip_suffix(')'));
        match why {
            Some(why) if !why.is_empty() => left_out.push(format!("{at}: {why}")),
            _ if block.info != "sh" => {
                writeln!(wrong, "{at}: write 'sh', or 'sh no-test (WHY)'").unwrap();
            }
            _ => {
                ran += 1;
                if let Err(message) = shell(&block.code, folder, bin) {
                    writeln!(wrong, "{at}: {message}").unwrap();
                }
            }
        }
    }
    (ran, left_out)
}

#[test]
fn blocks_of_pages_run() {
    let began = Instant::now();
    let dir = tempfile::tempdir().unwrap();
    let (data, bin) = (dir.path().join("data"), dir.path().join("bin"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&bin).unwrap();
    symlink(FEATHERLOAD, bin.join("featherload")).unwrap();
    shell(DATA, &data, &bin).unwrap();

    let (mut ran, mut left_out, mut wrong) = (0, Vec::new(), String::new());
    for (i, page) in pages().iter().enumerate() {
        let folder = dir.path().join(format!("page-{i}"));
        fs::create_dir(&folder).unwrap();
        for name in ["photos", "shards", "data"] {
            symlink(data.join(name), folder.join(name)).unwrap();
        }
        let (more, without) = run(page, &folder, &bin, &mut wrong);
        ran += more;
        left_out.extend(without);
    }
    // Not by `eprintln`, which the harness catches.
    let mut err = std::io::stderr();
    let seconds = began.elapsed().as_secs();
    writeln!(
        err,
        "{ran} blocks of pages ran in {seconds} s; SKIP: {}",
        left_out.len()
    )
    .unwrap();
    for without in &left_out {
        writeln!(err, "    {without}").unwrap();
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(left_out.len(), LEFT_OUT, "{left_out:#?}");
    assert!(ran > 20, "{ran}");
}

/// The doc tests compile the programs of the pages that `src/lib.rs` includes. Blocks that are
/// only `rust` are parts of a file.
#[test]
fn rust_blocks_of_pages_are_compiled() {
    let root =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let mut found = 0;
    for page in pages() {
        if page.blocks.iter().any(|block| block.info == "rust,no_run") {
            let line = format!("include_str!(\"../{}\")", page.path.display());
            assert!(root.contains(&line), "add {line} to src/lib.rs");
            found += 1;
        }
    }
    assert!(found > 1, "{found}");
}
