//! Statistics of measurements. Pure.

/// The middle value, or the mean of the two in the middle; `None` for an empty list.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let (low, high) = (values.get(n.checked_sub(1)? / 2)?, values.get(n / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Slope of the least-squares line through points (x, y); `None` without two different x.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x0, y0) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - x0).powi(2)).sum();
    let common: f64 = points.iter().map(|(x, y)| (x - x0) * (y - y0)).sum();
    (spread > 0.0).then(|| common / spread)
}

/// Median of the last `n` values minus median of the first `n`; `None` for fewer than 2n values.
pub fn growth(values: &[f64], n: usize) -> Option<f64> {
    if n == 0 || values.len() < 2 * n {
        return None;
    }
    let first = median(values[..n].to_vec())?;
    let last = median(values[values.len() - n..].to_vec())?;
    Some(last - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![7.0]), Some(7.0));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn the_slope_is_that_of_least_squares() {
        let line = [1.0, 2.0, 4.0, 8.0, 16.0].map(|x| (x, 60.0 + 1.5 * x));
        assert!((slope(&line).unwrap() - 1.5).abs() < 1e-12);
        // By hand: means (1, 2), products 2 x 3, squares 2.
        let bent = [(0.0, 0.0), (1.0, 3.0), (2.0, 3.0)];
        assert!((slope(&bent).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(slope(&[(4.0, 1.0)]), None);
        assert_eq!(slope(&[(4.0, 1.0), (4.0, 2.0)]), None);
        assert_eq!(slope(&[]), None);
    }

    #[test]
    fn growth_is_the_later_median_less_the_earlier() {
        let values = [50.0, 10.0, 10.0, 10.0, 11.0, 12.0, 13.0, 13.0, 13.0, 99.0];
        assert_eq!(growth(&values, 5), Some(3.0));
        assert_eq!(growth(&values[1..], 5), None);
        assert_eq!(growth(&values, 0), None);
    }
}
