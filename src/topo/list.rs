//! The kernel's lists: ranges, `0-1,4\n` (Documentation/admin-guide/kernel-parameters, "cpu lists"), and
//! distances, `10 20 30\n`.

/// The numbers of a list, in its order; stops at the first thing that is no number or range.
pub(super) fn numbers(text: &[u8]) -> impl Iterator<Item = u32> {
    let text = core::str::from_utf8(text.trim_ascii_end()).unwrap_or_default();
    text.split(',').map_while(range).flatten()
}

fn range(part: &str) -> Option<core::ops::RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let first = first.parse().ok()?;
    let last = last.parse().ok()?;
    (first <= last).then_some(first..=last)
}

/// The distances of a list, in its order; stops at the first thing that is none.
pub(super) fn distances(text: &[u8]) -> impl Iterator<Item = u8> {
    let text = core::str::from_utf8(text).unwrap_or_default();
    text.split_ascii_whitespace().map_while(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{distances, numbers};

    fn check(text: &[u8], expected: &[u32]) {
        assert!(numbers(text).eq(expected.iter().copied()), "{text:?}");
    }

    #[test]
    fn lists_with_holes_are_read_in_full() {
        check(b"0\n", &[0]);
        check(b"0-1\n", &[0, 1]);
        check(b"0,2\n", &[0, 2]);
        check(b"0-1,8-9\n", &[0, 1, 8, 9]);
        check(b"1-2,5", &[1, 2, 5]);
    }

    #[test]
    fn nonsense_ends_the_list() {
        check(b"", &[]);
        check(b"x,1", &[]);
        check(b"3,5-4,6", &[3]);
    }

    #[test]
    fn distances_end_with_the_first_that_is_none() {
        assert!(distances(b"10 20 255\n").eq([10, 20, 255]));
        assert!(distances(b"10 256 30\n").eq([10]));
        assert!(distances(b"").eq([]));
    }
}
