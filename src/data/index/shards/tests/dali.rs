//! A DALI index beside a shard: used instead of the headers, or ignored.

use crate::data::index::shards::tests::*;

#[test]
fn dalis_index_takes_the_place_of_the_headers_while_it_is_newer_and_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    let walked = read().0.hash();
    let written = Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    assert_eq!(written, [dir.path().join("a.idx")]);
    assert_eq!(read().0.hash(), walked);
    // A missing header in the middle is not noticed.
    let good = fs::read(&path).unwrap();
    let text = fs::read_to_string(&written[0]).unwrap();
    let mut bytes = good.clone();
    bytes[5 * 2048..][..512].fill(7);
    fs::write(&path, bytes).unwrap();
    fs::write(&written[0], &text).unwrap();
    assert_eq!(read().0.hash(), walked);
    // It is noticed if the index names other bytes, or is older.
    fs::write(&written[0], text.replace(" 1 9.cls", " 2 9.cls")).unwrap();
    assert_eq!(read().0.len(), 9);
    fs::write(&written[0], &text).unwrap();
    assert_eq!(read().0.len(), 10);
    let shard_time = fs::metadata(&path).unwrap().modified().unwrap();
    set_time(&written[0], shard_time - Duration::from_secs(1));
    assert_eq!(read().0.len(), 9);
    // The index names fewer samples than there are.
    fs::write(&path, &good).unwrap();
    let lines: Vec<_> = text.lines().collect();
    for (from, to) in [(1, 10), (2, 11), (4, 6)] {
        let some = lines[from..to].join("\n");
        fs::write(&written[0], format!("v1.2 {}\n{some}\n", to - from)).unwrap();
        assert_eq!(read().0.hash(), walked, "{from}..{to}");
    }
}

#[test]
fn an_older_index_makes_no_good_shard_a_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let idx = dir.path().join("a.idx");
    let (folder, options) = kept_in(dir.path());
    let read = || {
        let _ = fs::remove_dir_all(&folder);
        let (index, report) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
        (index.len(), report.damaged, files(&folder).len())
    };
    // wds2idx counts each member without a dot as a sample.
    let members = [
        ("README", ""),
        ("1.jpg", ""),
        ("LICENSE", ""),
        ("2.jpg", ""),
    ];
    write(&path, &members);
    let text = "v1.2 4\nREADME 512 0 README\njpg 1024 0 1.jpg\nLICENSE 1536 0 LICENSE\n\
                jpg 2048 0 2.jpg\n";
    fs::write(&idx, text).unwrap();
    assert_eq!(DaliIndex::samples_at(&idx), Some(2));
    let (file, len) = crate::data::shard::open(&path).unwrap();
    assert!(DaliIndex::read(&idx, &file, len).is_ok());
    assert_eq!(read(), (2, vec![], 1));
    set_time(&idx, SystemTime::UNIX_EPOCH);
    assert_eq!(read(), (2, vec![], 1));
    // A smaller shard replaces a larger one.
    ten(&path);
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    write(&path, &[("1.jpg", "")]);
    set_time(&idx, SystemTime::UNIX_EPOCH);
    assert_eq!(read(), (1, vec![], 1));
    // With a newer index the difference is reported.
    set_time(&path, SystemTime::UNIX_EPOCH);
    set_time(&idx, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let (samples, damaged, kept) = read();
    assert_eq!((samples, damaged[0].samples_missing, kept), (1, Some(9), 0));
    // The shard is cut, beside the index of wds2idx. One sample is lost, and LICENSE is not a
    // sample.
    write(&path, &members);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..1024]).unwrap();
    fs::write(&idx, text).unwrap();
    set_time(&idx, SystemTime::UNIX_EPOCH);
    let (samples, damaged, _) = read();
    assert_eq!((samples, damaged[0].samples_missing), (1, Some(1)));
}

#[test]
fn what_a_wrong_index_makes_of_a_good_shard_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    let text = "t".repeat(2 << 20);
    let members = [
        ("0.jpg", "a"),
        ("0.cls", "0"),
        ("1.jpg", "a"),
        ("1.cls", "1"),
        ("1.txt", &text),
        ("2.jpg", "a"),
        ("2.cls", "2"),
    ];
    write(&path, &members);
    let walked = read().0.hash();
    let idx = Index::write_dali_indexes(slice::from_ref(&path))
        .unwrap()
        .remove(0);
    let text = fs::read_to_string(&idx).unwrap();
    for (from, to) in [
        // A label that is too long: everything up to the next sample.
        (
            "cls 3584 1 1.cls txt 4608 2097152 1.txt",
            "cls 3584 2098176 1.cls",
        ),
        // A field that appears twice.
        ("txt 4608 2097152 1.txt", "cls 4608 2097152 1.cls"),
        ("cls 3584 1 1.cls", "cls 3584 2 1.cls"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text);
        fs::write(&idx, other).unwrap();
        assert_eq!(read().0.hash(), walked, "{to}");
    }
}

#[test]
fn a_file_that_is_no_index_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (path, idx) = (dir.path().join("a.tar"), dir.path().join("a.idx"));
    ten(&path);
    let (file, len) = crate::data::shard::open(&path).unwrap();
    // Larger than any memory, so reading it would fail.
    fs::write(&idx, "RIFF").unwrap();
    let large = File::options().write(true).open(&idx).unwrap();
    large.set_len(1 << 43).unwrap();
    let e = DaliIndex::read(&idx, &file, len).unwrap_err();
    assert!(matches!(e, IdxFault::Version), "{e}");
    assert_eq!(DaliIndex::samples_at(&idx), None);
}

#[test]
fn no_index_is_written_for_names_with_blanks_or_damaged_shards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let told = |shard: &Path| {
        let e = Index::write_dali_indexes(&[shard.to_owned()]).unwrap_err();
        assert!(e.is_usage() && !dir.path().join("a.idx").exists());
        e.to_string()
    };
    write(&path, &[("a.jpg", ""), ("b c.jpg", "")]);
    let e = told(&path);
    assert!(e.contains("a.tar: the member \"b c.jpg\""), "{e}");
    ten(&path);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..3100]).unwrap();
    assert!(told(&path).contains("a damaged shard gets no index"));
    write(&path, &[("README", "")]);
    assert!(told(&path).contains("no samples"));
}
