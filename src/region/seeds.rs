//! Slices where address space is limited from the start: of each only its seeds are mapped (see
//! [`super::lengthen`]).

use core::ops::Range;

use super::extent::{Extent, PARTS};
use super::geometry::Geometry;
use super::lengthen::note_left;
use super::{align_of, geometry, publish};
use crate::base::config::{LIMIT_TIMES, PLACES_TRIED, SLICE_BYTES_MIN};
use crate::sys::mem;

/// Maps the seeds of `nodes` slices that may come to be up to `most` bytes long, a power of two, where a limit
/// leaves `left`: the first slice's address.  Their geometry is published.
pub(super) fn sow(nodes: usize, most: usize, left: usize, page: usize) -> Option<usize> {
    // Where the system hands out address space now; it goes on downwards from there.
    let top = mem::reserve(0, page).ok()?;
    mem::release(top, page);
    let mut bytes = left.next_power_of_two().saturating_mul(LIMIT_TIMES);
    bytes = bytes.clamp(SLICE_BYTES_MIN, most);
    while bytes >= SLICE_BYTES_MIN {
        publish(Geometry::of(bytes, page));
        let align = align_of(bytes);
        let total = nodes * bytes;
        let mut end = top.checked_sub(left)?;
        for _ in 0..PLACES_TRIED {
            let Some(base) = end.checked_sub(total + align).map(|base| base / align * align) else {
                break;
            };
            if base > 0 && sow_at(base, nodes) {
                note_left(Some(left.saturating_sub(nodes * seeds().mapped())));
                return Some(base);
            }
            end = base;
        }
        bytes /= 2;
    }
    None
}

/// What is mapped of each slice at first.
pub(super) fn seeds() -> Extent {
    let geometry = geometry();
    Extent { end: geometry.first, room_end: geometry.room, has_holes: true }
}

/// The parts of one slice that are mapped at first, by its base.
fn parts(base: usize) -> impl Iterator<Item = Range<usize>> {
    (0..PARTS).map(move |number| {
        let part = seeds().part(number);
        base + part.start..base + part.end
    })
}

pub(super) fn sow_at(base: usize, nodes: usize) -> bool {
    let bases = || (0..nodes).map(|node| base + node * geometry().bytes);
    let all = || bases().flat_map(parts);
    let compounds = geometry().room_end;
    let is_table = |part: &Range<usize>| (part.start - base) % geometry().bytes < compounds;
    let done = all()
        .take_while(|part| mem::reserve_at(part.start, part.len(), is_table(part)).is_ok())
        .count();
    let is_done = done == nodes * PARTS;
    if !is_done {
        all().take(done).for_each(|part| {
            mem::release(part.start, part.len());
        });
    }
    is_done
}
