//! Tiles of InternVL and LLaVA-NeXT. An image is resized to a canvas of whole tiles. Its row has
//! these tiles, and an overview: the whole image in one tile.
//!
//! The rules are those of transformers 5.24: `get_optimal_tiled_canvas` of `GotOcr2ImageProcessor`,
//! which InternVL uses, and `select_best_resolution` and `get_patch_output_size` of
//! `LlavaNextImageProcessor`. Each operation on floats is one of Python's, in the same order.

use serde::{Deserialize, Serialize};

use super::patch_grid::PatchGrid;
use crate::recipe::ranges::MAX_SIDE;

/// Largest height and width of a tile, in pixels.
const MOST_TILE_SIZE: u32 = 2048;
/// Most tiles of an image, without its overview.
const MOST_TILES: u32 = 256;
/// Most canvases of a rule.
const MOST_PINPOINTS: usize = 64;
/// Most pixels of all tiles of an image.
const MOST_PIXELS: u64 = 1 << 30;

/// How a model's processor cuts images into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TileStyle {
    /// InternVL. The canvas has the ratio of sides that is nearest to the image's. The image fills
    /// it. The overview is the last tile, if there are several.
    #[default]
    Internvl,
    /// LLaVA-NeXT. The canvas is one of a list. The image keeps its ratio, in the middle of a black
    /// border. The overview is the first tile.
    LlavaNext,
}

impl TileStyle {
    /// The name in a recipe file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Internvl => "internvl",
            Self::LlavaNext => "llava_next",
        }
    }
}

/// Which canvases a rule has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TileCanvases {
    /// All with `min` to `max` tiles. InternVL.
    Count { min: u32, max: u32 },
    /// Those of a list. LLaVA-NeXT.
    Pinpoints(GridPinpoints),
}

/// A list of canvases, as rows and columns of tiles. If two canvases are as good, the first is
/// chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GridPinpoints {
    /// Rows and columns, each less 1.
    grids: [(u8, u8); MOST_PINPOINTS],
    count: usize,
}

impl GridPinpoints {
    /// The canvases of these heights and widths in pixels.
    ///
    /// # Errors
    /// There is none, or more than 64. The tile size is out of range. A side is 0, or no multiple
    /// of it. A canvas has more than 256 tiles.
    pub fn new(
        sizes: impl ExactSizeIterator<Item = (u32, u32)>,
        tile_size: u32,
    ) -> Result<Self, String> {
        check_tile_size(tile_size)?;
        let count = sizes.len();
        if !(1..=MOST_PINPOINTS).contains(&count) {
            return Err(format!(
                "grid_pinpoints has {count} canvases: give 1 to {MOST_PINPOINTS}"
            ));
        }
        let mut grids = [(0, 0); MOST_PINPOINTS];
        for (grid, (height, width)) in grids.iter_mut().zip(sizes) {
            let whole = |side: u32| {
                let fits = side > 0 && side.is_multiple_of(tile_size);
                fits.then(|| side / tile_size)
            };
            let (Some(rows), Some(columns)) = (whole(height), whole(width)) else {
                return Err(format!(
                    "grid_pinpoints has [{height}, {width}]: height and width must be multiples of \
                     tile_size, which is {tile_size}"
                ));
            };
            if u64::from(rows) * u64::from(columns) > u64::from(MOST_TILES) {
                return Err(format!(
                    "grid_pinpoints has [{height}, {width}], which is {rows} x {columns} tiles: \
                     use at most {MOST_TILES} tiles"
                ));
            }
            *grid = ((rows - 1) as u8, (columns - 1) as u8);
        }
        Ok(Self { grids, count })
    }

    fn grids(&self) -> impl Iterator<Item = PatchGrid> {
        let grids = self.grids.iter().take(self.count);
        grids.map(|&(rows, columns)| PatchGrid {
            rows: u32::from(rows) + 1,
            columns: u32::from(columns) + 1,
        })
    }
}

fn check_tile_size(side: u32) -> Result<(), String> {
    match (1..=MOST_TILE_SIZE).contains(&side) {
        true => Ok(()),
        false => Err(format!("tile_size {side} must be 1 to {MOST_TILE_SIZE}")),
    }
}

/// Where the overview lies among the tiles of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverviewPlace {
    First,
    Last,
}

/// The numbers of a model's processor. [`check`](Self::check) tests them. The other methods need a
/// rule that passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileRule {
    /// Height and width of a tile, in pixels: 1 to 2048. InternVL: 448. LLaVA-NeXT: 336.
    pub tile_size: u32,
    pub canvases: TileCanvases,
}

impl TileRule {
    /// The style that has such canvases.
    #[must_use]
    pub fn style(&self) -> TileStyle {
        match self.canvases {
            TileCanvases::Count { .. } => TileStyle::Internvl,
            TileCanvases::Pinpoints(_) => TileStyle::LlavaNext,
        }
    }

    /// Checks all numbers.
    ///
    /// # Errors
    /// A number is out of range. The text names the field and its range.
    pub fn check(&self) -> Result<(), String> {
        let side = self.tile_size;
        check_tile_size(side)?;
        if let TileCanvases::Count { min, max } = self.canvases {
            if !(1..=MOST_TILES).contains(&max) {
                return Err(format!("max_tiles {max} must be 1 to {MOST_TILES}"));
            }
            if !(1..=max).contains(&min) {
                return Err(format!(
                    "min_tiles {min} must be 1 to {max}, which is max_tiles"
                ));
            }
        }
        let (tiles, longest) = self.largest();
        // With the overview.
        let pixels = (u64::from(tiles) + 1) * u64::from(side).pow(2);
        let fix = match self.style() {
            TileStyle::Internvl => "reduce tile_size or max_tiles",
            TileStyle::LlavaNext => "reduce tile_size, or use smaller grid_pinpoints",
        };
        if longest * side > MAX_SIDE {
            return Err(format!(
                "a canvas may have a side of {} pixels, and the limit is {MAX_SIDE}: {fix}",
                longest * side
            ));
        }
        if pixels > MOST_PIXELS {
            return Err(format!(
                "the tiles of an image may have {pixels} pixels, and the limit is {MOST_PIXELS}: \
                 {fix}"
            ));
        }
        Ok(())
    }

    /// Most tiles of a canvas, and the most along one of its sides.
    fn largest(&self) -> (u32, u32) {
        match &self.canvases {
            TileCanvases::Count { max, .. } => (*max, *max),
            TileCanvases::Pinpoints(list) => list.grids().fold((0, 0), |most, grid| {
                let tiles = grid.rows * grid.columns;
                let side = grid.rows.max(grid.columns);
                (most.0.max(tiles), most.1.max(side))
            }),
        }
    }

    /// Rows and columns of the tiles of an image with this height and width, each at least 1.
    pub fn grid(&self, image: (u32, u32)) -> PatchGrid {
        match &self.canvases {
            TileCanvases::Count { min, max } => self.nearest_ratio(image, (*min, *max)),
            TileCanvases::Pinpoints(list) => self.best_pinpoint(image, list),
        }
    }

    /// `get_optimal_tiled_canvas`.
    fn nearest_ratio(&self, (height, width): (u32, u32), (min, max): (u32, u32)) -> PatchGrid {
        let ratio = f64::from(width) / f64::from(height);
        let area = u64::from(width) * u64::from(height);
        let tile = u64::from(self.tile_size).pow(2);
        let mut best = (
            f64::INFINITY,
            PatchGrid {
                rows: 1,
                columns: 1,
            },
        );
        let by_columns = (min..=max).flat_map(|tiles| (1..=tiles).map(move |n| (tiles, n)));
        let canvases = by_columns.filter(|(tiles, columns)| tiles.is_multiple_of(*columns));
        for (tiles, columns) in canvases {
            let rows = tiles / columns;
            let distance = (ratio - f64::from(columns) / f64::from(rows)).abs();
            // Of canvases with the same ratio, a larger one needs an image of half its area.
            let is_filled = || area * 2 > tile * u64::from(tiles);
            if distance < best.0 || (distance == best.0 && is_filled()) {
                best = (distance, PatchGrid { rows, columns });
            }
        }
        best.1
    }

    /// `select_best_resolution`.
    fn best_pinpoint(&self, (height, width): (u32, u32), list: &GridPinpoints) -> PatchGrid {
        let area = u64::from(height) * u64::from(width);
        let worth = |grid: &PatchGrid| {
            let (canvas_height, canvas_width) = grid.resized(self.tile_size);
            let across = f64::from(canvas_width) / f64::from(width);
            let scale = across.min(f64::from(canvas_height) / f64::from(height));
            let shrunk = |side: u32| (f64::from(side) * scale) as u64;
            let effective = area.min(shrunk(width) * shrunk(height));
            let wasted = u64::from(canvas_height) * u64::from(canvas_width) - effective;
            (effective, std::cmp::Reverse(wasted))
        };
        let mut best: Option<(_, PatchGrid)> = None;
        for grid in list.grids() {
            let of_grid = worth(&grid);
            if best.is_none_or(|(most, _)| of_grid > most) {
                best = Some((of_grid, grid));
            }
        }
        best.map_or(
            PatchGrid {
                rows: 1,
                columns: 1,
            },
            |(_, grid)| grid,
        )
    }

    /// Height and width of the image in its canvas.
    pub fn inside(&self, (height, width): (u32, u32)) -> (u32, u32) {
        let canvas = self.grid((height, width)).resized(self.tile_size);
        if self.style() == TileStyle::Internvl {
            return canvas;
        }
        let across = f64::from(canvas.1) / f64::from(width);
        let down = f64::from(canvas.0) / f64::from(height);
        let scaled = |side: u32, scale: f64, most: u32| {
            let scaled = (f64::from(side) * scale).ceil();
            (scaled as u32).clamp(1, most)
        };
        match across < down {
            true => (scaled(height, across, canvas.0), canvas.1),
            false => (canvas.0, scaled(width, down, canvas.1)),
        }
    }

    /// Where the overview of an image with this grid lies. None if it has none.
    pub(crate) fn overview(&self, grid: PatchGrid) -> Option<OverviewPlace> {
        match self.style() {
            TileStyle::Internvl => (grid.patches() > 1).then_some(OverviewPlace::Last),
            TileStyle::LlavaNext => Some(OverviewPlace::First),
        }
    }

    /// Tiles of an image with this grid, with the overview.
    pub fn tiles(&self, grid: PatchGrid) -> u64 {
        grid.patches() + u64::from(self.overview(grid).is_some())
    }
}
