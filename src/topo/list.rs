//! The kernel's list format: `0-1,4\n`.  Kernel: Documentation/admin-guide/kernel-parameters, "cpu lists".

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

#[cfg(test)]
mod tests {
    use super::numbers;

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
}
