//! Writes archives of every form with the `tar` crate, and reads them with the walk and with that
//! crate. Then damages the archives and reads them again.

use std::fs::File;
use std::io::{Cursor, Write};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::shard::walk::{
    DamageKind, HeaderWalk, ShardDamage, ShardEnding, ShardMember, WalkResult,
};

/// One entry of an archive.
#[derive(Debug, Clone)]
struct Made {
    name: String,
    size: usize,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Gnu,
    Ustar,
    Pax,
    /// The size in base 256.
    Binary,
    Folder,
    Link,
    /// GNU, with the target of the link in a header of its own.
    LongLink,
    PaxGlobal,
}

fn archive(entries: &[Made]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (i, made) in entries.iter().enumerate() {
        append(&mut builder, i, made);
    }
    builder.into_inner().unwrap()
}

fn append(builder: &mut tar::Builder<Vec<u8>>, i: usize, made: &Made) {
    // Data that may look like text, but never like a header.
    let data = vec![i as u8; made.size];
    let name = made.name.as_str();
    let mut header = match made.form {
        Form::Ustar | Form::Pax => tar::Header::new_ustar(),
        _ => tar::Header::new_gnu(),
    };
    header.set_mode(0o644);
    header.set_size(made.size as u64);
    match made.form {
        Form::Gnu => builder.append_data(&mut header, name, &data[..]).unwrap(),
        Form::Binary => {
            let mut field = [0; 12];
            field[0] = 0x80;
            field[4..].copy_from_slice(&(made.size as u64).to_be_bytes());
            header.as_gnu_mut().unwrap().size = field;
            builder.append_data(&mut header, name, &data[..]).unwrap();
        }
        Form::Ustar => {
            // A name that does not fit into name and prefix is cut.
            let fits = header.set_path(name).is_ok();
            if !fits {
                header.set_path(&name[..name.len().min(100)]).unwrap();
            }
            header.set_cksum();
            builder.append(&header, &data[..]).unwrap();
        }
        Form::Pax => {
            let size = made.size.to_string();
            let records = [
                ("mtime", "1700000000.5".as_bytes()),
                ("path", name.as_bytes()),
                ("size", size.as_bytes()),
            ];
            builder.append_pax_extensions(records).unwrap();
            header.set_path(format!("short-{i}")).unwrap();
            header.set_size(if i.is_multiple_of(2) {
                0
            } else {
                made.size as u64
            });
            header.set_cksum();
            // `append` copies all data, whatever the header's size says.
            builder.append(&header, &data[..]).unwrap();
        }
        Form::Folder => {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_size(0);
            let name = format!("{name}/");
            builder.append_data(&mut header, name, &[][..]).unwrap();
        }
        Form::Link | Form::LongLink => {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            let long = made.form == Form::LongLink;
            let target = "t".repeat(if long { 300 } else { 3 });
            builder.append_link(&mut header, name, target).unwrap();
        }
        Form::PaxGlobal => {
            let record = b"19 comment=abcdefg\n";
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(tar::EntryType::XGlobalHeader);
            header.set_path("pax_global_header").unwrap();
            header.set_size(record.len() as u64);
            header.set_cksum();
            builder.append(&header, &record[..]).unwrap();
        }
    }
}

/// The members as the `tar` crate reads them: name, offset of the data, size.
fn by_tar(bytes: &[u8]) -> Vec<(Vec<u8>, u64, u64)> {
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let entries = archive.entries_with_seek().unwrap().map(|e| e.unwrap());
    entries
        .filter(|e| e.header().entry_type().is_file())
        .map(|e| (e.path_bytes().into_owned(), e.raw_file_position(), e.size()))
        .collect()
}

fn walk(bytes: &[u8]) -> (Vec<ShardMember>, WalkResult) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    walk_file(&file, bytes.len() as u64)
}

fn walk_file(file: &File, len: u64) -> (Vec<ShardMember>, WalkResult) {
    let mut walk = HeaderWalk::new(file, len);
    let mut members = Vec::new();
    while let Some(member) = walk.next().unwrap() {
        assert!(!member.name.is_empty() && !member.name.contains(&0));
        assert!(member.header_at < member.data_at && member.data_at.is_multiple_of(512));
        assert!(member.data_at + member.size <= len);
        members.push(member);
    }
    assert_eq!(walk.next().unwrap(), None);
    (members, walk.finish())
}

fn places(members: &[ShardMember]) -> Vec<(Vec<u8>, u64, u64)> {
    let place = |m: &ShardMember| (m.name.clone(), m.data_at, m.size);
    members.iter().map(place).collect()
}

fn made(name: &str, size: usize, form: Form) -> Made {
    Made {
        name: name.into(),
        size,
        form,
    }
}

fn every_form() -> Vec<Made> {
    let long = format!("{}/{}.jpg", "d".repeat(120), "f".repeat(80));
    let longer = format!("{}/e.seg.png", "e".repeat(400));
    vec![
        made("a.jpg", 10, Form::Gnu),
        made("a", 0, Form::Folder),
        made(&long, 513, Form::Gnu),
        made("a/b.jpg", 512, Form::Ustar),
        made(&long, 0, Form::Ustar),
        made(&longer, 2000, Form::Pax),
        made("b.cls", 1, Form::Pax),
        made("link", 0, Form::Link),
        made("link2", 0, Form::LongLink),
        made("big.npy", 1025, Form::Binary),
        made("", 0, Form::PaxGlobal),
        made(&longer, 3, Form::Gnu),
        made("z.jpg", 9000, Form::Ustar),
    ]
}

#[test]
fn every_form_is_read_as_the_tar_crate_reads_it() {
    let bytes = archive(&every_form());
    let (members, walked) = walk(&bytes);
    assert_eq!(places(&members), by_tar(&bytes));
    assert_eq!(members.len(), 9);
    assert_eq!(walked.ending, ShardEnding::Blocks);
    assert_eq!((walked.places, walked.lost), (0, 0));
    // `header_at` is the first header that describes the member. Only links and folders lie between
    // the members.
    assert_eq!(members[0].header_at, 0);
    assert_eq!(members[2].header_at, members[1].data_at + 1024);
}

/// The crate writes the old flag, for which a slash at the end of the name makes a folder. The name
/// field is cut at 100 bytes, here after its slash.
#[test]
fn a_long_name_that_is_cut_behind_a_slash_is_no_folder() {
    let name = format!("{}/a.jpg", "a".repeat(99));
    let mut bytes = archive(&[made(&name, 5, Form::Gnu), made("d", 0, Form::Gnu)]);
    let (members, _) = walk(&bytes);
    assert_eq!(members[0].name, name.as_bytes());
    assert_eq!(members.len(), 2);
    // A folder in the old format: 'd/'.
    let at = members[1].header_at as usize;
    bytes[at + 1] = b'/';
    let mut header = tar::Header::new_old();
    header.as_mut_bytes().copy_from_slice(&bytes[at..at + 512]);
    header.set_cksum();
    bytes[at..at + 512].copy_from_slice(header.as_bytes());
    assert_eq!(walk(&bytes).0.len(), 1);
}

#[test]
fn a_shard_may_end_without_blocks_and_without_padding() {
    let bytes = archive(&[made("a.jpg", 700, Form::Gnu), made("b.jpg", 700, Form::Gnu)]);
    let data_end = 512 + 1024 + 512 + 700;
    for len in [data_end, data_end + 1, 3072] {
        let (members, walked) = walk(&bytes[..len]);
        assert_eq!(
            (members.len(), walked.ending),
            (2, ShardEnding::NoBlocks),
            "{len}"
        );
        assert_eq!(walked.places, 0);
    }
    let (members, walked) = walk(&[]);
    assert_eq!((members.len(), walked.ending), (0, ShardEnding::NoBlocks));
    let (members, walked) = walk(&[0; 1024]);
    assert_eq!((members.len(), walked.ending), (0, ShardEnding::Blocks));
}

#[test]
fn the_first_zero_block_is_the_end_and_what_is_behind_it_is_said() {
    let one = archive(&[made("a.jpg", 700, Form::Gnu)]);
    let two = archive(&[made("b.jpg", 700, Form::Gnu)]);
    for zeros in [1, 2, 20, 100] {
        let mut bytes = one[..1536].to_vec();
        bytes.extend(vec![0; zeros * 512]);
        let (members, walked) = walk(&bytes);
        assert_eq!((members.len(), walked.places), (1, 0));
        bytes.extend_from_slice(&two);
        let (members, walked) = walk(&bytes);
        assert_eq!(places(&members), by_tar(&bytes));
        assert_eq!((members.len(), walked.ending), (1, ShardEnding::Blocks));
        let behind = ShardDamage {
            at: 1536,
            lost: two.len() as u64,
            what: DamageKind::BehindTheEnd,
        };
        assert_eq!(walked.damage, [behind]);
    }
}

#[test]
fn a_cut_member_is_named_with_what_is_missing() {
    let bytes = archive(&[made("a.jpg", 700, Form::Gnu), made("b.jpg", 700, Form::Pax)]);
    // Cuts after the pax records of the second member: its header is at 2560.
    let (members, walked) = walk(&bytes[..2560 + 512 + 100]);
    assert_eq!((members.len(), walked.ending), (1, ShardEnding::Cut));
    let cut = DamageKind::Cut {
        name: b"b.jpg".to_vec(),
        missing: 600,
    };
    assert_eq!(walked.damage[0].what, cut);
    assert_eq!(
        (walked.damage[0].at, walked.lost),
        (1536, 2560 + 612 - 1536)
    );
    let told = walked.damage[0].to_string();
    assert!(
        told.contains("'b.jpg'") && told.contains("600 bytes"),
        "{told}"
    );
    for len in [1537, 2048, 2049, 2560, 2561] {
        let (members, walked) = walk(&bytes[..len]);
        assert_eq!(
            (members.len(), walked.ending),
            (1, ShardEnding::Cut),
            "{len}"
        );
        assert_eq!(walked.damage[0].what, DamageKind::CutHeader);
        assert_eq!(walked.damage[0].at, 1536);
    }
}

#[test]
fn behind_a_damaged_header_the_walk_goes_on_at_the_next_one() {
    let mut bytes = archive(&[
        made("a.jpg", 700, Form::Gnu),
        made("b.jpg", 2000, Form::Gnu),
        made("c.jpg", 700, Form::Gnu),
    ]);
    bytes[1536 + 20] ^= 1;
    let (members, walked) = walk(&bytes);
    assert_eq!(members.len(), 2);
    assert!(!members[0].after_damage && members[1].after_damage);
    assert_eq!(
        (members[1].name.as_slice(), walked.places),
        (&b"c.jpg"[..], 1)
    );
    assert_eq!((walked.damage[0].at, walked.lost), (1536, 2560));
    let told = walked.damage[0].to_string();
    let want = "damaged at byte 1536: no valid header (its checksum is wrong); 2560 bytes are lost";
    assert_eq!(told, want);
    // Nothing valid follows.
    bytes.truncate(4096);
    let (members, walked) = walk(&bytes);
    assert_eq!((members.len(), walked.ending), (1, ShardEnding::Cut));
    assert_eq!((walked.damage[0].at, walked.lost), (1536, 2560));
}

#[test]
fn a_member_whose_long_name_is_lost_is_lost_with_it() {
    let long = format!("{}/x.jpg", "d".repeat(150));
    for form in [Form::Gnu, Form::Pax] {
        let mut bytes = archive(&[
            made("a.jpg", 700, Form::Gnu),
            made(&long, 10, form),
            made("c.jpg", 700, Form::Gnu),
        ]);
        for at in [1536 + 20, 2048] {
            let good = bytes[at];
            bytes[at] = b'?';
            let (members, walked) = walk(&bytes);
            if at < 2048 || form == Form::Pax {
                let names: Vec<_> = members.iter().map(|m| m.name.as_slice()).collect();
                assert_eq!(names, [&b"a.jpg"[..], b"c.jpg"], "{form:?} {at}");
                assert_eq!(walked.places, 1);
                assert_eq!(walked.lost, members[1].header_at - 1536);
            } else {
                // A name has no checksum.
                assert_eq!(members.len(), 3);
            }
            bytes[at] = good;
        }
    }
}

#[test]
fn numbers_out_of_a_file_allocate_nothing() {
    for (flag, size) in [
        (b'L', 1u64 << 40),
        (b'x', 65537),
        (b'0', 1 << 62),
        (b'V', 1 << 62),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_path("a.jpg").unwrap();
        header.set_entry_type(tar::EntryType::new(flag));
        header.set_size(size);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend([7; 2048]);
        let (members, walked) = walk(&bytes);
        assert_eq!((members.len(), walked.places), (0, 1), "{flag}");
        assert_eq!(walked.lost, 2560);
    }
}

#[test]
fn small_members_are_read_many_at_a_time() {
    let mut one = tar::Header::new_gnu();
    one.set_path("key/000000.cls").unwrap();
    one.set_size(1);
    one.set_cksum();
    let mut entry = one.as_bytes().to_vec();
    entry.extend([b'1'; 512]);
    let file = tempfile::tempfile().unwrap();
    let chunk = entry.repeat(1000);
    for _ in 0..200 {
        (&file).write_all(&chunk).unwrap();
    }
    let start = std::time::Instant::now();
    let mut walk = HeaderWalk::new(&file, 200 * chunk.len() as u64);
    let mut members = 0;
    while walk.next().unwrap().is_some() {
        members += 1;
    }
    assert_eq!(members, 200_000);
    // Takes about 0.1 s. One read per header takes far longer, and so does work that grows with the
    // number of earlier members.
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]{1,12}\\.(jpg|cls|seg\\.png|json)",
        "[a-z]{1,9}/[a-z0-9 ]{1,12}\\.(jpg|cls)",
        ("[a-z]{90,160}", "[a-z]{1,90}").prop_map(|(d, f)| format!("{d}/{f}.jpg")),
        "[a-z]{250,400}\\.jpg",
    ]
}

fn entry() -> impl Strategy<Value = Made> {
    let form = prop_oneof![
        4 => Just(Form::Gnu),
        4 => Just(Form::Ustar),
        4 => Just(Form::Pax),
        1 => Just(Form::Binary),
        1 => Just(Form::Folder),
        1 => Just(Form::Link),
        1 => Just(Form::LongLink),
        1 => Just(Form::PaxGlobal),
    ];
    let size = prop_oneof![0usize..3000, Just(512), Just(1024), Just(0), Just(20_000)];
    (name(), size, form).prop_map(|(name, size, form)| Made { name, size, form })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_archives_are_read_as_the_tar_crate_reads_them(entries in vec(entry(), 0..12)) {
        let bytes = archive(&entries);
        let (members, walked) = walk(&bytes);
        prop_assert_eq!(places(&members), by_tar(&bytes));
        prop_assert_eq!((walked.ending, walked.places), (ShardEnding::Blocks, 0));
    }

    #[test]
    fn damage_hurts_nothing_in_front_of_it(
        entries in vec(entry(), 1..8),
        at in any::<prop::sample::Index>(),
        bytes in vec(any::<u8>(), 1..40),
    ) {
        let good = archive(&entries);
        let (whole, _) = walk(&good);
        let mut bad = good.clone();
        let at = at.index(bad.len());
        for (to, from) in bad[at..].iter_mut().zip(&bytes) {
            *to ^= from;
        }
        let (members, _) = walk(&bad);
        let before = whole.iter().take_while(|m| m.data_at + m.size <= at as u64);
        let before: Vec<_> = before.cloned().collect();
        prop_assert_eq!(&members[..before.len().min(members.len())], &before[..]);
    }
}

#[test]
fn every_length_is_harmless() {
    let good = archive(&every_form());
    let (whole, _) = walk(&good);
    let file = tempfile::tempfile().unwrap();
    (&file).write_all(&good).unwrap();
    for len in 0..good.len() {
        let (members, walked) = walk_file(&file, len as u64);
        let before = whole
            .iter()
            .take_while(|m| m.data_at + m.size <= len as u64);
        assert!(members.iter().eq(before), "{len}");
        let damaged = walked.ending == ShardEnding::Cut;
        assert_eq!(damaged, walked.places > 0, "{len}");
    }
}

#[test]
fn every_changed_byte_is_harmless() {
    let entries = every_form();
    let good = archive(&entries[..8]);
    let (whole, _) = walk(&good);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0xff;
        let (members, walked) = walk(&bad);
        let before = whole.iter().take_while(|m| m.data_at + m.size <= at as u64);
        let before = before.count();
        assert_eq!(members[..before], whole[..before], "{at}");
        // Every member is one of the good shard, unless the walk reports damage.
        let known = members
            .iter()
            .all(|m| whole.iter().any(|w| w.data_at == m.data_at));
        assert!(known || walked.places > 0, "{at}");
    }
}
