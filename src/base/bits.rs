//! Bit searches in one 64-bit map.

/// Bits `first .. first + count` set; `count` is 1 to 64 and the range fits the word.
pub(crate) const fn range(first: u32, count: u32) -> u64 {
    (u64::MAX >> (64 - count)) << first
}

/// The lowest position of `count` adjacent zero bits in `map`.
pub(crate) const fn find_zeros(map: u64, count: u32) -> Option<u32> {
    // `free` keeps a bit where `len` zeros start; doubling reaches `count` in six steps.
    let mut free = !map;
    let mut len = 1;
    while len < count && free != 0 {
        let step = if len * 2 <= count { len } else { count - len };
        free &= free >> step;
        len += step;
    }
    if free == 0 { None } else { Some(free.trailing_zeros()) }
}

/// The position of the highest set bit at or below `at`.
pub(crate) const fn last_set_at_or_below(map: u64, at: u32) -> Option<u32> {
    let below = map & (u64::MAX >> (63 - at));
    if below == 0 { None } else { Some(63 - below.leading_zeros()) }
}

/// The lowest `count` zero bits of `map`, as a mask; fewer when there are fewer.
pub(crate) const fn lowest_zeros(map: u64, count: u32) -> u64 {
    let mut free = !map;
    if free.count_ones() <= count {
        return free;
    }
    let mut taken = 0;
    let mut left = count;
    while left > 0 {
        let bit = free & free.wrapping_neg();
        taken |= bit;
        free ^= bit;
        left -= 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::{find_zeros, last_set_at_or_below, lowest_zeros, range};

    fn naive(map: u64, count: u32) -> Option<u32> {
        (0..=64 - count).find(|&at| map & range(at, count) == 0)
    }

    #[test]
    fn zeros_are_found_where_a_naive_search_finds_them() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            for count in 1..=64 {
                let map = seed & seed.rotate_left(count);
                assert_eq!(find_zeros(map, count), naive(map, count), "{map:#x} {count}");
            }
        }
        assert_eq!(find_zeros(0, 64), Some(0));
        assert_eq!(find_zeros(1, 64), None);
        assert_eq!(find_zeros(u64::MAX, 1), None);
    }

    #[test]
    fn the_last_set_bit_is_at_or_below() {
        assert_eq!(last_set_at_or_below(0b1001, 63), Some(3));
        assert_eq!(last_set_at_or_below(0b1001, 2), Some(0));
        assert_eq!(last_set_at_or_below(0b1000, 2), None);
        assert_eq!(last_set_at_or_below(u64::MAX, 0), Some(0));
    }

    #[test]
    fn the_lowest_zeros_are_taken() {
        assert_eq!(lowest_zeros(0b0101, 2), 0b1010);
        assert_eq!(lowest_zeros(u64::MAX, 3), 0);
        assert_eq!(lowest_zeros(0, 64), u64::MAX);
        assert_eq!(lowest_zeros(u64::MAX >> 1, 5), 1 << 63);
    }
}
