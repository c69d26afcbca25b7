//! What the pictures of a row are made of: files of samples and masks, and their objects.

use crate::error::SampleFault;
use crate::jobs::picture_window::PictureWindow;
use crate::jobs::sample::mask::MaskReader;
use crate::jobs::sample::objects::ObjectMaker;
use crate::order::PlacedSample;
use crate::picture::PixelBox;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::joints::PartnerDraw;

/// What is made of the bytes of a file.
pub(crate) type FileUse<'a> =
    dyn FnMut(&[u8], Option<PixelBox>, &mut StageMeter) -> Result<(), SampleFault> + 'a;

/// The files of samples.
pub(crate) trait SampleFiles {
    /// Opens the file of a sample. The box is that of the sample, if it has one.
    fn with_file(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> Result<(), SampleFault>;

    /// Opens the file of the mask of a sample.
    fn with_mask(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> Result<(), SampleFault>;

    /// The box of a sample, if it has one.
    fn pixel_box(&self, id: u64) -> Option<PixelBox>;

    /// The sample in messages.
    fn name(&self, id: u64) -> String;

    /// The sample of a draw.
    fn partner(&self, draw: PartnerDraw) -> PlacedSample;
}

/// What all pictures of a row have in common.
pub(crate) struct PictureSource<'a> {
    pub(crate) files: &'a mut dyn SampleFiles,
    pub(crate) objects: Option<&'a ObjectMaker>,
    /// If images have masks of classes.
    pub(crate) masks: Option<&'a MaskReader>,
    /// Where pictures after the first stage are kept.
    pub(crate) window: Option<&'a PictureWindow>,
}
