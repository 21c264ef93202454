//! Size classes: from a request's size to the index of the objects that serve it.
//!
//! | class | object sizes | step |
//! |---|---|---|
//! | 0 | none: "take the slow path" | |
//! | 1 | 8 bytes, for `GlobalAlloc` alone: C wants 16-byte alignment | |
//! | 2 to 9 | 16 to 128 bytes | 16 bytes |
//! | 10 to 113 | 144 bytes to 1 MiB | eight a doubling: at most 12.5 % waste |
//!
//! The assembler of the fast path computes the same function: a table up to
//! [`TABLE_MAX`], [`geometric`] above it.

use core::alloc::Layout;

use super::config::{BATCH_BYTES, BATCH_MAX, REMOTE_BYTES_EACH, RUN_BYTES};

/// A size class: 1 to [`CLASSES`] - 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Class(u8);

/// Classes, class 0 included.
pub(crate) const CLASSES: usize = 114;
/// Largest size that a class serves, in bytes.
pub const CLASS_BYTES_MAX: usize = 1 << 20;
/// Largest size that goes through the table, in bytes.
pub const TABLE_MAX: usize = 1024;
/// Classes 1 to this one wait on a CPU of another node to go home together.
pub const REMOTE_CLASSES: usize = class_of(REMOTE_BYTES_EACH) as usize;
/// Largest size whose classes are 16 bytes apart.
const LINEAR_MAX: usize = 128;
/// Object bits of one span: a bitmap's length.
pub(crate) const OBJECTS_PER_SPAN_MAX: usize = RUN_BYTES / 8;
/// Most runs that a class's span has.
#[cfg(test)]
const SPAN_RUNS_MAX: u32 = 32;

/// What one class's objects and spans look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Object size, in bytes.
    pub(crate) size: u32,
    /// Runs of a span.
    pub(crate) runs: u32,
    /// Objects of a span.
    pub(crate) objects: u32,
    /// Objects moved at once between a CPU's slab and the layers below.
    pub(crate) batch: u32,
    /// `ceil(2^40 / size)`: an offset times this, shifted right by 40, is its object's index.
    inverse: u64,
}

/// Class by `(size + 7) / 8`, for sizes up to [`TABLE_MAX`]; never the 8-byte class.
pub static TABLE: [u8; TABLE_MAX / 8 + 1] = {
    let mut table = [2; TABLE_MAX / 8 + 1];
    let mut i = 1;
    while i < table.len() {
        table[i] = class_of(i * 8);
        i += 1;
    }
    table
};

/// [`TABLE`] for layouts, whose size is rounded up to their alignment: up to 8 bytes, that is an 8-byte
/// object's.  A constant, not a static: another crate sees its values.
const LAYOUT_TABLE: [u8; TABLE.len()] = {
    let mut table = TABLE;
    table[1] = Class::EIGHT.0;
    table
};

/// Shapes by class.
pub(crate) static SHAPES: [Shape; CLASSES] = {
    let mut shapes = [Shape { size: 0, runs: 0, objects: 0, batch: 0, inverse: 0 }; CLASSES];
    let mut class = 1;
    while class < CLASSES {
        shapes[class] = shape_of(size_of_class(class));
        class += 1;
    }
    shapes
};

/// What the assembler subtracts after it has used `log - 3` for `log`.
pub const GEOMETRIC_BIAS: usize = 30;

/// The class of sizes over [`LINEAR_MAX`], without a table: eight steps between powers of two.
const fn geometric(size: usize) -> usize {
    let below = size - 1;
    let log = below.ilog2() as usize;
    8 * (log - 3) + (below >> (log - 3)) - GEOMETRIC_BIAS
}

#[expect(clippy::cast_possible_truncation, reason = "a class is below 114")]
const fn class_of(size: usize) -> u8 {
    if size <= LINEAR_MAX { (size.div_ceil(16) + 1) as u8 } else { geometric(size) as u8 }
}

const fn size_of_class(class: usize) -> usize {
    if class == 1 {
        return 8;
    }
    if class <= 9 {
        return (class - 1) * 16;
    }
    let step = class - 10;
    (9 + step % 8) << (4 + step / 8)
}

#[expect(clippy::cast_possible_truncation, reason = "sizes are at most 1 MiB")]
const fn shape_of(size: usize) -> Shape {
    let mut runs = 1;
    // The shortest span that wastes at most a sixteenth behind its last object.
    while runs * RUN_BYTES < size || (runs * RUN_BYTES % size) * 16 > runs * RUN_BYTES {
        runs += 1;
    }
    let batch = clamp(BATCH_BYTES / size, 1, BATCH_MAX);
    Shape {
        size: size as u32,
        runs: runs as u32,
        objects: (runs * RUN_BYTES / size) as u32,
        batch: batch as u32,
        inverse: (1_u64 << 40).div_ceil(size as u64),
    }
}

const fn clamp(value: usize, low: usize, high: usize) -> usize {
    if value < low {
        low
    } else if value > high {
        high
    } else {
        value
    }
}

/// `size` rounded up to `align`, a power of two; neither is so large that this overflows, which is
/// not checked where this is inlined.
const fn rounded(size: usize, align: usize) -> usize {
    size.wrapping_add(align).wrapping_sub(1) & align.wrapping_neg()
}

impl Class {
    /// The class of 8-byte objects, aligned to 8 bytes.
    pub(crate) const EIGHT: Self = Self(1);

    /// The class that serves `size` bytes at 16-byte alignment; none above [`CLASS_BYTES_MAX`].
    pub(crate) const fn of_size(size: usize) -> Option<Self> {
        if size > CLASS_BYTES_MAX {
            None
        } else if size == 0 {
            Some(Self(2))
        } else {
            Some(Self(class_of(size)))
        }
    }

    /// The class that serves `size` bytes at `align`, a power of two: its size is a multiple of
    /// `align`, and spans start at runs, so alignments up to a run come for free.
    ///
    /// The smallest class for the size rounded up to the alignment is that class: between powers of
    /// two, class sizes are the multiples of one step, and a multiple of `align` is either made of such
    /// steps, and a class size itself, or `align` divides the step.
    pub(crate) const fn of_layout(size: usize, align: usize) -> Option<Self> {
        if align > RUN_BYTES || size > CLASS_BYTES_MAX {
            return None;
        }
        match rounded(size, align) {
            0 => Self::of_size(align),
            1..=8 => Some(Self::EIGHT),
            size => Self::of_size(size),
        }
    }

    /// [`Self::of_layout`] for callers that inline it: none above [`TABLE_MAX`].  Of a constant layout it
    /// makes a constant; of any other, a comparison and a look-up.
    #[inline]
    pub(crate) const fn of_small_layout(layout: Layout) -> Option<Self> {
        let size = rounded(layout.size(), layout.align());
        if size > TABLE_MAX { None } else { Some(Self(LAYOUT_TABLE[size.div_ceil(8)])) }
    }

    /// [`Self::of_layout`] by the look-up alone: none above [`TABLE_MAX`].
    #[inline]
    pub(crate) fn of_small(size: usize, align: usize) -> Option<Self> {
        if size > TABLE_MAX || align > TABLE_MAX {
            return None;
        }
        let size = rounded(if size == 0 { 1 } else { size }, align);
        if size > TABLE_MAX { None } else { Some(Self(LAYOUT_TABLE[size.div_ceil(8)])) }
    }

    /// The class that a class byte names; none for 0.
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        if byte == 0 || byte as usize >= CLASSES { None } else { Some(Self(byte)) }
    }

    /// The class byte.
    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    /// The class as an index.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// What the class's objects and spans look like.
    pub(crate) fn shape(self) -> &'static Shape {
        &SHAPES[self.index()]
    }

    /// All classes, smallest first.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (1..=u8::MAX).map_while(Self::from_byte)
    }
}

impl Shape {
    /// The index of the object at `offset` bytes from its span's start; none when no object
    /// starts there.
    pub(crate) const fn index_of(&self, offset: usize) -> Option<u32> {
        let index = self.index_around(offset);
        if index < self.objects && index as usize * self.size as usize == offset {
            Some(index)
        } else {
            None
        }
    }

    /// The index of the object that holds the byte at `offset`, as if the span had no end.
    pub(crate) const fn index_around(&self, offset: usize) -> u32 {
        ((offset as u64 * self.inverse) >> 40) as u32
    }
}

const _: () = assert!(class_of(CLASS_BYTES_MAX) as usize == CLASSES - 1);
const _: () = assert!(size_of_class(CLASSES - 1) == CLASS_BYTES_MAX);

#[cfg(test)]
mod tests {
    use core::alloc::Layout;

    use super::{
        CLASS_BYTES_MAX, CLASSES, Class, OBJECTS_PER_SPAN_MAX, SHAPES, SPAN_RUNS_MAX, TABLE,
        TABLE_MAX, geometric,
    };

    #[test]
    fn a_class_holds_its_sizes_and_wastes_an_eighth_at_most() {
        for size in (0..=CLASS_BYTES_MAX).step_by(if cfg!(miri) { 4099 } else { 1 }) {
            let class = Class::of_size(size).expect("up to 1 MiB");
            let object = class.shape().size as usize;
            assert!(object >= size);
            assert!(size <= 128 || (object - size) * 8 <= object, "{size} in {object}");
            assert!(object.is_multiple_of(16));
        }
        assert_eq!(Class::of_size(CLASS_BYTES_MAX + 1), None);
    }

    #[test]
    fn the_table_and_the_formula_agree() {
        for size in 0..=TABLE_MAX {
            assert_eq!(TABLE[size.div_ceil(8)], Class::of_size(size).expect("small").byte());
            assert!(size <= 128 || usize::from(TABLE[size.div_ceil(8)]) == geometric(size));
        }
    }

    #[test]
    fn sizes_rise_with_classes() {
        assert!(SHAPES.windows(2).all(|pair| pair[0].size < pair[1].size));
        assert_eq!(Class::all().count(), CLASSES - 1);
    }

    #[test]
    fn spans_fit_their_bitmap_and_a_compound() {
        for class in Class::all() {
            let shape = class.shape();
            assert!(shape.objects as usize <= OBJECTS_PER_SPAN_MAX && shape.objects >= 1);
            assert!(shape.runs <= SPAN_RUNS_MAX, "{shape:?}");
        }
    }

    #[test]
    fn an_object_is_found_by_its_offset_and_by_no_other() {
        for class in Class::all() {
            let shape = class.shape();
            let step = if cfg!(miri) { 509 } else { 1 };
            for index in (0..shape.objects).step_by(step) {
                let offset = index as usize * shape.size as usize;
                assert_eq!(shape.index_of(offset), Some(index));
                assert_eq!(shape.index_of(offset + 1), None);
                assert_eq!(shape.index_around(offset + shape.size as usize - 1), index);
            }
            assert_eq!(shape.index_of(shape.objects as usize * shape.size as usize), None);
        }
    }

    #[test]
    fn a_layouts_class_is_the_smallest_whose_size_keeps_its_alignment() {
        let step = if cfg!(miri) { 97 } else { 1 };
        for align in (0..=15).map(|shift| 1_usize << shift) {
            for size in (1..5000).step_by(step).chain((5000..=CLASS_BYTES_MAX).step_by(1021 * step))
            {
                let keeps = |class: &Class| {
                    let object = class.shape().size as usize;
                    object >= size && object.is_multiple_of(align)
                };
                let found = Class::of_layout(size, align);
                assert_eq!(found, Class::all().find(keeps), "{size} bytes at {align}");
            }
            assert!(
                Class::of_layout(0, align)
                    .is_some_and(|class| class.shape().size as usize >= align)
            );
        }
        assert_eq!(Class::of_layout(1, 1 << 16), None);
        assert_eq!(Class::of_layout(CLASS_BYTES_MAX + 1, 1), None);
        assert_eq!(Class::of_layout(usize::MAX, 16), None);
    }

    #[test]
    fn a_look_up_finds_the_class_of_every_size_and_alignment() {
        for align in (0..=20).map(|shift| 1_usize << shift) {
            for size in 0..=2 * TABLE_MAX {
                if let Some(class) = Class::of_small(size, align) {
                    assert_eq!(Some(class), Class::of_layout(size.max(1), align));
                } else {
                    assert!(size.next_multiple_of(align).max(align) > TABLE_MAX);
                }
            }
        }
        assert_eq!(Class::of_small(usize::MAX, 16), None);
    }

    #[test]
    fn a_small_layouts_class_is_the_layouts_class() {
        for align in (0..=15).map(|shift| 1_usize << shift) {
            for size in 1..=2 * TABLE_MAX {
                let layout = Layout::from_size_align(size, align).expect("a small layout");
                let expected = Class::of_layout(size, align);
                let expected = expected.filter(|_| size.next_multiple_of(align) <= TABLE_MAX);
                assert_eq!(Class::of_small_layout(layout), expected, "{layout:?}");
            }
        }
    }
}
