//! Objects of one picture that are pasted onto another of the same size.
//!
//! The rule is that of Simple Copy-Paste, as torchvision's references have it. Pasted objects may
//! cover each other, and keep their whole masks.

use crate::jobs::sample::objects::joined::{JoinedObjects, edges, share_inside};
use crate::recipe::PixelRect;
use crate::targets::masks::BitMask;

impl JoinedObjects {
    /// Keeps the objects that are pasted onto a picture with the objects `own`, and returns all
    /// their pixels. None if no object is pasted.
    ///
    /// Crowds and objects without a pixel are not pasted, nor those whose box covers more than
    /// `max_overlap` of the box of another object. `choose` draws some of this number of others.
    pub(crate) fn keep_pasted(
        &mut self,
        own: &Self,
        max_overlap: f64,
        choose: impl FnOnce(usize) -> Vec<bool>,
    ) -> Option<BitMask> {
        let may_be = |object: &usize| {
            let is_crowd = self.objects.crowd.get(*object).copied().unwrap_or(false);
            let values = self.objects.boxes[*object];
            let mut others = own.objects.boxes.iter();
            !is_crowd
                && (self.mask(*object)).is_some_and(|mask| mask.area() > 0)
                && others.all(|other| share_inside(*other, values) <= max_overlap)
        };
        let candidates: Vec<_> = (0..self.objects.len()).filter(may_be).collect();
        let chosen = choose(candidates.len());
        let mut keep = vec![false; self.objects.len()];
        for (object, is_chosen) in candidates.into_iter().zip(chosen) {
            keep[object] = is_chosen;
        }
        self.objects.retain(&keep);
        // What its own picture dropped is no loss of this one.
        self.drops = Default::default();
        let masks = || (0..self.objects.len()).filter_map(|object| self.mask(object));
        let around = masks().filter_map(BitMask::bounds).reduce(union)?;
        let mut all = BitMask::within(around);
        masks().for_each(|mask| all.unite(mask));
        Some(all)
    }

    /// Removes pasted pixels from the masks. The box of an object that lost pixels becomes that of
    /// the others. One of which less than `least` is left, or no pixel, is dropped. Keypoints below
    /// are no longer visible.
    pub(crate) fn cover(&mut self, pasted: &BitMask, least: f64) {
        let objects = &mut self.objects;
        let mut keep = Vec::with_capacity(objects.len());
        for (number, values) in objects.number.iter().zip(&mut objects.boxes) {
            let Some(mask) = self.masks.get_mut(*number as usize) else {
                keep.push(true);
                continue;
            };
            let before = mask.area();
            let lost = mask.remove(|x, y| pasted.contains(x, y));
            let share = (before - lost) as f64 / before as f64;
            match mask.bounds() {
                _ if lost == 0 => keep.push(true),
                Some(rest) if share >= least => {
                    *values = edges(rest);
                    keep.push(true);
                }
                _ => keep.push(false),
            }
        }
        let keypoints = &mut objects.keypoints;
        for ([x, y], seen) in keypoints.points.iter().zip(&mut keypoints.visibility) {
            let is_inside = *x >= 0.0 && *y >= 0.0;
            if is_inside && pasted.contains(*x as u32, *y as u32) {
                *seen = (*seen).min(1);
            }
        }
        self.drops.hidden += keep.iter().filter(|keep| !**keep).count() as u32;
        self.objects.retain(&keep);
    }

    /// The mask of an object. None if masks do not move along.
    fn mask(&self, object: usize) -> Option<&BitMask> {
        self.masks.get(self.objects.number[object] as usize)
    }
}

fn union(a: PixelRect, b: PixelRect) -> PixelRect {
    let (left, top) = (a.left.min(b.left), a.top.min(b.top));
    let right = (a.left + a.width).max(b.left + b.width);
    let bottom = (a.top + a.height).max(b.top + b.height);
    PixelRect {
        left,
        top,
        width: right - left,
        height: bottom - top,
    }
}
