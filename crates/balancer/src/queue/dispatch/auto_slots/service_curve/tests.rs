use super::*;

/// A curve of this many requests for each number at work, whose service time is this in milliseconds.
fn curve(
    numbers: std::ops::RangeInclusive<usize>,
    each: u64,
    time: fn(usize) -> f64,
) -> ServiceCurve {
    let mut curve = ServiceCurve::default();
    for round in 0..each {
        for number in numbers.clone() {
            let varied = 0.8 + 0.4 * (round as f64 + 0.5) / each as f64;
            curve.add(number, Duration::from_secs_f64(varied * time(number) / 1000.0));
        }
    }
    curve
}

#[test]
fn the_knee_is_where_requests_begin_to_wait() {
    let pool_of_4 = |number: usize| 20.0 * (number as f64 / 4.0).max(1.0);
    assert_eq!(curve(1..=8, 40, pool_of_4).knee().slots(), Some(4));
    assert_eq!(curve(1..=4, 40, |number| 20.0 * number as f64).knee().slots(), Some(1));
}

#[test]
fn requests_that_do_not_disturb_one_another_have_no_knee() {
    assert_eq!(curve(1..=8, 40, |_| 100.0).knee(), Knee::Above);
}

/// Other backends were busier at first. Then they share what limits them.
#[test]
fn times_that_fall_and_rise_are_not_flat() {
    let shared = |number: usize| if number <= 8 { 1000.0 } else { 30.0 * number as f64 };
    assert_eq!(curve(8..=33, 20, shared).knee(), Knee::Unknown);
}

#[test]
fn a_number_that_is_always_the_same_tells_nothing() {
    assert_eq!(curve(50..=50, 100, |_| 100.0).knee(), Knee::Unknown);
    assert_eq!(curve(1..=8, 2, |number| 20.0 * number as f64).knee(), Knee::Unknown);
}

/// All of them wait, so it is not known how few would do.
#[test]
fn the_knee_is_below_an_overload() {
    assert_eq!(curve(20..=60, 10, |number| 20.0 * number as f64).knee(), Knee::Below);
}

#[test]
fn a_few_slow_answers_are_no_knee() {
    let mut curve = curve(1..=8, 20, |_| 5.0);
    for _ in 0..2 {
        curve.add(7, Duration::from_millis(200));
    }
    assert!(!matches!(curve.knee(), Knee::At(_)), "{:?}", curve.knee());
}

#[test]
fn a_backend_that_became_faster_is_learned_anew() {
    let mut curve = curve(1..=4, 40, |number| 30.0 * number as f64);
    for _ in 0..100 {
        curve.add(1, Duration::from_millis(10));
    }
    assert_eq!(curve.knee(), Knee::Unknown);
}
