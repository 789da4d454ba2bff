//! Variables, texts with holes, conditions, and quantities such as `2s`.

pub(crate) mod expression;
pub(crate) mod quantity;
pub(crate) mod scope;
pub(crate) mod text;
