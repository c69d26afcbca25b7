//! Other members of samples in tar shards, in place of their images.
//!
//! In the consumer, before a run. Reads headers of tars only.

use crate::data::index::Index;
use crate::data::index::binary_form::IndexContent;
use crate::data::index::names::shown;
use crate::data::index::shards::column_reader::walk_members;
use crate::error::{Error, Result};

/// For each of the samples `images` its member with this extension, such as `seg.png`, as an index
/// of the same shards. `option` names them in errors.
///
/// # Errors
/// Samples that are no members of tars on this machine; a sample without such a member; a shard that
/// cannot be read.
pub(crate) fn open_parts(images: &Index, extension: &str, option: &'static str) -> Result<Index> {
    let wanted = extension.trim_start_matches('.').to_ascii_lowercase();
    let refused = |what: String| Error::option(option, format!("{option}: {what}"));
    if !images.has_tars() {
        return Err(refused(format!(
            "`member` names '{wanted}' beside images in tar shards, and these images are in none: \
             give `files`"
        )));
    }
    let layout = &images.layout;
    if layout.are_scattered() {
        return Err(refused(
            "`member` reads shards one after the other, and this index mixes their samples: give \
             the shards"
                .into(),
        ));
    }
    let bytes = images.sealed.bytes();
    let mut content = IndexContent::default();
    let (mut stamps, mut open) = (Vec::new(), None);
    for id in 0..images.len() {
        let mut found = None;
        let mut known = Vec::new();
        walk_members(images, id, |_, member, this| {
            if this == wanted {
                found = Some((member.name.clone(), member.data_at, member.size));
                return Ok(false);
            }
            known.push(this.to_owned());
            Ok(true)
        })?;
        let Some((name, at, size)) = found else {
            return Err(Error::dataset(
                images.path(id),
                format!(
                    "sample {id} has no member '{}', and each image needs its {option} (members of \
                     this sample: {}): name another, or leave this sample out",
                    shown(wanted.as_bytes()),
                    shown(known.join(", ").as_bytes())
                ),
            ));
        };
        // Each sample was found in its shard.
        let shard = images.part(id).map_or(0, |part| part.shard);
        if open.replace(shard) != Some(shard) {
            content.begin_form(layout.shard_path(bytes, shard), layout.form(bytes, shard));
            stamps.push(layout.stamp(bytes, shard).unwrap_or_default());
        }
        content.push_part(&name, at, size);
    }
    let index = Index::seal(images.root(), content)?;
    index.rebased(images.root(), &stamps)
}
