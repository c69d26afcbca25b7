//! Shards that are cut, damaged or end in zeros. Exactly the lost samples are counted.

use crate::data::index::shards::tests::*;

#[test]
fn a_damaged_tail_ends_the_shard_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    ten(&path);
    let whole = fs::read(&path).unwrap();
    // Cut inside the label of the eighth sample. Its image is there, and its label is not.
    fs::write(&path, &whole[..7 * 2048 + 1024 + 512]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.samples), (7, 7));
    let damaged = &report.damaged[0];
    assert_eq!((damaged.at, damaged.places), (7 * 2048 + 1024, 1));
    assert_eq!(
        (damaged.samples_incomplete, damaged.samples_missing),
        (1, None)
    );
    let told = damaged.to_string();
    assert!(
        told.contains("a.tar: cut off") && told.contains("'7.cls'"),
        "{told}"
    );
    assert!(told.contains("at least 1 samples lost"), "{told}");
    // Cut inside the image.
    fs::write(&path, &whole[..7 * 2048 + 512]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (7, 1));

    // With an index of the whole shard.
    fs::write(&path, &whole).unwrap();
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    fs::write(&path, &whole[..7 * 2048 + 512]).unwrap();
    let (index, report) = read();
    assert_eq!(index.len(), 7);
    let damaged = &report.damaged[0];
    assert_eq!(
        (damaged.samples_incomplete, damaged.samples_missing),
        (1, Some(2))
    );
    assert!(damaged.to_string().contains("3 samples lost"), "{damaged}");
    // Cut at a place that no reader notices.
    fs::write(&path, &whole[..6 * 2048]).unwrap();
    let (index, report) = read();
    assert_eq!(
        (index.len(), report.damaged[0].samples_missing),
        (6, Some(4))
    );
}

/// Reads a shard cut at `len` bytes, after a whole one. Returns the first sample of the cut shard,
/// and the reported damage.
fn cut_at(dir: &Path, whole: &[u8], len: usize, labels: &ShardLabels) -> (u64, DamagedShard) {
    let (a, b) = (dir.join("a.tar"), dir.join("cut.tar"));
    fs::write(&a, whole).unwrap();
    fs::write(&b, &whole[..len]).unwrap();
    let told = |e| panic!("cut at {len}: {e}");
    let (index, report) =
        Index::from_shards(&[a, b], &nowhere(labels.clone())).unwrap_or_else(told);
    assert_eq!(index.len(), report.samples);
    assert_eq!(report.skipped_total(), 0, "cut at {len}");
    assert_eq!(report.damaged.len(), 1, "cut at {len}");
    let damaged = report.damaged.into_iter().next().unwrap();
    assert!(damaged.path.ends_with("cut.tar"));
    (index.len() - 8, damaged)
}

#[test]
fn a_shard_cut_anywhere_costs_what_is_behind_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let long = "d".repeat(150);
    let json = json("json", "/v");
    for (fields, labels, prefix) in [
        ([("jpg", "5"), ("cls", "5")], &ShardLabels::Auto, ""),
        ([("cls", "5"), ("jpg", "5")], &ShardLabels::Auto, ""),
        ([("jpg", "5"), ("cls", "1 2 3")], &ShardLabels::Auto, &long),
        ([("ppm", "5"), ("json", "{\"v\":[1,2]}")], &json, ""),
        ([("jpg", "5"), ("txt", "cat")], &field("txt"), &long),
        // The first of these is not the image.
        ([("npy", "5"), ("png", "5")], &ShardLabels::None, ""),
    ] {
        let path = dir.path().join("whole.tar");
        let names: Vec<_> = (0..8)
            .flat_map(|i| fields.map(|(field, data)| (format!("{prefix}{i}.{field}"), data)))
            .collect();
        let members: Vec<_> = names
            .iter()
            .map(|(name, data)| (&name[..], *data))
            .collect();
        write(&path, &members);
        let whole = fs::read(&path).unwrap();
        let file = File::open(&path).unwrap();
        let mut walk = HeaderWalk::new(&file, whole.len() as u64);
        let mut ends = Vec::new();
        while let Some(member) = walk.next().unwrap() {
            ends.push((member.data_at + member.size) as usize);
        }
        let last = *ends.last().unwrap();
        for with_idx in [false, true] {
            let idx = dir.path().join("cut.idx");
            if with_idx {
                Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
                fs::rename(dir.path().join("whole.idx"), &idx).unwrap();
                set_time(&idx, SystemTime::UNIX_EPOCH);
            }
            // Each place at which a header or data may begin or end, and places between them.
            for len in (512..last).step_by(256).chain(ends.iter().copied()) {
                // A file beside the image is known by the sample before it.
                if len == last || (fields[0].0 == "npy" && len < ends[1]) {
                    continue;
                }
                let good = ends.chunks(2).filter(|ends| ends[1] <= len).count() as u64;
                let (samples, damaged) = cut_at(dir.path(), &whole, len, labels);
                assert_eq!(samples, good, "cut at {len}");
                let lost = damaged.samples_incomplete + damaged.samples_missing.unwrap_or(0);
                assert_eq!(damaged.samples_missing.is_some(), with_idx);
                let is_begun = ends.chunks(2).any(|ends| ends[0] <= len && len < ends[1]);
                match with_idx {
                    true => assert_eq!(samples + lost, 8, "cut at {len}"),
                    false => assert!(lost >= u64::from(is_begun) && samples + lost <= 8),
                }
            }
            let _ = fs::remove_file(idx);
        }
    }
}

#[test]
fn a_sample_in_front_of_a_cut_one_of_another_key_lost_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let members = [
        ("1.jpg", "5"),
        ("1.cls", "1"),
        ("2.jpg", "5"),
        ("3.jpg", "5"),
    ];
    write(&path, &members);
    let whole = fs::read(&path).unwrap();
    let read = |len: usize| {
        fs::write(&path, &whole[..len]).unwrap();
        Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto))
    };
    // Cut inside the data of the third sample: the second one never had a label.
    let e = read(3 * 1024 + 512).unwrap_err().to_string();
    assert!(e.contains("2.jpg: this sample has no label"), "{e}");
    // Cut inside its header: the label may have been there.
    let (index, report) = read(3 * 1024 + 511).unwrap();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (1, 1));
}

#[test]
fn the_last_damage_counts_behind_many() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let labels: Vec<_> = (0..50).map(|i| format!("{i:02}")).collect();
    let names = labels
        .iter()
        .flat_map(|i| [format!("{i}.jpg"), format!("{i}.cls")]);
    let names: Vec<_> = names.collect();
    let members: Vec<_> = names.iter().map(|name| (&name[..], "5")).collect();
    write(&path, &members);
    let mut bytes = fs::read(&path).unwrap();
    // Twenty samples lose the header of their label, and the last one loses its image.
    for i in 0..20 {
        bytes[i * 4096 + 1024] ^= 1;
    }
    bytes.truncate(49 * 2048 + 512);
    fs::write(&path, bytes).unwrap();
    let (index, report) =
        Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    let damaged = &report.damaged[0];
    assert_eq!((index.len(), damaged.places), (29, 21));
    assert_eq!(damaged.samples_incomplete, 21);
}

#[test]
fn zeros_in_the_place_of_a_tail_are_damage_that_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    ten(&path);
    let whole = fs::read(&path).unwrap();
    // A tar of large records ends like this.
    let padded = |zeros: usize| [&whole[..20480], &vec![0; zeros]].concat();
    fs::write(&path, padded((1 << 20) + 512)).unwrap();
    assert_eq!((read().0.len(), read().1.damaged.len()), (10, 0));
    fs::write(&path, padded((1 << 20) + 513)).unwrap();
    let (index, report) = read();
    let damaged = &report.damaged[0];
    assert_eq!((index.len(), damaged.at), (10, 20480));
    assert_eq!(damaged.bytes_lost, (1 << 20) + 513);
    assert!(
        damaged.to_string().contains("bytes after it are zero"),
        "{damaged}"
    );
    let e = Index::write_dali_indexes(slice::from_ref(&path)).unwrap_err();
    assert!(e.to_string().contains("damaged shard"), "{e}");

    // Space was allocated first, and writing stopped at any place.
    for at in (0..=20480).step_by(256) {
        let mut bytes = padded(2 << 20);
        bytes[at..].fill(0);
        fs::write(&path, &bytes).unwrap();
        let good = (0..10).filter(|i| i * 2048 + 1536 < at).count() as u64;
        // None of the shard, or all of it.
        if good == 0 {
            continue;
        }
        let (index, report) = read();
        assert_eq!(index.len(), good, "{at}");
        let damaged = &report.damaged[0];
        let is_begun = (0..10).any(|i| i * 2048 + 512 <= at && at <= i * 2048 + 1536);
        assert_eq!(damaged.samples_incomplete, u64::from(is_begun), "{at}");
        assert!(damaged.bytes_lost >= 2 << 20, "{at}");
    }
}

#[test]
fn tars_of_large_records_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let whole = fs::read(&path).unwrap();
    let damaged = |len: usize| {
        let mut bytes = whole[..20480].to_vec();
        bytes.resize(len, 0);
        fs::write(&path, bytes).unwrap();
        let read = Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto));
        let (index, report) = read.unwrap();
        assert_eq!(index.len(), 10);
        report.damaged.len()
    };
    // `tar -b` 2048, 4096, 20480, 32768; `dd bs=4M conv=sync`.
    for record in [1 << 20, 2 << 20, 10 << 20, 16 << 20, 4 << 20] {
        assert_eq!(damaged(record), 0, "{record}");
        assert_eq!(damaged(record + 10240), usize::from(record > 1 << 20));
    }
    // Above 16 MiB the length is not evidence of a record.
    assert_eq!(damaged(32 << 20), 1);
    assert_eq!(damaged(3 << 20), 1);
}

#[test]
fn in_front_of_zeros_a_member_that_ends_in_few_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let few = text([vec![7; 1000], vec![0; 511]].concat());
    let many = text([vec![7; 1000], vec![0; 512]].concat());
    let zeros = text(vec![0; 9]);
    let lost = |last: &[(&str, &str)], behind: &[u8]| {
        let first = [("1.npy", "5"), ("1.cls", "5")];
        write(&path, &[&first, last].concat());
        let mut bytes = fs::read(&path).unwrap();
        // Without its end blocks.
        bytes.truncate(bytes.len() - 1024);
        bytes.resize(bytes.len() + (3 << 20) + 512, 0);
        bytes.extend_from_slice(behind);
        fs::write(&path, bytes).unwrap();
        let read = Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto));
        let (index, report) = read.unwrap();
        let lost = report.damaged[0].samples_incomplete;
        assert_eq!((index.len(), report.damaged.len()), (2 - lost, 1));
        lost
    };
    // A tail of zeros, and a hole.
    for behind in [&[][..], b"data"] {
        let behind = behind.repeat(128);
        assert_eq!(lost(&[("2.cls", "5"), ("2.npy", &few)], &behind), 0);
        assert_eq!(lost(&[("2.cls", "5"), ("2.npy", &many)], &behind), 1);
        assert_eq!(lost(&[("2.cls", "5"), ("2.npy", &zeros)], &behind), 1);
        assert_eq!(lost(&[("2.npy", "5"), ("2.cls", &zeros)], &behind), 1);
        assert_eq!(lost(&[("2.npy", "5"), ("2.cls", "1\0")], &behind), 1);
        // A member that is not the last one is whole.
        let readme = ("README", &zeros[..]);
        assert_eq!(
            lost(&[("2.cls", "5"), ("2.npy", &many), readme], &behind),
            0
        );
    }
}

#[test]
fn a_shard_that_lacks_its_end_blocks_alone_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let idx = Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..20480]).unwrap();
    set_time(&idx[0], SystemTime::UNIX_EPOCH);
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged.len()), (10, 0));
    // By the count alone nothing is missing. The last sample has no label.
    fs::write(&path, &whole[..20480 - 1024]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (9, 1));
    assert_eq!(report.damaged[0].samples_missing, Some(0));
    // Without the index it is unknown what followed.
    fs::remove_file(&idx[0]).unwrap();
    fs::write(&path, &whole[..20480]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (10, 0));
    // A field that exists and is empty was not lost.
    let members = [
        ("1.jpg", ""),
        ("1.json", "{\"a\":1}"),
        ("2.jpg", ""),
        ("2.json", "{}"),
    ];
    write(&path, &members);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..4 * 512 + 2 * 512]).unwrap();
    let options = nowhere(json("json", "/a"));
    let e = Index::from_shards(slice::from_ref(&path), &options).unwrap_err();
    assert!(
        e.to_string().contains("2.jpg: this sample has no label"),
        "{e}"
    );
}

#[test]
fn a_damaged_header_costs_its_sample_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[3 * 2048] ^= 1;
    bytes[5 * 2048 + 1024] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let read = |labels| Index::from_shards(slice::from_ref(&path), &nowhere(labels)).unwrap();
    let (index, report) = read(ShardLabels::Auto);
    let left: Vec<_> = [0, 1, 2, 4, 6, 7, 8, 9].map(|i| format!("{i}.jpg")).into();
    assert_eq!(names(&index), left);
    let damaged = &report.damaged[0];
    assert_eq!(
        (damaged.at, damaged.places, damaged.bytes_lost),
        (3 * 2048, 2, 2048)
    );
    assert_eq!(damaged.samples_incomplete, 2);
    assert_eq!(report.skipped_total(), 0);
    // Without labels, the sample that lost its label is whole.
    assert_eq!(read(ShardLabels::None).0.len(), 9);
}
