//! Order statistics of a few noisy numbers.

/// The quantile `numerator / denominator` of `values`, interpolated; `values` need not be sorted.
///
/// # Panics
/// When `values` is empty.
#[must_use]
pub fn quantile(values: &[f64], numerator: usize, denominator: usize) -> f64 {
    let sorted = sorted(values);
    let scaled = (sorted.len() - 1) * numerator;
    let (low, rest) = (scaled / denominator, scaled % denominator);
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * (rest as f64 / denominator as f64)
}

/// The median.
///
/// # Panics
/// When `values` is empty.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 1, 2)
}

/// The distance between the quartiles: half of the values lie within it.
///
/// # Panics
/// When `values` is empty.
#[must_use]
pub fn interquartile_range(values: &[f64]) -> f64 {
    quantile(values, 3, 4) - quantile(values, 1, 4)
}

/// The smallest value.
///
/// # Panics
/// When `values` is empty.
#[must_use]
pub fn minimum(values: &[f64]) -> f64 {
    quantile(values, 0, 1)
}

/// An interval that holds the true median with the probability `coverage`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability, 0 to 1.
    pub coverage: f64,
}

/// The sign test's interval for the median: the narrowest pair of order statistics that covers at
/// least 95 %, or the whole range when there are too few values (five or less) for that.
///
/// Assumes nothing of the distribution. Conover, Practical Nonparametric Statistics, section 3.2.
///
/// # Panics
/// When `values` is empty.
#[must_use]
pub fn sign_interval(values: &[f64]) -> Interval {
    let sorted = sorted(values);
    let last = sorted.len() - 1;
    let mut probability = 0.5_f64.powf(sorted.len() as f64);
    let mut tail = probability;
    let mut cut = 0;
    // `tail` is the chance that at most `cut` values lie below the true median.
    for next in 1..=last / 2 {
        probability *= (sorted.len() + 1 - next) as f64 / next as f64;
        if 2.0 * (tail + probability) > 0.05 {
            break;
        }
        tail += probability;
        cut = next;
    }
    Interval { low: sorted[cut], high: sorted[last - cut], coverage: 1.0 - 2.0 * tail }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_to(n: u32) -> Vec<f64> {
        (1..=n).rev().map(f64::from).collect()
    }

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(quantile(&one_to(5), 1, 4), 2.0);
        assert_eq!(interquartile_range(&one_to(5)), 2.0);
    }

    #[test]
    fn one_value_is_every_quantile() {
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(minimum(&[7.0]), 7.0);
        assert_eq!(interquartile_range(&[7.0]), 0.0);
    }

    #[test]
    fn the_sign_interval_has_the_textbook_ranks() {
        // n = 15: ranks 4 and 12, coverage 96.5 %; n = 6: the whole range, 96.9 %.
        let fifteen = sign_interval(&one_to(15));
        assert_eq!((fifteen.low, fifteen.high), (4.0, 12.0));
        assert!((fifteen.coverage - 0.9648).abs() < 1e-4);
        let six = sign_interval(&one_to(6));
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((six.coverage - 0.96875).abs() < 1e-9);
    }

    #[test]
    fn too_few_values_give_the_whole_range_and_say_so() {
        let five = sign_interval(&one_to(5));
        assert_eq!((five.low, five.high), (1.0, 5.0));
        assert!(five.coverage < 0.95);
    }
}
