//! Writes an epoch as NumPy files: `batch-00000.npy`, `labels-00000.npy` and so
//! on, with the sample and path of every row in `rows.json`.
//!
//! ```text
//! cargo run --release --example 04_npy -- SRC OUT_DIR [--recipe train224|eval224|WIDTHxHEIGHT]
//!     [--decode full|scaled] [--num-workers N] [--no-shuffle]
//! ```
//! The recipe WIDTHxHEIGHT resizes whole images to u8 rows, channels last. An image that
//! already has this size is not resampled.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use featherload::recipe::{RandomResizedCrop, Span};
use featherload::{BatchLabels, DataType, DecodeMode, Loader, MemoryLayout, Recipe, Source};
use serde_json::json;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    featherload::init();
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: 04_npy SRC OUT_DIR [options]");
    let (src, out) = (next()?, next()?);
    let mut recipe = Recipe::eval224();
    let (mut decode, mut workers, mut shuffle) = (None, None, true);
    while let Ok(option) = next() {
        match option.as_str() {
            "--recipe" => recipe = parse_recipe(&next()?)?,
            "--decode" => decode = Some(parse_decode(&next()?)?),
            "--num-workers" => workers = Some(next()?.parse()?),
            "--no-shuffle" => shuffle = false,
            _ => {
                return Err(format!("unknown option {option}: use those of the usage text").into());
            }
        }
    }
    if let Some(mode) = decode {
        recipe = recipe.with_decode(mode);
    }
    let mut builder = Loader::builder(Source::detect(src)?)
        .recipe(recipe)
        .batch_size(32)
        .shuffle(shuffle);
    if let Some(n) = workers {
        builder = builder.num_workers(n);
    }
    let mut loader = builder.build()?;

    let out = Path::new(&out);
    fs::create_dir_all(out)?;
    let mut rows = Vec::new();
    for batch in loader.epoch() {
        let batch = batch?;
        let n = batch.number();
        let file = out.join(format!("batch-{n:05}.npy"));
        write_npy(
            &file,
            npy_type(batch.dtype()),
            &batch.shape()?,
            batch.pixels()?.bytes(),
        )?;
        if let BatchLabels::Classes(classes) = batch.labels() {
            let bytes: Vec<u8> = classes.iter().flat_map(|c| c.to_le_bytes()).collect();
            let file = out.join(format!("labels-{n:05}.npy"));
            write_npy(&file, "<i8", &[classes.len()], &bytes)?;
        }
        rows.extend(batch.ids().iter().map(|id| (n, *id)));
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(n, id)| json!({"batch": n, "id": id, "path": loader.index().path(id)}))
        .collect();
    serde_json::to_writer_pretty(File::create(out.join("rows.json"))?, &rows)?;
    println!("{} rows in {}", rows.len(), out.display());
    Ok(())
}

/// Writes a NumPy file, version 1: magic, length of the header, header, elements. The header
/// is a Python dictionary, and spaces pad it so that the elements begin at a multiple of 64.
fn write_npy(file: &Path, dtype: &str, shape: &[usize], bytes: &[u8]) -> io::Result<()> {
    let axes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({axes}), }}");
    let unpadded = 10 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut f = File::create(file)?;
    f.write_all(b"\x93NUMPY\x01\x00")?;
    f.write_all(&(header.len() as u16).to_le_bytes())?;
    f.write_all(header.as_bytes())?;
    f.write_all(bytes)
}

fn npy_type(dtype: DataType) -> &'static str {
    match dtype {
        DataType::U8 => "|u1",
        DataType::F16 => "<f2",
        // NumPy has no bfloat16: `.view(ml_dtypes.bfloat16)` reads these two bytes.
        DataType::Bf16 => "|V2",
        DataType::F32 => "<f4",
    }
}

fn parse_decode(text: &str) -> Result<DecodeMode, Failure> {
    match text {
        "full" => Ok(DecodeMode::Full),
        "scaled" => Ok(DecodeMode::Scaled),
        _ => Err(format!("--decode is {text}: use full or scaled").into()),
    }
}

fn parse_recipe(text: &str) -> Result<Recipe, Failure> {
    let Some((width, height)) = text.split_once('x') else {
        return Ok(Recipe::load(text)?);
    };
    let (width, height): (u32, u32) = (width.parse()?, height.parse()?);
    // A random crop with one choice: all of an image that has this aspect ratio.
    let shape = f64::from(width) / f64::from(height);
    let recipe = Recipe::new(text)
        .then(RandomResizedCrop {
            scale: Span(1.0, 1.0),
            ratio: Span(shape, shape),
            ..RandomResizedCrop::new((height, width))
        })
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    Ok(recipe.with_decode(DecodeMode::Full))
}
