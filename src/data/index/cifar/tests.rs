//! Archives as Python 2 wrote them, opcode by opcode, and as Python 3 writes them.

use std::fs;

use super::*;
use crate::data::index::binary_form::Label;
use crate::data::packed_page::read_page;

/// One byte of an image of a batch.
fn byte(row: usize, at: usize) -> u8 {
    ((row * 7 + at * 13 + at / 1024) % 251) as u8
}

fn pixels(rows: usize) -> Vec<u8> {
    let all = (0..rows).flat_map(|row| (0..3072).map(move |at| byte(row, at)));
    all.collect()
}

/// `cPickle.dumps({'batch_label': ..., 'labels': [...], 'data': array}, 2)` of Python 2. Texts are
/// the opcodes `U` and `T`, and every value is put into the memo.
fn of_python_2(name: &str, labels: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03".to_vec();
    bytes.push(b'U');
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend(b"q\x04]q\x05(");
    bytes.extend(labels.iter().flat_map(|label| [b'K', *label]));
    bytes.extend(
        b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08",
    );
    bytes.extend(b"K\x00\x85q\x09U\x01bq\x0a\x87q\x0bRq\x0c(K\x01K");
    bytes.push(labels.len() as u8);
    bytes.extend(
        b"M\x00\x0c\x86q\x0dcnumpy\ndtype\nq\x0eU\x02u1q\x0fK\x00K\x01\x87q\x10Rq\x11(K\x03",
    );
    bytes.extend(b"U\x01|q\x12NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x13b\x89T");
    let pixels = pixels(labels.len());
    bytes.extend((pixels.len() as u32).to_le_bytes());
    bytes.extend(pixels);
    bytes.extend(b"q\x14tq\x15bU\x09filenamesq\x16]q\x17(U\x05a.pngq\x18eu.");
    bytes
}

/// `pickle.dumps({b'labels': [...], b'data': array}, 2)` of Python 3. Bytes are texts that
/// `_codecs.encode` converts back.
fn of_python_3(labels: &[u8]) -> Vec<u8> {
    let encoded = |text: &str| {
        let mut bytes = b"c_codecs\nencode\nX".to_vec();
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(b"X\x06\x00\x00\x00latin1\x86R");
        bytes
    };
    let mut bytes = b"\x80\x02}q\x00(".to_vec();
    bytes.extend(encoded("labels"));
    bytes.extend(b"]q\x05(");
    bytes.extend(labels.iter().flat_map(|label| [b'K', *label]));
    bytes.push(b'e');
    bytes.extend(encoded("data"));
    bytes.extend(b"cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85");
    bytes.extend(encoded("b"));
    bytes.extend(b"\x87R(K\x01K");
    bytes.push(labels.len() as u8);
    bytes.extend(b"M\x00\x0c\x86cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R(K\x03");
    bytes.extend(b"X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89");
    let text: String = pixels(labels.len()).into_iter().map(char::from).collect();
    bytes.extend(encoded(&text));
    bytes.extend(b"tbu.");
    bytes
}

fn ten() -> CifarOptions {
    CifarOptions {
        classes: CifarClasses::Ten,
        test: false,
        per_class: None,
        repeats: 1,
        seed: 0,
    }
}

/// Checks red, green and blue of a pixel of every sample, in the arrays that the samples are
/// unpacked to.
fn check(index: &Index, rows: &[usize], labels: &[i64]) {
    assert_eq!(index.len(), rows.len() as u64);
    let mut out = Vec::new();
    for (id, (row, label)) in (0..).zip(rows.iter().zip(labels)) {
        assert_eq!(index.label(id), Label::Class(*label));
        let part = index.part(id).unwrap();
        let page = index.page(part.shard).unwrap();
        let (path, _) = index
            .path(id)
            .to_str()
            .unwrap()
            .rsplit_once("/row-")
            .map_or_else(
                || panic!("{}", index.path(id).display()),
                |(path, row)| (path.to_owned(), row.to_owned()),
            );
        let packed = read_page(&File::open(path).unwrap(), &page).unwrap();
        page.unpack(&packed, &mut out).unwrap();
        let pixels = crate::picture::npy::pixels(&out).unwrap();
        assert_eq!(pixels.len(), 3072);
        for (at, value) in pixels.iter().enumerate() {
            assert_eq!(
                *value,
                byte(*row, at % 3 * 1024 + at / 3),
                "row {row}, {at}"
            );
        }
    }
}

#[test]
fn batches_are_read_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("data_batch_2", &of_python_3(&[3, 9]));
    write("data_batch_1", &of_python_2("labels", &[6, 0, 6]));
    write("test_batch", &of_python_2("labels", &[1]));
    write("batches.meta", b"not read");
    let (index, report) = Index::cifar(folder.path(), &ten()).unwrap();
    assert_eq!(report.samples, 5);
    check(&index, &[0, 1, 2, 0, 1], &[6, 0, 6, 3, 9]);
    let test = CifarOptions {
        test: true,
        ..ten()
    };
    check(&Index::cifar(folder.path(), &test).unwrap().0, &[0], &[1]);
    assert!(Index::names_cifar(folder.path()));
}

#[test]
fn fine_labels_are_those_of_a_hundred_classes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("train"),
        of_python_2("fine_labels", &[99, 4]),
    )
    .unwrap();
    let hundred = CifarOptions {
        classes: CifarClasses::Hundred,
        ..ten()
    };
    check(
        &Index::cifar(folder.path(), &hundred).unwrap().0,
        &[0, 1],
        &[99, 4],
    );
    let e = Index::cifar(folder.path(), &ten()).unwrap_err().to_string();
    assert!(e.contains("'data_batch' in its name"), "{e}");
}

/// Like `np.random.choice(idx, n, False)` for each class, then the whole list repeated.
#[test]
fn some_of_each_class_stand_several_times() {
    let folder = tempfile::tempdir().unwrap();
    let labels: Vec<u8> = (0..40).map(|i| i % 10).collect();
    fs::write(
        folder.path().join("data_batch_1"),
        of_python_2("labels", &labels),
    )
    .unwrap();
    let rows = |seed| {
        let some = CifarOptions {
            per_class: Some(2),
            repeats: 3,
            seed,
            ..ten()
        };
        let (index, _) = Index::cifar(folder.path(), &some).unwrap();
        let row = |id| {
            let path = index.path(id);
            let name = path.file_name().unwrap().to_str().unwrap();
            name["row-".len()..].parse::<usize>().unwrap()
        };
        let rows: Vec<usize> = (0..index.len()).map(row).collect();
        let labels: Vec<i64> = rows.iter().map(|row| (row % 10) as i64).collect();
        check(&index, &rows, &labels);
        rows
    };
    let drawn = rows(1);
    assert_eq!(drawn.len(), 60);
    assert_eq!(drawn[..20], drawn[20..40]);
    let classes: Vec<usize> = drawn[..20].iter().map(|row| row % 10).collect();
    assert_eq!(classes, (0..10).flat_map(|c| [c, c]).collect::<Vec<_>>());
    assert!(drawn[..20].chunks(2).all(|pair| pair[0] != pair[1]));
    assert_ne!(drawn, rows(2));
    let many = CifarOptions {
        per_class: Some(5),
        ..ten()
    };
    let e = Index::cifar(folder.path(), &many).unwrap_err().to_string();
    assert!(e.contains("class 0 has 4 samples"), "{e}");
}

#[test]
fn what_is_no_batch_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data_batch_1");
    let good = of_python_2("labels", &[1, 2]);
    let replaced = |old: &[u8], new: &[u8]| {
        let at = good.windows(old.len()).position(|w| w == old).unwrap();
        [&good[..at], new, &good[at + old.len()..]].concat()
    };
    for (bytes, says) in [
        (b"".to_vec(), "ends within a pickle"),
        (good[..good.len() - 1].to_vec(), "ends within a pickle"),
        (good[..200].to_vec(), "ends within a pickle"),
        (
            b"\x80\x02cos\nsystem\nU\x02ls\x85R.".to_vec(),
            "calls os.system",
        ),
        (b"\x80\x01N.".to_vec(), "protocol 1"),
        (b"\x80\x02N.".to_vec(), "no dictionary"),
        (b"\x80\x02}.".to_vec(), "no array 'data'"),
        (b"I5\n.".to_vec(), "the pickle opcode 0x49"),
        (b"((((((((((b".to_vec(), "does not fit together"),
        // A mark, a value or a memo entry takes one byte in the file, and many bytes in memory.
        (vec![b'('; 3 << 20], "more than 2097152 pickle opcodes"),
        (vec![b'N'; 3 << 20], "more than 2097152 pickle opcodes"),
        (
            replaced(b"cnumpy\ndtype", b"cnumpy\ndtypf"),
            "calls numpy.dtypf",
        ),
        (replaced(b"U\x02u1", b"U\x02f1"), "uint8 in C order"),
        (replaced(b"b\x89T", b"b\x88T"), "uint8 in C order"),
        (
            replaced(b"K\x02M\x00\x0c", b"K\x03M\x00\x0c"),
            "array of shape [3, 3072]",
        ),
        (replaced(b"(K\x01K\x02e", b"(K\x01K\x0ae"), "label 10"),
        (replaced(b"U\x06labels", b"U\x06lobels"), "no list 'labels'"),
    ] {
        fs::write(&path, &bytes).unwrap();
        let e = Index::cifar(folder.path(), &ten()).unwrap_err();
        assert!(e.is_dataset(), "{e}");
        let e = e.to_string();
        assert!(
            e.contains("data_batch_1") && e.contains(says),
            "{says}: {e}"
        );
    }
    // Any cut and any changed byte gives an error or a batch, and never a panic.
    for at in 0..good.len().min(700) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x5a;
        let _ = PickleDocument::read(&bytes);
        let _ = PickleDocument::read(&good[..at]);
    }
    let archive = folder.path().join("cifar-10-python.tar.gz");
    fs::write(&archive, b"\x1f\x8b\x08").unwrap();
    let e = Index::cifar(&archive, &ten()).unwrap_err().to_string();
    assert!(e.contains("tar -xzf cifar-10-python.tar.gz"), "{e}");
}

/// A long shape that many arrays share is not copied into each of them.
#[test]
fn an_array_has_rows_and_columns() {
    let mut bytes = b"\x80\x02(".to_vec();
    bytes.extend(b"K\x01".repeat(200_000));
    bytes.extend(b"tq\x01cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b");
    bytes.extend(b"\x87R(K\x01h\x01cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R\x89U\x00tb.");
    let e = PickleDocument::read(&bytes).unwrap_err();
    assert!(e.contains("an array of 200000 dimensions"), "{e}");
}

#[test]
fn hidden_files_are_no_batches_and_batches_are_the_shards() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("data_batch_1", &of_python_2("labels", &[6, 0, 6]));
    write("data_batch_2", &of_python_2("labels", &[1, 2]));
    write("._data_batch_1", b"\x00\x05\x16\x07");
    let (index, _) = Index::cifar(folder.path(), &ten()).unwrap();
    check(&index, &[0, 1, 2, 0, 1], &[6, 0, 6, 1, 2]);
    assert_eq!(index.shard_files(), 2);
}
