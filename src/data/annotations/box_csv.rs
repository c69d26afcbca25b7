//! Tables with a box in each row: those of deepforest, TensorFlow and Open Images.
//!
//! The header line says which layout a file has. Open Images has ids of images and shares of their
//! sides. Others have file names and pixels.

use std::path::Path;

use super::box_rows::{BoxRow, BoxRows};
use super::coco::AnnotatedSet;
use super::object_checks::{check_box, check_share_box};
use super::options::AnnotationOptions;
use super::pictures::PictureNames;
use super::report::{AnnotationFault, AnnotationReport};
use crate::data::index::{CsvRecords, Index, open_records, shown};
use crate::data::objects::{BoxForm, ObjectTable};
use crate::error::{Error, Result};

const SIDES: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];
const PICTURES: [&str; 8] = [
    "image_path",
    "filename",
    "file_name",
    "image_name",
    "image",
    "img",
    "path",
    "file",
];
/// The column of Open Images in place of a file name.
const IDS: &str = "imageid";
const LABELS: [&str; 6] = [
    "labelname",
    "label",
    "class",
    "category",
    "class_name",
    "name",
];
const CROWDS: [&str; 3] = ["isgroupof", "iscrowd", "is_crowd"];

/// The places of columns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BoxColumns {
    picture: usize,
    /// Pictures are ids, and sides are shares.
    is_open_images: bool,
    sides: [usize; 4],
    label: usize,
    crowd: Option<usize>,
    /// Height and width of the picture.
    size: Option<(usize, usize)>,
}

impl BoxColumns {
    /// # Errors
    /// What is missing.
    fn find(names: &[String]) -> Result<Self, String> {
        let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let of = |name: &str| lower.iter().position(|known| known == name);
        let first = |all: &[&str]| all.iter().find_map(|name| of(name));
        let missing = |what: &str| {
            let names: Vec<String> = names.iter().map(|name| shown(name.as_bytes())).collect();
            format!(
                "has no column {what} (its columns: {}): give a file with the columns image_path, \
                 xmin, ymin, xmax, ymax, label, or one of Open Images",
                names.join(", ")
            )
        };
        let mut sides = [0; 4];
        for (side, name) in sides.iter_mut().zip(SIDES) {
            *side = of(name).ok_or_else(|| missing(name))?;
        }
        let id = of(IDS);
        let picture = id.or_else(|| first(&PICTURES));
        Ok(Self {
            picture: picture.ok_or_else(|| missing("of image files"))?,
            is_open_images: id.is_some(),
            sides,
            label: first(&LABELS).ok_or_else(|| missing("of labels"))?,
            crowd: first(&CROWDS),
            size: of("height").zip(of("width")),
        })
    }

    /// The sides of a row. `Ok(None)`: it has none, which marks an image without objects.
    fn sides(&self, records: &CsvRecords<'_>) -> Result<Option<[f64; 4]>, AnnotationFault> {
        let fields = self.sides.map(|at| records.field(at).trim_ascii());
        if fields.iter().all(|field| field.is_empty()) {
            return Ok(None);
        }
        let mut sides = [0.0; 4];
        for (side, field) in sides.iter_mut().zip(fields) {
            let text = str::from_utf8(field).ok();
            let number = text.and_then(|text| text.parse().ok());
            *side = number.ok_or(AnnotationFault::MissingBox)?;
        }
        // deepforest writes such a row for an image without objects.
        Ok((sides != [0.0; 4]).then_some(sides))
    }

    /// Height and width, if both are whole numbers.
    fn size(&self, records: &CsvRecords<'_>) -> Option<(u32, u32)> {
        let side = |at| {
            let number: u32 = text(records, at)?.parse().ok()?;
            (number > 0).then_some(number)
        };
        let (height, width) = self.size.filter(|_| !self.is_open_images)?;
        side(height).zip(side(width))
    }

    fn is_crowd(&self, records: &CsvRecords<'_>) -> bool {
        let text = self.crowd.and_then(|at| text(records, at));
        // Open Images has -1 where it is not known.
        text.is_some_and(|text| matches!(text, "1" | "1.0" | "true" | "True"))
    }
}

fn text<'a>(records: &'a CsvRecords<'_>, at: usize) -> Option<&'a str> {
    str::from_utf8(records.field(at).trim_ascii()).ok()
}

/// Reads the data set that a table describes: its images below a folder, in the order of their
/// first rows. None for a table with ids of images, which does not name their files.
///
/// # Errors
/// A table that cannot be read, or of another layout; no usable box; a wrong row with
/// [`AnnotationOptions::strict`].
pub(super) fn read_csv(
    file: &Path,
    images: &Path,
    names: Option<&[String]>,
    options: &AnnotationOptions,
) -> Result<Option<AnnotatedSet>> {
    let (names_of_file, _) = open_records(file)?;
    let columns = BoxColumns::find(&names_of_file).map_err(|what| Error::dataset(file, what))?;
    if columns.is_open_images {
        return Ok(None);
    }
    let (rows, _) = read(file, names, options)?;
    rows.finish_with_images(images).map(Some)
}

/// Reads the boxes of the images of `index`.
///
/// # Errors
/// As [`read_csv`]; none of the images is named.
pub(super) fn read_csv_for(
    file: &Path,
    index: &Index,
    names: Option<&[String]>,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    let (rows, form) = read(file, names, options)?;
    rows.finish_for(index, form)
}

fn read<'a>(
    file: &'a Path,
    names: Option<&[String]>,
    options: &AnnotationOptions,
) -> Result<(BoxRows<'a>, PictureNames)> {
    let (header, mut records) = open_records(file)?;
    let columns = BoxColumns::find(&header).map_err(|what| Error::dataset(file, what))?;
    let form = (BoxForm::Xyxy, columns.is_open_images);
    let mut rows = BoxRows::new(file, form, names, options);
    while let Some(line) = records.next()? {
        if records.len() < header.len() {
            rows.wrong(AnnotationFault::Damaged, line)?;
            continue;
        }
        let name = text(&records, columns.picture);
        let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('\0')) else {
            rows.wrong(AnnotationFault::DamagedPicture, line)?;
            continue;
        };
        let size = columns.size(&records);
        let picture = rows.picture(name, size)?;
        let sides = match columns.sides(&records) {
            Ok(None) => continue,
            Ok(Some(sides)) => sides,
            Err(fault) => {
                rows.wrong(fault, line)?;
                continue;
            }
        };
        let checked = match columns.is_open_images {
            true => check_share_box(sides),
            false => check_box(sides, size),
        };
        let label = checked.and_then(|is_partly| {
            let name = text(&records, columns.label);
            let label = name.ok_or(AnnotationFault::UnknownCategory)?;
            Ok((rows.categories.of_name(label)?, is_partly))
        });
        match label {
            Err(fault) => rows.wrong(fault, line)?,
            Ok((label, is_partly)) => {
                if is_partly {
                    rows.wrong(AnnotationFault::PartlyOutside, line)?;
                }
                rows.push(BoxRow {
                    numbers: sides,
                    picture,
                    label,
                    crowd: columns.is_crowd(&records),
                })?;
            }
        }
    }
    let form = match columns.is_open_images {
        true => PictureNames::Stems,
        false => PictureNames::Paths,
    };
    Ok((rows, form))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::data::index::{FolderLabels, FolderOptions};

    /// A folder with images and a table.
    struct CsvFolder {
        _dir: tempfile::TempDir,
        file: PathBuf,
    }

    impl CsvFolder {
        fn new(images: &[&str], text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().canonicalize().unwrap();
            for image in images {
                let image = path.join("images").join(image);
                std::fs::create_dir_all(image.parent().unwrap()).unwrap();
                std::fs::write(image, "").unwrap();
            }
            let file = path.join("boxes.csv");
            std::fs::write(&file, text).unwrap();
            Self { _dir: dir, file }
        }

        fn images(&self) -> PathBuf {
            self.file.with_file_name("images")
        }

        fn index(&self) -> Index {
            let options = FolderOptions {
                labels: FolderLabels::None,
                ..FolderOptions::default()
            };
            Index::folder(&self.images(), &options).unwrap().0
        }

        fn set(&self) -> Result<Option<AnnotatedSet>> {
            read_csv(
                &self.file,
                &self.images(),
                None,
                &AnnotationOptions::default(),
            )
        }

        fn for_index(&self) -> Result<(ObjectTable, AnnotationReport)> {
            let options = AnnotationOptions::default();
            read_csv_for(&self.file, &self.index(), None, &options)
        }
    }

    fn names(table: &ObjectTable) -> Vec<&str> {
        let categories = table.form().categories.iter();
        categories.map(|of| of.name.as_str()).collect()
    }

    #[test]
    fn the_images_of_a_table_in_their_order() {
        let folder = CsvFolder::new(
            &["b.png", "a/a.png", "c.png", "d.png"],
            "image_path,xmin,ymin,xmax,ymax,label\n\
             b.png,1,2,30,40,Tree\nb.png,0.5,1.5,2,3,Ant\n\
             a/a.png,5,5,9,9,Tree\nc.png,0,0,0,0,Tree\nd.png,,,,,\nb.png,7,7,8,8,Tree\n",
        );
        let read = folder.set().unwrap().unwrap();
        let paths: Vec<&Path> = (0..4).map(|id| read.index.relative_path(id)).collect();
        assert_eq!(paths, ["b.png", "a/a.png", "c.png", "d.png"].map(Path::new));
        let counts: Vec<usize> = (0..4).map(|id| read.table.count(id)).collect();
        assert_eq!(counts, [3, 1, 0, 0]);
        assert_eq!(names(&read.table), ["Ant", "Tree"]);
        let first = read.table.sample(0);
        assert_eq!(first.labels, [1, 0, 1]);
        assert_eq!(first.numbers[1], [0.5, 1.5, 2.0, 3.0]);
        assert_eq!(first.areas, [29.0 * 38.0, 2.25, 1.0]);
        assert_eq!(
            (read.report.objects, read.report.images_without_objects),
            (4, 2)
        );
        assert!(read.report.wrong.is_empty());
        // The same images as a folder: in the order of their names.
        let (table, _) = folder.for_index().unwrap();
        let counts: Vec<usize> = (0..4).map(|id| table.count(id)).collect();
        assert_eq!(counts, [1, 3, 0, 0]);
    }

    #[test]
    fn tables_of_open_images_have_ids_and_shares() {
        let folder = CsvFolder::new(
            &["01.jpg", "02.jpg", "03.jpg"],
            "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,\
             IsGroupOf,IsDepiction,IsInside\n\
             02,xclick,/m/01g317,1,0.25,0.75,0.125,0.5,0,1,0,0,0\n\
             02,xclick,/m/0199g,1,0,1,0,1,0,0,1,0,0\n\
             01,xclick,/m/0199g,1,0.5,0.4,0,1,0,0,-1,0,0\n\
             99,xclick,/m/0199g,1,0.5,0.6,0,1,0,0,-1,0,0\n",
        );
        assert!(folder.set().unwrap().is_none());
        let (table, report) = folder.for_index().unwrap();
        let counts: Vec<usize> = (0..3).map(|id| table.count(id)).collect();
        assert_eq!(counts, [0, 2, 0]);
        let sample = table.sample(1);
        assert_eq!(sample.numbers[0], [0.25, 0.125, 0.75, 0.5]);
        assert_eq!((sample.labels, sample.crowds), (&[1, 0][..], &[0, 1][..]));
        assert_eq!(names(&table), ["/m/0199g", "/m/01g317"]);
        assert!(table.form().shares && !table.form().area);
        assert_eq!(report.count(AnnotationFault::EmptyBox), 1);
        assert_eq!(report.wrong[0].first[0].split(": ").nth(1), Some("line 4"));
        assert_eq!(
            (report.images_without_entry, report.entries_without_image),
            (1, 1)
        );
    }

    #[test]
    fn wrong_rows_are_counted_and_named() {
        let folder = CsvFolder::new(
            &["a.png"],
            "filename,width,height,class,xmin,ymin,xmax,ymax\n\
             a.png,60,40,cat,1,2,30,40\n\
             a.png,60,40,cat,1,2,x,40\n\
             a.png,60,40,cat,1,2,nan,40\n\
             a.png,60,40,cat,1,2,,40\n\
             a.png,60,40,cat,9,2,9,40\n\
             a.png,60,40,cat,60,2,70,40\n\
             a.png,60,40,cat,50,2,70,40\n\
             a.png,60,40,,1,2,30,40\n\
             ,60,40,cat,1,2,30,40\n\
             a.png,60,40\n\
             a.png,60,40,cat,1,2,1e999,40\n\
             a.png,60,40,cat,\"1\n2\",2,3,40\n",
        );
        let read = folder.set().unwrap().unwrap();
        let wrong: Vec<(AnnotationFault, u64, &str)> = (read.report.wrong.iter())
            .map(|of| {
                let line = of.first[0].rsplit("line ").next().unwrap();
                (of.fault, of.count, line)
            })
            .collect();
        assert_eq!(
            wrong,
            [
                (AnnotationFault::DamagedPicture, 1, "10"),
                (AnnotationFault::Damaged, 1, "11"),
                (AnnotationFault::UnknownCategory, 1, "9"),
                (AnnotationFault::MissingBox, 3, "3"),
                (AnnotationFault::NotFinite, 2, "4"),
                (AnnotationFault::EmptyBox, 1, "6"),
                (AnnotationFault::OutsideBox, 1, "7"),
                (AnnotationFault::PartlyOutside, 1, "8"),
            ]
        );
        assert_eq!(read.table.stated_size(0), Some((40, 60)));
        assert_eq!(read.report.objects, 2);
        let strict = AnnotationOptions {
            strict: true,
            ..AnnotationOptions::default()
        };
        let e = read_csv(&folder.file, &folder.images(), None, &strict).unwrap_err();
        let e = e.to_string();
        assert!(
            e.contains("boxes.csv: line 3: without a box of four numbers"),
            "{e}"
        );
    }

    #[test]
    fn given_names_are_labels() {
        let text = "path;xmin;ymin;xmax;ymax;name\na.png;1;2;3;4;b\na.png;1;2;3;4;c\n";
        let folder = CsvFolder::new(&["a.png"], text);
        let names = ["a".to_owned(), "b".to_owned()];
        let options = AnnotationOptions::default();
        let read = read_csv(&folder.file, &folder.images(), Some(&names), &options);
        let read = read.unwrap().unwrap();
        assert_eq!(read.table.sample(0).labels, [1]);
        assert_eq!(read.report.count(AnnotationFault::UnknownCategory), 1);
    }

    #[test]
    fn other_tables_are_errors() {
        for (text, what) in [
            ("", "is empty"),
            ("a,b\n1,2\n", "has no column xmin (its columns: a, b)"),
            (
                "xmin,ymin,xmax,ymax,label\n",
                "has no column of image files",
            ),
            ("path,xmin,ymin,xmax,ymax\n", "has no column of labels"),
            ("path,xmin,ymin,xmax,ymax,label\n", "has no rows"),
            (
                "path,xmin,ymin,xmax,ymax,label\n,1,2,3,4,a\n",
                "has no row with an image: 1 pictures without",
            ),
            (
                "path,xmin,ymin,xmax,ymax,label\na.png,3,2,3,4,a\n",
                "none of the annotations can be used: 1 with a box without width",
            ),
            (
                "path,xmin,ymin,xmax,ymax,label\nb.png,1,2,3,4,a\n",
                "names images that do not exist",
            ),
            (
                "path,xmin,ymin,xmax,ymax,label\n../b.png,1,2,3,4,a\n",
                "image 1: '../b.png' leads out of the folder",
            ),
            (
                "path,xmin,ymin,xmax,ymax,label\na.png,1,2,3,4,\"a\n",
                "a double quote is not closed",
            ),
        ] {
            let folder = CsvFolder::new(&["a.png"], text);
            let e = folder.set().unwrap_err().to_string();
            assert!(e.contains(what) && e.contains("boxes.csv"), "{text}: {e}");
        }
        // Cut anywhere, a table has rows, or an error that names it.
        let whole = "path,xmin,ymin,xmax,ymax,label\na.png,1,2,3,4,\"a\"\na.png,1,2,3,4,b\n";
        for end in 0..whole.len() {
            let folder = CsvFolder::new(&["a.png"], &whole[..end]);
            match folder.set() {
                Ok(read) => assert!(read.unwrap().table.objects() > 0),
                Err(e) => assert!(e.to_string().contains("boxes.csv"), "{e}"),
            }
        }
    }
}
