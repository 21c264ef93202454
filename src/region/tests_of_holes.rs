//! Slices with holes: they grow when they are full, and never over another map.

extern crate std;

use std::vec::Vec;

use super::extent::{Extent, PARTS};
use super::seeds::{seeds, sow_at};
use super::tests::alone;
use super::{Slice, geometry};
use crate::base::config::{COMPOUND_BYTES, LENGTHEN_STEP};
use crate::base::ids::CompoundId;
use crate::sys::{fault, mem};

/// A slice of its own of which only the seeds are mapped, at a place where nothing else is.
fn sown(slice: &'static Slice) -> &'static Slice {
    let bytes = geometry().bytes;
    let start = mem::reserve(0, bytes + COMPOUND_BYTES).expect("address space");
    mem::release(start, bytes + COMPOUND_BYTES);
    let base = start.next_multiple_of(COMPOUND_BYTES);
    assert!(sow_at(base, 1), "nothing is there");
    slice.place(base, seeds());
    slice
}

/// Takes single compounds until there are no more.
fn take_all(slice: &Slice) -> Vec<CompoundId> {
    let taken = core::iter::repeat_with(|| slice.take(1, 1).map(|taken| taken.first));
    taken.map_while(Result::ok).inspect(|&id| write(slice, id)).collect()
}

fn write(slice: &Slice, id: CompoundId) {
    for at in [0, COMPOUND_BYTES - 8] {
        mem::link(slice.base() + id.offset() + at).store(1, crate::base::sync::Ordering::Relaxed);
    }
}

/// Holes of a slice, by their first bytes: each byte there may be mapped by others.
fn holes_are_free(slice: &Slice) -> bool {
    let extent = slice.extent();
    let ends = (0..PARTS).map(|number| slice.base() + extent.part(number).end);
    let starts = (1..PARTS).map(|number| slice.base() + extent.part(number).start);
    ends.zip(starts.chain([slice.base() + geometry().bytes])).all(|(hole, end)| {
        let is_free = hole == end || mem::reserve_at(hole, end - hole, false).is_ok();
        if is_free {
            mem::release(hole, end - hole);
        }
        is_free
    })
}

#[test]
fn a_slice_with_holes_grows_to_its_whole_length() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = sown(&SLICE);
    assert!(holes_are_free(slice));
    assert_eq!(slice.open(), Ok(()));
    let [short, long] = [1, 40].map(|count| slice.take(count, 1).expect("memory").first);
    assert!(slice.end() < geometry().end);
    let room = slice.room(1 << 20).expect("room for records");
    mem::link(room + (1 << 20) - 8).store(1, crate::base::sync::Ordering::Relaxed);
    assert!(holes_are_free(slice));
    let taken = take_all(slice);
    assert_eq!(taken.len() + 41, (geometry().end - geometry().first) as usize);
    assert!(holes_are_free(slice));
    slice.put(short, 1);
    slice.put(long, 40);
    taken.into_iter().for_each(|id| slice.put(id, 1));
    slice.purge();
}

#[test]
fn a_map_in_the_way_is_left_alone() {
    static SLICES: [Slice; PARTS - 1] = [const { Slice::new() }; PARTS - 1];
    let _alone = alone();
    for (index, slice) in SLICES.iter().enumerate() {
        let slice = sown(slice);
        assert_eq!(slice.open(), Ok(()));
        // What the part would grow over: entries of compound 160, or some of the room.
        let goal = Extent { end: 160, room_end: geometry().room_end, has_holes: true };
        let page = geometry().page;
        let place = slice.base() + goal.part(index + 1).end - page;
        mem::reserve_at(place, page, true).expect("a hole");
        let room = core::iter::repeat_with(|| slice.room(64 << 10)).take_while(Result::is_ok);
        let taken_room = room.count();
        let taken = take_all(slice);
        let last = taken.last().expect("the slice has some").0;
        assert_eq!(last < 160, index != 3, "{index}: {last}");
        assert!(last > 100 && slice.has(last) && !slice.has(last + 1));
        // The map is as long as it was: what is behind it is free.
        assert!(mem::reserve_at(place, page, true).is_err());
        mem::release(place, page);
        assert!(holes_are_free(slice));
        assert_eq!(slice.room(64 << 10).is_ok(), index == 3, "{index}: {taken_room}");
        assert_eq!(slice.take(1, 1).is_ok(), index != 3);
    }
}

#[test]
fn a_refusal_maps_nothing() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = sown(&SLICE);
    assert_eq!(slice.open(), Ok(()));
    // Where every part has to be made longer, each of the calls fails once, and all that come after it.
    let end = geometry().first + 128;
    for calls in 0..4 {
        assert!(fault::fail_after("mremap", calls, 100));
        assert!(slice.take(128, 1).is_err(), "{calls} calls are granted");
        assert!(fault::fail_after("mremap", 1000, 1));
        assert_eq!(slice.end(), geometry().first);
        assert!(holes_are_free(slice), "{calls} calls are granted");
    }
    // A smaller step may be granted where a large one is not.
    assert!(fault::fail_after("mremap", 0, 1));
    let first = slice.take(128, 1).expect("memory").first;
    assert_eq!(slice.end(), end);
    slice.put(first, 128);
    slice.purge();
}

#[test]
fn a_slice_grows_on_after_what_it_gave_up_could_not_be_unmapped() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = sown(&SLICE);
    assert_eq!(slice.open(), Ok(()));
    // Some parts are made longer, then neither the others nor the way back are to be had.
    assert!(fault::fail_after("mremap", 2, 100) && fault::fail_after("munmap", 0, 1000));
    assert!(slice.take(64, 1).is_err());
    assert!(fault::fail_after("mremap", 1000, 1) && fault::fail_after("munmap", 100_000, 1));
    let first = slice.take(64, 1).expect("memory").first;
    slice.put(first, 64);
    slice.purge();
    // A cut that the system refuses leaves what it cuts off.
    assert!(fault::fail_after("munmap", 0, 1000));
    slice.cut(0);
    assert!(fault::fail_after("munmap", 100_000, 1));
    let first = slice.take(128, 1).expect("memory").first;
    slice.put(first, 128);
    slice.purge();
    slice.cut(0);
    assert!(holes_are_free(slice));
}

#[test]
fn what_was_given_up_comes_back_fresh() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = sown(&SLICE);
    assert_eq!(slice.open(), Ok(()));
    let one = slice.take(1, 1).expect("memory").first;
    for _ in 0..3 {
        let end = slice.end();
        slice.cut(0);
        assert_eq!(slice.end(), slice.frontier() + 1);
        assert!(slice.end() <= end && holes_are_free(slice));
        let taken = slice.take(10, 1).expect("memory");
        assert!(taken.zeroed);
        (0..10).for_each(|number| write(slice, CompoundId(taken.first.0 + number)));
    }
    let fresh = slice.take_fresh(1).expect("one is kept for handlers");
    write(slice, fresh);
    assert!(slice.end() - slice.frontier() <= LENGTHEN_STEP);
    slice.put(one, 1);
    slice.purge();
}
