//! Which keypoints change places in a mirrored picture, by their names.

/// Keypoints of an object, at most. COCO-WholeBody has 133, and DeepFashion2 294.
pub(super) const MOST_KEYPOINTS: usize = 1000;

/// For each keypoint the one that takes its place: `left_eye` and `right_eye`, `l_eye` and `r_eye`.
/// Empty if no name has a side, or if one lacks its partner: then the swap is not known.
pub(super) fn keypoint_swap(names: &[String]) -> Vec<usize> {
    let mut has_side = false;
    let mut swap = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Some(other) = mirrored(name) else {
            swap.push(at);
            continue;
        };
        has_side = true;
        match names.iter().position(|name| *name == other) {
            Some(partner) => swap.push(partner),
            None => return Vec::new(),
        }
    }
    let is_mutual = (0..swap.len()).all(|at| swap[swap[at]] == at);
    match has_side && is_mutual {
        true => swap,
        false => Vec::new(),
    }
}

/// The name of the other side. None if the name has no side.
fn mirrored(name: &str) -> Option<String> {
    const SIDES: [(&str, &str); 3] = [("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT")];
    for (left, right) in SIDES {
        for (from, to) in [(left, right), (right, left)] {
            if name.contains(from) {
                return Some(name.replacen(from, to, 1));
            }
        }
    }
    const LETTERS: [(&str, &str); 4] = [("l", "r"), ("r", "l"), ("L", "R"), ("R", "L")];
    let mut start = 0;
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let end = start + part.len();
        if let Some((_, to)) = LETTERS.iter().find(|(from, _)| *from == part) {
            return Some([&name[..start], to, &name[end..]].concat());
        }
        start = end + name[end..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<usize> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        keypoint_swap(&names)
    }

    #[test]
    fn sides_are_in_names() {
        assert_eq!(of(&["nose", "left_eye", "right_eye"]), [0, 2, 1]);
        assert_eq!(of(&["L_Eye", "R_Eye", "neck"]), [1, 0, 2]);
        assert_eq!(of(&["eye-l", "tail", "eye-r"]), [2, 1, 0]);
        assert_eq!(of(&["LeftHand", "RightHand"]), [1, 0]);
        assert_eq!(of(&["hand.é.l", "hand.é.r"]), [1, 0]);
        assert!(of(&["1", "2"]).is_empty());
        assert!(of(&["left_eye", "nose"]).is_empty());
        assert!(of(&["left_eye", "left_eye", "right_eye"]).is_empty());
        assert!(of(&[]).is_empty());
    }
}
