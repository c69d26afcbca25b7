//! Removes stuffed bytes and markers from coded data (ITU-T T.81, B.1.1.5), all at once.
//!
//! Ends where the CPU decoder's stream ends: at a marker other than the restart marker that is due,
//! at several 0xff before a stuffed zero, and at the end of the file.

use super::super::kernels::DecodeKernels;

/// Unstuffs `from` into `out`, and stores the end of each segment in `ends`. Stops after as many
/// segments as `ends` has. Returns the bytes written, or `None` if `out` is too small or the data
/// have fewer segments.
pub(super) fn unstuff(
    kernels: impl DecodeKernels,
    from: &[u8],
    out: &mut [u8],
    ends: &mut [u32],
) -> Option<usize> {
    let (last, ends) = ends.split_last_mut()?;
    let mut restarts = ends.iter_mut();
    let (mut at, mut end, mut due) = (0, 0, 0xD0);
    loop {
        let rest = from.get(at..)?;
        let to = out.get_mut(end..)?;
        let mut clean = kernels.copy_clean(rest, to);
        if clean == 0 {
            let bytes = rest.iter().zip(to).take_while(|(byte, _)| **byte != 0xFF);
            clean = bytes.map(|(from, to)| *to = *from).count();
        }
        at += clean;
        end += clean;
        let Some(&next) = from.get(at) else { break };
        if next != 0xFF {
            // Only a part was copied, or `out` is full.
            if end == out.len() {
                return None;
            }
            continue;
        }
        let rest = &from[at..];
        let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
        match rest.get(fill) {
            Some(0) if fill == 1 => {
                *out.get_mut(end)? = 0xFF;
                end += 1;
            }
            Some(&marker) if marker == due => {
                let Some(restart) = restarts.next() else {
                    break;
                };
                *restart = end as u32;
                due = 0xD0 | (due + 1) & 7;
            }
            _ => break,
        }
        at += fill + 1;
    }
    *last = end as u32;
    restarts.next().is_none().then_some(end)
}
