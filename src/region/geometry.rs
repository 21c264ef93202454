//! Where things stand in a slice: pure arithmetic.
//!
//! ```text
//! base                                                                            base + bytes
//! | class bytes | heap class bytes | heads           | span records | maps    | room | compounds ...     |
//! | 1 a run     | 1 a run          | 64 B a compound | 576 B a run  | see Map |      | 2 MiB each        |
//! ```
//! All parts are readable from the start (a wild pointer never faults) and writable from the first
//! compound's entry up to the frontier's; the maps from the slice's opening on, and the room as it is
//! used; heap class bytes only once there are Heaps.  What a cut unmaps of them: see [`super::extent`].

use crate::base::config::{
    COMPOUND_BYTES, ROOM_BYTES_MIN, ROOM_FRACTION, RUN_BYTES, RUNS_PER_COMPOUND, SPAN_RECORD_BYTES,
};

/// Bytes of the bits of 64 compounds: see [`super::free::Map`].
pub(super) const MAP_BYTES: usize = 32;
/// Bytes of a compound's head.
pub(super) const HEAD_BYTES: usize = 64;

/// Offsets from a slice's base, in bytes, of the parts of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Length of the slice.
    pub(crate) bytes: usize,
    /// Heap class bytes.
    pub(crate) heap_classes: usize,
    /// Bits of compounds.
    pub(crate) maps: usize,
    /// Heads of compounds.
    pub(crate) heads: usize,
    /// Span records.
    pub(crate) spans: usize,
    /// Room for records without a fixed place.
    pub(crate) room: usize,
    /// End of the room.
    pub(crate) room_end: usize,
    /// Number of the first compound that is memory.
    pub(crate) first: u32,
    /// Number past the last compound.
    pub(crate) end: u32,
    /// A base page, in bytes.
    pub(crate) page: usize,
}

impl Geometry {
    /// The geometry of slices of `bytes`, a power of two of at least 32 MiB.
    #[expect(clippy::cast_possible_truncation, reason = "a slice has at most 2^19 compounds")]
    pub(crate) const fn of(bytes: usize, page: usize) -> Self {
        let runs = bytes / RUN_BYTES;
        let compounds = bytes / COMPOUND_BYTES;
        let heap_classes = runs.next_multiple_of(page);
        let heads = heap_classes + runs.next_multiple_of(page);
        let spans = heads + (compounds * HEAD_BYTES).next_multiple_of(page);
        let maps = spans + (runs * SPAN_RECORD_BYTES).next_multiple_of(page);
        let room = maps + (compounds.div_ceil(64) * MAP_BYTES).next_multiple_of(page);
        let wanted = bytes / ROOM_FRACTION;
        let room_bytes = if wanted < ROOM_BYTES_MIN { ROOM_BYTES_MIN } else { wanted };
        let room_end = (room + room_bytes).next_multiple_of(COMPOUND_BYTES);
        Self {
            bytes,
            heap_classes,
            maps,
            heads,
            spans,
            room,
            room_end,
            first: (room_end / COMPOUND_BYTES) as u32,
            end: compounds as u32,
            page,
        }
    }

    /// The tables with one entry a compound: offset, and bytes an entry.
    pub(super) const fn tables(&self) -> [(usize, usize); 3] {
        let spans = (self.spans, RUNS_PER_COMPOUND * SPAN_RECORD_BYTES);
        [(0, RUNS_PER_COMPOUND), (self.heads, HEAD_BYTES), spans]
    }

    /// One of the three tables after the class bytes, by its place: offset, and bytes a compound.
    pub(super) const fn table_by_compound(&self, place: usize) -> (usize, usize) {
        match place {
            1 => (self.heap_classes, RUNS_PER_COMPOUND),
            2 => (self.heads, HEAD_BYTES),
            _ => (self.spans, RUNS_PER_COMPOUND * SPAN_RECORD_BYTES),
        }
    }

    /// Binary logarithm of the slice's bytes.
    pub(crate) const fn shift(&self) -> usize {
        self.bytes.trailing_zeros() as usize
    }

    /// Runs of the slice.
    pub(crate) const fn runs(&self) -> usize {
        self.bytes / RUN_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, HEAD_BYTES, MAP_BYTES};
    use crate::base::config::ROOM_STEP;

    #[test]
    fn parts_follow_each_other_and_leave_most_of_the_slice() {
        for shift in 25..=40 {
            for page in [4096, 16384, 65536] {
                let geometry = Geometry::of(1 << shift, page);
                let compounds = geometry.end as usize;
                assert!(geometry.heap_classes >= geometry.runs());
                assert!(geometry.heads >= geometry.heap_classes + geometry.runs());
                assert!(geometry.spans >= geometry.heads + compounds * HEAD_BYTES);
                assert!(geometry.maps >= geometry.spans + geometry.runs() * 576);
                assert!(geometry.room >= geometry.maps + compounds.div_ceil(64) * MAP_BYTES);
                assert!(geometry.room_end > geometry.room);
                assert!(geometry.first < geometry.end / 4, "{geometry:?}");
                assert!(geometry.room.is_multiple_of(page) && geometry.spans.is_multiple_of(page));
            }
        }
    }

    #[test]
    fn pages_of_entries_stay_within_their_part() {
        for shift in 25..=40 {
            for page in [4096, 16384, 65536] {
                let geometry = Geometry::of(1 << shift, page);
                let [classes, heads, spans] = geometry.tables();
                let heap_classes = geometry.table_by_compound(1);
                let parts = [
                    (classes, geometry.heap_classes),
                    (heap_classes, geometry.heads),
                    (heads, geometry.spans),
                    (spans, geometry.maps),
                ];
                for ((table, bytes), next) in parts {
                    // What is committed, and what a cut leaves, is rounded to pages at both ends.
                    let start = (table + geometry.first as usize * bytes) / page * page;
                    let end = (table + geometry.end as usize * bytes).next_multiple_of(page);
                    assert!(table <= start && start < end && end <= next, "{geometry:?}");
                }
                assert!(ROOM_STEP.is_multiple_of(page) && geometry.maps.is_multiple_of(page));
            }
        }
    }
}
