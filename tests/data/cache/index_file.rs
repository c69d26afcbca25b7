//! The sealed index of a cache, damaged, missing or of another version: the error text, and that
//! the build which it names writes the index again.

use std::fs;
use std::path::Path;

use featherload::cache::{self, BuildReport, CacheBuilder, FindingKind};
use featherload::index::Label;
use featherload::{Error, Index, Source};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use twox_hash::XxHash3_128;

use super::scene::{assert_same, files};
use super::small::{built, flip, small, source, summaries, verified};

fn build_again(source: &Path, folder: &Path, force: bool) -> BuildReport {
    let again = CacheBuilder::new(Source::detect(source).unwrap(), folder, small());
    again.num_workers(0).force(force).build().unwrap()
}

/// The errors of loading and of `info` for the index.
fn refused(folder: &Path) -> [Error; 2] {
    [
        Index::cache(folder).unwrap_err(),
        cache::info(folder).unwrap_err(),
    ]
}

/// The older format without stamps of shards after the root, with the same version number.
fn without_stamps(mut index: Vec<u8>) -> Vec<u8> {
    let root_at = u64::from_le_bytes(*index[48..].first_chunk().unwrap()) as usize;
    assert_eq!(index[root_at], b'/');
    index.truncate(root_at + 1);
    index[32..48].copy_from_slice(&XxHash3_128::oneshot(b"/").to_le_bytes());
    index[56..64].copy_from_slice(&1u64.to_le_bytes());
    index
}

/// A manifest with the hash of this index, and with the right checksum.
fn manifest_with(index: &[u8], manifest: &[u8]) -> Vec<u8> {
    let mut text = String::from_utf8(manifest.to_vec()).unwrap();
    let mut set = |field: &str, hash: u128| {
        let field = format!("\"{field}\": \"");
        // The cache's own index is the last field of this name. The source has one too.
        let at = text.rfind(&field).unwrap() + field.len();
        text.replace_range(at..at + 32, &format!("{hash:032x}"));
        XxHash3_128::oneshot(text.as_bytes())
    };
    set("index", XxHash3_128::oneshot(index));
    let checksum = set("checksum", 0);
    set("checksum", checksum);
    text.into_bytes()
}

#[test]
fn an_index_of_another_form_is_told_and_made_again() {
    let source = source();
    let dir = built(source.path(), small());
    let whole = files(dir.path());
    let at = |name: &str| dir.path().join(name);
    assert_eq!(
        manifest_with(&whole["index.fli"], &whole["manifest.json"]),
        whole["manifest.json"]
    );
    let old = without_stamps(whole["index.fli"].clone());
    let mut older = whole["index.fli"].clone();
    older[8] = 1;
    let forms = [(&old, "root bytes is impossible"), (&older, "version 1")];
    for (index, why) in forms {
        for force in [false, true] {
            fs::write(at("index.fli"), index).unwrap();
            let e = Index::load(&at("index.fli")).unwrap_err().to_string();
            assert!(e.contains(why), "{e}");
            let manifest = manifest_with(index, &whole["manifest.json"]);
            fs::write(at("manifest.json"), manifest).unwrap();
            for e in refused(dir.path()) {
                let words = "is of another version: run `featherload cache build` again";
                assert!(e.is_usage() && e.to_string().contains(words), "{e}");
            }
            let expected = ("index.fli".to_owned(), FindingKind::IndexFile, None);
            assert_eq!(summaries(&verified(dir.path(), 1).findings), [expected]);
            let report = build_again(source.path(), dir.path(), force);
            assert!(report.complete && report.kept_samples == 41);
            assert_same(&whole, &files(dir.path()), why);
            assert_eq!(Index::cache(dir.path()).unwrap().len(), 41);
        }
    }
}

#[test]
fn an_index_that_is_damaged_or_missing_is_made_again_by_the_build_that_is_named() {
    let source = source();
    let dir = built(source.path(), small());
    let whole = files(dir.path());
    let index = dir.path().join("index.fli");
    type Hurt = fn(&Path);
    let damage: Hurt = |index| flip(index, 150, 2);
    let remove: Hurt = |index| fs::remove_file(index).unwrap();
    let other: Hurt = |index| {
        let bytes = without_stamps(fs::read(index).unwrap());
        fs::write(index, bytes).unwrap();
    };
    let fifo: Hurt = |index| {
        fs::remove_file(index).unwrap();
        mkfifo(index, Mode::S_IRWXU).unwrap();
    };
    let again = "run the same `featherload cache build` again";
    for (hurt, why, how) in [
        (damage, "damaged", again),
        (other, "damaged", again),
        (fifo, "not an index file", again),
        (remove, "is missing", "build the cache again"),
    ] {
        hurt(&index);
        for e in refused(dir.path()) {
            assert!(e.is_usage(), "{e}");
            let output = e.to_string();
            for words in [dir.path().to_str().unwrap(), "index.fli", why, how] {
                assert!(output.contains(words), "{words}: {e}");
            }
            assert!(!output.contains("featherload index"), "{e}");
        }
        assert!(build_again(source.path(), dir.path(), false).complete);
        assert_same(&whole, &files(dir.path()), why);
    }
}

/// Writes an index, and a manifest with its hash.
fn forge(folder: &Path, mut index: Vec<u8>, manifest: &str) {
    let root_at = u64::from_le_bytes(*index[48..].first_chunk().unwrap()) as usize;
    let hash = XxHash3_128::oneshot(&index[64..root_at]);
    index[16..32].copy_from_slice(&hash.to_le_bytes());
    fs::write(
        folder.join("manifest.json"),
        manifest_with(&index, manifest.as_bytes()),
    )
    .unwrap();
    fs::write(folder.join("index.fli"), index).unwrap();
}

/// Where the index has the offsets of samples, their sizes, and the first samples of shards.
fn places(index: &[u8]) -> [usize; 3] {
    let samples = u64::from_le_bytes(*index[64..].first_chunk().unwrap()) as usize;
    // Widths of the ends of paths, of labels and of sizes: 4 bytes each.
    assert_eq!(index[73..76], [4, 4, 4]);
    let offsets = 128 + 8 * samples;
    [offsets, offsets + 8 * samples, offsets + 12 * samples]
}

/// A manifest with the right hash of the index does not make the index trustworthy: the same author
/// may have forged both.
#[test]
fn an_index_names_what_the_manifests_have_and_nothing_else() {
    let source = source();
    let dir = built(source.path(), small());
    let whole = files(dir.path());
    let manifest = String::from_utf8(whole["manifest.json"].clone()).unwrap();
    let good = &whole["index.fli"];
    let [offsets, sizes, firsts] = places(good);
    // The new name has the same length, so that nothing else changes.
    let name = |index: &mut Vec<u8>, other: &[u8; 16]| {
        let at = index
            .windows(16)
            .position(|w| w == b"shard-000000.tar")
            .unwrap();
        index[at..at + 16].copy_from_slice(other);
    };
    let at = |index: &mut Vec<u8>, at: usize, bytes: &[u8]| {
        index[at..at + bytes.len()].copy_from_slice(bytes);
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Vec<u8>));
    let refused_at_once: [Change<'_>; 6] = [
        ("../ in a name", &|i| name(i, b"../other-x00.tar")),
        ("another folder", &|i| name(i, b"/../other-x0.tar")),
        ("an absolute name", &|i| name(i, b"/tmp/other-0.tar")),
        ("an offset", &|i| {
            at(i, offsets, &(1u64 << 40).to_le_bytes())
        }),
        ("a size", &|i| at(i, sizes, &u32::MAX.to_le_bytes())),
        ("a first sample", &|i| {
            at(i, firsts + 8, &0u64.to_le_bytes())
        }),
    ];
    for (what, change) in refused_at_once {
        let mut index = good.clone();
        change(&mut index);
        forge(dir.path(), index, &manifest);
        for e in refused(dir.path()) {
            assert!(
                e.is_usage() && e.to_string().contains("index.fli"),
                "{what}: {e}"
            );
        }
        let findings = verified(dir.path(), 1).findings;
        assert!(
            findings.iter().any(|f| f.kind == FindingKind::IndexFile),
            "{what}: {findings:?}"
        );
    }

    // A wrong offset within the shard is found by the manifest of the shard.
    let mut index = good.clone();
    at(&mut index, offsets, &1024u64.to_le_bytes());
    forge(dir.path(), index, &manifest);
    assert_eq!(Index::cache(dir.path()).unwrap().len(), 41);
    let findings = verified(dir.path(), 1).findings;
    let expected = ("index.fli".to_owned(), FindingKind::IndexFile, Some(0));
    assert_eq!(summaries(&findings), [expected]);
    let both = (findings[0].message.split_once(", and its manifest has ")).unwrap();
    assert!(
        both.0.contains(" at 1024") && both.1.contains(" at 512"),
        "{both:?}"
    );

    // Changes numbers of samples and names in the manifest only.
    let first = manifest.find("\"name\": \"shard-000000\"").unwrap();
    let count = manifest[first..].find("\"samples\": ").unwrap() + first + 11;
    let count = count..count + manifest[count..].find(',').unwrap();
    for (what, range, other) in [
        ("samples of a shard", count, u64::MAX.to_string()),
        (
            "the name of a shard",
            first + 9..first + 21,
            "../other-x00".to_owned(),
        ),
    ] {
        let mut changed = manifest.clone();
        changed.replace_range(range, &other);
        forge(dir.path(), good.clone(), &changed);
        for e in refused(dir.path()) {
            assert!(e.is_usage(), "{what}: {e}");
        }
        assert!(!verified(dir.path(), 1).is_good(), "{what}");
    }
}

/// Tars have the labels too, and the manifests have the hashes of the tars.
#[test]
fn a_label_of_the_index_that_is_not_the_tars_is_reported_with_both() {
    let source = source();
    let dir = built(source.path(), small());
    let whole = files(dir.path());
    let manifest = String::from_utf8(whole["manifest.json"].clone()).unwrap();
    let mut index = whole["index.fli"].clone();
    // Labels follow the ends of paths, 4 bytes each.
    let samples = u64::from_le_bytes(*index[64..].first_chunk().unwrap()) as usize;
    let labels = 128 + 4 * samples;
    assert_eq!(index[labels..labels + 4], 0i32.to_le_bytes());
    index[labels..labels + 4].copy_from_slice(&1i32.to_le_bytes());
    forge(dir.path(), index, &manifest);
    assert_eq!(Index::cache(dir.path()).unwrap().label(0), Label::Class(1));
    let findings = verified(dir.path(), 1).findings;
    let [finding] = &findings[..] else {
        panic!("{findings:?}");
    };
    let sample = finding.sample.as_ref().unwrap();
    assert_eq!((finding.kind, sample.id), (FindingKind::IndexFile, Some(0)));
    let says = format!(
        "has the label 1 in the index, and '{}.cls' says 0",
        sample.key
    );
    assert!(finding.message.ends_with(&says), "{}", finding.message);
}
