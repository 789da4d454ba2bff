//! What a script demands of its own metrics.

use load::{Check, Metrics};

use crate::template::expression::{Expression, Operand};

/// A condition over metrics.
#[derive(Debug)]
pub(crate) struct Goal {
    /// As written.
    pub(crate) text: String,
    pub(crate) expression: Expression,
    pub(crate) weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The run fails if it does not hold.
    Required,
    /// It is only reported.
    Optional,
}

impl Goal {
    pub(crate) fn check(&self, metrics: &Metrics) -> Check {
        let names = self.expression.names();
        let number = |index: usize| metrics.value(&names[index]).unwrap_or(f64::NAN);
        let measured = names.iter().map(|name| match metrics.value(name) {
            Some(value) => format!("{name} = {}", (value * 1000.0).round() / 1000.0),
            None => format!("{name} = nothing"),
        });
        Check {
            expression: self.text.clone(),
            strict: self.weight == Weight::Required,
            passed: self.expression.holds(&|index| Operand::Number(number(index))),
            measured: measured.collect::<Vec<_>>().join(", "),
        }
    }
}
