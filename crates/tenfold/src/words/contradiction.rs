//! Where an answer contradicts itself.

use capacity::Contradiction;

use super::number::{counted, rate};
use super::trial;

/// Both parts, in a sentence.
pub fn describe(contradiction: &Contradiction) -> String {
    let instances = |n: usize| counted(n, "instance");
    match *contradiction {
        Contradiction::Prediction { instances: n, predicted, low, high, measured } => format!(
            "for {} the model says {} requests/s ({} - {}), and {} were measured",
            instances(n),
            rate(predicted),
            rate(low),
            rate(high),
            rate(measured)
        ),
        Contradiction::Saturated { instances: n, predicted, low, high, measured } => format!(
            "for {} with every slot busy the model says {} requests/s ({} - {}), and {} were measured",
            instances(n),
            rate(predicted),
            rate(low),
            rate(high),
            rate(measured)
        ),
        Contradiction::Carried { instances: n, carried, measured } => format!(
            "the model says that the cores carry {} requests/s, and {} completed {}",
            rate(carried),
            instances(n),
            rate(measured)
        ),
        Contradiction::OneMore { instances: n, before, after } => format!(
            "the model says that one more than {} would not help, and it raised {} requests/s to {}",
            instances(n),
            rate(before),
            rate(after)
        ),
        Contradiction::Reason { limited_by } => {
            format!("{limited_by} is given as the reason, and nothing measured shows it")
        }
        Contradiction::Trial { change, shows } => format!(
            "{} speaks for {shows}, and nothing else that was measured does",
            trial::change(change)
        ),
        Contradiction::Remedy { limited_by, instances: n } => format!(
            "{limited_by} asks for more instances, and the model says that more than {} would not help",
            instances(n)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_said() {
        let said = describe(&Contradiction::Prediction {
            instances: 2,
            predicted: 245.3,
            low: 240.0,
            high: 250.0,
            measured: 512.0,
        });
        let expected =
            "for 2 instances the model says 245 requests/s (240 - 250), and 512 were measured";
        assert_eq!(said, expected);
    }
}
