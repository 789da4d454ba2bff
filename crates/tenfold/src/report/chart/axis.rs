//! Where a value stands on an axis, and its ticks.

/// From values to pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
    /// Pixels of the least and of the largest value.
    from: f32,
    to: f32,
    pub ticks: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Axis {
    /// From 0 to a round number of at least `most`, with about this many ticks.
    pub fn from_zero(most: f64, (from, to): (f32, f32), ticks: usize) -> Axis {
        let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
        let step = round_step(most / ticks as f64);
        let steps = (most / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as u32).map(|n| f64::from(n) * step).collect();
        Axis { scale: Scale::Linear, least: 0.0, most: steps * step, from, to, ticks }
    }

    /// Logarithmic, with ticks at 1, 2 and 5, or at 1 alone where there are many.
    pub fn logarithmic(least: f64, most: f64, (from, to): (f32, f32)) -> Axis {
        let decades = (most / least).log10();
        let digits: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
        let all =
            powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        let ticks = all.filter(|tick| (least..=most).contains(tick)).collect();
        Axis { scale: Scale::Logarithmic, least, most, from, to, ticks }
    }

    /// Whole numbers from `first` to `last`, of which `room` labels fit.
    pub fn counts(first: usize, last: usize, (from, to): (f32, f32), room: usize) -> Axis {
        let margin = 0.4;
        let mut step = 1;
        while (last - first) / step + 1 > room.max(2) {
            step = round_step((step + 1) as f64) as usize;
        }
        let whole = (first..=last).filter(|n| n % step == 0 || (*n == 1 && step > 1));
        let ticks = whole.map(|n| n as f64).collect();
        let (least, most) = (first as f64 - margin, last as f64 + margin);
        Axis { scale: Scale::Linear, least, most, from, to, ticks }
    }

    /// Where a value stands. Beyond the axis it stands at its end.
    pub fn at(&self, value: f64) -> f32 {
        let share = match self.scale {
            Scale::Linear => (value - self.least) / (self.most - self.least),
            Scale::Logarithmic => {
                (value.max(self.least) / self.least).ln() / (self.most / self.least).ln()
            }
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0) as f32
    }
}

/// The next of 1, 2, 5, 10, 20 and so on.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0].into_iter();
    digits.map(|digit| digit * power).find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(least)
}

/// A number at an axis: no more digits than its step needs.
pub fn plain(value: f64) -> String {
    let digits = format!("{value:.3e}").parse().unwrap_or(value);
    format!("{digits}")
}

/// A time (ms) at an axis.
pub fn time(ms: f64) -> String {
    match ms {
        0.0 => "0".to_owned(),
        ms if ms < 1.0 => format!("{} us", plain(ms * 1e3)),
        ms if ms < 1000.0 => format!("{} ms", plain(ms)),
        ms => format!("{} s", plain(ms / 1e3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = Axis::from_zero(159.0, (200.0, 0.0), 4);
        assert_eq!(axis.ticks, [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!((axis.at(0.0), axis.at(100.0), axis.at(999.0)), (200.0, 100.0, 0.0));
        let wide = Axis::logarithmic(8.0, 600.0, (100.0, 0.0));
        assert_eq!(wide.ticks, [10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(wide.at(0.0), 100.0);
        let counts = |last, room| Axis::counts(1, last, (0.0, 100.0), room).ticks;
        assert_eq!(counts(4, 20), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(counts(32, 8), [1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
    }

    #[test]
    fn values_that_cannot_be_drawn_make_an_axis_all_the_same() {
        for most in [0.0, f64::INFINITY, f64::NAN] {
            assert_eq!(Axis::from_zero(most, (0.0, 1.0), 4).ticks, [0.0, 0.5, 1.0], "{most}");
        }
        assert_eq!(Axis::counts(7, 7, (0.0, 10.0), 0).at(7.0), 5.0);
    }

    #[test]
    fn times_at_an_axis_have_a_unit() {
        assert_eq!([0.0, 0.25, 250.0, 2500.0].map(time), ["0", "250 us", "250 ms", "2.5 s"]);
        assert_eq!(plain(0.1 * 3.0), "0.3");
    }
}
