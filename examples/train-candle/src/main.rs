//! Trains a small network on a folder of classes, with candle on the CPU.
//! `cargo run --release -- SRC [EPOCHS]`

use std::time::Instant;

use candle_core::{D, DType, Device, Result as CandleResult, Tensor};
use candle_nn::{
    AdamW, Conv2d, Conv2dConfig, Linear, Module, Optimizer, VarBuilder, VarMap, conv2d, linear,
    loss, ops,
};
use featherload::batch::BatchPixels;
use featherload::recipe::RecipeFormat;
use featherload::{Batch, BatchLabels, Loader, OnError, Recipe, Source};

/// A random part of an image as 32 x 32 values with a mean of about 0, in candle's layout.
const RECIPE: &str = "
featherload: 1
name: train32
ops:
  - decode: {color: rgb}
  - random_resized_crop: {size: 32, scale: [0.5, 1.0]}
  - random_horizontal_flip
  - normalize: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}
  - cast: {dtype: f32}
  - layout: {layout: nchw}
";

/// Two convolutions that halve each side, and one layer.
struct Network {
    first: Conv2d,
    second: Conv2d,
    classes: Linear,
}

impl Network {
    fn new(classes: usize, vars: VarBuilder) -> CandleResult<Self> {
        let half = Conv2dConfig {
            stride: 2,
            padding: 1,
            ..Conv2dConfig::default()
        };
        Ok(Self {
            first: conv2d(3, 16, 3, half, vars.pp("first"))?,
            second: conv2d(16, 32, 3, half, vars.pp("second"))?,
            classes: linear(32 * 8 * 8, classes, vars.pp("classes"))?,
        })
    }
}

impl Module for Network {
    fn forward(&self, pixels: &Tensor) -> CandleResult<Tensor> {
        let x = self.first.forward(pixels)?.relu()?;
        let x = self.second.forward(&x)?.relu()?;
        self.classes.forward(&x.flatten_from(1)?)
    }
}

/// Pixels and classes of the rows that did not fail, as tensors. The tensors are copies, so the
/// memory of the batch is free again at once.
fn tensors(batch: &Batch, device: &Device) -> Result<(Tensor, Tensor), Box<dyn std::error::Error>> {
    let BatchPixels::Dense(pixels) = batch.pixels()? else {
        return Err("the recipe makes rows of different sizes: end it with one size".into());
    };
    let BatchLabels::Classes(classes) = batch.labels() else {
        return Err("the data set has no classes: give it one folder per class".into());
    };
    let all = Tensor::from_slice(pixels.as_slice::<f32>()?, &pixels.shape(), device)?;
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for row in batch.good_rows() {
        rows.push(u32::try_from(row.index())?);
        targets.push(u32::try_from(classes[row.index()])?);
    }
    let count = rows.len();
    let rows = Tensor::from_vec(rows, count, device)?;
    let targets = Tensor::from_vec(targets, count, device)?;
    Ok((all.index_select(&rows, 0)?, targets))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Call this before candle starts its threads: the worker processes run this program too.
    featherload::init();
    let mut args = std::env::args().skip(1);
    let src = args.next().ok_or("usage: train-candle SRC [EPOCHS]")?;
    let epochs: u64 = args.next().map_or(Ok(10), |n| n.parse())?;

    let mut loader = Loader::builder(Source::detect(src)?)
        .recipe(Recipe::from_text(RECIPE, RecipeFormat::Yaml, "train32")?)
        .batch_size(32)
        .on_error(OnError::Skip)
        .epochs(epochs)
        .build()?;
    let classes = loader.index().classes().len();

    let device = Device::Cpu;
    let weights = VarMap::new();
    let vars = VarBuilder::from_varmap(&weights, DType::F32, &device);
    let network = Network::new(classes, vars)?;
    let mut optimizer = AdamW::new_lr(weights.all_vars(), 2e-3)?;

    for number in 0..epochs {
        let began = Instant::now();
        let (mut sum, mut right, mut seen) = (0.0, 0.0, 0);
        for batch in loader.epoch() {
            let (pixels, targets) = tensors(&batch?, &device)?;
            let scores = network.forward(&pixels)?;
            let loss = loss::nll(&ops::log_softmax(&scores, D::Minus1)?, &targets)?;
            optimizer.backward_step(&loss)?;
            let rows = targets.dim(0)?;
            let best = scores.argmax(D::Minus1)?;
            let hits = best.eq(&targets)?.to_dtype(DType::F32)?;
            right += hits.sum_all()?.to_scalar::<f32>()?;
            sum += loss.to_scalar::<f32>()? * rows as f32;
            seen += rows;
        }
        println!(
            "epoch {number}: loss {:.3}, {:.0}% of {seen} right, {:.2} s",
            sum / seen as f32,
            100.0 * right / seen as f32,
            began.elapsed().as_secs_f32()
        );
    }
    Ok(())
}
