//! A span: runs cut into equal objects, with a record of its own in the slice's metadata.
//!
//! ```text
//! byte 0   used      32  objects out: set bits
//! byte 4   carved    32  objects that were ever out: the memory past them was never touched
//! byte 8   next      32  next on the pool's list, by run number; 0 is none
//! byte 12  prev      32  previous; 0 is none
//! byte 16  listed    32  1 while on the pool's list
//! byte 20  hint      32  no word before this one has a zero bit
//! byte 64  bits      64 words, bit o: object o is out; bits past the last object are set for good
//! ```
//! All of it is written under the pool's lock.  Each bit changes by one store of its word: what is
//! allocated is the bits, and the rest of the record follows from them, in a child of fork, too.
#![allow(unsafe_code, reason = "the record stands in its slice's metadata")]

use crate::base::bits;
use crate::base::classes::{OBJECTS_PER_SPAN_MAX, Shape};
use crate::base::config::SPAN_RECORD_BYTES;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::region::Slice;
use crate::sys::mem;

/// A span's record.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Span {
    used: AtomicU32,
    carved: AtomicU32,
    /// Next on the pool's list, by run number; 0 is none.
    pub(super) next: AtomicU32,
    /// Previous on the pool's list, by run number; 0 is none.
    pub(super) prev: AtomicU32,
    /// 1 while on the pool's list.
    pub(super) listed: AtomicU32,
    hint: AtomicU32,
    rest: [AtomicU32; 10],
    bits: [AtomicU64; OBJECTS_PER_SPAN_MAX / 64],
}

/// Why an object could not come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It was never out.
    NeverOut,
    /// It is back already.
    NotOut,
}

impl Span {
    /// The record of the span that starts at run `run` of `slice`.
    pub(super) fn at(slice: &Slice, run: usize) -> &'static Self {
        // SAFETY: each run has its record there; it is writable below the frontier, and a span's runs are.
        unsafe { mem::record(slice.span_record(run)) }
    }

    /// Starts a span with no object out.
    pub(super) fn begin(&self, shape: &Shape) {
        for field in [&self.used, &self.carved, &self.next, &self.prev, &self.listed, &self.hint] {
            field.store(0, Ordering::Relaxed);
        }
        let words = shape.objects.div_ceil(64) as usize;
        for word in self.bits.iter().take(words) {
            word.store(0, Ordering::Relaxed);
        }
        self.bits[words - 1].store(tail(shape), Ordering::Relaxed);
    }

    /// Takes up to `objects.len()` objects out, the lowest first; how many.
    pub(super) fn take(&self, shape: &Shape, start: usize, objects: &mut [usize]) -> usize {
        let words = shape.objects.div_ceil(64);
        let mut taken = 0;
        let mut word = self.hint.load(Ordering::Relaxed);
        let mut carved = self.carved.load(Ordering::Relaxed);
        while word < words && taken < objects.len() {
            let room = u32::try_from(objects.len() - taken).unwrap_or(u32::MAX);
            let now = self.bits[word as usize].load(Ordering::Relaxed);
            let mut mask = bits::lowest_zeros(now, room);
            self.bits[word as usize].store(now | mask, Ordering::Relaxed);
            while mask != 0 {
                let object = word * 64 + mask.trailing_zeros();
                mask &= mask - 1;
                objects[taken] = start + object as usize * shape.size as usize;
                taken += 1;
                carved = carved.max(object + 1);
            }
            if taken < objects.len() {
                word += 1;
            }
        }
        self.carved.store(carved, Ordering::Relaxed);
        self.hint.store(word.min(words - 1), Ordering::Relaxed);
        let used = self.used() + u32::try_from(taken).unwrap_or(0);
        self.used.store(used, Ordering::Relaxed);
        taken
    }

    /// Takes object `object` back; how many are still out.
    pub(super) fn give(&self, object: u32) -> Result<u32, Refusal> {
        if object >= self.carved.load(Ordering::Relaxed) {
            return Err(Refusal::NeverOut);
        }
        let bit = 1 << (object % 64);
        let word = &self.bits[object as usize / 64];
        let before = word.load(Ordering::Relaxed);
        if before & bit == 0 {
            return Err(Refusal::NotOut);
        }
        word.store(before & !bit, Ordering::Relaxed);
        if object / 64 < self.hint.load(Ordering::Relaxed) {
            self.hint.store(object / 64, Ordering::Relaxed);
        }
        let used = self.used() - 1;
        self.used.store(used, Ordering::Relaxed);
        Ok(used)
    }

    /// Whether object `object` is out: for its user, or when nobody takes or gives.
    pub(super) fn is_out(&self, object: u32) -> Result<(), Refusal> {
        if object >= self.carved.load(Ordering::Relaxed) {
            return Err(Refusal::NeverOut);
        }
        let word = self.bits[object as usize / 64].load(Ordering::Relaxed);
        if word >> (object % 64) & 1 == 0 { Err(Refusal::NotOut) } else { Ok(()) }
    }

    /// Objects out.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    /// Set bits of objects: what [`Span::used`] follows from.
    pub(super) fn count(&self, shape: &Shape) -> u32 {
        let words = shape.objects.div_ceil(64) as usize;
        let set: u32 = self
            .bits
            .iter()
            .take(words)
            .map(|word| word.load(Ordering::Relaxed).count_ones())
            .sum();
        set - tail(shape).count_ones()
    }

    /// After a fork: the counts follow from the bits.
    pub(super) fn recount(&self, shape: &Shape) {
        self.used.store(self.count(shape), Ordering::Relaxed);
        self.hint.store(0, Ordering::Relaxed);
        self.listed.store(0, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        self.prev.store(0, Ordering::Relaxed);
    }
}

/// The bits of the last word that stand for no object.
fn tail(shape: &Shape) -> u64 {
    u64::MAX
        .checked_shl(shape.objects % 64)
        .filter(|_| !shape.objects.is_multiple_of(64))
        .unwrap_or(0)
}

const _: () = assert!(size_of::<Span>() == SPAN_RECORD_BYTES);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::{Refusal, Span};
    use crate::base::classes::{Class, OBJECTS_PER_SPAN_MAX};
    use crate::base::sync::{AtomicU32, AtomicU64};

    /// The address of a span whose memory nobody reads.
    const START: usize = 1 << 30;

    fn used_before() -> Span {
        let word = || AtomicU32::new(u32::MAX);
        Span {
            used: word(),
            carved: word(),
            next: word(),
            prev: word(),
            listed: word(),
            hint: word(),
            rest: [const { AtomicU32::new(0) }; 10],
            bits: [const { AtomicU64::new(u64::MAX) }; OBJECTS_PER_SPAN_MAX / 64],
        }
    }

    fn fresh(class: Class) -> Span {
        let span = used_before();
        span.begin(class.shape());
        span
    }

    fn below(seed: &mut u64, end: usize) -> usize {
        *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(*seed >> 33).expect("31 bits") % end
    }

    #[test]
    fn objects_go_out_and_come_back_as_a_set_does() {
        let mut seed = 5;
        for class in Class::all() {
            let shape = class.shape();
            let span = fresh(class);
            let mut out = std::vec![false; shape.objects as usize];
            for _ in 0..if cfg!(miri) { 8 } else { 300 } {
                let wanted = 1 + below(&mut seed, 40);
                if below(&mut seed, 2) == 0 {
                    let mut objects = [0; 40];
                    let got = span.take(shape, START, &mut objects[..wanted]);
                    let free: Vec<_> =
                        (0..out.len()).filter(|&object| !out[object]).take(wanted).collect();
                    let expected: Vec<_> =
                        free.iter().map(|object| START + object * shape.size as usize).collect();
                    assert_eq!(objects[..got], expected[..], "the lowest free objects go out");
                    free.into_iter().for_each(|object| out[object] = true);
                } else {
                    for _ in 0..wanted {
                        let object = below(&mut seed, out.len());
                        let given = span.give(u32::try_from(object).expect("small"));
                        assert_eq!(given.is_ok(), out[object]);
                        out[object] = false;
                    }
                }
                let count = out.iter().filter(|&&is_out| is_out).count();
                assert_eq!(
                    [span.used(), span.count(shape)],
                    [u32::try_from(count).expect("small"); 2]
                );
            }
            span.recount(shape);
            assert_eq!(span.used(), span.count(shape));
        }
    }

    #[test]
    fn an_object_comes_back_once() {
        for class in Class::all() {
            let span = fresh(class);
            assert_eq!(span.take(class.shape(), START, &mut [0]), 1);
            assert_eq!(span.is_out(0), Ok(()));
            assert_eq!(span.give(0), Ok(0));
            assert_eq!(span.is_out(0), Err(Refusal::NotOut));
            assert_eq!(span.give(0), Err(Refusal::NotOut));
            assert_eq!(span.used(), 0);
        }
    }

    #[test]
    fn an_object_that_was_never_out_does_not_come_back() {
        for class in Class::all() {
            let span = fresh(class);
            assert_eq!(span.give(0), Err(Refusal::NeverOut));
            span.take(class.shape(), START, &mut [0]);
            for object in [1, class.shape().objects, class.shape().objects + 1, 4096] {
                assert_eq!(span.is_out(object), Err(Refusal::NeverOut), "{object} of {class:?}");
                assert_eq!(span.give(object), Err(Refusal::NeverOut), "{object} of {class:?}");
            }
            assert_eq!(span.used(), 1);
        }
    }

    #[test]
    fn a_full_span_has_none_to_take() {
        for class in Class::all() {
            let shape = class.shape();
            let span = fresh(class);
            let mut objects = [0; 32];
            let mut out = 0;
            while out < shape.objects {
                out += u32::try_from(span.take(shape, START, &mut objects)).expect("32 at most");
            }
            assert_eq!([out, span.used(), span.count(shape)], [shape.objects; 3]);
            assert_eq!(span.take(shape, START, &mut objects), 0);
        }
    }
}
