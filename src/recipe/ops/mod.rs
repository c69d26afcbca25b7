//! The operations, one file each: its parameters, checks, draws, moves and largest case.
//!
//! The same in every process. Names, parameters and defaults follow torchvision (`transforms.v2`)
//! where it has them. Sizes are height, width. Colours are levels 0 to 255. The derived text form
//! is the file format, so there is no second list of names. Never in here: pixels; other operations
//! (an operation that contains some is generic); the list of all operations, which is `recipe/op`.
//!
//! - ends: [`decode`], [`normalize`], [`standardize`], [`cast`], [`layout`], [`zero_channel`];
//! - sizes and crops: [`resize`], [`random_resized_crop`], [`bounded_resized_crop`],
//!   [`random_crop`], [`center_crop`], [`center_crop_or_pad`], [`corner_crop`], [`cover_crop`],
//!   [`resize_keep_ratio`], [`trim_border`], [`pad`], [`pad_to`], [`random_zoom_out`], [`letterbox`],
//!   [`random_shortest_size`], [`random_resize`], [`scale_jitter`], [`large_scale_jitter`],
//!   [`patches`], [`tiles`];
//! - crops that read boxes: [`random_iou_crop`], [`random_sized_bbox_safe_crop`];
//! - turns: [`random_horizontal_flip`], [`random_vertical_flip`], [`random_rotation`],
//!   [`rotate90`], [`random_rotate90`], [`random_affine`], [`random_perspective`],
//!   [`elastic_transform`];
//! - colours: [`color_jitter`], [`grayscale`], [`random_grayscale`], [`convert_color`],
//!   [`pca_lighting`], [`gaussian_blur`], [`pillow_gaussian_blur`], [`random_erasing`],
//!   [`crop_with_padding`], [`random_photometric_distort`], [`random_hsv`], [`random_channel_permutation`],
//!   [`gaussian_noise`], [`jpeg`],
//!   [`random_posterize`], [`random_solarize`], [`random_equalize`],
//!   [`random_autocontrast`], [`random_invert`], [`random_adjust_sharpness`], [`hide_and_seek`],
//!   [`random_blur`], [`random_interpolation`];
//! - joints of several samples, which `recipe/joints` draws: [`mosaic`], [`mix_samples`],
//!   [`cut_samples`], [`copy_paste`];
//! - operations that contain operations: [`random_apply`], [`random_choice`], [`random_order`];
//! - policies, with tables and arithmetic in `recipe/augment`: [`auto_augment`], [`rand_augment`],
//!   [`trivial_augment`], [`aug_mix`], [`torchvision_aug_mix`], [`timm_augment`], [`cutout`].

pub(crate) mod aug_mix;
pub(crate) mod auto_augment;
pub(crate) mod bounded_resized_crop;
pub(crate) mod cast;
pub(crate) mod center_crop;
pub(crate) mod center_crop_or_pad;
pub(crate) mod color_jitter;
pub(crate) mod convert_color;
pub(crate) mod copy_paste;
pub(crate) mod corner_crop;
pub(crate) mod cover_crop;
pub(crate) mod crop_with_padding;
pub(crate) mod cut_samples;
pub(crate) mod cutout;
pub(crate) mod decode;
pub(crate) mod elastic_transform;
pub(crate) mod gaussian_blur;
pub(crate) mod gaussian_noise;
pub(crate) mod grayscale;
pub(crate) mod hide_and_seek;
pub(crate) mod jpeg;
pub(crate) mod large_scale_jitter;
pub(crate) mod layout;
pub(crate) mod letterbox;
pub(crate) mod mix_samples;
pub(crate) mod mosaic;
pub(crate) mod normalize;
pub(crate) mod pad;
pub(crate) mod pad_to;
pub(crate) mod patches;
pub(crate) mod pca_lighting;
pub(crate) mod pillow_gaussian_blur;
pub(crate) mod rand_augment;
pub(crate) mod random_adjust_sharpness;
pub(crate) mod random_affine;
pub(crate) mod random_apply;
pub(crate) mod random_autocontrast;
pub(crate) mod random_blur;
pub(crate) mod random_channel_permutation;
pub(crate) mod random_choice;
pub(crate) mod random_crop;
pub(crate) mod random_equalize;
pub(crate) mod random_erasing;
pub(crate) mod random_grayscale;
pub(crate) mod random_horizontal_flip;
pub(crate) mod random_hsv;
pub(crate) mod random_interpolation;
pub(crate) mod random_invert;
pub(crate) mod random_iou_crop;
pub(crate) mod random_order;
pub(crate) mod random_perspective;
pub(crate) mod random_photometric_distort;
pub(crate) mod random_posterize;
pub(crate) mod random_resize;
pub(crate) mod random_resized_crop;
pub(crate) mod random_rotate90;
pub(crate) mod random_rotation;
pub(crate) mod random_shortest_size;
pub(crate) mod random_sized_bbox_safe_crop;
pub(crate) mod random_solarize;
pub(crate) mod random_vertical_flip;
pub(crate) mod random_zoom_out;
pub(crate) mod resize;
pub(crate) mod resize_keep_ratio;
pub(crate) mod rotate90;
pub(crate) mod scale_jitter;
pub(crate) mod standardize;
pub(crate) mod tiles;
pub(crate) mod timm_augment;
pub(crate) mod torchvision_aug_mix;
pub(crate) mod trim_border;
pub(crate) mod trivial_augment;
pub(crate) mod zero_channel;
